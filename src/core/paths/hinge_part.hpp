// A problem of the hinge seen on some of its features only, the weights of the others being zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "design/products.hpp"
#include "paths/hinge_certificate.hpp"
#include "problem/problem.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

// The groups of features that a penalty couples; single features where it has no groups.
class FeatureGroups {
 public:
  explicit FeatureGroups(const Penalty& penalty)
      : groups_(penalty.grouped() ? penalty.groups : nullptr), omega_(penalty.omega), d_(penalty.d),
        count_(penalty.grouped() ? penalty.n_groups : penalty.d) {}

  int64_t count() const { return count_; }
  int64_t of(int64_t j) const { return groups_ ? groups_[j] : j; }

  // All features of the groups marked, and those that are not penalised, increasing.
  std::vector<int32_t> features(const std::vector<char>& marked) const {
    std::vector<int32_t> list;
    for (int64_t j = 0; j < d_; ++j)
      if (marked[of(j)] || omega_[j] == 0.0) list.push_back(static_cast<int32_t>(j));
    return list;
  }

 private:
  const int32_t* groups_;
  const double* omega_;
  int64_t d_, count_;
};

class HingePart {
 public:
  // The whole problem and column_norms (d, |x_j|) are kept by the caller. Features: increasing, whole
  // groups.
  HingePart(const HingeProblem& whole, const double* column_norms, std::vector<int32_t> features)
      : features_(std::move(features)), problem_(whole) {
    const Penalty& penalty = whole.penalty;
    std::vector<int32_t> present;
    for (const int32_t j : features_) {
      omega_.push_back(penalty.omega[j]);
      norms_.push_back(column_norms[j]);
      groups_.push_back(penalty.groups[j]);
    }
    if (std::ssize(features_) == whole.d()) return;  // the design is the same
    present = groups_;
    std::sort(present.begin(), present.end());
    present.erase(std::unique(present.begin(), present.end()), present.end());
    for (int32_t& g : groups_)
      g = static_cast<int32_t>(std::lower_bound(present.begin(), present.end(), g) -
                               present.begin());
    gather(*whole.design);
    problem_.design = design_.get();
    problem_.penalty.groups = groups_.data();
    problem_.penalty.n_groups = std::ssize(present);
    problem_.penalty.omega = omega_.data();
    problem_.penalty.d = std::ssize(features_);
  }
  HingePart(const HingePart&) = delete;
  HingePart& operator=(const HingePart&) = delete;

  const std::vector<int32_t>& features() const { return features_; }
  const double* norms() const { return norms_.data(); }
  // Where a feature of the part stands in it.
  int64_t place(int32_t j) const {
    return std::lower_bound(features_.begin(), features_.end(), j) - features_.begin();
  }
  const HingeProblem& problem() const { return problem_; }
  // The penalty of weights (used x outputs) of features of the part.
  double penalty(const std::vector<int32_t>& used, const double* weights) const {
    std::vector<int32_t> groups;
    std::vector<double> omega;
    for (const int32_t c : used) groups.push_back(groups_[c]), omega.push_back(omega_[c]);
    Penalty few = problem_.penalty;
    few.groups = groups.data(), few.omega = omega.data(), few.d = std::ssize(used);
    return penalty_value(few, weights);
  }
  // The problem at another alpha, with λ = p / alpha.
  HingeProblem at(double alpha, const double* lambda) const {
    HingeProblem problem = problem_;
    problem.alpha = alpha;
    problem.lambda = lambda;
    return problem;
  }

 private:
  std::vector<int32_t> features_, groups_, rows_;
  std::vector<double> omega_, norms_, values_;
  std::unique_ptr<Design> design_;
  HingeProblem problem_;

  void gather(const Design& whole) {
    const int64_t n = whole.n(), m = std::ssize(features_);
    const std::optional<SparseColumns> columns =
        whole.sparse() ? whole.sparse_columns() : std::nullopt;
    if (!columns) {
      values_.resize(static_cast<std::size_t>(n * m));
      whole.gather_columns(features_.data(), m, values_.data());
      design_ = dense_design(values_.data(), true, n, m, std::nullopt);
      return;
    }
    std::vector<int64_t> starts{0};
    for (const int32_t j : features_) {
      for (int64_t e = columns->starts[j]; e < columns->starts[j + 1]; ++e) {
        rows_.push_back(columns->rows[e]);
        values_.push_back(columns->single ? static_cast<const float*>(columns->values)[e]
                                          : static_cast<const double*>(columns->values)[e]);
      }
      starts.push_back(std::ssize(rows_));
    }
    design_ =
        sparse_design(values_.data(), rows_.data(), std::move(starts), true, n, m, std::nullopt);
  }
};

// -----------------------------------------------------------------
// A part with many samples, from a point that is near: sweeps of dual
// coordinate ascent, then Newton steps of the method of multipliers, each point proven.

// A point of a part of the features, as its solver leaves it.
struct PartSolution {
  std::vector<int32_t> used;      // features of the part with weights, increasing
  std::vector<double> weights;    // used x outputs
  std::vector<double> intercept;  // outputs
  std::vector<double> dual;       // n x K, divided by alpha
  int64_t iterations = 0;
};

// Which solver is to begin and when the next one goes on; see path_plan of solvers/registry.py. The step
// is the multiplications of one of interior_point's from the side of the features.
struct PartPlan {
  double exact_step;       // up to this interior_point solves
  double affordable_step;  // up to this newton takes over as told first, else as told next
  double until[2];         // the gaps from which newton goes on
  double exact_steps;      // of interior_point from the last point, before the first; 0: it is no rival
  double newton_entry;     // the gap from which newton's steps converge
  double cheap_newton;     // where samples are so many times a third of the coefficients, from any

  int which(double step) const { return step <= affordable_step ? 0 : 1; }
  double exact_work(double step) const {
    return exact_steps > 0.0 ? exact_steps * step / 2.0 : std::numeric_limits<double>::infinity();
  }
  bool newton_is_cheap(double coefficients, double samples) const {
    return cheap_newton * coefficients <= 3.0 * samples;
  }
};

// Solves from the point until the certificate of the part proves the relative gap; false if that became
// hopeless. The point becomes the best one either way.
bool solve_by_sweeps(const HingeProblem& problem, const HingePart& part,
                     HingeCertificate& certificate, const PartPlan& plan, double step, double tol,
                     Monitor& monitor, PartSolution& point);

}  // namespace sparsvm
