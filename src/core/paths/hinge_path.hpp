// Solutions of the hinge with a norm at one alpha after the other, each with its proof.
//
// The next solution of a path has almost the support of the last one, and the features that join are
// those whose dual norm was close to its limit. So a point is solved on these features alone, from the
// last point's primal and dual solution; then all features are priced with one product, violators are
// added, and the point is proven on all the data (hinge_certificate.hpp).
//
// The dual value is linear in the dual point, and the feasible set grows with alpha: between two solved
// alphas the mean of their dual points is feasible and has the mean of their values, so that the optimal
// value is concave in alpha. Its chord bounds it from below, the line loss + alpha penalty of either
// solution from above, and both errors are of second order in the distance of the alphas. So every
// second to sixth point of a grid is solved, a little sharper, and proves those before it (Giesen,
// Müller, Laue and Swiercy, 2012).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "paths/hinge_certificate.hpp"
#include "paths/hinge_part.hpp"
#include "problem/problem.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

struct HingePathOptions {
  double tol;               // relative gap of every point
  double reach;             // of the strong rule: how far a dual norm may move, in changes of alpha
  double column_dual_norm;  // see HingeCertificate
  int max_iter;             // Newton steps of one solve
  PartPlan plan;            // which solver
  bool single_precision;    // what weights and intercepts are rounded to
  bool keep_duals;          // of points between two solutions
};

// Weights of some features, with what they are worth at any alpha.
struct HingeModel {
  std::vector<int32_t> features;  // increasing
  std::vector<double> weights;    // features x outputs
  std::vector<double> intercept;  // outputs
  double loss = 0.0, penalty = 0.0;

  double objective(double alpha) const { return loss + alpha * penalty; }
};

// A model at an alpha with its proof.
struct HingePathPoint {
  double alpha = 0.0, bound = 0.0, seconds = 0.0;
  int64_t iterations = 0;
  std::shared_ptr<const HingeModel> model;
  std::vector<double> dual;  // n x K, 0 at the true classes; feasible for all features

  double objective() const { return model->objective(alpha); }
  double gap() const { return objective() - bound; }
};

class HingePath {
 public:
  // The problem and column_norms (d, |x_j|) are kept by the caller.
  HingePath(const HingeProblem& problem, const double* column_norms,
            const HingePathOptions& options, Monitor& monitor);

  // Goes on from a proven point; with `zero` its model and its dual point are optimal from its alpha on.
  void start(HingePathPoint point, bool zero);
  const HingePathPoint& last() const { return last_.point; }

  // The points of the first alphas of a decreasing grid: at least `enough`, unless one is not proven;
  // then all before it.
  std::vector<HingePathPoint> follow(const double* grid, int64_t count, int64_t enough);

 private:
  // The last point, with the strengths of all groups at it (1 = at the limit).
  struct Last {
    HingePathPoint point;
    std::vector<double> strengths;
    bool known = false;
  };
  bool ahead(const double* grid, int64_t rest, std::vector<HingePathPoint>& points);
  int64_t stride() const;
  void bend(const HingePathPoint& left, const HingePathPoint& right, int64_t steps);
  bool known(double alpha, HingePathPoint& point);
  bool solve(double alpha, double tol, HingePathPoint& point);
  bool between(double alpha, const HingePathPoint& right, HingePathPoint& point) const;

  void open(double alpha);
  bool add_violators(const std::vector<double>& strengths);
  bool add_strongest(const std::vector<double>& strengths, double least);
  const HingePart& part(std::vector<int32_t> features);
  bool solve_part(const HingePart& part, double alpha, double tol, const HingePathPoint& begin,
                  HingePathPoint& point, std::vector<double>& strengths);
  bool solve_exactly(const HingeProblem& problem, const HingePart& part, double tol,
                     PartSolution& point);
  bool prove(const HingePart& part, PartSolution& found, HingePathPoint& point,
             std::vector<double>& strengths);
  bool within(const HingePathPoint& point, double tol) const {
    return point.gap() <= tol * std::abs(point.objective());
  }
  double seconds() const { return monitor_.seconds(); }

  const HingeProblem& problem_;
  const double* column_norms_;
  const HingePathOptions options_;
  Monitor& monitor_;
  FeatureGroups groups_;
  HingeCertificate certificate_;
  int64_t n_, K_, outputs_;
  double largest_mass_ = 0.0, mean_margin_ = 0.0;
  std::unique_ptr<HingePart> part_;
  std::unique_ptr<HingeCertificate> part_certificate_;
  std::vector<char> marked_;    // groups of the working set
  std::vector<double> lambda_;  // mass / alpha
  Last last_;
  HingePathPoint zero_, left_;
  bool all_classes_ = true, has_zero_ = false, has_left_ = false;
  bool swept_ = false;  // whether the last solution came from sweeps
  double curvature_ = std::numeric_limits<double>::infinity();
};

}  // namespace sparsvm
