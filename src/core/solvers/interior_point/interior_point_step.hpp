// One Newton step of the interior point: Mehrotra's predictor and corrector, centrality corrections.
// Member functions of InteriorPoint, declared in interior_point.hpp.
#pragma once

#include "solvers/interior_point/interior_point.hpp"

namespace sparsvm {

inline double InteriorPoint::average_complementarity() const {
  double sum = blocks_.complementarity();
  for (std::size_t a = 0; a < Y_.size(); ++a) sum += Y_[a] * U_[a];
  return sum / (static_cast<double>(Y_.size()) + blocks_.degree());
}

inline void InteriorPoint::residuals() {
  rho_.resize(Y_.size());
  rhs_.resize(Y_.size(), n_, system_.n_free());
  for (int k = 0; k < K_; ++k)
    for (int i = 0; i < n_; ++i) {
      const std::size_t a = ck(k) + i;
      rho_[a] = xi_[i] - r_[a] - S_[a] - U_[a];
    }
  for (int i = 0; i < n_; ++i) {
    double sum = 0.0;
    for (int k = 0; k < K_; ++k) sum += Y_[ck(k) + i];
    rhs_.xi[i] = t_.lambda[i] - sum;
  }
  for (int k = 0; k < K_; ++k) {
    if (!system_.has_free(k)) continue;
    signed_column(Y_, k, signed_);
    gemv('T', n_, system_.q(), -1.0, system_.free_columns(), n_, signed_.data(), 1, 0.0,
         rhs_.b.data() + system_.free_offset(k), 1);
  }
}

// Where few of the features belong to a class's coordinates, one by one takes less time than all.
inline bool InteriorPoint::few_coordinates() const {
  return kFewCoordinates * static_cast<double>(blocks_.n_coordinates()) <
         static_cast<double>(features_.size()) * outputs_;
}

// dg_ = the working set's coordinates of X' (class-major n x K array).
inline void InteriorPoint::transposed_coordinates(const double* Y) {
  const int m = static_cast<int>(features_.size());
  dg_.resize(blocks_.n_coordinates());
  if (few_coordinates()) {
    coordinate_products(Xw_.data(), n_, blocks_.col.data(), blocks_.cls.data(),
                        blocks_.n_coordinates(), Y, dg_.data());
    return;
  }
  gmat_.resize(static_cast<std::size_t>(m) * outputs_);
  if (m > 0)
    gemm('T', 'N', m, outputs_, n_, 1.0, Xw_.data(), n_, Y + ck(shift_class_), n_, 0.0,
         gmat_.data(), m);
  for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c)
    dg_[c] = gmat_[static_cast<std::size_t>(blocks_.cls[c] - shift_class_) * m + blocks_.col[c]];
}

// out = X values, class by class, for the classes that have weights.
inline void InteriorPoint::coordinate_scores(const std::vector<double>& values, double* out) {
  const int m = static_cast<int>(features_.size());
  if (few_coordinates()) {
    by_class_.resize(K_);
    for (auto& list : by_class_) list.clear();
    for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c)
      if (values[c] != 0.0) by_class_[blocks_.cls[c]].push_back(c);
    sums_.clear();
    for (int k = shift_class_; k < K_; ++k) {
      for (const std::int64_t c : by_class_[k]) sums_.add(blocks_.col[c], values[c]);
      sums_.close();
    }
    form_column_sums(sums_, Xw_.data(), n_, out);
    return;
  }
  wmat_.assign(static_cast<std::size_t>(m) * outputs_, 0.0);
  for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c)
    wmat_[static_cast<std::size_t>(blocks_.cls[c] - shift_class_) * m + blocks_.col[c]] = values[c];
  gemm('N', 'N', n_, outputs_, m, 1.0, Xw_.data(), n_, wmat_.data(), m, 0.0, out, n_);
}

// dg_ = the working set's coordinates of G, from Y itself.
inline void InteriorPoint::signed_coordinates() {
  std::vector<double> all(Y_.size());
  for (int k = 0; k < K_; ++k) {
    signed_column(Y_, k, signed_);
    std::copy(signed_.begin(), signed_.end(), all.begin() + ck(k));
  }
  transposed_coordinates(all.data());
  if (t_.tilt)
    for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c) dg_[c] -= tilt_of(c);
}

// What the solve left of the row sums would add up in Y~ over the iterations.
inline void InteriorPoint::exact_row_sums(const NewtonVector& rhs, NewtonVector& step) const {
  for (int i = 0; i < n_; ++i) {
    double others = 0.0;
    for (int k = 0; k < K_; ++k) others += k == t_.y[i] ? 0.0 : step.y[ck(k) + i];
    step.y[ck(t_.y[i]) + i] = rhs.xi[i] - others;
  }
}

// The affine or a centring direction, without second-order terms.
inline void InteriorPoint::plain_direction(double tau, double accuracy) {
  terms_.assign(Y_.size(), 0.0);
  blocks_.clear_terms();
  direction(tau, accuracy);
}

// Newton direction for complementarity tau and the terms now set; fills dir_, dU_ and the blocks'
// directions.
inline void InteriorPoint::direction(double tau, double accuracy) {
  blocks_.compute_rhs(tau);
  const int m = static_cast<int>(features_.size());
  c_.resize(Y_.size());
  if (m > 0) {
    // X (h + D shift)
    response_.resize(blocks_.n_coordinates());
    for (std::int64_t b = 0; b < blocks_.size(); ++b) {
      double along = 0.0;
      for (std::int64_t c = blocks_.begin(b); c < blocks_.end(b); ++c)
        along += blocks_.vec[c] * blocks_.shift[c];
      for (std::int64_t c = blocks_.begin(b); c < blocks_.end(b); ++c)
        response_[c] = blocks_.h[c] + blocks_.delta[c] * blocks_.shift[c] +
                       blocks_.kappa(b) * along * blocks_.vec[c];
    }
    coordinate_scores(response_, rhs_.y.data() + ck(shift_class_));
  }
  // A pinned class has no weights.
  std::fill(rhs_.y.begin(), m > 0 ? rhs_.y.begin() + ck(shift_class_) : rhs_.y.end(), 0.0);
  for (std::size_t a = 0; a < Y_.size(); ++a) {
    c_[a] = tau - U_[a] * Y_[a] + terms_[a];
    rhs_.y[a] += c_[a] / Y_[a] - rho_[a];
  }
  solve_residual_ = system_.solve(rhs_, dir_, accuracy);
  exact_row_sums(rhs_, dir_);
  dU_.resize(Y_.size());
  for (std::size_t a = 0; a < Y_.size(); ++a) dU_[a] = (c_[a] - U_[a] * dir_.y[a]) / Y_[a];
  transposed_coordinates(dir_.y.data());
  system_.complete(dir_, dg_.data());
  blocks_.recover(dg_.data());
}

inline double InteriorPoint::ratio(const std::vector<double>& x, const std::vector<double>& dx,
                                   double a) const {
  // x > 0, so that only a falling entry gets there.
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] + a * dx[i] <= 0.0) a = std::min(a, -x[i] / dx[i]);
  return a;
}

// Factors and computes the affine direction, regularising more while the solve is inaccurate.
inline bool InteriorPoint::predict() {
  system_.regularisation = std::max(kMinRegularisation, 1e-2 * system_.regularisation);
  for (;;) {
    const double best = find_regularisation();
    if (best <= std::max(kAccurate, system_.attainable())) return true;
    if (best > kBearable && !polishing_ && (open_refused() || open_more(kLeastFree))) continue;
    if (!std::isfinite(best) || !system_.factor()) return false;
    plain_direction(0.0, kAccurate);
    return true;
  }
}

// The first regularisation with which the affine direction is accurate, and the direction; or the one
// that comes nearest to it. Returns the residual.
inline double InteriorPoint::find_regularisation() {
  double best = std::numeric_limits<double>::infinity(), best_level = kMinRegularisation;
  for (;;) {
    if (system_.factor()) {
      // It only tells how far to go and what bends; a residual that passes will do.
      plain_direction(0.0, kAccurate);
      if (solve_residual_ <= std::max(kAccurate, system_.attainable())) return solve_residual_;
      if (solve_residual_ < best) {
        best = solve_residual_;
        best_level = system_.regularisation;
      }
    }
    if (open_more(1.0)) continue;
    if (system_.be_more_accurate()) {
      assemble();
      continue;
    }
    if (system_.regularisation >= kMaxRegularisation) break;
    system_.regularisation *= 1e2;
  }
  system_.regularisation = best_level;
  return best;
}

inline std::pair<double, double> InteriorPoint::step_lengths() const {
  const double ap =
      std::min(1.0, kStepFraction * std::min(ratio(U_, dU_, 2.0), blocks_.max_primal_step()));
  const double ad =
      std::min(1.0, kStepFraction * std::min(ratio(Y_, dir_.y, 2.0), blocks_.max_dual_step()));
  return {ap, ad};
}

// The columns of open coordinates are so large that what a solve leaves of X'dY would add up to a
// visible part of the dual ball over the iterations: the next step takes it back, or, where the
// coordinates are open no longer, it is a dual residual like others.
inline void InteriorPoint::restore_open(int open_before) {
  rhs_.z.clear();
  if (system_.n_open() == 0 && open_before == 0) return;
  signed_coordinates();
  blocks_.subtract_held(dg_.data());
  if (system_.n_open() > 0)
    system_.remove_drift(dg_.data(), rhs_.z);
  else
    for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c) blocks_.shift[c] -= dg_[c];
}

// Free coefficients get a quadratic term: the optimal face may be unbounded in them, and the last
// digits of a certificate are those of the scores. Its curvature is a small share of the gap, as theirs
// is along such a face, so that it vanishes with it; a fixed one would leave the equalities of the
// dual a residual, of which coefficients of 1e5 margins, as a tiny alpha allows them, make any gap.
inline void InteriorPoint::damp_free_coefficients() {
  system_.proximal =
      kProximal * mu_ * static_cast<double>(Y_.size()) / (margin_unit_ * margin_unit_);
  for (std::size_t j = 0; j < b_.size(); ++j) rhs_.b[j] -= system_.proximal * b_[j];
}

inline void InteriorPoint::assemble() {
  const int open_before = system_.n_open();
  if (open_) system_.open_coordinates(blocks_, column_scale_.data(), kOpen / mu_, free_);
  system_.assemble(blocks_, Xw_.data(), layout_.joint,
                   quadratic_ || (layout_.joint && layout_.shape.kind == BlockKind::euclidean),
                   U_.data(), Y_.data());
  assembled_ = blocks_.n_coordinates();
  restore_open(open_before);
}

// After a solve that failed: whether more coordinates became unknowns of their own, with a limit of at
// least so much. The larger D is, the fewer digits x' dY, which all but cancels, has left for it.
inline bool InteriorPoint::open_more(double least) {
  while (open_ && !quadratic_ && free_ > least) {
    const int before = system_.n_open();
    free_ *= kFreer;
    assemble();
    if (system_.n_open() > before) return true;
    if (system_.too_dear()) return false;
  }
  return false;
}

// Whether coordinates that were too dear to open have been opened all the same.
inline bool InteriorPoint::open_refused() {
  if (!system_.too_dear()) return false;
  system_.open_at_any_price();
  assemble();
  return !system_.too_dear();
}

// Mehrotra's corrector: the direction with the second-order terms of the affine one.
inline void InteriorPoint::correct(double tau) {
  for (std::size_t a = 0; a < Y_.size(); ++a) terms_[a] = -dU_[a] * dir_.y[a];
  blocks_.second_order_terms();
  direction(tau, NewtonSystem::kRefined);
}

// Gondzio's centrality corrections: with the factors at hand, what would leave a neighbourhood of
// the central path after a longer step is bent back into it. In the middle of a solve, where the
// cones bend most, this turns steps of one half into ones of nine tenths. Returns the steps.
inline std::pair<double, double> InteriorPoint::centre(double tau) {
  auto [ap, ad] = step_lengths();
  // Open coordinates come with tiny alphas, where the certificate's bounds on rounding need dual
  // points well inside the ball: shorter steps leave more room. And on longer ones the intercept of
  // a class without samples, which has no optimum, runs off before the dual is feasible.
  if (system_.n_open() > 0 || empty_class_) return {ap, ad};
  // Curvature ties the dual slacks to the weights: their directions belong together.
  const bool tied = quadratic_ || layout_.shape.quad > 0.0;
  const double low = kNeighbourhood * tau, high = tau / kNeighbourhood;
  const int most = n_ < kManySamples ? 1 : kCentrings;
  for (int c = 0; c < most && std::min(ap, ad) < kLongStep; ++c) {
    const double longer = std::min(1.0, 1.5 * ap + 0.3), further = std::min(1.0, 1.5 * ad + 0.3);
    for (std::size_t a = 0; a < Y_.size(); ++a)
      terms_[a] += ConeBlocks::centring_term(
          (U_[a] + longer * dU_[a]) * (Y_[a] + further * dir_.y[a]), low, high);
    blocks_.add_centring_terms(longer, further, low, high);
    saved_dir_ = dir_;
    saved_dU_ = dU_;
    blocks_.save_directions();
    direction(tau, NewtonSystem::kRefined);
    const auto [p, d] = step_lengths();
    const bool keep_p = tied ? p + d > ap + ad : p > ap, keep_d = tied ? keep_p : d > ad;
    restore_directions(!keep_p, !keep_d);
    const double gain = std::max(p - ap, d - ad);
    if (keep_p) ap = p;
    if (keep_d) ad = d;
    if (gain < kCentringGain) break;
  }
  return {ap, ad};
}

inline void InteriorPoint::restore_directions(bool primal, bool dual) {
  if (primal) {
    std::swap(dU_, saved_dU_);
    std::swap(dir_.xi, saved_dir_.xi);
    std::swap(dir_.b, saved_dir_.b);
  }
  if (dual) {
    std::swap(dir_.y, saved_dir_.y);
    std::swap(dir_.z, saved_dir_.z);
  }
  blocks_.restore_directions(primal, dual);
}

inline bool InteriorPoint::iterate(int it) {
  mu_ = average_complementarity();
  blocks_.compute_scaling();
  // Without groups the curvatures differ too much from feature to feature: refining takes what is saved.
  system_.coarse = !polishing_ && !quadratic_ && layout_.shape.kind != BlockKind::absolute &&
                   dense_.primal - best_dual_ > kCoarse * magnitude(dense_.primal);
  damp_free_coefficients();
  assemble();
  monitor_.poll();
  if (!predict()) return false;
  monitor_.poll();
  if (!quadratic_ && !polishing_) {
    keep_pair_.resize(Y_.size());
    for (std::size_t a = 0; a < Y_.size(); ++a) keep_pair_[a] = dU_[a] * Y_[a] < dir_.y[a] * U_[a];
    blocks_.keeping_weight(keep_block_);
  }

  double ap = std::min(ratio(U_, dU_, 1.0), blocks_.max_primal_step());
  double ad = std::min(ratio(Y_, dir_.y, 1.0), blocks_.max_dual_step());
  double after = blocks_.complementarity(ap, ad);
  for (std::size_t a = 0; a < Y_.size(); ++a)
    after += (Y_[a] + ad * dir_.y[a]) * (U_[a] + ap * dU_[a]);
  after /= static_cast<double>(Y_.size()) + blocks_.degree();
  const double sigma = std::pow(std::clamp(after / mu_, 0.0, 1.0), 3);
  correct(sigma * mu_);
  std::tie(ap, ad) = centre(sigma * mu_);
  if (std::min(ap, ad) < kShortStep) {
    // Far off the central path the second-order terms mislead: a plain centring step then.
    plain_direction(std::max(sigma, 0.5) * mu_, NewtonSystem::kRefined);
    std::tie(ap, ad) = step_lengths();
  }
  std::vector<std::int64_t> entering;
  // While outsiders shorten the steps, the next ones to do so are let in early.
  const double near = it < 4 || blocked_ ? WatchedBlocks::kNear : 0.98, full = ad;
  if (!quadratic_ && !polishing_) ad = limit_by_outsiders(full, entering);
  blocked_ = ad < full;
  double size = ap + ad;
  for (std::size_t a = 0; a < Y_.size(); ++a) size += std::fabs(dir_.y[a]) + std::fabs(dU_[a]);
  if (!std::isfinite(size)) return false;
  stuck_ = std::max(ap, ad) < 1e-4 ? stuck_ + 1 : 0;
  if (stuck_ >= 4) return false;
  advance(ap, ad);
  mu_ = average_complementarity();
  if (!quadratic_ && !polishing_) {
    collect_near(near, entering);
    if (blocked_ && !layout_.joint) collect_next(full - ad, 1.0 - ad / full, entering);
    if (dense_.primal - best_dual_ < kSettling * magnitude(dense_.primal) && !blocked_)
      remove_idle();
    add_blocks(entering);
  }
  return true;
}

inline void InteriorPoint::advance(double ap, double ad) {
  blocks_.step(ap, ad);
  for (std::size_t a = 0; a < Y_.size(); ++a) {
    U_[a] += ap * dU_[a];
    Y_[a] += ad * dir_.y[a];
  }
  for (int i = 0; i < n_; ++i) xi_[i] += ap * dir_.xi[i];
  for (std::size_t j = 0; j < b_.size(); ++j) b_[j] += ap * dir_.b[j];
  if (!quadratic_ && !polishing_) watched_.advance(ad, dG_.data(), G_.data());
}

}  // namespace sparsvm
