#include "solvers/papers/fbpd_kernels/fused_rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "prox/vector_loops.hpp"
#include "solvers/papers/fbpd_kernels/fused_calls.hpp"

namespace sparsvm {

namespace {

static_assert(FusedRows::lanes == fused::lanes);

/// Places by what they bear: first those that move, as they are, then the others, the least first.
std::vector<std::int64_t> order_of(const std::vector<double>& tolerance, std::int64_t& moving) {
  std::vector<std::int64_t> order(tolerance.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto at = [&](std::int64_t p) { return tolerance[static_cast<std::size_t>(p)]; };
  const auto middle = std::stable_partition(order.begin(), order.end(),
                                            [&](std::int64_t p) { return !(at(p) >= 0.0); });
  std::stable_sort(middle, order.end(),
                   [&](std::int64_t p, std::int64_t q) { return at(p) < at(q); });
  moving = middle - order.begin();
  return order;
}

}  // namespace

bool FusedRows::suits(const Design& X, std::int64_t outputs) {
  const std::int64_t n = X.n(), d = X.d(), weights = d * outputs;
  if (!has_packs() || X.sparse() || d == 0) return false;
  if (outputs > most_outputs || weights > most_weights) return false;
  if (2 * n < d && weights > few_weights) return false;
  if (fused::wide_registers() || d <= most_features) return true;
  return outputs > 1 && (n * d <= most_entries || weights <= few_weights_in_four);
}

FusedRows::FusedRows(const Design& X, std::int64_t outputs, const double* mass,
                     const double* margins, const double* own)
    : design_(&X), samples_(X.n()), blocks_((X.n() + lanes - 1) / lanes), features_(X.d()),
      outputs_(outputs),
      // What is gathered in every pass should lie in the second cache.
      at_once_(X.n() * X.d() <= most_entries ? blocks_
                                             : std::max<std::int64_t>(1, 16384 / (lanes * X.d()))),
      moving_(X.n()), X_(at_once_ * lanes * X.d()), lift_(0),
      mass_(static_cast<std::size_t>(blocks_ * lanes)), threshold_(mass_.size()),
      share_(mass_.size(), 1.0), label_(mass_.size(), -1), place_(static_cast<std::size_t>(X.n())),
      own_gradient_(static_cast<std::size_t>(X.d() * outputs)),
      own_sums_(static_cast<std::size_t>(outputs)), moved_((outputs + 1) * lanes),
      partial_(fused::width * X.d() * outputs), totals_(fused::width * outputs),
      weights_((X.d() + 1) * outputs), rows_(0), by_class_(0),
      where_(static_cast<std::size_t>(X.d())) {
  const std::int64_t n = X.n();
  std::copy(mass, mass + n, mass_.begin());
  std::iota(place_.begin(), place_.end(), std::int64_t{0});
  sample_ = place_;
  if (keeps_X()) gather(0, n);
  // A sample without mass has any class for its own: it never rests, but is looked at like the others.
  if (outputs > 1) std::fill(label_.begin(), label_.begin() + n, 0);
  for (std::int64_t e = 0; e < n * outputs; ++e) {
    if (own[e] > 0.0)
      label_[static_cast<std::size_t>(e / outputs)] = static_cast<std::int32_t>(e % outputs);
  }
  if (outputs == 1 || entries() <= most_margins || !find_even_margins(margins)) {
    // A row without mass beyond the last sample has one entry that counts, whose projection is 0.
    lift_ = Workspace(entries());
    for (std::int64_t i = 0; i < blocks_ * lanes; ++i) {
      for (std::int64_t k = 0; k < outputs; ++k) {
        const double beyond = k == 0 ? 0.0 : -1e200;
        lift_.data()[position(i, k, outputs)] = i < n ? margins[i * outputs + k] : beyond;
      }
    }
  }
  find_base();
}

/// Whether all classes of a sample but the true one have the same margin; if so, by how much less that of
/// the true one is, which tells as much to a projection.
bool FusedRows::find_even_margins(const double* margins) {
  own_lift_.assign(mass_.size(), 1e200);  // an entry that counts beyond the last sample
  for (std::int64_t i = 0; i < samples_; ++i) {
    const double* row = margins + i * outputs_;
    const std::int64_t label = label_[static_cast<std::size_t>(i)];
    const double others = row[label == 0 ? 1 : 0];
    for (std::int64_t k = 0; k < outputs_; ++k) {
      if (k != label && row[k] != others) return false;
    }
    own_lift_[static_cast<std::size_t>(i)] = row[label] - others;
  }
  // Beyond the last sample any class will do.
  own_.resize(label_.size());
  std::transform(label_.begin(), label_.end(), own_.begin(),
                 [](std::int32_t label) { return std::max<double>(label, 0.0); });
  return true;
}

void FusedRows::gather(std::int64_t first, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += lanes) {
    const std::int64_t here = std::min<std::int64_t>(lanes, count - i);
    double* X = X_.data() + i * features_;
    if (here % fused::width != 0) std::fill(X, X + lanes * features_, 0.0);
    design_->gather_samples(sample_.data() + first + i, here, lanes, X);
  }
}

fused::Pass FusedRows::all(std::int64_t active, double* dual) {
  return {features_,
          outputs_,
          active,
          where_.data(),
          weights_.data(),
          weights_.data() + features_ * outputs_,
          X_.data(),
          mass_.data(),
          own_.empty() ? lift_.data() : nullptr,
          own_.empty() ? nullptr : own_.data(),
          own_lift_.data(),
          threshold_.data(),
          share_.data(),
          dual,
          moved_.data(),
          partial_.data(),
          totals_.data(),
          !listed_.rows};
}

void FusedRows::clear_sums() {
  if (listed_.rows) {
    std::fill(listed_.sums, listed_.sums + outputs_ * listed_.length, 0.0);
    return;
  }
  std::fill(partial_.data(), partial_.data() + fused::width * features_ * outputs_, 0.0);
  std::fill(totals_.data(), totals_.data() + fused::width * outputs_, 0.0);
}

void FusedRows::add_up_sums(double* gradient, double* sums) {
  if (listed_.rows) {
    fused::turn(listed_.sums, listed_.length, own_gradient_.data(), {features_, outputs_},
                gradient);
    fused::turn(listed_.sums + features_, listed_.length, own_sums_.data(), {1, outputs_}, sums);
    return;
  }
  fused::add_up(partial_.data(), own_gradient_.data(), features_ * outputs_, gradient);
  fused::add_up(totals_.data(), own_sums_.data(), outputs_, sums);
}

void FusedRows::pass(bool project, std::int64_t active, double* dual, double* along) {
  // What is listed, class by class, should still lie in the second cache.
  const std::int64_t blocks =
      listed_.rows ? std::max<std::int64_t>(1, most_listed / (lanes * outputs_)) : at_once_;
  for (std::int64_t first = 0; first < moving_; first += blocks * lanes) {
    const std::int64_t count = std::min(blocks * lanes, moving_ - first), at = first * outputs_;
    fused::Pass a = fused::at_block(all(active, dual), first / lanes);
    if (!keeps_X()) {
      gather(first, std::min(count, samples_ - first));
      a.X = X_.data();
    }
    fused::some_blocks(a, count, project);
    if (!listed_.rows) continue;
    fused::Listed here = listed_;
    here.rows += first * listed_.length;
    fused::sum_listed(here, dual + at, outputs_, (count + 7) / fused::width,
                      along ? along + at : nullptr);
  }
}

/// Adds all of Y that pass() has not: moving samples in whole blocks, and units at rest, most of which
/// have one entry a sample.
void FusedRows::add_others(const double* dual, double* along) const {
  const std::int64_t blocks = listed_.rows ? 0 : (moving_ + lanes - 1) / lanes;
  const std::int64_t added = blocks * lanes / fused::width;
  flat::add(dual, along, blocks * lanes * outputs_);
  for (std::int64_t unit = std::max(resting_.first(), added); unit < resting_.end(); ++unit) {
    const std::int64_t first = unit * fused::width, at = position(first, 0, outputs_);
    const std::int64_t end = std::min<std::int64_t>(first + fused::width, samples_);
    if (resting_.asleep(unit)) {
      for (std::int64_t p = first; p < end; ++p) {
        along[at + label_[static_cast<std::size_t>(p)] * lanes + p - first] +=
            mass_[static_cast<std::size_t>(p)];
      }
      continue;
    }
    for (std::int64_t k = 0; k < outputs_; ++k) {
      flat::add(dual + at + k * lanes, along + at + k * lanes, fused::width);
    }
  }
}

/// Calls use(pass, samples) with the unit, gathered if need be.
template <typename Use>
void FusedRows::with_unit(std::int64_t unit, const fused::Pass& all, Use use) {
  constexpr std::int64_t units = lanes / fused::width;
  const std::int64_t first = unit * fused::width;
  const std::int64_t count = std::min<std::int64_t>(fused::width, samples_ - first);
  const double* X = X_.data();
  if (keeps_X()) {
    X += unit / units * lanes * features_ + unit % units * fused::width;
  } else {
    gather(first, count);
  }
  use(fused::at_unit(all, unit, X),
      fused::Unit{label_.data() + first, static_cast<int>(count), listed_.rows ? &listed_ : nullptr,
                  listed_.rows ? listed_.rows + first * listed_.length : nullptr});
}

void FusedRows::pass_resting(std::int64_t active, double distance, double* dual) {
  const fused::Pass whole = all(active, dual);
  for (std::int64_t unit = resting_.first(); unit < resting_.end(); ++unit) {
    if (resting_.rests(unit, distance)) continue;
    with_unit(unit, whole, [&](const fused::Pass& a, const fused::Unit& samples) {
      double slack[fused::width];
      std::fill(slack, slack + fused::width, -1.0);
      const bool rests = fused::one_unit(a, samples, resting_.asleep(unit), slack);
      resting_.look(unit, rests, least_tolerance(unit * fused::width, samples.count, slack),
                    distance);
    });
  }
}

double FusedRows::least_tolerance(std::int64_t first, int count, const double* slack) const {
  double least = INFINITY;
  for (int l = 0; l < count; ++l) {
    const std::int64_t i = sample_[static_cast<std::size_t>(first + l)];
    least = std::min(least, slack[l] * tolerance_[static_cast<std::size_t>(i)]);
  }
  return least;
}

std::int64_t FusedRows::load_weights(const Affine& now, double factor) {
  double* b = weights_.data() + features_ * outputs_;
  for (std::int64_t k = 0; k < outputs_; ++k) b[k] = factor * now.intercept[k];
  return fused::load_rows(now.weights, {features_, outputs_}, factor, weights_.data(),
                          where_.data());
}

void FusedRows::step(const double* weights, const double* intercept, double factor, double* dual,
                     double* gradient, double* sums, double* along) {
  const Affine now{weights, intercept, features_, outputs_};
  const std::int64_t active = load_weights(now, factor);
  clear_sums();
  pass(true, active, dual, along);
  if (resting_.any()) {
    const double distance = factor * resting_.distance(now);
    pass_resting(active, distance, dual);
    resting_.end_pass(now, distance);
  }
  if (along) add_others(dual, along);
  add_up_sums(gradient, sums);
}

void FusedRows::gradient(double* dual, double* gradient, double* sums) {
  resting_.clear();
  listed_ = {};
  moving_ = samples_;
  find_base();
  clear_sums();
  pass(false, 0, dual, nullptr);
  add_up_sums(gradient, sums);
}

void FusedRows::find_base() {
  std::vector<double> own(static_cast<std::size_t>(entries()));
  for (std::int64_t p = 0; p < std::min(moving_, samples_); ++p) {
    const std::int64_t label = label_[static_cast<std::size_t>(p)];
    if (label < 0) continue;
    own[static_cast<std::size_t>(position(p, label, outputs_))] =
        mass_[static_cast<std::size_t>(p)];
  }
  std::fill(own_gradient_.begin(), own_gradient_.end(), 0.0);
  std::fill(own_sums_.begin(), own_sums_.end(), 0.0);
  std::vector<double> all(own_gradient_.size()), sums(own_sums_.size());
  clear_sums();
  pass(false, 0, own.data(), nullptr);
  add_up_sums(all.data(), sums.data());
  own_gradient_ = std::move(all);
  own_sums_ = std::move(sums);
}

bool FusedRows::at_rest(std::int64_t place, const double* dual) const {
  const auto p = static_cast<std::size_t>(place);
  return share_[p] == 1.0 && dual[position(place, label_[p], outputs_)] > 0.0;
}

std::vector<double> FusedRows::find_tolerances(std::int64_t active, double* dual) {
  std::vector<double> out(static_cast<std::size_t>(samples_), -1.0);
  const fused::Pass whole = all(active, dual);
  tolerance_.resize(static_cast<std::size_t>(samples_));
  for (std::int64_t first = 0; first < samples_; first += fused::width) {
    with_unit(first / fused::width, whole, [&](const fused::Pass& a, const fused::Unit& unit) {
      double slack[fused::width];
      fused::look_at(a, unit, slack);
      for (int l = 0; l < unit.count; ++l) {
        double square = 1.0;
        for (std::int64_t j = 0; j < features_; ++j)
          square += a.X[j * lanes + l] * a.X[j * lanes + l];
        const double tolerance = tolerance_per_slack(square);
        tolerance_[static_cast<std::size_t>(sample_[static_cast<std::size_t>(first + l)])] =
            tolerance;
        if (at_rest(first + l, dual))
          out[static_cast<std::size_t>(first + l)] = slack[l] * tolerance;
      }
    });
  }
  return out;
}

void FusedRows::arrange(const double* weights, const double* intercept, double factor, double* dual,
                        double* along) {
  if (outputs_ == 1) return;
  const Affine now{weights, intercept, features_, outputs_};
  const std::vector<double> tolerance = find_tolerances(load_weights(now, factor), dual);
  std::int64_t moving = 0;
  const std::vector<std::int64_t> from = order_of(tolerance, moving);
  constexpr std::int64_t width = fused::width;
  moving_ = std::min((moving + width - 1) / width * width, samples_);
  move_places(from, dual, along);
  std::vector<double> allowed;
  for (std::int64_t p = moving_; p < samples_; ++p) {
    const double here = tolerance[static_cast<std::size_t>(from[static_cast<std::size_t>(p)])];
    if (p % width == 0) allowed.push_back(here);  // the least of its unit
    const auto label = label_[static_cast<std::size_t>(p)];
    for (std::int64_t k = 0; k < outputs_; ++k) {
      dual[position(p, k, outputs_)] = k == label ? mass_[static_cast<std::size_t>(p)] : 0.0;
    }
  }
  resting_.set(moving_ / width, std::move(allowed), now);
  choose_sums(dual);
  find_base();
}

/// Lists the entries of Y if those of the moving samples are few enough for it to pay, by about the
/// cycles that either way takes.
void FusedRows::choose_sums(const double* dual) {
  listed_ = {};
  if (!keeps_X() || !fused::lists()) return;
  std::int64_t count = 0;
  for (std::int64_t p = 0; p < moving_; ++p) {
    for (std::int64_t k = 0; k < outputs_; ++k) count += dual[position(p, k, outputs_)] != 0.0;
  }
  const std::int64_t length = fused::Listed::length_for(features_);
  const std::int64_t packs = outputs_ * moving_ / fused::width;
  const std::int64_t each = 2 * count * (2 + length / 8) + 5 * packs + 40 * outputs_;
  const std::int64_t all_of_them = 2 * packs * (features_ + 1) + 6 * features_ * outputs_;
  if (each > all_of_them) return;
  rows_ = Workspace(blocks_ * lanes * length);
  std::fill(rows_.data(), rows_.data() + blocks_ * lanes * length, 0.0);
  for (std::int64_t p = 0; p < samples_; ++p) {
    double* row = rows_.data() + p * length;
    for (std::int64_t j = 0; j < features_; ++j) row[j] = X_.data()[position(p, j, features_)];
    row[features_] = 1.0;
  }
  by_class_ = Workspace(outputs_ * length);
  places_.resize(static_cast<std::size_t>(blocks_ * lanes + 16));
  listed_ = {length, rows_.data(), by_class_.data(), places_.data()};
}

void FusedRows::move_places(const std::vector<std::int64_t>& from, double* dual, double* along) {
  std::vector<double> old;
  const auto move = [&](double* values, std::int64_t columns) {
    old.assign(values, values + blocks_ * lanes * columns);
    for (std::size_t p = 0; p < from.size(); ++p) {
      for (std::int64_t c = 0; c < columns; ++c) {
        values[position(static_cast<std::int64_t>(p), c, columns)] =
            old[static_cast<std::size_t>(position(from[p], c, columns))];
      }
    }
  };
  if (keeps_X()) move(X_.data(), features_);
  if (own_.empty()) move(lift_.data(), outputs_);
  for (double* values : {dual, along}) move(values, outputs_);
  for (std::vector<double>* values : {&mass_, &threshold_, &share_, &own_, &own_lift_}) {
    if (!values->empty()) move(values->data(), 1);
  }
  const std::vector<std::int32_t> label = label_;
  const std::vector<std::int64_t> sample = sample_;
  for (std::size_t p = 0; p < from.size(); ++p) {
    const auto old_place = static_cast<std::size_t>(from[p]);
    label_[p] = label[old_place];
    sample_[p] = sample[old_place];
    place_[static_cast<std::size_t>(sample_[p])] = static_cast<std::int64_t>(p);
  }
}

}  // namespace sparsvm
