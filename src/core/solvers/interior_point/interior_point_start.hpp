// Where the interior point starts: strictly dual feasible, near the central path.
// Member functions of InteriorPoint, declared in interior_point.hpp.
#pragma once

#include <stdexcept>

#include "solvers/interior_point/interior_point.hpp"

namespace sparsvm {

// Strictly dual feasible: Y = lambda Z + eps lambda (pi - Z), with pi the class shares, balances
// every class's flow, and eps keeps X'Y~ inside the ball.
inline void InteriorPoint::start() {
  const std::size_t nk = static_cast<std::size_t>(n_) * K_;
  r_.resize(nk);
  double margin_sum = 0.0, margin_sizes = 0.0;
  total_lambda_ = 0.0;
  std::vector<double> share(K_, 0.0), largest(n_, 0.0);
  for (int i = 0; i < n_; ++i) {
    double size = 0.0;
    for (int k = 0; k < K_; ++k) {
      r_[ck(k) + i] = t_.margins[static_cast<std::size_t>(i) * K_ + k];
      largest[i] = std::max(largest[i], r_[ck(k) + i]);
      size = std::max(size, std::fabs(r_[ck(k) + i]));
    }
    margin_sizes += t_.lambda[i] * size;
    share[t_.y[i]] += t_.lambda[i];
    total_lambda_ += t_.lambda[i];
    margin_sum += t_.lambda[i] * largest[i];
  }
  for (double& s : share) s /= total_lambda_;
  // A class without samples, as a linearised ramp loss may leave it, needs flows to start from
  // too; the equalities of the intercept then begin with a residual.
  for (double& s : share)
    if (s == 0.0) {
      s = kEmptyShare;
      empty_class_ = true;
    }
  margin_unit_ = margin_sizes > 0.0 ? margin_sizes / total_lambda_ : 1.0;

  std::vector<double> centre(nk);  // lambda (pi - Z), sample-major
  for (int i = 0; i < n_; ++i)
    for (int k = 0; k < K_; ++k)
      centre[static_cast<std::size_t>(i) * K_ + k] = t_.lambda[i] * (share[k] - (t_.y[i] == k));
  in_set_.assign(layout_.n_blocks(), 0);
  column_of_.assign(d_, -1);
  start_dual(centre);
  first_Y_ = Y_;
  xi_.assign(n_, 0.0);
  U_.resize(nk);
  b_.assign(system_.n_free(), 0.0);
  system_.poll = [this] { monitor_.poll(); };
  const bool warm = t_.start_dual != nullptr;
  if (warm) {
    mu_ = kWarmSlack * margin_unit_ * total_lambda_ / static_cast<double>(nk);
    if (!quadratic_) open_working_set();
    warm_free_coefficients();
  }
  start_slacks(warm ? kWarmSlack : 1.0);
  if (!warm && !quadratic_) open_working_set();
  // The zero model is the first candidate: it is the optimum of a problem without margins.
  sparse_.primal = margin_sum;
  sparse_.b.assign(b_.size(), 0.0);
  sparse_.scale = 0.0;
}

// xi above every margin by a multiple of the margins' size.
inline void InteriorPoint::start_slacks(double above) {
  scores(blocks_.w, b_, Y_, S_);
  double sum = 0.0;
  for (int i = 0; i < n_; ++i) {
    double top = -std::numeric_limits<double>::infinity();
    for (int k = 0; k < K_; ++k) top = std::max(top, r_[ck(k) + i] + S_[ck(k) + i]);
    xi_[i] = top + above * margin_unit_;
    for (int k = 0; k < K_; ++k) {
      U_[ck(k) + i] = xi_[i] - r_[ck(k) + i] - S_[ck(k) + i];
      sum += U_[ck(k) + i] * Y_[ck(k) + i];
    }
  }
  mu_ = sum / static_cast<double>(Y_.size());
  // Samples or classes of tiny weight would start far off the central path and block every step.
  for (std::size_t a = 0; a < Y_.size(); ++a) U_[a] = std::max(U_[a], kCentrality * mu_ / Y_[a]);
}

// Intercepts and unpenalised weights of the warm start, in centred columns and relative to the
// class that carries none.
inline void InteriorPoint::warm_free_coefficients() {
  std::vector<double> all(static_cast<std::size_t>(outputs_) * system_.q(), 0.0);
  const int first = t_.intercept ? 1 : 0;
  for (int o = 0; o < outputs_; ++o) {
    double* row = all.data() + static_cast<std::size_t>(o) * system_.q();
    if (t_.intercept) {
      row[0] = t_.start_intercept[o];
      for (std::int64_t j = 0; j < d_; ++j)
        row[0] += mean_[j] * t_.start_weights[static_cast<std::size_t>(j) * outputs_ + o];
    }
    for (std::size_t f = 0; f < free_features_.size(); ++f)
      row[first + f] =
          t_.start_weights[static_cast<std::size_t>(free_features_[f]) * outputs_ + o] *
          free_scale_[f];
  }
  for (int k = shift_class_; k < K_; ++k) {
    if (!system_.has_free(k)) continue;
    for (int f = 0; f < system_.q(); ++f) {
      const double reference =
          outputs_ > 1 ? all[static_cast<std::size_t>(outputs_ - 1) * system_.q() + f] : 0.0;
      b_[system_.free_offset(k) + f] =
          all[static_cast<std::size_t>(k - shift_class_) * system_.q() + f] - reference;
    }
  }
}

// The largest fraction, up to a cap, of the direction priced in dG_ that leaves every block that is
// not on its boundary already strictly inside.
inline double InteriorPoint::feasible_fraction(double cap) {
  if (quadratic_) return cap;
  double eps = cap;
  std::vector<double> g(layout_.largest_block());
  const auto reduce = [&](std::int64_t b) {
    const std::int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
    if (size == 0 || layout_.shape.exceeds(g.data(), size, 0.9)) return;
    while (eps > 0.0) {
      layout_.values(b, G_.data(), dG_.data(), eps, g.data());
      if (!layout_.shape.exceeds(g.data(), size, 0.95)) break;
      monitor_.poll();
      eps = t_.tilt ? 0.5 * eps
                    : std::min(0.999 * eps, eps * 0.949 / layout_.shape.dual_norm(g.data(), size));
    }
  };
  if (t_.tilt)
    for (std::int64_t b = 0; b < layout_.n_blocks(); ++b) reduce(b);
  else  // G is zero, and few blocks need more than a look at their dual norms.
    layout_.norm_bounds(dG_.data(), [&](std::int64_t b, double norm) {
      if (!(eps * norm < 0.949)) reduce(b);
    });
  return eps;
}

inline double InteriorPoint::start_fraction(const std::vector<double>& direction) {
  return feasible_fraction(quadratic_ ? std::min(0.9, best_quadratic_fraction(direction)) : 0.9);
}

// The fraction of the direction priced in dG_ with the best dual value under a quadratic penalty.
inline double InteriorPoint::best_quadratic_fraction(const std::vector<double>& direction) const {
  const double gain = margin_gain(direction);
  double square = 0.0;
  for (std::int64_t j = 0; j < d_; ++j)
    for (int o = 0; o < outputs_; ++o) {
      const double g = dG_[static_cast<std::size_t>(j) * outputs_ + o] * layout_.inv_omega[j];
      square += g * g;
    }
  return gain > 0.0 && square > 0.0 ? gain / square : 0.9;
}

// Features that keep the direction priced in dG_ from all but a small fraction, as lists worth
// trying, each of at most half as many as there are samples, and no more than pay: all of them, and those
// up to where the next is smaller by the largest factor.
inline std::vector<std::vector<std::int32_t>> InteriorPoint::holding_back() const {
  std::vector<std::pair<double, std::int32_t>> pulls;
  for (std::int64_t j = 0; j < d_; ++j) {
    double pull = 0.0;
    for (int o = 0; o < outputs_; ++o)
      pull = std::max(pull, std::fabs(dG_[static_cast<std::size_t>(j) * outputs_ + o]));
    pull *= layout_.inv_omega[j];
    if (pull > (quadratic_ ? 0.0 : 1.0 / kFewFlows))
      pulls.emplace_back(-pull, static_cast<std::int32_t>(j));
  }
  const auto most = static_cast<std::size_t>(std::min(n_ / 2, kMostFlows / std::max(1, K_ - 1)));
  const std::size_t first = std::min(pulls.size(), most + 1);
  std::partial_sort(pulls.begin(), pulls.begin() + static_cast<std::ptrdiff_t>(first), pulls.end());
  std::size_t cut = 0;
  double relief = kRelief;
  for (std::size_t c = 1; c < first; ++c)
    if (pulls[c - 1].first <= relief * pulls[c].first) {
      relief = pulls[c - 1].first / pulls[c].first;
      cut = c;
    }
  std::vector<std::vector<std::int32_t>> lists;
  for (const std::size_t count : {pulls.size(), cut}) {
    if (count == 0 || count > most) continue;
    lists.emplace_back();
    for (std::size_t c = 0; c < count; ++c) lists.back().push_back(pulls[c].second);
  }
  return lists;
}

// With few features and a tiny alpha, or with a few columns far larger than the others, X'Y~ would
// leave the ball long before Y is anywhere near the flows of the optimum. Pulls the centre towards
// X'Y~ = 0 on the listed features by damped Newton steps on its equalities.
inline std::vector<double> InteriorPoint::flows_across_features(
    const std::vector<double>& centre, const std::vector<std::int32_t>& list) {
  std::vector<double> columns, X(list.size() * n_);
  t_.design.gather_columns(list.data(), static_cast<std::int64_t>(list.size()), X.data());
  if (t_.intercept) columns.assign(n_, 1.0);
  for (std::size_t c = 0; c < list.size(); ++c) {
    double* x = X.data() + c * n_;
    centre_column(list[c], x);
    double sum = 0.0;
    for (int i = 0; i < n_; ++i) sum += x[i] * x[i];
    const double scale = std::sqrt(sum / n_);
    if (scale > 0.0)
      for (int i = 0; i < n_; ++i) columns.push_back(x[i] / scale);
  }
  std::vector<double> Y(centre.size()), direction(centre.size());
  for (int i = 0; i < n_; ++i)
    for (int k = 0; k < K_; ++k)
      Y[ck(k) + i] =
          t_.lambda[i] * (t_.y[i] == k) + 0.9 * centre[static_cast<std::size_t>(i) * K_ + k];
  Equalities equalities(*this, std::move(columns));
  for (int round = 0; round < 8; ++round) {
    const double length = equalities.approach(Y);
    if (length == 0.0 || length == 1.0) break;
  }
  for (int k = 0; k < K_; ++k) {
    signed_column(Y, k, signed_);
    for (int i = 0; i < n_; ++i) direction[static_cast<std::size_t>(i) * K_ + k] = signed_[i];
  }
  return direction;
}

inline double InteriorPoint::margin_gain(const std::vector<double>& direction) const {
  double gain = 0.0;
  for (std::size_t a = 0; a < direction.size(); ++a) gain += direction[a] * t_.margins[a];
  return gain;
}

inline void InteriorPoint::start_dual(std::vector<double>& direction) {
  G_.assign(static_cast<std::size_t>(d_) * outputs_, 0.0);
  dG_.resize(G_.size());
  if (t_.tilt)
    for (std::size_t a = 0; a < G_.size(); ++a) G_[a] = -t_.tilt[a];
  price(direction.data());
  for (double g : dG_)
    if (!std::isfinite(g))
      throw std::invalid_argument(
          "interior_point: the design matrix holds NaN, infinite or overflowing values.");
  double eps = start_fraction(direction);
  if (!(eps > 1e-200))
    throw std::invalid_argument(
        "interior_point: the features are too large against alpha; scale them.");
  if (!t_.start_dual && !t_.tilt && across_features_ && eps < kFewFlows) {
    const std::vector<double> centre = direction;
    for (const auto& list : holding_back()) {
      std::vector<double> other = flows_across_features(centre, list);
      price(other.data());
      const double fraction = start_fraction(other);
      if (!(fraction * margin_gain(other) > eps * margin_gain(direction))) continue;
      direction = std::move(other);
      eps = fraction;
    }
    price(direction.data());
  }
  if (t_.start_dual) {
    for (int i = 0; i < n_; ++i) {
      const std::size_t row = static_cast<std::size_t>(i) * K_;
      double off = 0.0;
      for (int k = 0; k < K_; ++k) {
        const double y = t_.y[i] == k ? 0.0 : t_.start_dual[row + k];
        direction[row + k] = kWarmMix * eps * direction[row + k] + (1.0 - kWarmMix) * y;
        off += (1.0 - kWarmMix) * y;
      }
      direction[row + t_.y[i]] -= off;
    }
    price(direction.data());
    eps = feasible_fraction(1.0);
  }
  // With a tiny alpha the flows inside the ball, or with l2 those of the best value, may all be tiny,
  // their products with the slacks many orders apart, and the steps from there too short. Outside,
  // the dual residuals go with the steps; with l2 there are none.
  if (!inside_ && !t_.start_dual) eps = kOutside;
  Y_.resize(direction.size());
  for (int i = 0; i < n_; ++i)
    for (int k = 0; k < K_; ++k)
      Y_[ck(k) + i] =
          t_.lambda[i] * (t_.y[i] == k) + eps * direction[static_cast<std::size_t>(i) * K_ + k];
  for (std::size_t a = 0; a < G_.size(); ++a) G_[a] += eps * dG_[a];
}

}  // namespace sparsvm
