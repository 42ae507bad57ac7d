#include "solvers/block_newton/block_newton.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "design/column_reader.hpp"
#include "loss/smooth_rows.hpp"
#include "penalty/group_penalty.hpp"
#include "solvers/block_newton/descent.hpp"
#include "solvers/block_newton/free_newton.hpp"
#include "solvers/block_newton/model_step.hpp"
#include "solvers/block_newton/newton_step.hpp"
#include "solvers/block_newton/path_secant.hpp"
#include "solvers/block_newton/pricing.hpp"
#include "solvers/block_newton/settings.hpp"

namespace sparsvm {

namespace {

class BlockNewton {
 public:
  // The solution is left in `point`.
  BlockNewton(const SmoothProblem& problem, const SmoothPoint& point, Monitor& monitor)
      : t_(problem), rows_(problem.loss, problem.n()), penalty_(problem.penalty, rows_.width),
        monitor_(monitor), d_(problem.d()), outputs_(rows_.outputs), width_(rows_.width),
        point_(point), columns_(*problem.design), panels_(columns_, problem.n(), width_),
        newton_(point_, rows_, columns_, penalty_, problem.linear_term, problem.intercept, monitor),
        free_(point_, rows_, columns_, penalty_, problem.linear_term, problem.intercept, monitor),
        model_(point_, rows_, columns_, penalty_, problem.linear_term, problem.intercept, monitor),
        descent_(point_, rows_, columns_, penalty_, problem.linear_term, monitor),
        prices_(problem, point_, penalty_, rows_, columns_, monitor),
        secant_(point_, rows_, columns_, penalty_) {
    std::vector<int32_t> features;
    for (int64_t u = penalty_.first_free(); u < penalty_.count(); ++u)
      features.push_back(penalty_.features(u)[0]);
    columns_.require(features);
  }

  // Most problems take a few steps at their own alpha. Those that do not are come to from larger alphas.
  void solve(const BlockNewtonOptions& options) {
    start(options);
    penalty_.alpha = t_.alpha;
    most_ = options.max_work;
    const int last = options.max_iter;
    const bool single = penalty_.separable() && penalty_.selects();
    const int direct = single ? Settings::kDirectSingle : Settings::kDirect;
    const bool cold = options.continuation && !options.warm && !t_.linear_term && last > direct;
    if (cold) most_ = std::min(most_, monitor_.spent() + direct_work());
    if (run(options.tol, cold ? direct : last, cold)) return;
    most_ = options.max_work;
    if (!cold || ended(last)) return;
    start(options);
    free_.run(Settings::kFirstBalance);
    prices_.update();
    const std::vector<double> alphas = larger_alphas();
    const double sharper = std::pow(std::min(options.tol / Settings::kRoughly, 1.0),
                                    1.0 / static_cast<double>(alphas.size() + 1));
    double tol = Settings::kRoughly;
    const auto allowed = [&] { return std::min(last - iteration_, Settings::kPathIterations); };
    recording_ = false;  // objectives at other alphas say nothing of this one
    for (const double alpha : alphas) {
      if (!follow(alpha, nullptr, tol, allowed())) break;
      SmoothPathPoint found;
      store(found);
      secant_.add(alpha, found);
      tol *= sharper;
    }
    if (follow(t_.alpha, nullptr, options.tol, allowed())) {
      monitor_.record(iteration_, prices_.objective, std::max(prices_.gap, 0.0), prices_.nonzeros);
      return;
    }
    run(options.tol, last, false);
  }

  // The next point of a path, from where the last one ended.
  SmoothPathPoint next(double alpha, const double* column_norms, double tol, int max_iter) {
    const double before = monitor_.seconds();
    const int done = iteration_;
    recording_ = false;
    const bool converged = follow(alpha, column_norms, tol, max_iter);
    SmoothPathPoint found{prices_.objective,
                          rows_.value(),
                          prices_.bound,
                          monitor_.seconds() - before,
                          iteration_ - done,
                          converged,
                          balanced_,
                          {},
                          {},
                          {}};
    store(found);
    if (converged) secant_.add(alpha, found);
    monitor_.record(iteration_, prices_.objective, std::max(prices_.gap, 0.0), prices_.nonzeros);
    return found;
  }

  // Go on from the point, which was changed from outside.
  void resume() {
    last_alpha_ = std::nan("");
    secant_.clear();
    prices_.forget();
    refresh_scores();
  }

  BlockNewtonReport report() const {
    return {iteration_, stalled_, newton_.products(), monitor_.spent()};
  }

 private:
  using Settings = BlockNewtonSettings;

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

  bool ended(int last) const { return iteration_ >= last || monitor_.spent() >= most_; }

  // Multiplications that the attempt at the problem's own alpha may take before continuation.
  double direct_work() const {
    const double pricing = static_cast<double>(rows_.n) * static_cast<double>(d_ * outputs_);
    const bool single = penalty_.separable();
    if (single && rows_.loss() == LossKind::logistic) return Settings::kDirectPricings * pricing;
    if (d_ <= rows_.n) return std::numeric_limits<double>::infinity();
    // Classes of one-vs-rest with single weights are problems of their own.
    const bool apart = single && rows_.loss() == LossKind::ovr_squared_hinge;
    return (apart ? Settings::kApartPricings : Settings::kWidePricings) * pricing;
  }

  void start(const BlockNewtonOptions& options) {
    if (!options.warm) std::fill_n(point_.W, d_ * outputs_, 0.0);
    std::fill_n(point_.b, outputs_, 0.0);
    if (options.start_intercept && t_.intercept)
      std::copy_n(options.start_intercept, outputs_, point_.b);
    refresh_scores();
  }

  void refresh_scores() {
    since_refresh_ = 0;
    rows_.set_intercept(point_.b);
    std::vector<int32_t> used;
    for (int64_t j = 0; j < d_; ++j) {
      const double* w = point_.W + j * outputs_;
      if (std::any_of(w, w + outputs_, [](double x) { return x != 0.0; }))
        used.push_back(static_cast<int32_t>(j));
    }
    columns_.require(used);
    std::vector<double> weights(used.size() * at(width_), 0.0);
    for (std::size_t f = 0; f < used.size(); ++f)
      std::copy_n(point_.W + int64_t{used[f]} * outputs_, outputs_,
                  weights.data() + f * at(width_));
    panels_.add(used, weights.data(), rows_.T.data());
    rows_.refresh_slopes();
  }

  // From the alpha at which coefficients appear down to, and without, the problem's own. With l2 they always
  // do: from that at which its quadratic model at zero would end the loss.
  std::vector<double> larger_alphas() const {
    std::vector<double> alphas;
    const double ratio =
        penalty_.selects() ? prices_.largest_norm : prices_.conjugate() / prices_.objective;
    const double step = penalty_.separable() ? Settings::kRatioSingle : Settings::kRatio;
    const int steps = ratio > 1.0 ? static_cast<int>(std::log(ratio) / std::log(step)) : 0;
    for (int s = 1; s <= steps; ++s)
      alphas.push_back(t_.alpha * std::pow(ratio, 1.0 - static_cast<double>(s) / (steps + 1)));
    return alphas;
  }

  // Solve at alpha from the solution at the last one, on the groups that the sequential strong rule
  // leaves (where the alphas are far apart, on those that violate at first); then price all groups and add what
  // is missing. Without the norms of the columns there is no certificate.
  bool follow(double alpha, const double* column_norms, double tol, int max_iter) {
    const bool first = std::isnan(last_alpha_);
    const double share = first ? 1.0 : alpha / last_alpha_;
    const double limit = first || share < Settings::kStrongRule ? share : 2.0 * share - 1.0;
    penalty_.alpha = alpha;
    if (first) {
      free_.run(Settings::kFirstBalance);
      prices_.update();
    }
    working_.clear();
    for (int64_t u = 0; u < penalty_.count(); ++u)
      if (!penalty_.selects() || penalty_.is_free(u) || !prices_.is_zero(u) ||
          prices_.norms[at(u)] > limit)
        working_.push_back(u);
    require_columns();
    secant_.extrapolate(working_, alpha);
    last_alpha_ = alpha;
    crowded_ = was_crowded_ = false;
    const int last = iteration_ + max_iter;
    for (double part = Settings::kPathShare; part > Settings::kLeastShare;) {
      if (!solve_working_set(part * tol, last)) return false;
      centre();
      if (++since_refresh_ >= Settings::kRefreshEvery) refresh_scores();
      balanced_ = free_.run(0.0);
      prices_.certify(working_, column_norms);
      if (prices_.gap <= tol * std::abs(prices_.objective)) return true;
      const std::size_t known = working_.size();
      for (int64_t u = 0; u < penalty_.count(); ++u)
        if (prices_.norms[at(u)] > 1.0 &&
            !std::binary_search(working_.begin(),
                                working_.begin() + static_cast<std::ptrdiff_t>(known), u))
          working_.push_back(u);
      if (working_.size() == known) part *= Settings::kShareFall;
      std::sort(working_.begin(), working_.end());
      require_columns();
    }
    return false;
  }

  bool solve_working_set(double tol, int last) {
    double best = std::numeric_limits<double>::infinity(), lowest = best, gap = best;
    int idle = 0, slow = 0;
    for (;;) {
      prices_.update(working_);
      if (prices_.gap <= tol * std::abs(prices_.objective)) return true;
      const double part = std::min(prices_.gap / std::abs(prices_.objective), 1.0);
      const bool better = prices_.gap < Settings::kFallen * best ||
                          prices_.objective < lowest - Settings::kProgress * part * prices_.gap;
      idle = better ? 0 : idle + 1;
      if (idle > Settings::kPatience || ended(last)) return false;
      best = std::min(best, prices_.gap), lowest = std::min(lowest, prices_.objective);
      slow = prices_.gap > Settings::kSlow * gap ? slow + 1 : 0;
      gap = prices_.gap;
      if (!improve_by_model(tol, slow > 0) && !(slow < 2 && improve_by_newton())) {
        candidates_.clear();
        for (const int64_t u : working_)
          if (model_.near(u, prices_.norms)) candidates_.push_back(u);
        improve(candidates_, tol);
      }
      ++iteration_;
    }
  }

  // Let intercepts sum to zero where only differences of scores count.
  void centre() {
    if (!t_.intercept || outputs_ == 1 || rows_.loss() == LossKind::ovr_squared_hinge) return;
    const double mean = std::accumulate(point_.b, point_.b + outputs_, 0.0) / outputs_;
    for (int k = 0; k < outputs_; ++k) point_.b[k] -= mean;
  }

  void store(SmoothPathPoint& point) const {
    point.intercept.assign(point_.b, point_.b + outputs_);
    for (int64_t j = 0; j < d_; ++j) {
      const double* w = point_.W + j * outputs_;
      if (std::all_of(w, w + outputs_, [](double x) { return x == 0.0; })) continue;
      point.features.push_back(static_cast<int32_t>(j));
      point.weights.insert(point.weights.end(), w, w + outputs_);
    }
  }

  void require_columns() {
    std::vector<int32_t> features;
    for (const int64_t u : working_)
      features.insert(features.end(), penalty_.features(u),
                      penalty_.features(u) + penalty_.size(u));
    columns_.require(features);
  }

  void choose_working_set() {
    std::vector<int64_t> outside;
    working_.clear();
    for (int64_t u = 0; u < penalty_.count(); ++u) {
      if (!penalty_.selects() || penalty_.is_free(u) || !prices_.is_zero(u))
        working_.push_back(u);
      else if (prices_.norms[at(u)] > 1.0)
        outside.push_back(u);
    }
    const std::size_t room = std::max<std::size_t>(at(Settings::kLeast), 2 * working_.size());
    was_crowded_ = crowded_;
    crowded_ = outside.size() > room;
    if (crowded_) {
      std::nth_element(outside.begin(), outside.begin() + static_cast<std::ptrdiff_t>(room),
                       outside.end(), [&](int64_t a, int64_t b) {
        return prices_.norms[at(a)] != prices_.norms[at(b)]
                   ? prices_.norms[at(a)] > prices_.norms[at(b)]
                   : a < b;
      });
      outside.resize(room);
    }
    working_.insert(working_.end(), outside.begin(), outside.end());
    std::sort(working_.begin(), working_.end());
    require_columns();
  }

  void collect_active(const std::vector<int64_t>& groups) {
    active_.clear();
    for (const int64_t u : groups) {
      if (penalty_.is_free(u) || !penalty_.selects() || !prices_.is_zero(u)) active_.push_back(u);
    }
  }

  // Solve at the alpha that is set, from the present point; whether the tolerance was met. `hasty`: give up
  // as soon as the gap falls slowly, though all violators are in the working set.
  bool run(double tol, int max_iter, bool hasty) {
    double best_gap = std::numeric_limits<double>::infinity();
    double lowest = best_gap;
    int idle = 0, since = 0;
    double halved = best_gap, before = best_gap, spent = 0.0;
    stalled_ = false;
    recording_ = true;
    bound_ = -std::numeric_limits<double>::infinity();
    for (;;) {
      if (iteration_ % Settings::kRefreshEvery == Settings::kRefreshEvery - 1) refresh_scores();
      free_.run(Settings::kBalance * tol * std::min(penalty_.alpha, prices_.objective));
      prices_.update();
      bound_ = std::max(bound_, prices_.bound);
      monitor_.record(iteration_, prices_.objective, std::max(prices_.gap, 0.0), prices_.nonzeros);
      if (prices_.gap <= tol * std::abs(prices_.objective)) return true;
      if (ended(max_iter)) return false;
      // The gap jumps about; a falling objective is progress too. Where the gap is first order in
      // the distance from the optimum, the objective is second order.
      const double share = std::min(prices_.gap / std::abs(prices_.objective), 1.0);
      const bool better = prices_.gap < Settings::kFallen * best_gap ||
                          prices_.objective < lowest - Settings::kProgress * share * prices_.gap;
      idle = better ? 0 : idle + 1;
      best_gap = std::min(best_gap, prices_.gap);
      lowest = std::min(lowest, prices_.objective);
      since = crowded_ || best_gap < 0.5 * halved ? 0 : since + 1;
      if (since == 0) halved = best_gap;
      if (hasty && since > Settings::kHaste) return false;
      const double goal = best_gap / (tol * std::abs(prices_.objective));
      if (hasty && hopeless(monitor_.spent() - spent, before / best_gap, goal)) return false;
      before = best_gap, spent = monitor_.spent();
      if (idle > Settings::kPatience) {
        stalled_ = true;
        return false;
      }
      choose_working_set();
      improve(working_, tol);
      ++iteration_;
    }
  }

  // Whether the gap, if every further factor `fallen` took so much work, would take much more to fall by `goal` than is
  // allowed.
  bool hopeless(double work, double fallen, double goal) const {
    const double allowed = Settings::kQuickening * (most_ - monitor_.spent());
    return std::isfinite(fallen) && fallen > 1.0 &&
           work * std::log(goal) > allowed * std::log(fallen);
  }

  // One step on the working set, whose prices are up to date; false where the model is too large, or no
  // step lowers the objective.
  bool improve_by_model(double tol, bool slow) {
    if (!model_.fits(working_, prices_.norms)) return false;
    const auto outcome = model_.run(working_, prices_.slopes, prices_.norms, Settings::kModelShare,
                                    Settings::kModelEnough * tol * penalty_.alpha, slow);
    last_ = prices_.objective - outcome.gain;
    return outcome.moved;
  }

  // A Newton step on what is not zero, after an epoch over the groups at zero that would not stay there; whether
  // the objective fell. On 5000 x 784 pixels an epoch over all groups takes the time of three such steps.
  bool improve_by_newton() {
    if (!penalty_.bends()) return false;
    candidates_.clear();
    for (const int64_t u : working_)
      if (prices_.norms[at(u)] > 1.0 && !penalty_.is_free(u) && prices_.is_zero(u))
        candidates_.push_back(u);
    if (!candidates_.empty()) {
      descent_.set_groups(candidates_);
      descent_.epoch(true);
    }
    collect_active(working_);
    return newton_.run(active_, {Settings::kPathForcing, Settings::kPathLimit}).moved;
  }

  void improve(const std::vector<int64_t>& groups, double tol) {
    descent_.set_groups(groups);
    const double enough = Settings::kEnough * tol * penalty_.alpha;
    double first = 0.0;
    const double start = last_ = prices_.objective;
    for (int round = 0; round < Settings::kRounds; ++round) {
      if (round > 0) descent_.refresh();
      const double violation = descent_.epoch(forwards_);
      forwards_ = !forwards_;
      if (round == 0) first = violation;
      if (violation <= std::max(Settings::kInner * first, enough) && round > 0) break;
      const double descended = prices_.objective_of(groups), gain = last_ - descended;
      last_ = descended;
      double stepped = 0.0;
      // A Newton step takes the time of two to four epochs. It waits until the working set holds all
      // violators, and for an epoch more then: sparse data came to 1e-3 in two thirds of the time.
      if (!crowded_ && round >= (was_crowded_ ? 1 : 0)) {
        collect_active(groups);
        const auto outcome =
            newton_.run(active_, {forcing_, std::max(cg_limit_, cheap_products())});
        if (std::isfinite(outcome.after)) stepped = outcome.before - outcome.after;
        last_ -= stepped;
        adapt(outcome, gain);
      }
      record(last_);
      if (round > 0 && gain + stepped < Settings::kWorthIt * (start - last_)) break;
    }
  }

  // Between pricings the last dual value still bounds the optimum.
  void record(double objective) {
    if (!recording_ || t_.linear_term || !(objective > 0.0)) return;
    monitor_.record(iteration_, objective, std::max(objective - bound_, 0.0), prices_.nonzeros);
  }

  // Exact steps pay once whole steps succeed and do more than coordinate descent, not before.
  void adapt(const NewtonStep::Outcome& outcome, double descended) {
    const double stepped = outcome.before - outcome.after;
    if (!outcome.full || stepped < Settings::kNewtonShare * descended) {
      whole_ = 0;
      cg_limit_ = std::max(Settings::kLeastLimit, cg_limit_ / 2);
    } else {
      ++whole_;
      if (outcome.cg >= cg_limit_) cg_limit_ = std::min(Settings::kMostLimit, 2 * cg_limit_);
    }
    forcing_ = Settings::kForcing[whole_ < Settings::kSomeWhole   ? 0
                                  : whole_ < Settings::kManyWhole ? 1
                                                                  : 2];
  }

  // As many products with the Hessian as take hardly more time than the rest of a round, where
  // coordinates are tied: cut short, steps went from tie to tie for hundreds of rounds. (With l1 it
  // is exact steps that go from kink to kink, where features outnumber the samples.)
  int cheap_products() const {
    if (!penalty_.ties()) return 0;
    const double work = static_cast<double>(descent_.entries()) * rows_.stride;
    return static_cast<int>(
        std::min(Settings::kCheapProduct / std::max(work, 1.0), double{Settings::kMostLimit}));
  }

  const SmoothProblem& t_;
  SmoothRows rows_;
  GroupPenalty penalty_;
  Monitor& monitor_;
  int64_t d_;
  int outputs_, width_;
  SmoothPoint point_;
  ColumnSource columns_;
  ColumnPanels panels_;
  NewtonStep newton_;
  FreeNewton free_;
  ModelStep model_;
  BlockDescent descent_;
  GroupPrices prices_;
  PathSecant secant_;
  std::vector<int64_t> working_, candidates_, active_;
  double bound_ = 0.0, forcing_ = Settings::kForcing[0], last_ = 0.0;
  double last_alpha_ = std::nan("");                       // of a path
  double most_ = std::numeric_limits<double>::infinity();  // work
  int iteration_ = 0, since_refresh_ = 0, cg_limit_ = Settings::kFirstLimit, whole_ = 0;
  // Whether violators were left out of the working set, and of the one before.
  bool crowded_ = false, was_crowded_ = false;
  bool forwards_ = true, stalled_ = false, recording_ = false;
  bool balanced_ = false;  // whether intercepts and unpenalised weights were optimal to rounding
};

}  // namespace

class SmoothPath::Solver {
 public:
  Solver(const SmoothProblem& problem, const double* column_norms, double tol, int max_iter,
         Monitor& monitor)
      : column_norms_(column_norms), tol_(tol), max_iter_(max_iter),
        W_(static_cast<std::size_t>(problem.d() * problem.outputs())),
        b_(static_cast<std::size_t>(problem.outputs())),
        newton_(problem, {W_.data(), b_.data()}, monitor) {
    newton_.resume();
  }

  void start(const double* weights, const double* intercept) {
    std::copy_n(weights, W_.size(), W_.data());
    std::copy_n(intercept, b_.size(), b_.data());
    newton_.resume();
  }
  SmoothPathPoint solve(double alpha) {
    return newton_.next(alpha, column_norms_, tol_, max_iter_);
  }

 private:
  const double* column_norms_;
  double tol_;
  int max_iter_;
  std::vector<double> W_, b_;
  BlockNewton newton_;
};

SmoothPath::SmoothPath(const SmoothProblem& problem, const double* column_norms, double tol,
                       int max_iter, Monitor& monitor)
    : solver_(std::make_unique<Solver>(problem, column_norms, tol, max_iter, monitor)) {}
SmoothPath::~SmoothPath() = default;
void SmoothPath::start(const double* weights, const double* intercept) {
  solver_->start(weights, intercept);
}
SmoothPathPoint SmoothPath::solve(double alpha) { return solver_->solve(alpha); }

BlockNewtonReport block_newton(const SmoothProblem& problem, const SmoothPoint& point,
                               const BlockNewtonOptions& options, Monitor& monitor) {
  BlockNewton solver(problem, point, monitor);
  solver.solve(options);
  return solver.report();
}

}  // namespace sparsvm
