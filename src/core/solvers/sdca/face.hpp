// Newton steps of a proximal step's dual on the face of the simplices where it lies.
//
// Sweeps find out which classes of a sample share its mass and which features are used, but then
// settle the values slowly: their rate is that of the condition number. With both fixed the dual
//
//   D(Y) = ⟨Y, r⟩ − Φ(V(Y)) − ‖b(Y)‖²/2σ_b,    ∇Φ = W(V),
//
// is smooth, and conjugate gradients need the root of that number. Only samples with several
// classes take part, each with those classes, and only features in use: a product with the second
// derivative costs a fraction of a sweep; where entries take part, each class with its own, a tiny
// one. The step is followed along its projection on the face.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "problem/problem.hpp"
#include "solvers/sdca/features.hpp"
#include "solvers/sdca/settings.hpp"
#include "support/mmap_vector.hpp"

namespace sparsvm {

class SdcaFace {
 public:
  SdcaFace(const HingeProblem& problem, SdcaFeatures& features)
      : problem_(problem), features_(features), K_(problem.classes), outputs_(problem.outputs()) {
    scratch_.reserve(K_);
    scores_.resize(static_cast<std::size_t>(K_));
    sums_.resize(static_cast<std::size_t>(outputs_));
  }

  bool suits() const { return features_.map().differentiable(); }

  // One step from Y (n x K) and b, which belong to the state of the features; all three move, or
  // none where no step raises D. Returns how many products with D'' it took.
  template <typename Rows, typename Poll>
  int64_t newton_step(Rows& rows, MmapVector<double>& dual, std::vector<double>& intercept,
                      double sigma_b, Poll poll) {
    sigma_b_ = sigma_b;
    features_.refresh();
    collect(rows, dual, intercept);
    if (sample_.empty()) return 0;
    const int64_t products = solve(rows, poll);
    follow(rows, dual, intercept);
    log_damping_ += std::log(damping_), ++steps_;
    return products;
  }
  // The geometric mean of the damping since the last call.
  double take_mean_damping() {
    const double mean = steps_ > 0 ? std::exp(log_damping_ / steps_) : damping_;
    steps_ = 0, log_damping_ = 0.0;
    return mean;
  }
  // Give up the arrays.
  void release() {
    for (auto* list : {&alive_, &place_, &sample_, &class_, &index_}) *list = MmapVector<int32_t>();
    for (auto* list :
         {&x_, &weight_, &base_, &gradient_, &residual_, &step_, &search_, &image_, &pull_})
      *list = MmapVector<double>();
    first_ = row_first_ = MmapVector<int64_t>();
  }

 private:
  using Settings = SdcaSettings;

  // Samples with several classes, their gradients, their entries among the features in use.
  template <typename Rows>
  void collect(Rows& rows, const MmapVector<double>& dual, const std::vector<double>& intercept) {
    alive_.clear();
    if (!features_.by_entries()) number_features();
    make_room(rows, dual);
    for (int64_t i = 0; i < problem_.design->n(); ++i) {
      if (shares(dual, i) == 0) continue;
      const auto row = rows(i);
      std::copy(intercept.begin(), intercept.end(), scores_.begin());
      features_.gather(row, scores_.data());
      add_sample(i, dual.data() + i * K_, row);
    }
    pull_.resize(features_.by_entries() ? features_.entries().feature.size()
                                        : alive_.size() * static_cast<std::size_t>(outputs_));
  }

  void number_features() {
    place_.assign(static_cast<std::size_t>(features_.count()), -1);
    for (int64_t j = 0; j < features_.count(); ++j) {
      if (!sdca_in_use(features_.map(), features_.row(j))) continue;
      place_[j] = static_cast<int32_t>(alive_.size());
      alive_.push_back(static_cast<int32_t>(j));
    }
  }

  // Duals of a sample that move on the face: none where one class has all its mass.
  int64_t shares(const MmapVector<double>& dual, int64_t i) const {
    const double* Y = dual.data() + i * K_;
    const int64_t count = std::count_if(Y, Y + K_, [](double y) { return y > 0.0; });
    return count < 2 ? 0 : outputs_ == 1 ? 1 : count;
  }

  // For just as much as there is: arrays that grow as they are filled would take twice the memory.
  template <typename Rows>
  void make_room(Rows& rows, const MmapVector<double>& dual) {
    std::size_t samples = 0, duals = 0, entries = 0, longest = 0;
    for (int64_t i = 0; i < problem_.design->n(); ++i) {
      const int64_t count = shares(dual, i);
      if (count == 0) continue;
      const auto row = rows(i);
      entries += static_cast<std::size_t>(count_in_use(row, dual.data() + i * K_));
      longest = std::max(longest, static_cast<std::size_t>(row.count));
      duals += static_cast<std::size_t>(count);
      ++samples;
    }
    // Given up first: growing would hold the old and the new one at once.
    const auto empty = [](std::size_t count, auto&... lists) {
      ((lists = std::remove_cvref_t<decltype(lists)>(), lists.reserve(count)), ...);
    };
    empty(samples, sample_);
    empty(samples + 1, first_);
    empty((features_.by_entries() ? duals : samples) + 1, row_first_);
    empty(duals, class_, base_, residual_, weight_);
    const auto bytes = static_cast<int64_t>(entries * (sizeof(double) + sizeof(int32_t)));
    // Otherwise they are picked from the rows for every product.
    copied_ = features_.by_entries() ||
              bytes <= std::max(Settings::kSmallCopy, problem_.design->data_bytes() / 4);
    empty(copied_ ? entries : 0, x_, index_);
    picked_x_.resize(longest), picked_index_.resize(longest);
    first_.push_back(0), row_first_.push_back(0);
  }

  template <typename T>
  int64_t count_in_use(const SampleRow<T>& row, const double*) const {
    return std::count_if(row.index, row.index + row.count,
                         [&](int32_t j) { return place_[j] >= 0; });
  }
  template <typename T>
  int64_t count_in_use(const EntryRow<T>& row, const double* Y) const {
    int64_t count = 0;
    for (int64_t k = 0; k < K_; ++k)
      if (Y[k] > 0.0) count += row.first[k + 1] - row.first[k];
    return count;
  }

  template <typename Row>
  void add_sample(int64_t i, const double* Y, const Row& row) {
    sample_.push_back(static_cast<int32_t>(i));
    if (outputs_ == 1) {
      class_.push_back(0);
      base_.push_back(Y[1]);
      residual_.push_back(scores_[0] + problem_.margin(i, 1) - problem_.margin(i, 0));
    } else {
      for (int64_t k = 0; k < K_; ++k) {
        if (!(Y[k] > 0.0)) continue;
        class_.push_back(static_cast<int32_t>(k));
        base_.push_back(Y[k]);
        residual_.push_back(scores_[k] + problem_.margin(i, k));
      }
    }
    first_.push_back(std::ssize(class_));
    center(residual_, std::ssize(sample_) - 1);
    add_entries(row, std::ssize(sample_) - 1);
  }

  // The entries of a sample, and the preconditioner: the diagonal of D'', or its mean.
  template <typename T>
  void add_entries(const SampleRow<T>& row, int64_t) {
    double curvature = sigma_b_;
    const SampleRow<double> own = pick(row);
    for (int64_t e = 0; e < own.count; ++e)
      curvature += own.x[e] * own.x[e] *
                   sdca_mean_slope(features_.map(), features_.row(alive_[own.index[e]]), outputs_);
    weight_.resize(class_.size(), curvature > 0.0 ? 1.0 / curvature : 1.0);
    if (copied_) {
      x_.insert(x_.end(), own.x, own.x + own.count);
      index_.insert(index_.end(), own.index, own.index + own.count);
    }
    row_first_.push_back(std::ssize(index_));
  }
  template <typename T>
  void add_entries(const EntryRow<T>& row, int64_t s) {
    for (int64_t e = first_[s]; e < first_[s + 1]; ++e) {
      double curvature = sigma_b_;
      for (int64_t at = row.first[class_[e]]; at < row.first[class_[e] + 1]; ++at) {
        const double gain = features_.slope(row.index[at]), x = static_cast<double>(row.x[at]);
        if (gain == 0.0) continue;
        curvature += gain * x * x;
        x_.push_back(x);
        index_.push_back(row.index[at]);
      }
      weight_.push_back(curvature > 0.0 ? 1.0 / curvature : 1.0);
      row_first_.push_back(std::ssize(index_));
    }
  }

  // The entries of features in use, numbered among those; valid until the next call.
  template <typename Row>
  SampleRow<double> pick(const Row& row) {
    int64_t count = 0;
    // Longer than any before only where the caller has changed its indices meanwhile.
    if (std::ssize(picked_x_) < row.count)
      picked_x_.resize(static_cast<std::size_t>(row.count)), picked_index_.resize(picked_x_.size());
    for (int64_t e = 0; e < row.count; ++e) {
      const int32_t a = place_[row.index[e]];
      picked_x_[count] = static_cast<double>(row.x[e]);
      picked_index_[count] = a;
      count += a >= 0;
    }
    return {picked_x_.data(), picked_index_.data(), count};
  }
  template <typename Rows>
  SampleRow<double> entries(Rows& rows, int64_t s) {
    if (!copied_) return pick(rows(sample_[s]));
    const int64_t r = row_first_[s];
    return {x_.data() + r, index_.data() + r, row_first_[s + 1] - r};
  }

  // Directions within a simplex sum to zero.
  void center(MmapVector<double>& values, int64_t s) const {
    if (outputs_ == 1) return;
    double mean = 0.0;
    for (int64_t e = first_[s]; e < first_[s + 1]; ++e) mean += values[e];
    mean /= static_cast<double>(first_[s + 1] - first_[s]);
    for (int64_t e = first_[s]; e < first_[s + 1]; ++e) values[e] -= mean;
  }

  // image = (δM − D'') search, M being the preconditioner.
  template <typename T>
  void apply(EntryRows<T>&) {
    std::fill(pull_.begin(), pull_.end(), 0.0);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (int64_t e = 0; e < std::ssize(class_); ++e) {
      const double own = search_[e];
      for (int64_t at = row_first_[e]; at < row_first_[e + 1]; ++at)
        pull_[index_[at]] -= x_[at] * own;
      sums_[class_[e]] -= sigma_b_ * own;
    }
    for (int64_t a = 0; a < std::ssize(pull_); ++a) pull_[a] *= features_.slope(a);
    for (int64_t s = 0; s < std::ssize(sample_); ++s) {
      for (int64_t e = first_[s]; e < first_[s + 1]; ++e) {
        double score = sums_[class_[e]];
        for (int64_t at = row_first_[e]; at < row_first_[e + 1]; ++at)
          score += x_[at] * pull_[index_[at]];
        image_[e] = damping_ / weight_[e] * search_[e] - score;
      }
      center(image_, s);
    }
  }
  template <typename T>
  void apply(SampleRows<T>& rows) {
    std::fill(pull_.begin(), pull_.end(), 0.0);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (int64_t s = 0; s < std::ssize(sample_); ++s) {
      const int64_t c = first_[s];
      const SampleRow<double> row = entries(rows, s);
      kernels::subtract_scaled_rows(pull_.data(), outputs_, nullptr, row.x, row.index, row.count,
                                    search_.data() + c, class_.data() + c, first_[s + 1] - c);
      for (int64_t e = c; e < first_[s + 1]; ++e) sums_[class_[e]] -= sigma_b_ * search_[e];
    }
    for (std::size_t a = 0; a < alive_.size(); ++a)
      sdca_slope(features_.map(), features_.row(alive_[a]), outputs_,
                 pull_.data() + static_cast<int64_t>(a) * outputs_);
    for (int64_t s = 0; s < std::ssize(sample_); ++s) {
      const SampleRow<double> row = entries(rows, s);
      std::copy(sums_.begin(), sums_.end(), scores_.begin());
      kernels::add_scaled_rows(pull_.data(), outputs_, row.index, row.x, row.count, scores_.data());
      for (int64_t e = first_[s]; e < first_[s + 1]; ++e)
        image_[e] = damping_ / weight_[e] * search_[e] - scores_[class_[e]];
      center(image_, s);
    }
  }

  // The mean of a sample's residual in the weights of the preconditioner: less it, the preconditioned
  // residual is a direction within the simplex.
  double mean_residual(int64_t s) const {
    if (outputs_ == 1) return 0.0;
    double sum = 0.0, weights = 0.0;
    for (int64_t e = first_[s]; e < first_[s + 1]; ++e)
      sum += weight_[e] * residual_[e], weights += weight_[e];
    return sum / weights;
  }

  // ⟨residual, M⁻¹ residual⟩.
  double residual_size() const {
    double sum = 0.0;
    for (int64_t s = 0; s < std::ssize(sample_); ++s) {
      const double mean = mean_residual(s);
      for (int64_t e = first_[s]; e < first_[s + 1]; ++e)
        sum += weight_[e] * (residual_[e] - mean) * residual_[e];
    }
    return sum;
  }

  // Conjugate gradients for the damped Newton step; returns the products taken.
  template <typename Rows, typename Poll>
  int64_t solve(Rows& rows, Poll poll) {
    gradient_ = residual_;
    step_.assign(class_.size(), 0.0);
    search_.assign(class_.size(), 0.0);
    image_.resize(class_.size());
    double size = residual_size(), ratio = 0.0;
    const double enough = Settings::kAccuracy * Settings::kAccuracy * size;
    const int64_t most =
        features_.by_entries() ? Settings::kMostEntryProducts : Settings::kMostProducts;
    for (int64_t turn = 0; turn < most; ++turn) {
      if (!(size > enough)) return turn;
      for (int64_t s = 0; s < std::ssize(sample_); ++s) {
        const double mean = mean_residual(s);
        for (int64_t e = first_[s]; e < first_[s + 1]; ++e)
          search_[e] = weight_[e] * (residual_[e] - mean) + ratio * search_[e];
      }
      apply(rows);
      poll();
      const double length =
          size / std::inner_product(search_.begin(), search_.end(), image_.begin(), 0.0);
      if (!std::isfinite(length)) return turn;  // nothing left but rounding
      for (std::size_t e = 0; e < step_.size(); ++e) {
        step_[e] += length * search_[e];
        residual_[e] -= length * image_[e];
      }
      const double now = residual_size();
      ratio = now / size;
      size = now;
    }
    return most;
  }

  // Go along the projected step as far as D rises in proportion.
  template <typename Rows>
  void follow(Rows& rows, MmapVector<double>& dual, std::vector<double>& intercept) {
    const double before = potential(intercept);
    double length = 1.0;
    for (int turn = 0; turn < Settings::kMostHalvings; ++turn, length *= 0.5) {
      double slope = 0.0;
      const double gained = move(rows, dual, intercept, length, slope);
      features_.refresh();
      // Rounding may hide what the last steps gain.
      if (gained - (potential(intercept) - before) >=
          Settings::kArmijo * slope - Settings::kValueRounding * before) {
        if (turn == 0)
          damping_ = std::max(damping_ / Settings::kLessDamping, Settings::kLeastDamping);
        if (turn > 1)
          damping_ = std::min(damping_ * Settings::kMoreDamping, Settings::kMostDamping);
        return;
      }
    }
    double slope = 0.0;
    move(rows, dual, intercept, 0.0, slope);
    damping_ = std::min(damping_ * Settings::kMuchMoreDamping, Settings::kMostDamping);
  }

  double potential(const std::vector<double>& intercept) const {
    double sum = features_.by_entries() ? features_.entry_potential() : 0.0;
    for (int64_t j = 0; !features_.by_entries() && j < features_.count(); ++j)
      sum += sdca_potential(features_.map(), features_.row(j), outputs_);
    for (const double b : intercept)
      if (sigma_b_ > 0.0) sum += 0.5 * b * b / sigma_b_;
    return sum;
  }

  // Y = P(base + length · step), whatever it is now. Returns what ⟨Y, r⟩ gains from the base on;
  // slope is what the gradient promises of that way.
  template <typename Rows>
  double move(Rows& rows, MmapVector<double>& dual, std::vector<double>& intercept, double length,
              double& slope) {
    double gained = 0.0;
    std::vector<double> delta(static_cast<std::size_t>(K_)), to(delta);
    for (int64_t s = 0; s < std::ssize(sample_); ++s) {
      const int64_t i = sample_[s], c = first_[s], count = first_[s + 1] - c;
      double* Y = dual.data() + i * K_;
      double mass = 0.0;
      for (int64_t e = 0; e < count; ++e) {
        to[e] = base_[c + e] + length * step_[c + e];
        mass += base_[c + e];
      }
      if (outputs_ == 1) {
        to[0] = std::clamp(to[0], 0.0, problem_.lambda[i]);
      } else if (length > 0.0) {
        project_simplex(to.data(), count, mass, to.data(), scratch_);
      }
      for (int64_t e = 0; e < count; ++e) {
        const int64_t k = class_[c + e];
        double& y = Y[outputs_ == 1 ? 1 : k];
        const double margin =
            outputs_ == 1 ? problem_.margin(i, 1) - problem_.margin(i, 0) : problem_.margin(i, k);
        delta[e] = to[e] - y;
        y = to[e];
        intercept[k] -= sigma_b_ * delta[e];
        gained += (to[e] - base_[c + e]) * margin;
        slope += (to[e] - base_[c + e]) * gradient_[c + e];
      }
      if (outputs_ == 1) Y[0] = problem_.lambda[i] - Y[1];
      features_.scatter(rows(i), delta.data(), class_.data() + c, count);
    }
    return gained;
  }

  const HingeProblem& problem_;
  SdcaFeatures& features_;
  int64_t K_, outputs_;
  int steps_ = 0;  // since the damping was asked for
  double sigma_b_ = 0.0, damping_ = Settings::kFirstDamping, log_damping_ = 0.0;
  MmapVector<int32_t> alive_, place_;  // features in use, and their numbers among those
  MmapVector<int32_t> sample_, class_, index_;
  MmapVector<int64_t> first_, row_first_;  // of every sample: its classes, its entries
  bool copied_ = true;                     // entries; otherwise they are picked when asked for
  MmapVector<double> x_, weight_;          // entries; preconditioner of every sample
  std::vector<double> picked_x_;           // of one sample
  std::vector<int32_t> picked_index_;
  MmapVector<double> base_, gradient_, residual_, step_, search_, image_;  // by sample and class
  MmapVector<double> pull_;
  std::vector<double> sums_, scores_;
  ProxScratch scratch_;
};

}  // namespace sparsvm
