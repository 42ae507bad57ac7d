#include "paths/hinge_part.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "paths/settings.hpp"
#include "solvers/multiplier_newton/multiplier_newton.hpp"
#include "solvers/sdca/sdca.hpp"

namespace sparsvm {

using namespace hinge_path_settings;

namespace {

// The best primal and the best dual point; they need not come from the same iterate.
class Incumbent {
 public:
  Incumbent(const HingeProblem& problem, const HingePart& part, HingeCertificate& certificate)
      : p_(problem), part_(part), certificate_(certificate),
        outputs_(static_cast<std::size_t>(problem.outputs())) {}

  double gap() const { return std::max(objective_ - bound_, 0.0); }
  double relative_gap() const {
    return objective_ != 0.0 ? gap() / std::abs(objective_)
                             : std::numeric_limits<double>::infinity();
  }
  bool within(double tol) const { return gap() <= tol * std::abs(objective_); }

  // Returns the relative gap of this point alone. The rows of all features that may be in use.
  double consider(const std::vector<int32_t>& features, const double* rows,
                  const std::vector<double>& intercept, std::vector<double> dual) {
    PartSolution now;
    for (std::size_t a = 0; a < features.size(); ++a) {
      const double* w = rows + a * outputs_;
      if (std::all_of(w, w + outputs_, [](double v) { return v == 0.0; })) continue;
      now.used.push_back(features[a]);
      now.weights.insert(now.weights.end(), w, w + outputs_);
    }
    now.intercept = intercept;
    scores_.resize(static_cast<std::size_t>(p_.n()) * outputs_);
    p_.design->scores_subset(now.used.data(), std::ssize(now.used), now.weights.data(),
                             p_.outputs(), scores_.data());
    const double objective = certificate_.loss(scores_, intercept.data()) +
                             p_.alpha * part_.penalty(now.used, now.weights.data());
    for (double& y : dual) y *= p_.alpha;
    const double bound = certificate_.prove(dual, p_.alpha, strengths_, true);
    if (objective < objective_) {
      objective_ = objective;
      best_.used.swap(now.used), best_.weights.swap(now.weights);
      best_.intercept.swap(now.intercept);
    }
    if (bound > bound_) {
      bound_ = bound;
      for (double& y : dual) y /= p_.alpha;
      best_.dual.swap(dual);
    }
    const double size = std::abs(objective);
    return size > 0.0 ? std::max(objective - bound, 0.0) / size
                      : std::numeric_limits<double>::infinity();
  }

  const PartSolution& best() const { return best_; }

 private:
  const HingeProblem& p_;
  const HingePart& part_;
  HingeCertificate& certificate_;
  std::size_t outputs_;
  PartSolution best_;
  std::vector<double> scores_, strengths_;
  double objective_ = std::numeric_limits<double>::infinity();
  double bound_ = -std::numeric_limits<double>::infinity();
};

// Weights of all features of the part.
std::vector<double> all_weights(const PartSolution& point, int64_t d, int64_t outputs) {
  std::vector<double> W(static_cast<std::size_t>(d * outputs), 0.0);
  for (std::size_t a = 0; a < point.used.size(); ++a)
    std::copy_n(point.weights.data() + a * outputs, outputs, W.data() + point.used[a] * outputs);
  return W;
}

// Rows that sum to their masses.
std::vector<double> on_simplices(const HingeProblem& p, std::vector<double> Y) {
  for (int64_t i = 0; i < p.n(); ++i) {
    double *row = Y.data() + i * p.classes, sum = 0.0;
    row[p.y[i]] = 0.0;
    for (int64_t k = 0; k < p.classes; ++k) sum += row[k] = std::max(row[k], 0.0);
    const double mass = p.mass[i] / p.alpha;
    if (sum > mass)
      for (int64_t k = 0; k < p.classes; ++k) row[k] *= mass / sum;
    row[p.y[i]] = std::max(mass - sum, 0.0);
  }
  return Y;
}

// Sweeps until the certificate is within the tolerance, the estimates inside or the sweeps end, or
// others are predicted to be quicker.
void sweep(const HingeProblem& p, const PartSolution& start, double tol, double rival_work,
           Monitor& monitor, Incumbent& best, int64_t& iterations) {
  Sdca method(p, SdcaOptions{1.0, 2});
  method.set_rival_work(rival_work);
  const std::vector<double> W = all_weights(start, p.d(), p.outputs());
  const std::vector<double> Y = on_simplices(p, start.dual);
  method.start(W.data(), start.intercept.data(), Y.data());
  const auto consider = [&] {
    const MmapVector<double> rows = method.used_weights();
    const MmapVector<double>& dual = method.dual();
    return best.consider(method.used(), rows.data(), method.intercept(),
                         std::vector<double>(dual.begin(), dual.end()));
  };
  consider();
  double target = kFirstTarget * tol, at_mark = std::numeric_limits<double>::infinity();
  int64_t mark = kFirstMark;
  for (int standing = 0; method.sweeps() < kSweeps && !best.within(tol) && !Monitor::stopping();) {
    const bool estimated =
        method.run(target, std::min(kSweeps, mark) - method.sweeps(), monitor);
    const double certified = consider();
    if (estimated && !best.within(tol)) {
      // The estimate inside errs on either side: ask again for as much less or more.
      const SdcaValues& found = method.values();
      const double size = std::abs(found.objective);
      const double gap = size > 0.0 ? found.gap() / size : 0.0;
      // One that is not positive says nothing about by how much it errs.
      target = gap > 0.0 ? std::clamp(tol * gap / std::max(certified, kNoSize),
                                      kNextTarget[0] * gap, kNextTarget[1] * gap)
                         : tol;
    }
    if (method.outlasted()) break;
    if (method.sweeps() >= mark) {
      standing = best.gap() > kFallen * at_mark ? standing + 1 : 0;
      if (standing == 2) break;
      mark *= 2;
      at_mark = best.gap();
    }
  }
  iterations += method.sweeps();
}

void newton(const HingeProblem& p, const HingePart& part, double tol, double most_work,
            Monitor& monitor, Incumbent& best, int64_t& iterations) {
  std::vector<double> rms(part.norms(), part.norms() + p.d());
  for (double& size : rms) size /= std::sqrt(static_cast<double>(p.n()));
  MultiplierNewton method(p, rms.data());
  method.set_direct_limit(kDirect);
  std::vector<double> W = all_weights(best.best(), p.d(), p.outputs());
  const std::vector<double> Y = on_simplices(p, best.best().dual);
  method.start(W.data(), best.best().intercept.data(), Y.data());
  NewtonSchedule schedule(p, rms.data(), best.relative_gap());
  std::vector<int32_t> all(static_cast<std::size_t>(p.d()));
  for (std::size_t j = 0; j < all.size(); ++j) all[j] = static_cast<int32_t>(j);
  int64_t steps = 0;
  const double end = monitor.spent() + most_work;
  method.set_work_limit(end);
  while (steps < kNewtonLimit && monitor.spent() <= end && !best.within(tol) &&
         !schedule.stalled() && !Monitor::stopping()) {
    const NewtonReport report =
        schedule.advance(method, best.relative_gap(), tol, kNewtonLimit - steps, monitor);
    steps += std::max<int64_t>(report.steps, 1);
    const double before = best.gap();
    method.weights(W.data());
    best.consider(all, W.data(), method.intercept(), method.dual());
    schedule.settle(method, report, before, best.gap());
  }
  iterations += steps;
}

}  // namespace

bool solve_by_sweeps(const HingeProblem& problem, const HingePart& part,
                     HingeCertificate& certificate, const PartPlan& plan, double step, double tol,
                     Monitor& monitor, PartSolution& point) {
  Incumbent best(problem, part, certificate);
  const int which = plan.which(step);
  int64_t iterations = 0;
  const double exact = which == 0 ? plan.exact_work(step) : std::numeric_limits<double>::infinity();
  sweep(problem, point, std::max(tol, plan.until[which]), exact, monitor, best, iterations);
  // Newton steps need a point and a dual one to begin at; where nothing could be proven, there is none.
  if (best.best().intercept.empty() || best.best().dual.empty()) return false;
  const double coefficients = static_cast<double>(problem.outputs() * problem.d());
  const bool converges = best.relative_gap() <= plan.newton_entry ||
                         plan.newton_is_cheap(coefficients, static_cast<double>(problem.n()));
  if (!best.within(tol) && (converges || exact == std::numeric_limits<double>::infinity()))
    newton(problem, part, tol, 2.0 * exact, monitor, best, iterations);
  point = best.best();
  point.iterations = iterations;
  return best.within(tol);
}

}  // namespace sparsvm
