// Primal and dual values of the interior point's iterates, the points worth keeping, and when to
// stop. Member functions of InteriorPoint, declared in interior_point.hpp.
#pragma once

#include "solvers/interior_point/interior_point.hpp"

namespace sparsvm {

inline void InteriorPoint::record(int it) {
  const Candidate& point = best();
  const auto nonzeros = point.values.size() - static_cast<std::size_t>(std::count(
                                                  point.values.begin(), point.values.end(), 0.0));
  monitor_.record(it, unit_ * (point.primal + t_.offset), unit_ * (point.primal - best_dual_),
                  static_cast<std::int64_t>(nonzeros));
}

// Column k of Y~. The true class gets minus the sum of the others: reading Y - lambda there would
// cancel all digits when alpha is tiny and lambda huge.
inline void InteriorPoint::signed_column(const std::vector<double>& Y, int k,
                                         std::vector<double>& out) const {
  out.resize(n_);
  if (K_ == 2) {
    const double *own = Y.data() + ck(k), *other = Y.data() + ck(1 - k);
    for (int i = 0; i < n_; ++i) out[i] = t_.y[i] == k ? -other[i] : own[i];
    return;
  }
  for (int i = 0; i < n_; ++i) {
    if (t_.y[i] != k) {
      out[i] = Y[ck(k) + i];
      continue;
    }
    double sum = 0.0;
    for (int l = 0; l < K_; ++l)
      if (l != k) sum += Y[ck(l) + i];
    out[i] = -sum;
  }
}

// Scores of the given coordinate values and free coefficients, class-major.
inline void InteriorPoint::scores(const std::vector<double>& values, const std::vector<double>& b,
                                  const std::vector<double>& Y, std::vector<double>& S) {
  S.assign(static_cast<std::size_t>(n_) * K_, 0.0);
  if (!features_.empty()) coordinate_scores(values, S.data() + ck(shift_class_));
  for (int k = 0; k < K_; ++k) {
    if (quadratic_ && !pinned(k)) {
      signed_column(Y, k, signed_);
      quadratic_product(-1.0, signed_.data(), 1.0, S.data() + ck(k));
      if (t_.tilt)
        for (int i = 0; i < n_; ++i) S[ck(k) + i] += tilt_scores_[ck(k) + i];
    }
    if (system_.has_free(k))
      gemv('N', n_, system_.q(), 1.0, system_.free_columns(), n_, b.data() + system_.free_offset(k),
           1, 1.0, S.data() + ck(k), 1);
  }
}

inline double InteriorPoint::hinge(const std::vector<double>& S, double scale) const {
  double total = 0.0;
  for (int i = 0; i < n_; ++i) {
    double top = -std::numeric_limits<double>::infinity();
    for (int k = 0; k < K_; ++k) top = std::max(top, r_[ck(k) + i] + scale * S[ck(k) + i]);
    total += t_.lambda[i] * (top - scale * S[ck(t_.y[i]) + i]);
  }
  return total;
}

inline double InteriorPoint::tilt_value(const std::vector<double>& values) const {
  if (!t_.tilt || quadratic_) return 0.0;
  double total = 0.0;
  for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c) total += tilt_of(c) * values[c];
  return total;
}

inline double InteriorPoint::tilt_of(std::int64_t c) const {
  const std::int32_t j = features_[blocks_.col[c]];
  return t_.tilt[static_cast<std::size_t>(j) * outputs_ + blocks_.cls[c] - shift_class_] *
         layout_.inv_omega[j];
}

// sum_k Y~_k' (X X') Y~_k / 2 of the quadratic penalty, and Y~ . (X V) for its tilt.
inline std::pair<double, double> InteriorPoint::quadratic_terms(const std::vector<double>& Y) {
  if (!quadratic_) return {0.0, 0.0};
  double square = 0.0, linear = 0.0;
  std::vector<double> yt, ky(n_);
  for (int k = shift_class_; k < K_; ++k) {
    signed_column(Y, k, yt);
    quadratic_product(1.0, yt.data(), 0.0, ky.data());
    for (int i = 0; i < n_; ++i) square += yt[i] * ky[i];
    if (t_.tilt)
      for (int i = 0; i < n_; ++i) linear += yt[i] * tilt_scores_[ck(k) + i];
  }
  return {0.5 * square, linear};
}

// The conjugate of an elastic net at the current dual point (zero for norms).
inline double InteriorPoint::conjugate() {
  if (layout_.shape.quad <= 0.0) return 0.0;
  signed_coordinates();
  return blocks_.conjugate(dg_.data());
}

// What the residuals of the dual's equalities may be worth at the current multipliers. They vanish
// with the first full step, and this keeps the dual value from being trusted before.
inline double InteriorPoint::infeasibility() {
  residuals();
  double total = 0.0;
  for (int i = 0; i < n_; ++i) total += std::fabs(rhs_.xi[i] * xi_[i]);
  for (std::size_t j = 0; j < b_.size(); ++j) {
    if (std::fabs(rhs_.b[j]) > 1e-8 * total_lambda_) return std::numeric_limits<double>::infinity();
    total += std::fabs(rhs_.b[j] * b_[j]);
  }
  return total;
}

inline void InteriorPoint::evaluate() {
  scores(blocks_.w, b_, Y_, S_);
  const auto [square, linear] = quadratic_terms(Y_);
  double dual = -(square - linear + 0.5 * tilt_norm_) - conjugate();
  for (std::size_t a = 0; a < Y_.size(); ++a) dual += Y_[a] * r_[a];
  dual -= infeasibility() + blocks_.shift_value(std::max(kRounding, residual_));
  if (system_.n_open() > 0) dual -= std::fabs(dual) * open_drift();
  // As long as no dual value can be trusted, the latest point is the best guess.
  if (!polishing_ && (dual > best_dual_ || !std::isfinite(best_dual_))) {
    best_dual_ = dual;
    best_Y_ = Y_;
  }
  consider(dense_, blocks_.w, S_, square);
  if (quadratic_) {
    if (dense_.primal - best_dual_ < 0.1 * magnitude(dense_.primal))
      consider(sparse_, blocks_.w, trial_scores_, exact_quadratic_scores());
  } else if (polishing_) {
    consider(sparse_, blocks_.w, S_, 0.0);
  } else if (dense_.primal - best_dual_ < 0.1 * magnitude(dense_.primal)) {
    blocks_.sparse_weights(column_scale_.data(), 1.0, trial_);
    scores(trial_, b_, Y_, trial_scores_);
    consider(sparse_, trial_, trial_scores_, 0.0);
    if (!converged(tol_) && dense_.primal - best_dual_ < kNearly * tol_ * magnitude(dense_.primal))
      refit();
  }
}

// The point with exact zeros has lost the scores of what it dropped. One more solve with the last
// factors tells how the other coefficients make up for them.
inline void InteriorPoint::refit() {
  if (assembled_ == 0) return;
  blocks_.sparse_weights(column_scale_.data(), kDoubtful, trial_);
  std::vector<double> dropped(blocks_.w);
  for (std::size_t c = 0; c < dropped.size(); ++c) dropped[c] -= trial_[c];
  NewtonVector rhs, step;
  rhs.resize(Y_.size(), n_, system_.n_free());
  rhs.z.assign(system_.n_open(), 0.0);
  const std::vector<double> none(b_.size(), 0.0);
  scores(dropped, none, Y_, rhs.y);
  for (double& v : rhs.y) v = -v;
  system_.solve(rhs, step, kRoughly);
  transposed_coordinates(step.y.data());
  system_.complete(step, dg_.data());
  blocks_.add_response(dg_.data(), assembled_, trial_);
  std::vector<double> b(b_);
  for (std::size_t j = 0; j < b.size(); ++j) b[j] += step.b[j];
  std::swap(b, b_);
  scores(trial_, b_, Y_, trial_scores_);
  consider(sparse_, trial_, trial_scores_, 0.0);
  std::swap(b, b_);
}

// How far G of the open coordinates is from what their blocks take it to be: scaled down by so much,
// the dual point is feasible.
inline double InteriorPoint::open_drift() {
  signed_coordinates();
  blocks_.subtract_held(dg_.data());
  double worst = 0.0;
  for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c)
    if (system_.is_open(c)) worst = std::max(worst, std::fabs(dg_[c]));
  return worst;
}

// trial_scores_ of the weights that will be returned, and their penalty. X X' Y~ cancels where the
// features are large against alpha, so that its scores are not those of X'Y~ to the last digits.
inline double InteriorPoint::exact_quadratic_scores() {
  std::vector<double> W, out(static_cast<std::size_t>(n_) * outputs_), shift(outputs_, 0.0);
  quadratic_weights(Y_, W);
  double square = 0.0;
  for (std::int64_t j = 0; j < d_; ++j)
    for (int o = 0; o < outputs_; ++o) {
      const double w = W[static_cast<std::size_t>(j) * outputs_ + o];
      square += t_.omega[j] * w * t_.omega[j] * w;
      shift[o] += mean_[j] * w;
    }
  t_.design.scores(W.data(), outputs_, out.data());
  trial_scores_.assign(Y_.size(), 0.0);
  for (int k = shift_class_; k < K_; ++k) {
    const int o = k - shift_class_;
    for (int i = 0; i < n_; ++i)
      trial_scores_[ck(k) + i] = out[static_cast<std::size_t>(i) * outputs_ + o] - shift[o];
    if (system_.has_free(k))
      gemv('N', n_, system_.q(), 1.0, system_.free_columns(), n_,
           b_.data() + system_.free_offset(k), 1, 1.0, trial_scores_.data() + ck(k), 1);
  }
  // With a tilt V the objective has -<V, W> as well; in the terms of consider() that is
  // |W|^2/2 - <V, W> + |V|^2/2, as the rest is added there.
  if (!t_.tilt) return 0.5 * square;
  double linear = 0.0;
  for (std::size_t a = 0; a < W.size(); ++a) linear += t_.tilt[a] * W[a];
  return 0.5 * square - linear + 0.5 * tilt_norm_;
}

// Keeps the point with these weights and scores if it is the best so far; also the point scaled up
// until its last margins hold: with a tiny alpha their rounding, times a huge lambda, would
// otherwise be all that is left of the gap.
inline void InteriorPoint::consider(Candidate& best, const std::vector<double>& values,
                                    const std::vector<double>& S, double square) {
  keep(best, values, 1.0,
       hinge(S, 1.0) + square - 0.5 * tilt_norm_ + blocks_.value(values) - tilt_value(values));
  const double scale = separating_scale(S);
  if (t_.tilt || scale == 1.0) return;
  scaled_values_ = values;
  for (double& v : scaled_values_) v *= scale;
  keep(best, values, scale,
       hinge(S, scale) + scale * scale * square + blocks_.value(scaled_values_));
}

inline void InteriorPoint::keep(Candidate& best, const std::vector<double>& values, double scale,
                                double primal) const {
  if (!(primal < best.primal)) return;
  best.primal = primal;
  best.values = values;
  best.at.resize(values.size());
  for (std::size_t c = 0; c < values.size(); ++c)
    best.at[c] = std::int64_t{features_[blocks_.col[c]]} * outputs_ + blocks_.cls[c] - shift_class_;
  best.b = b_;
  best.scale = scale;
  if (quadratic_) best.Y = Y_;
}

// The factor that makes scores S keep all margins, if it is just above one; otherwise one.
inline double InteriorPoint::separating_scale(const std::vector<double>& S) const {
  constexpr double kLargest = 1.01;
  double scale = 1.0;
  for (int k = 0; k < K_; ++k)
    for (int i = 0; i < n_; ++i) {
      const double margin = S[ck(t_.y[i]) + i] - S[ck(k) + i], wanted = r_[ck(k) + i];
      if (scale * margin >= wanted) continue;
      if (!(kLargest * margin >= wanted)) return 1.0;
      scale = wanted / margin;
    }
  return scale;
}

// The interior point itself has been there for a while, or gets no further; what is missing is a sparse
// point as good.
inline bool InteriorPoint::settled(double tol) {
  const double gap = (dense_.primal - best_dual_) / magnitude(dense_.primal);
  if (quadratic_ || !(gap <= (idle_ > 0 ? 1.0 : 0.1) * tol)) return false;
  return ++settled_for_ > kSettled;
}

// Rounding ends the progress of an ill-conditioned problem; going on would only cost time.
inline bool InteriorPoint::no_progress() {
  const double gap = best().primal - best_dual_;
  double residual = 0.0;
  for (double v : rho_) residual = std::max(residual, std::fabs(v));
  // A start far from primal feasible may take longer than that to have a value worth comparing.
  const bool closer = residual < 0.1 * last_residual_;
  if (closer) last_residual_ = residual;
  if (!(gap > 0.9 * last_gap_) || closer) {
    last_gap_ = std::min(gap, last_gap_);
    idle_ = 0;
  } else {
    idle_ += solve_residual_ > std::max(kBearable, system_.attainable()) ? kInaccurate : 1;
  }
  return idle_ > kPatience;
}

}  // namespace sparsvm
