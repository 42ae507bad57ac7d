#include "paths/hinge_path.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "paths/settings.hpp"
#include "solvers/interior_point/interior_point.hpp"

namespace sparsvm {

using namespace hinge_path_settings;

namespace {

// The best proof of points between two solutions so many steps apart is lost to this many curvatures:
// with t of s steps done, the nearer line is min(t, s - t)^2 above the optimum and the chord t (s - t)
// below.
double bulge(int64_t steps) {
  int64_t most = 0;
  for (int64_t t = 1; t < steps; ++t) {
    const int64_t near = std::min(t, steps - t);
    most = std::max(most, near * near + t * (steps - t));
  }
  return static_cast<double>(most);
}

// Shifting all classes alike changes neither the differences of scores nor the penalty.
void centre(double* values, int64_t count) {
  for (int round = 0; round < 2; ++round) {  // the second takes the rounding of the first
    const double mean = std::accumulate(values, values + count, 0.0) / static_cast<double>(count);
    for (int64_t k = 0; k < count; ++k) values[k] -= mean;
  }
}

}  // namespace

HingePath::HingePath(const HingeProblem& problem, const double* column_norms,
                     const HingePathOptions& options, Monitor& monitor)
    : problem_(problem), column_norms_(column_norms), options_(options), monitor_(monitor),
      groups_(problem.penalty), certificate_(problem, options.column_dual_norm), n_(problem.n()),
      K_(problem.classes), outputs_(problem.outputs()) {
  std::vector<char> seen(static_cast<std::size_t>(K_), 0);
  for (int64_t i = 0; i < n_; ++i) {
    seen[problem.y[i]] = 1;
    largest_mass_ = std::max(largest_mass_, problem.mass[i]);
    double largest = 0.0;
    for (int64_t k = 0; k < K_; ++k) largest = std::max(largest, std::abs(problem.margin(i, k)));
    mean_margin_ += problem.mass[i] * largest;
  }
  all_classes_ = std::all_of(seen.begin(), seen.end(), [](char s) { return s; });
}

void HingePath::start(HingePathPoint point, bool zero) {
  certificate_.strengths(point.dual, point.alpha, last_.strengths);
  if (zero) zero_ = point;
  has_zero_ = has_zero_ || zero;
  left_ = point;
  has_left_ = !zero;  // which may be proven from far above the grid on
  last_.point = std::move(point);
  last_.known = true;
}

std::vector<HingePathPoint> HingePath::follow(const double* grid, int64_t count, int64_t enough) {
  std::vector<HingePathPoint> points;
  while (std::ssize(points) < std::min(count, enough)) {
    const int64_t done = std::ssize(points);
    if (!ahead(grid + done, count - done, points)) break;
  }
  return points;
}

// ---- along the grid ----

// Solves at one of the next alphas and proves those before it by that.
bool HingePath::ahead(const double* grid, int64_t rest, std::vector<HingePathPoint>& points) {
  const double began = seconds();
  HingePathPoint right;
  int64_t steps = 1;
  if (!known(grid[0], right)) {
    steps = std::min(stride(), rest);
    if (!solve(grid[steps - 1], steps > 1 ? kSharpEnds * options_.tol : options_.tol, right))
      return false;
    if (has_left_) bend(left_, right, steps);
  }
  const Last end = steps > 1 ? last_ : Last();
  const auto first = points.size();
  for (int64_t t = 0; t + 1 < steps; ++t) {
    HingePathPoint point;
    if (!between(grid[t], right, point)) {
      if (!solve(grid[t], kSharpEnds * options_.tol, point)) return points.size() > first;
      left_ = point;
    }
    points.push_back(std::move(point));
  }
  if (steps > 1) last_ = end;
  left_ = right;
  has_left_ = true;
  points.push_back(std::move(right));
  points[first].seconds = seconds() - began;
  return true;
}

// How many steps ahead the points between are likely to be proven.
int64_t HingePath::stride() const {
  if (!has_left_ || options_.tol < kLeastTol) return 1;
  const double room = (kPlanned - kSharpEnds) * options_.tol;
  int64_t steps = 1;
  while (steps < kFarthest && bulge(steps + 1) * curvature_ <= room) ++steps;
  return steps >= (swept_ ? kNearestOfSweeps : kNearest) ? steps : 1;
}

// The curvature, relative to the objective and for one step, from how far the line of one solution is
// above the other.
void HingePath::bend(const HingePathPoint& left, const HingePathPoint& right, int64_t steps) {
  const double size = std::abs(right.objective());
  const double above = left.model->objective(right.alpha) - right.objective();
  const double found =
      size > 0.0 ? std::max(above, 0.0) / (size * static_cast<double>(steps * steps)) : 0.0;
  curvature_ = std::isfinite(curvature_) ? std::max(found, kLeastFall * curvature_) : found;
}

// The zero model, or the last one with its dual point in proportion to alpha: from where on the samples
// are separated.
bool HingePath::known(double alpha, HingePathPoint& point) {
  if (has_zero_ && alpha >= zero_.alpha) {
    point = zero_;
    point.alpha = alpha;
    point.iterations = 0;
    return within(point, options_.tol);
  }
  if (!last_.known || alpha > last_.point.alpha) return false;
  const double share = alpha / last_.point.alpha;
  HingePathPoint same{alpha, share * last_.point.bound * kDown, 0.0, 0, last_.point.model, {}};
  if (!within(same, options_.tol)) return false;
  same.dual = std::move(last_.point.dual);
  for (double& y : same.dual) y *= share * kDown;
  last_.point = point = std::move(same);
  return true;
}

// The better one of two models, proven by the mean of their dual points.
bool HingePath::between(double alpha, const HingePathPoint& right, HingePathPoint& point) const {
  const double span = left_.alpha - right.alpha;
  const double share = span > 0.0 ? (alpha - right.alpha) / span : 1.0;
  const bool first = left_.model->objective(alpha) < right.model->objective(alpha);
  point = {alpha,
           (share * left_.bound + (1.0 - share) * right.bound) * kDown,
           0.0,
           0,
           first ? left_.model : right.model,
           {}};
  if (!within(point, options_.tol)) return false;
  if (!options_.keep_duals) return true;
  point.dual.resize(right.dual.size());
  for (std::size_t a = 0; a < right.dual.size(); ++a)
    point.dual[a] = (share * left_.dual[a] + (1.0 - share) * right.dual[a]) * kDown;
  return true;
}

// ---- one alpha ----

bool HingePath::solve(double alpha, double tol, HingePathPoint& point) {
  if (!all_classes_ || !last_.known) return false;  // intercepts of empty classes are unbounded
  lambda_.resize(static_cast<std::size_t>(n_));
  for (int64_t i = 0; i < n_; ++i)
    lambda_[i] = std::max(problem_.mass[i], kLeastMass * largest_mass_) / alpha;
  HingePathPoint begin = last_.point;
  const double share = std::min(1.0, alpha / begin.alpha);
  for (double& y : begin.dual) y *= share;
  std::vector<double> strengths;
  int64_t iterations = 0;
  open(alpha);
  for (int round = 0; round < kRounds; ++round) {
    const HingePart& restricted = part(groups_.features(marked_));
    if (!solve_part(restricted, alpha, tol, begin, point, strengths)) return false;
    point.iterations = iterations += point.iterations;
    if (within(point, tol) || !add_violators(strengths)) {
      if (!within(point, options_.tol)) return false;
      last_ = {point, std::move(strengths), true};
      return true;
    }
    // The dual point of some features is nearer to the optimum than the one scaled for all.
    begin = point;
    double most = 1.0;
    for (const double strength : strengths) most = std::max(most, strength);
    for (double& y : begin.dual) y *= most;
  }
  return false;
}

// Marks the groups to begin with: those of the last support and those near their limit; all where the last
// point is too far away to tell.
void HingePath::open(double alpha) {
  const double change = alpha / last_.point.alpha;
  const bool tells = change >= kFar && std::all_of(last_.strengths.begin(), last_.strengths.end(),
                                                   [](double s) { return std::isfinite(s); });
  marked_.assign(static_cast<std::size_t>(groups_.count()), tells ? 0 : 1);
  if (!tells) return;
  for (const int32_t j : last_.point.model->features) marked_[groups_.of(j)] = 1;
  add_strongest(last_.strengths, 1.0 - options_.reach * std::abs(1.0 - change));
}

// Marks the groups beyond their limit; whether there were any.
bool HingePath::add_violators(const std::vector<double>& strengths) {
  return add_strongest(strengths, 1.0 - kAtLimit);
}

// Marks the strongest groups from a strength on, at most doubling what is marked. Whether it did.
bool HingePath::add_strongest(const std::vector<double>& strengths, double least) {
  std::vector<int64_t> candidates;
  for (int64_t g = 0; g < groups_.count(); ++g)
    if (!marked_[g] && strengths[g] >= least) candidates.push_back(g);
  const auto marked = static_cast<int64_t>(std::count(marked_.begin(), marked_.end(), 1));
  const int64_t most = std::max(kLeastAdded, marked);
  if (std::ssize(candidates) > most) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](int64_t a, int64_t b) { return strengths[a] > strengths[b]; });
    candidates.resize(static_cast<std::size_t>(most));
  }
  for (const int64_t g : candidates) marked_[g] = 1;
  return !candidates.empty();
}

// The problem on these features; on all of them where few would be left out.
const HingePart& HingePath::part(std::vector<int32_t> features) {
  if (static_cast<double>(features.size()) > kSmall * static_cast<double>(problem_.d())) {
    std::fill(marked_.begin(), marked_.end(), 1);
    features = groups_.features(marked_);
  }
  if (!part_ || part_->features() != features) {
    part_ = std::make_unique<HingePart>(problem_, column_norms_, std::move(features));
    part_certificate_.reset();
  }
  return *part_;
}

// Solves on some features from a point and proves the result on all of them.
bool HingePath::solve_part(const HingePart& part, double alpha, double tol,
                           const HingePathPoint& begin, HingePathPoint& point,
                           std::vector<double>& strengths) {
  const HingeProblem problem = part.at(alpha, lambda_.data());
  const double columns = static_cast<double>(outputs_) * static_cast<double>(problem.d());
  const double step = static_cast<double>(n_) * columns * columns;
  PartSolution found;
  const HingeModel& old = *begin.model;
  for (const int32_t j : old.features) found.used.push_back(static_cast<int32_t>(part.place(j)));
  found.weights = old.weights;
  found.intercept = old.intercept;
  found.dual = begin.dual;
  for (double& y : found.dual) y /= alpha;
  // On all features the proof is the solver's own.
  const double inner = problem.d() == problem_.d() ? tol : kInner * tol;
  swept_ = step > options_.plan.exact_step;
  if (swept_ && !part_certificate_)
    part_certificate_ =
        std::make_unique<HingeCertificate>(part.problem(), options_.column_dual_norm);
  const bool solved = swept_ && solve_by_sweeps(problem, part, *part_certificate_, options_.plan,
                                                step, inner, monitor_, found);
  if (!solved && !solve_exactly(problem, part, inner, found)) return false;
  point.alpha = alpha;
  point.iterations = found.iterations;
  return prove(part, found, point, strengths);
}

bool HingePath::solve_exactly(const HingeProblem& problem, const HingePart& part, double tol,
                              PartSolution& point) {
  const auto outputs = static_cast<std::size_t>(outputs_);
  std::vector<double> weights(part.features().size() * outputs, 0.0);
  for (std::size_t a = 0; a < point.used.size(); ++a)
    std::copy_n(point.weights.data() + a * outputs, outputs,
                weights.data() + point.used[a] * outputs);
  const InteriorPointMonitor watching{[this] {
    monitor_.poll();
  }, [this](int iteration, double objective, double gap, int64_t nonzeros) {
    monitor_.record(iteration, objective, gap, nonzeros);
  }, &Monitor::stopping};
  InteriorPointOptions options{.tol = kSharp * tol,
                               .max_iter = std::min(kWarmSteps, options_.max_iter)};
  const InteriorPointStart warm{point.dual.data(), weights.data(), point.intercept.data()};
  InteriorPointResult found = InteriorPoint(problem, warm, options, watching).solve();
  int64_t iterations = point.iterations + found.iterations;
  if (!found.converged && !Monitor::stopping()) {
    options.max_iter = options_.max_iter;
    found = InteriorPoint(problem, {}, options, watching).solve();
    iterations += found.iterations;
  }
  point = {std::move(found.used), std::move(found.weights), std::move(found.intercept),
           std::move(found.dual), iterations};
  return found.converged;
}

bool HingePath::prove(const HingePart& part, PartSolution& found, HingePathPoint& point,
                      std::vector<double>& strengths) {
  auto model = std::make_shared<HingeModel>();
  const auto outputs = static_cast<std::size_t>(outputs_);
  model->intercept = std::move(found.intercept);
  if (!problem_.intercept) std::fill(model->intercept.begin(), model->intercept.end(), 0.0);
  if (outputs > 1) centre(model->intercept.data(), outputs_);
  std::vector<int32_t> used;
  std::vector<double> largest(part.features().size(), 0.0);
  for (std::size_t a = 0; a < found.used.size(); ++a) {
    const int32_t j = found.used[a];
    double* w = found.weights.data() + a * outputs;
    if (outputs > 1 && !(problem_.penalty.omega[part.features()[j]] > 0.0)) centre(w, outputs_);
    if (options_.single_precision)
      for (std::size_t o = 0; o < outputs; ++o) w[o] = static_cast<float>(w[o]);
    for (std::size_t o = 0; o < outputs; ++o) largest[j] = std::max(largest[j], std::abs(w[o]));
    if (largest[j] == 0.0) continue;
    used.push_back(j);
    model->features.push_back(part.features()[j]);
    model->weights.insert(model->weights.end(), w, w + outputs);
  }
  if (options_.single_precision)
    for (double& b : model->intercept) b = static_cast<float>(b);

  const HingeProblem& problem = part.problem();
  std::vector<double> S(static_cast<std::size_t>(n_) * outputs),
      sizes(static_cast<std::size_t>(n_));
  problem.design->scores_subset(used.data(), std::ssize(used), model->weights.data(), outputs_,
                                S.data());
  model->loss = certificate_.loss(S, model->intercept.data());
  model->penalty = part.penalty(used, model->weights.data());

  // Where rounding may hide the gap, coefficients are too large for a proof without repairs.
  problem.design->abs_scores(largest.data(), sizes.data());
  double size = mean_margin_, steepest = 0.0;
  for (const double b : model->intercept) steepest = std::max(steepest, std::abs(b));
  for (int64_t i = 0; i < n_; ++i) size += 2.0 * problem_.mass[i] * (sizes[i] + steepest);
  const double objective = model->objective(point.alpha);
  if (!(kObjectiveRounding * size <= options_.tol * std::abs(objective))) return false;

  point.model = std::move(model);
  point.dual = std::move(found.dual);
  for (double& y : point.dual) y *= point.alpha;
  point.bound = certificate_.prove(point.dual, point.alpha, strengths);
  return std::isfinite(point.bound);
}

}  // namespace sparsvm
