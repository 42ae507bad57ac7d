// One Newton step of the interior point: Mehrotra's predictor and corrector.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "solvers/interior_point/interior_point.hpp"
#include "solvers/interior_point/scaled_problem.hpp"
#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

using namespace interior_point_settings;

bool InteriorPoint::iterate(int it) {
  ConeBlocks& blocks = set_.blocks;
  const std::vector<double>&Y = x_.Y, &U = x_.U, &dY = dir_.v.y, &dU = dir_.U;
  x_.mu = average_complementarity();
  blocks.compute_scaling();
  // Without groups the curvatures differ too much from feature to feature: refining takes what is saved.
  system_.coarse = prices_change() && !p_.layout.shape.single() &&
                   incumbent_.dense.primal - incumbent_.dual_value >
                       kCoarseGap * p_.magnitude(incumbent_.dense.primal);
  damp_free_coefficients();
  assemble();
  monitor_.poll();
  factored_ = predict();
  if (!factored_) return false;
  monitor_.poll();
  if (prices_change()) {
    guess_.pairs.resize(Y.size());
    for (std::size_t a = 0; a < Y.size(); ++a) guess_.pairs[a] = dU[a] * Y[a] < dY[a] * U[a];
    blocks.keeping_weight(guess_.blocks);
  }

  double ap = std::min(largest_step(U, dU, 1.0), blocks.max_primal_step());
  double ad = std::min(largest_step(Y, dY, 1.0), blocks.max_dual_step());
  double after = blocks.complementarity(ap, ad);
  for (std::size_t a = 0; a < Y.size(); ++a) after += (Y[a] + ad * dY[a]) * (U[a] + ap * dU[a]);
  after /= static_cast<double>(Y.size()) + blocks.degree();
  const double sigma = std::pow(std::clamp(after / x_.mu, 0.0, 1.0), 3);
  correct(sigma * x_.mu);
  std::tie(ap, ad) = step_lengths();
  if (std::min(ap, ad) < kShortStep) {
    // Far off the central path the second-order terms mislead: a plain centring step then.
    plain_direction(std::max(sigma, 0.5) * x_.mu, kRefined);
    std::tie(ap, ad) = step_lengths();
  }
  std::vector<int64_t> entering;
  // While blocks outside shorten the steps, the next ones to do so are let in early.
  const double near = it < kEarlyIterations || blocked_ ? kNear : kEnteringNorm, full = ad;
  if (prices_change()) ad = set_.limit_step(dY, full, entering);
  blocked_ = ad < full;
  double size = ap + ad;
  for (std::size_t a = 0; a < Y.size(); ++a) size += std::abs(dY[a]) + std::abs(dU[a]);
  if (!std::isfinite(size)) return false;
  progress_.short_steps = std::max(ap, ad) < kNoStep ? progress_.short_steps + 1 : 0;
  if (progress_.short_steps >= kMostNoSteps) return false;
  advance(ap, ad);
  x_.mu = average_complementarity();
  if (prices_change()) {
    set_.list_near(near, entering);
    if (blocked_ && !p_.layout.joint) set_.list_next(full - ad, 1.0 - ad / full, entering);
    if (gap_below(incumbent_.dense, kSettlingGap) && !blocked_) remove_idle();
    set_.add(entering, Y, x_.mu);
  }
  return true;
}

double InteriorPoint::average_complementarity() const {
  double sum = set_.blocks.complementarity();
  for (std::size_t a = 0; a < x_.Y.size(); ++a) sum += x_.Y[a] * x_.U[a];
  return sum / (static_cast<double>(x_.Y.size()) + set_.blocks.degree());
}

// Free coefficients get a quadratic term: the optimal face may be unbounded in them, and the last
// digits of a certificate are those of the scores. Its curvature is a small share of the gap, as theirs
// is along such a face, so that it vanishes with it; a fixed one would leave the equalities of the
// dual a residual, of which coefficients of 1e5 margins, as a tiny alpha allows them, make any gap.
void InteriorPoint::damp_free_coefficients() {
  system_.proximal =
      kProximal * x_.mu * static_cast<double>(x_.Y.size()) / (p_.margin_unit * p_.margin_unit);
  for (std::size_t j = 0; j < x_.b.size(); ++j) rhs_.b[j] -= system_.proximal * x_.b[j];
}

void InteriorPoint::assemble() {
  const int explicit_before = system_.n_explicit();
  system_.choose_explicit(set_.blocks, set_.column_scale.data(), kExplicitMove / x_.mu, alike_);
  const bool joint = p_.layout.joint;
  system_.assemble(set_.blocks, set_.X.data(), joint,
                   p_.quadratic || (joint && p_.layout.shape.shared_scaling()), x_.U.data(),
                   x_.Y.data());
  restore_explicit(explicit_before);
}

// The columns of explicit coordinates are so large that what a solve leaves of X'dY would add up to a
// visible part of the dual ball over the iterations: the next step takes it back, or, where the
// coordinates are explicit no longer, it is a dual residual like others.
void InteriorPoint::restore_explicit(int explicit_before) {
  rhs_.z.clear();
  if (system_.n_explicit() == 0 && explicit_before == 0) return;
  ConeBlocks& blocks = set_.blocks;
  std::vector<double>& drift = set_.prices(x_.Y);
  blocks.subtract_held(drift.data());
  if (system_.n_explicit() > 0)
    system_.remove_drift(drift.data(), rhs_.z);
  else
    for (int64_t c = 0; c < blocks.n_coordinates(); ++c) blocks.shift[c] -= drift[c];
}

// Factors and computes the affine direction, regularising more while the solve is inaccurate.
bool InteriorPoint::predict() {
  system_.regularisation =
      std::max(kMinRegularisation, kRegularisationFall * system_.regularisation);
  for (;;) {
    const double best = find_regularisation();
    if (best <= std::max(kAccurate, system_.attainable())) return true;
    if (best > kBearable && !polishing_ &&
        (expensive_explicit() || more_explicit(kLeastAlikeFactor)))
      continue;
    if (!std::isfinite(best) || !system_.factor()) return false;
    plain_direction(0.0, kAccurate);
    return true;
  }
}

// The first regularisation with which the affine direction is accurate, and the direction; or the one
// that comes nearest to it. Returns the residual.
double InteriorPoint::find_regularisation() {
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
    if (more_explicit(1.0)) continue;
    if (system_.leave_single_precision()) {
      assemble();
      continue;
    }
    if (system_.regularisation >= kMaxRegularisation) break;
    system_.regularisation *= kRegularisationGrowth;
  }
  system_.regularisation = best_level;
  return best;
}

// After a solve that failed: whether more coordinates became unknowns of their own, with a factor for
// columns alike of at least so much. The larger D is, the fewer digits x' dY, which all but cancels,
// has left for it.
bool InteriorPoint::more_explicit(double least) {
  while (!p_.quadratic && alike_ > least) {
    const int before = system_.n_explicit();
    alike_ *= kAlikeReduction;
    assemble();
    if (system_.n_explicit() > before) return true;
    if (system_.too_expensive()) return false;
  }
  return false;
}

// Whether coordinates that were too expensive as unknowns have become some all the same.
bool InteriorPoint::expensive_explicit() {
  if (!system_.too_expensive()) return false;
  system_.choose_at_any_cost();
  assemble();
  return !system_.too_expensive();
}

// The affine or a centring direction, without second-order terms.
void InteriorPoint::plain_direction(double tau, double accuracy) {
  terms_.assign(x_.Y.size(), 0.0);
  set_.blocks.clear_terms();
  direction(tau, accuracy);
}

// Newton direction for complementarity tau and the terms now set; fills dir_ and the blocks'
// directions.
void InteriorPoint::direction(double tau, double accuracy) {
  ConeBlocks& blocks = set_.blocks;
  const std::size_t size = x_.Y.size(), first = p_.at(p_.first_class);
  blocks.compute_rhs(tau);
  target_.resize(size);
  if (!set_.empty()) {
    // X (h + D shift)
    response_.resize(blocks.n_coordinates());
    for (int64_t b = 0; b < blocks.size(); ++b) {
      double along = 0.0;
      for (int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
        along += blocks.vec[c] * blocks.shift[c];
      for (int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
        response_[c] = blocks.h[c] + blocks.delta[c] * blocks.shift[c] +
                       blocks.kappa(b) * along * blocks.vec[c];
    }
    set_.scores(response_, rhs_.y.data() + first);
  }
  // The class pinned to zero has no weights.
  std::fill(rhs_.y.begin(), set_.empty() ? rhs_.y.end() : rhs_.y.begin() + first, 0.0);
  for (std::size_t a = 0; a < size; ++a) {
    target_[a] = tau - x_.U[a] * x_.Y[a] + terms_[a];
    rhs_.y[a] += target_[a] / x_.Y[a] - rho_[a];
  }
  solve_residual_ = system_.solve(rhs_, dir_.v, accuracy);
  exact_row_sums(p_, rhs_, dir_.v);
  dir_.U.resize(size);
  for (std::size_t a = 0; a < size; ++a) dir_.U[a] = (target_[a] - x_.U[a] * dir_.v.y[a]) / x_.Y[a];
  std::vector<double>& dg = set_.transposed(dir_.v.y.data());
  system_.complete(dir_.v, dg.data());
  blocks.recover(dg.data());
}

// Mehrotra's corrector: the direction with the second-order terms of the affine one.
void InteriorPoint::correct(double tau) {
  for (std::size_t a = 0; a < x_.Y.size(); ++a) terms_[a] = -dir_.U[a] * dir_.v.y[a];
  set_.blocks.second_order_terms();
  direction(tau, kRefined);
}

std::pair<double, double> InteriorPoint::step_lengths() const {
  const double primal = std::min(largest_step(x_.U, dir_.U, 2.0), set_.blocks.max_primal_step());
  const double dual = std::min(largest_step(x_.Y, dir_.v.y, 2.0), set_.blocks.max_dual_step());
  return {std::min(1.0, kStepFraction * primal), std::min(1.0, kStepFraction * dual)};
}

void InteriorPoint::advance(double primal, double dual) {
  set_.blocks.step(primal, dual);
  for (std::size_t a = 0; a < x_.Y.size(); ++a) {
    x_.U[a] += primal * dir_.U[a];
    x_.Y[a] += dual * dir_.v.y[a];
  }
  for (int i = 0; i < p_.n; ++i) x_.xi[i] += primal * dir_.v.xi[i];
  for (std::size_t j = 0; j < x_.b.size(); ++j) x_.b[j] += primal * dir_.v.b[j];
  if (prices_change()) set_.advance(dual);
}

void InteriorPoint::remove_idle() {
  if (system_.n_explicit() > 0) return;
  const std::vector<char> idle = set_.remove_idle(system_.by_features());
  if (idle.empty()) return;
  std::size_t kept = 0;
  for (std::size_t b = 0; b < idle.size(); ++b)
    if (!idle[b]) guess_.blocks[kept++] = guess_.blocks[b];
  guess_.blocks.resize(kept);
}

}  // namespace sparsvm
