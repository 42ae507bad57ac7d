#include "solvers/interior_point/interior_point.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "solvers/interior_point/scaled_problem.hpp"
#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

using namespace interior_point_settings;

InteriorPoint::InteriorPoint(const HingeProblem& problem, const InteriorPointStart& start,
                             const InteriorPointOptions& options, InteriorPointMonitor monitor)
    : options_(options), start_(start), monitor_(std::move(monitor)), p_(problem, monitor_.poll),
      set_(p_), system_(p_.free, p_.quadratic_part) {
  system_.poll = monitor_.poll;
}

InteriorPointResult InteriorPoint::solve() {
  start();
  InteriorPointResult result;
  int it = 0;
  for (;; ++it) {
    monitor_.poll();
    evaluate();
    record(it);
    if (converged() || settled() || it >= options_.max_iter || monitor_.stopping()) break;
    if (on_face()) {
      record(++it);
      break;
    }
    if (no_progress() || !iterate(it)) {
      result.stalled = true;
      break;
    }
  }
  if (!p_.free_features.empty()) project_dual();
  export_dual(result);
  const double gap = incumbent_.best().primal - incumbent_.dual_value;
  if (!converged() && !p_.quadratic && it < options_.max_iter && !monitor_.stopping() &&
      gap <= kPolishGap * p_.magnitude(incumbent_.best().primal))
    it = polish(it, result);
  if (result.intercept.empty())
    export_point(converged() ? incumbent_.sparse : incumbent_.best(), result);
  result.bound = p_.given.alpha * (incumbent_.dual_value + p_.offset);
  result.converged = converged();
  result.iterations = it;
  return result;
}

void InteriorPoint::record(int it) {
  const Candidate& point = incumbent_.best();
  const auto nonzeros = point.values.size() - static_cast<std::size_t>(std::count(
                                                  point.values.begin(), point.values.end(), 0.0));
  monitor_.record(it, p_.given.alpha * (point.primal + p_.offset),
                  p_.given.alpha * (point.primal - incumbent_.dual_value),
                  static_cast<int64_t>(nonzeros));
}

// ---- when to stop ----

bool InteriorPoint::converged() const {
  const double primal = incumbent_.sparse.primal;
  return std::isfinite(primal) &&
         primal - incumbent_.dual_value <= options_.tol * p_.magnitude(primal);
}

// The interior point itself has been there for a while, or gets no further; what is missing is a sparse
// point as good.
bool InteriorPoint::settled() {
  const double gap = relative_gap(incumbent_.dense);
  if (p_.quadratic || !(gap <= (progress_.idle > 0 ? 1.0 : kSettledGap) * options_.tol))
    return false;
  return ++progress_.settled > kSettled;
}

// Rounding ends the progress of an ill-conditioned problem; going on would only cost time.
bool InteriorPoint::no_progress() {
  const double gap = incumbent_.best().primal - incumbent_.dual_value;
  double residual = 0.0;
  for (double v : rho_) residual = std::max(residual, std::abs(v));
  // A start far from primal feasible may take longer than that to have a value worth comparing.
  const bool closer = residual < kResidualProgress * progress_.residual;
  if (closer) progress_.residual = residual;
  if (!(gap > kGapProgress * progress_.gap) || closer) {
    progress_.gap = std::min(gap, progress_.gap);
    progress_.idle = 0;
  } else {
    progress_.idle += solve_residual_ > std::max(kBearable, system_.attainable()) ? kInaccurate : 1;
  }
  return progress_.idle > kPatience;
}

// ---- values ----

void InteriorPoint::residuals() {
  rho_.resize(x_.Y.size());
  rhs_.resize(x_.Y.size(), p_.n, p_.free.count());
  for (int k = 0; k < p_.classes; ++k)
    for (int i = 0; i < p_.n; ++i) {
      const std::size_t a = p_.at(k) + i;
      rho_[a] = x_.xi[i] - p_.margins[a] - x_.S[a] - x_.U[a];
    }
  row_residuals(p_, x_.Y, rhs_.xi);
  p_.residuals(p_.free, x_.Y, rhs_.b);
}

// What the residuals of the dual's equalities may be worth at the current multipliers. They vanish
// with the first full step, and this keeps the dual value from being trusted before.
double InteriorPoint::infeasibility() {
  residuals();
  double total = 0.0;
  for (int i = 0; i < p_.n; ++i) total += std::abs(rhs_.xi[i] * x_.xi[i]);
  for (std::size_t j = 0; j < x_.b.size(); ++j) {
    if (std::abs(rhs_.b[j]) > kFreeRounding * p_.total_lambda)
      return std::numeric_limits<double>::infinity();
    total += std::abs(rhs_.b[j] * x_.b[j]);
  }
  return total;
}

// The conjugate of an elastic net at the current dual point (zero for norms).
double InteriorPoint::conjugate() {
  if (p_.layout.shape.quad <= 0.0) return 0.0;
  return set_.blocks.conjugate(set_.prices(x_.Y).data());
}

void InteriorPoint::evaluate() {
  const std::vector<double>& w = set_.blocks.w;
  Candidate &dense = incumbent_.dense, &sparse = incumbent_.sparse;
  set_.scores(w, x_.b, x_.Y, x_.S);
  const auto [square, linear] = p_.quadratic_terms(x_.Y);
  double dual = -(square - linear + 0.5 * p_.linear_norm) - conjugate();
  for (std::size_t a = 0; a < x_.Y.size(); ++a) dual += x_.Y[a] * p_.margins[a];
  dual -= infeasibility() + set_.blocks.shift_value(std::max(kRounding, options_.residual));
  if (system_.n_explicit() > 0) dual -= std::abs(dual) * explicit_drift();
  // As long as no dual value can be trusted, the latest point is the best guess.
  if (!polishing_ && (dual > incumbent_.dual_value || !std::isfinite(incumbent_.dual_value))) {
    incumbent_.dual_value = dual;
    incumbent_.Y = x_.Y;
  }
  consider(dense, w, x_.b, x_.S, square);
  if (polishing_) {
    consider(sparse, w, x_.b, x_.S, 0.0);
    return;
  }
  if (!gap_below(dense, kSparseGap)) return;
  if (p_.quadratic) {
    const double exact = p_.exact_quadratic_scores(x_.Y, x_.b, trial_scores_);
    consider(sparse, w, x_.b, trial_scores_, exact);
    return;
  }
  consider_sparse();
}

// Tries the iterate with exact zeros where the effect of a weight is below its dual slack.
void InteriorPoint::consider_sparse() {
  set_.blocks.sparse_weights(set_.column_scale.data(), trial_);
  set_.scores(trial_, x_.b, x_.Y, trial_scores_);
  consider(incumbent_.sparse, trial_, x_.b, trial_scores_, 0.0);
  if (factored_ && !converged() && gap_below(incumbent_.dense, options_.tol)) refit();
}

// Weights set to zero move the scores, which costs most at pairs that tie. What is left takes the moves
// back as far as the last Newton system allows: its solution keeps the slacks of these pairs.
void InteriorPoint::refit() {
  const ConeBlocks& blocks = set_.blocks;
  std::vector<double> b(x_.b);
  refit_rhs_.resize(x_.Y.size(), p_.n, b.size());
  refit_rhs_.z.assign(system_.n_explicit(), 0.0);
  for (std::size_t a = 0; a < x_.Y.size(); ++a) refit_rhs_.y[a] = trial_scores_[a] - x_.S[a];
  system_.solve(refit_rhs_, refit_, kRefitAccuracy);
  std::vector<double>& dg = set_.transposed(refit_.y.data());
  system_.complete(refit_, dg.data());
  for (int64_t block = 0; block < blocks.size(); ++block) {
    double along = 0.0;
    for (int64_t c = blocks.begin(block); c < blocks.end(block); ++c)
      along += blocks.vec[c] * dg[c];
    along *= blocks.kappa(block);
    for (int64_t c = blocks.begin(block); c < blocks.end(block); ++c)
      if (trial_[c] != 0.0) trial_[c] -= blocks.delta[c] * dg[c] + along * blocks.vec[c];
  }
  for (std::size_t j = 0; j < b.size(); ++j) b[j] += refit_.b[j];
  set_.scores(trial_, b, x_.Y, trial_scores_);
  consider(incumbent_.sparse, trial_, b, trial_scores_, 0.0);
}

// How far G of the explicit coordinates is from what their blocks take it to be: scaled down by so
// much, the dual point is feasible.
double InteriorPoint::explicit_drift() {
  std::vector<double>& drift = set_.prices(x_.Y);
  set_.blocks.subtract_held(drift.data());
  double worst = 0.0;
  for (int64_t c = 0; c < set_.blocks.n_coordinates(); ++c)
    if (system_.is_explicit(c)) worst = std::max(worst, std::abs(drift[c]));
  return worst;
}

// Keeps the point with these coefficients and scores if it is the best so far.
void InteriorPoint::consider(Candidate& best, const std::vector<double>& values,
                             const std::vector<double>& b, const std::vector<double>& S,
                             double square) {
  const std::vector<double>* Y = p_.quadratic ? &x_.Y : nullptr;
  best.offer(set_, values, b, Y,
             p_.hinge(S) + square - 0.5 * p_.linear_norm + set_.blocks.value(values) -
                 set_.linear_value(values));
}

// ---- the end ----

// Tries to finish from here by Newton steps on the face that complementarity points to. Left to the
// interior point are groups of all classes, linear terms, unpenalised features, systems of few features, whose
// own steps cost as little, and the other norms: they have corners instead of curvature, and on these
// the guess of the face did not settle (raw images with l1 took half as long again).
bool InteriorPoint::on_face() {
  if (p_.quadratic || p_.layout.joint || !p_.layout.shape.sums_squares() || p_.linear_term ||
      !p_.free_features.empty() || system_.by_features() || p_.empty_class || guess_.pairs.empty())
    return false;
  const double gap = relative_gap(incumbent_.best());
  const double early = p_.n < kManySamples ? kFaceGap : kEarlyFaceGap;
  if (!(gap <= early && gap <= next_face_gap_)) return false;
  next_face_gap_ = kNextFaceGap * gap;
  return find_face(p_, set_, x_, guess_, system_.proximal, gap, options_.tol, incumbent_,
                   monitor_.poll);
}

// Identifies the active coordinates and solves for these alone, from here: all others are exactly
// zero, and the dual value stays the one of the whole problem. Exports the polished point if it meets
// the tolerance or is better than any before.
int InteriorPoint::polish(int it, InteriorPointResult& result) {
  const double best_primal = incumbent_.best().primal;
  export_point(incumbent_.best(), result);
  polishing_ = true;
  restart_on_active();
  for (int step = 0; step < kPolishSteps && it < options_.max_iter; ++step) {
    monitor_.poll();
    evaluate();
    record(it);
    if (converged() || !iterate(it)) break;
    ++it;
  }
  if (incumbent_.sparse.primal < best_primal || converged())
    export_point(incumbent_.sparse, result);
  return it;
}

// Rebuilds the blocks from the coordinates that are active, a little inside.
void InteriorPoint::restart_on_active() {
  ConeBlocks& blocks = set_.blocks;
  blocks.sparse_weights(set_.column_scale.data(), trial_);
  for (std::size_t a = 0; a < x_.Y.size(); ++a)
    x_.Y[a] = (1.0 - kPolishMix) * incumbent_.Y[a] + kPolishMix * first_Y_[a];
  x_.mu = kPolishMix * p_.margin_unit * p_.total_lambda / static_cast<double>(x_.Y.size());
  const std::vector<double>& prices = set_.prices(x_.Y);
  ConeBlocks active;
  std::vector<int32_t> cols, classes;
  std::vector<double> g, weights, shift;
  for (int64_t b = 0; b < blocks.size(); ++b) {
    cols.clear(), classes.clear(), g.clear(), weights.clear();
    bool any = false;
    for (int64_t c = blocks.begin(b); c < blocks.end(b); ++c) {
      any = any || trial_[c] != 0.0;
      if (trial_[c] == 0.0 && blocks.shape(b).separable()) continue;
      cols.push_back(blocks.col[c]);
      classes.push_back(blocks.cls[c]);
      g.push_back(prices[c]);
      weights.push_back(trial_[c]);
    }
    if (!any) continue;
    const auto size = static_cast<int64_t>(cols.size());
    shift.assign(cols.size(), 0.0);
    if (blocks.shape(b).exceeds(g.data(), size, kStrictlyInside)) {
      const double pull = kPolishScale / blocks.shape(b).dual_norm(g.data(), size) - 1.0;
      for (int64_t c = 0; c < size; ++c) shift[c] = pull * g[c];
    }
    active.add(blocks.shape(b), size, cols.data(), classes.data(), g.data(), shift.data(), x_.mu,
               weights.data());
  }
  blocks = std::move(active);
  system_.clear_explicit();
  incumbent_.dense = incumbent_.sparse = Candidate();
  start_slacks(kPolishMix);
}

// Removes what rounding left of F'Y~: unpenalised features demand it exactly, and no scaling of the
// certificate could repair it.
void InteriorPoint::project_dual() {
  Equalities equalities(p_, p_.free.values, monitor_.poll);
  for (int round = 0; round < kProjections; ++round)
    if (equalities.approach(incumbent_.Y) == 0.0) return;
}

// ---- the user's coordinates ----

void InteriorPoint::export_dual(InteriorPointResult& out) const {
  out.dual.resize(incumbent_.Y.size());
  for (int i = 0; i < p_.n; ++i)
    for (int k = 0; k < p_.classes; ++k)
      out.dual[static_cast<std::size_t>(i) * p_.classes + k] = incumbent_.Y[p_.at(k) + i];
}

void InteriorPoint::export_point(const Candidate& point, InteriorPointResult& out) const {
  const int outputs = p_.outputs;
  out.intercept.assign(outputs, 0.0);
  list_used(point, out.used);
  out.weights.assign(out.used.size() * outputs, 0.0);
  const auto row = [&](int32_t j) {
    return out.weights.data() +
           (std::lower_bound(out.used.begin(), out.used.end(), j) - out.used.begin()) * outputs;
  };
  if (p_.quadratic) {
    if (point.scale != 0.0) p_.quadratic_weights(point.Y, out.weights);
  } else {
    for (std::size_t c = 0; c < point.values.size(); ++c) {
      if (point.values[c] == 0.0) continue;
      const auto j = static_cast<int32_t>(point.at[c] / outputs);
      row(j)[point.at[c] % outputs] = point.values[c] * p_.layout.inv_omega[j];
    }
  }
  const bool intercept = p_.given.intercept;
  for (int k = p_.first_class; k < p_.classes; ++k) {
    if (!p_.free.has(k)) continue;
    const double* b = point.b.data() + p_.free.offset(k);
    if (intercept) out.intercept[k - p_.first_class] = *b++;
    for (std::size_t f = 0; f < p_.free_features.size(); ++f)
      row(p_.free_features[f])[k - p_.first_class] = b[f] / p_.free_scale[f];
  }
  for (double& w : out.weights) w *= point.scale;
  for (double& b : out.intercept) b *= point.scale;
  if (intercept)
    for (std::size_t c = 0; c < out.used.size(); ++c)
      for (int o = 0; o < outputs; ++o)
        out.intercept[o] -= p_.mean[out.used[c]] * out.weights[c * outputs + o];
}

// The features that may have weights, increasing: all of a quadratic penalty.
void InteriorPoint::list_used(const Candidate& point, std::vector<int32_t>& used) const {
  if (p_.quadratic) {
    used.resize(static_cast<std::size_t>(p_.d));
    std::iota(used.begin(), used.end(), 0);
    return;
  }
  used = p_.free_features;
  for (std::size_t c = 0; c < point.values.size(); ++c)
    if (point.values[c] != 0.0) used.push_back(static_cast<int32_t>(point.at[c] / p_.outputs));
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
}

}  // namespace sparsvm
