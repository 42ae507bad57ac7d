// Primal-dual interior point for the exact multiclass hinge with a sparse penalty.
//
// In units where the penalty has radius one (lambda_i = p_i / alpha, columns divided by omega):
//
//     minimise   sum_i lambda_i xi_i + phi(W) - <V, W>
//     subject to xi_i >= r_ik + S_ik - S_iy,   S = X W + F b
//
// with dual Y_i in lambda_i * simplex, Y~ = Y - lambda Z, G = X'Y~ - V inside the dual ball and
// F'Y~ = 0. Slacks U = xi 1' - r - S (xi absorbing the true class's score) pair with Y.
//
// * The Newton system is never of size n*K, see newton_system.hpp.
// * Only a working set of penalty blocks enters it; every iteration prices all features with one
//   transposed product, or those that may have come near the boundary since (watched_blocks.hpp),
//   and the dual step is also limited by the features outside, so that dual feasibility is never
//   lost and the dual value is always a valid bound.
// * Every iterate is tried with the coordinates that complementarity calls inactive set to exact
//   zeros; the solver stops when such a sparse point is within the tolerance of the dual value, and
//   solves for the active coordinates alone where thresholding does not suffice.
// * Euclidean groups of single classes are left as soon as Newton steps on the face of the optimum, see
//   interior_point_face.hpp, finish the solve.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "design/design.hpp"
#include "linalg/blas.hpp"
#include "linalg/column_sums.hpp"
#include "linalg/coordinate_products.hpp"
#include "penalty/cone_blocks.hpp"
#include "penalty/penalty_layout.hpp"
#include "solvers/interior_point/newton_system.hpp"
#include "solvers/interior_point/pricing.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

struct HingeTask {
  const Design& design;
  const std::int32_t* y;  // n
  const double* lambda;   // n, mass / alpha
  const double* margins;  // n x K sample-major, of either sign, zero at the true class
  int n_classes;
  PenaltyKind kind;
  const double* omega;  // d
  bool intercept;
  const double* tilt;             // d x outputs or null: the objective gets -<tilt, W>
  const double* start_dual;       // n x K in units of lambda, balanced, or null
  const double* start_weights;    // d x outputs, with start_dual: the primal part of a warm start
  const double* start_intercept;  // outputs
  const double* column_norms;     // d, |x_j|
  double offset;                  // constant of the objective, which tolerances are relative to
};

struct InteriorPointOptions {
  double tol = 1e-6;
  int max_iter = 100;
  bool open = true;  // large columns of uneven groups may be unknowns, see open_coordinates.hpp
  bool across_features = true;  // may start from flows with X'Y~ near zero, see start_dual
  bool inside = true;  // starts with the flows that the dual ball, or a squared penalty, allows
  // Dual residuals that may be left where a tilt starts outside the dual ball. They fall by a
  // constant factor a step, so that waiting until they are nothing takes four steps more.
  double residual = 0.0;
};

struct InteriorPointResult {
  std::vector<std::int32_t> used;  // features with weights, increasing
  std::vector<double> weights;     // used x outputs, feature-major
  std::vector<double> intercept;   // outputs
  std::vector<double> dual;        // n x K sample-major, in units of lambda
  double bound = 0.0;              // lower bound of the objective, in its units
  int iterations = 0;
  bool converged = false, stalled = false;
};

class InteriorPoint {
 public:
  InteriorPoint(const HingeTask& task, const PenaltyLayout& layout, Monitor& monitor,
                double objective_unit)
      : t_(task), layout_(layout), monitor_(monitor), unit_(objective_unit),
        n_(static_cast<int>(task.design.n())), K_(task.n_classes), outputs_(K_ == 2 ? 1 : K_),
        shift_class_(K_ - outputs_), d_(task.design.d()), quadratic_(task.kind == PenaltyKind::l2),
        system_(make_system()), watched_(t_.design, layout_, outputs_, t_.column_norms) {}

  InteriorPointResult solve(const InteriorPointOptions& options) {
    across_features_ = options.across_features;
    inside_ = options.inside;
    open_ = options.open;
    residual_ = options.residual;
    tol_ = options.tol;
    start();
    InteriorPointResult result;
    int it = 0;
    for (;; ++it) {
      monitor_.poll();
      evaluate();
      record(it);
      if (converged(options.tol) || settled(options.tol) || it >= options.max_iter) break;
      if (on_face(options.tol)) {
        record(++it);
        break;
      }
      if (no_progress() || !iterate(it)) {
        result.stalled = true;
        break;
      }
    }
    if (!free_features_.empty()) project_dual();
    export_dual(result);
    if (!converged(options.tol) && !quadratic_ && near_enough_to_polish() && it < options.max_iter)
      it = polish(it, options, result);
    if (result.intercept.empty()) export_point(converged(options.tol) ? sparse_ : best(), result);
    result.bound = unit_ * (best_dual_ + t_.offset);
    result.converged = converged(options.tol);
    result.iterations = it;
    return result;
  }

 private:
  static constexpr double kStepFraction = 0.985;  // of the way to the boundary
  static constexpr double kNextStep = 1.5;        // how much farther than a limited step one looks
  static constexpr double kNextShare = 0.2;       // of the working set that enters at once, at most
  // From this relative gap on, blocks leave the working set whose dual norm stays below kIdle, where
  // they would not enter, along so many last steps; earlier ones come back and block the way. Fewer
  // than one in so many blocks are not worth the moving.
  static constexpr double kSettling = 0.3, kIdle = 0.95, kIdleSteps = 2.0;
  static constexpr std::size_t kFewIdle = 16;
  static constexpr char kInside = 1, kLeft = 2;  // bits of in_set_
  static constexpr double kConstant = 0.1;       // of a column's square beside its mean
  static constexpr double kShortStep = 0.1;      // a step this short is replaced by a centring one
  // Centrality corrections per step, each a solve with the factors. Without them most fits took a
  // sixth more time, with two about the same. With few samples the factors are not what costs.
  static constexpr int kCentrings = 3, kManySamples = 64;
  static constexpr double kLongStep = 0.9;       // steps that need no centring
  static constexpr double kCentringGain = 0.05;  // of a step length, for which one more is tried
  static constexpr double kNeighbourhood = 0.1;  // least product that is not centred, in targets
  // Least complementarity at the start, relative to the mean. Without it samples of tiny mass block
  // every step; with 0.1 the slacks it inflates cost more than the centring gains.
  static constexpr double kCentrality = 1e-4;
  static constexpr double kEmptyShare = 1e-2;  // of a class without samples in the first dual
  static constexpr double kFewFlows = 0.05;   // below this fraction of the centre, look for a start
                                              // across the features
  static constexpr double kOutside = 0.5;     // the fraction where a start may leave the ball
  static constexpr double kRelief = 100.0;    // how much farther the other features must allow
  static constexpr int kMostFlows = 2000;     // equalities of such a start, which are factored
  static constexpr double kProximal = 1e-12;  // on free coefficients, of the gap
  static constexpr double kWarmSlack = 0.05;  // how far a warm start is pulled inside: the slacks,
  static constexpr double kWarmMix = 0.1;     // and the share of the centre in its dual
  static constexpr double kPolishMix = 1e-3;  // the same for the restart on the active set
  static constexpr int kPolishSteps = 25;     // per threshold
  static constexpr double kPolishGap =
      0.1;                            // relative; where it is larger, the dual is what is wrong
  static constexpr int kSettled = 4;  // iterations without a sparse point before polishing
  // Iterations without progress before giving up; of those whose solves have lost their digits each
  // counts for so many.
  static constexpr int kPatience = 30, kInaccurate = 3;
  static constexpr double kRounding = 2e-15;  // dual residuals that count as none
  static constexpr double kMinRegularisation = 1e-12, kMaxRegularisation = 1e-4;
  // On the central path D of a coordinate is (how far its weight may move)^2 / mu. Where that moves
  // the scores by the root of this many margins it is an unknown of its own.
  static constexpr double kOpen = 1e6;
  // Where all columns are alike, so many times as much, and that many times less whenever the solves
  // have lost their digits; below one only where no regularisation brings them back.
  static constexpr double kFree = 1e6, kFreer = 1e-3, kLeastFree = 1e-12;
  static constexpr double kNearly = 100.0;  // tolerances from the end, where zeros are refitted
  static constexpr double kDoubtful =
      4.0;  // threshold for these zeros: what is lost by them is made up
  static constexpr double kRoughly = 1e-3;        // residual of that solve
  static constexpr double kCoarse = 1e-2;         // relative gap above which few digits will do
  static constexpr double kFewCoordinates = 2.0;  // times as many features of all classes
  // Relative gap from which the face is looked for, with few samples and with many, where a step on it
  // takes a sixth of one of the interior point instead of a third.
  static constexpr double kFaceGap = 0.3, kEarlyFaceGap = 0.6;
  // Residuals of the Newton solve: that needs no more, and that more unknowns would not mend.
  static constexpr double kAccurate = 1e-9, kBearable = 1e-8;

  const HingeTask& t_;
  const PenaltyLayout& layout_;
  Monitor& monitor_;
  double unit_;
  int n_, K_, outputs_, shift_class_;
  std::int64_t d_;
  bool quadratic_, across_features_ = true, open_ = true, inside_ = true, empty_class_ = false,
                   polishing_ = false, blocked_ = false;

  std::vector<double> mean_, free_scale_;
  std::vector<std::int32_t> free_features_;
  // Quadratic penalty: X X' (full square), or X itself where it has few columns.
  std::vector<double> gram_, quadratic_columns_;
  // Quadratic penalty with a tilt V: W = V - X'Y~ (in scaled columns), so the scores and both
  // values get constant terms from V.
  std::vector<double> tilt_scores_;
  double tilt_norm_ = 0.0;
  NewtonSystem system_;  // after everything that make_system() fills

  ConeBlocks blocks_;
  WatchedBlocks watched_;
  // Per block of the layout, of two bits: in the working set now; has left it before.
  std::vector<char> in_set_;
  std::vector<std::int64_t> block_of_;     // per block of the working set: which of the layout's
  std::vector<std::int64_t> near_;         // blocks outside, near the boundary at a full step
  std::vector<std::int32_t> column_of_;    // per feature: column in Xw_ or -1
  std::vector<std::int32_t> features_;     // per column
  std::vector<double> Xw_, column_scale_;  // gathered, centred, divided by omega; rms / margin unit

  std::vector<double> Y_, U_, xi_, b_, r_;  // class-major n*K; free coefficients
  std::vector<double> S_, rho_;             // scores and primal residual, class-major
  std::vector<double> G_, dG_;              // d x outputs: X'Y~ - V, late where not watched
  // What the last affine direction takes to a value other than zero: pairs, blocks.
  std::vector<char> keep_pair_, keep_block_;
  NewtonVector rhs_, dir_, saved_dir_;
  // Per pair: its direction, target, and terms of the right-hand side besides the target.
  std::vector<double> dU_, saved_dU_, c_, terms_;
  std::vector<double> wmat_, gmat_, dg_, signed_, response_;
  std::vector<std::vector<std::int64_t>> by_class_;
  ColumnSums sums_;
  double tol_ = 0.0, residual_ = 0.0, mu_ = 0.0, margin_unit_ = 1.0, total_lambda_ = 0.0;
  std::int64_t assembled_ = 0;  // of the first coordinates, that the Newton system knows
  int stuck_ = 0, idle_ = 0, settled_for_ = 0;
  double last_gap_ = std::numeric_limits<double>::infinity(), next_face_gap_ = last_gap_;
  double solve_residual_ = 0.0, free_ = kFree;
  double last_residual_ = std::numeric_limits<double>::infinity();  // of the primal, at progress

  // The best primal points met, as they are and with inactive coordinates at exact zero.
  struct Candidate {
    double primal = std::numeric_limits<double>::infinity();
    std::vector<std::int64_t> at;      // of d x outputs, where the values belong
    std::vector<double> values, b, Y;  // Y defines the weights of a quadratic penalty
    double scale = 1.0;                // of all weights and free coefficients
  };
  Candidate dense_, sparse_;
  double best_dual_ = -std::numeric_limits<double>::infinity();
  std::vector<double> best_Y_, first_Y_, trial_, trial_scores_, scaled_values_;

  class Equalities;  // interior_point_equalities.hpp
  class Face;        // interior_point_face.hpp

  std::size_t ck(int k) const { return static_cast<std::size_t>(k) * n_; }
  bool pinned(int k) const { return k < shift_class_; }
  bool converged(double tol) const {
    return std::isfinite(sparse_.primal) &&
           sparse_.primal - best_dual_ <= tol * magnitude(sparse_.primal);
  }
  double magnitude(double primal) const { return std::fabs(primal + t_.offset); }
  // A sparse point within the tolerance is the answer even where a dense one is a little better.
  const Candidate& best() const { return sparse_.primal <= dense_.primal ? sparse_ : dense_; }

  // interior_point_columns.hpp
  NewtonSystem make_system();
  void add_free_feature(std::int32_t j, std::vector<double>& F);
  void form_quadratic_part(int q);
  void form_quadratic_gram();
  void quadratic_product(double factor, const double* y, double rest, double* out) const;
  void add_tilt_scores(const std::vector<std::int32_t>& list, const std::vector<double>& X);
  void gather(const std::vector<std::int32_t>& list, double* out);
  void centre_column(std::int32_t j, double* x);
  void price(const double* sample_major);

  // interior_point_start.hpp
  void start();
  void start_slacks(double above);
  void warm_free_coefficients();
  double feasible_fraction(double cap);
  double start_fraction(const std::vector<double>& direction);
  double best_quadratic_fraction(const std::vector<double>& direction) const;
  std::vector<std::vector<std::int32_t>> holding_back() const;
  std::vector<double> flows_across_features(const std::vector<double>& centre,
                                            const std::vector<std::int32_t>& list);
  double margin_gain(const std::vector<double>& direction) const;
  void start_dual(std::vector<double>& direction);

  // interior_point_working_set.hpp
  void open_working_set();
  bool starts_nonzero(std::int64_t b) const;
  void add_blocks(const std::vector<std::int64_t>& list, bool opening = false);
  void add_blocks_now(const std::vector<std::int64_t>& list);
  std::vector<double> imbalances();
  double limit_by_outsiders(double ad, std::vector<std::int64_t>& entering);
  void collect_next(double rest, double lost, std::vector<std::int64_t>& entering);
  void collect_near(double threshold, std::vector<std::int64_t>& entering);
  void remove_idle();
  void remove_unused_columns();

  // interior_point_values.hpp
  void record(int it);
  void signed_column(const std::vector<double>& Y, int k, std::vector<double>& out) const;
  void scores(const std::vector<double>& values, const std::vector<double>& b,
              const std::vector<double>& Y, std::vector<double>& S);
  double hinge(const std::vector<double>& S, double scale) const;
  double tilt_value(const std::vector<double>& values) const;
  double tilt_of(std::int64_t c) const;
  std::pair<double, double> quadratic_terms(const std::vector<double>& Y);
  double exact_quadratic_scores();
  double conjugate();
  double infeasibility();
  void evaluate();
  void refit();
  double open_drift();
  void consider(Candidate& best, const std::vector<double>& values, const std::vector<double>& S,
                double square);
  void keep(Candidate& best, const std::vector<double>& values, double scale, double primal) const;
  double separating_scale(const std::vector<double>& S) const;
  bool settled(double tol);
  bool no_progress();

  // interior_point_step.hpp
  double average_complementarity() const;
  void residuals();
  bool few_coordinates() const;
  void transposed_coordinates(const double* Y);
  void coordinate_scores(const std::vector<double>& values, double* out);
  void signed_coordinates();
  void exact_row_sums(const NewtonVector& rhs, NewtonVector& step) const;
  void plain_direction(double tau, double accuracy);
  void direction(double tau, double accuracy);
  void correct(double tau);
  std::pair<double, double> centre(double tau);
  void restore_directions(bool primal, bool dual);
  double ratio(const std::vector<double>& x, const std::vector<double>& dx, double a) const;
  bool predict();
  double find_regularisation();
  std::pair<double, double> step_lengths() const;
  void restore_open(int open_before);
  void damp_free_coefficients();
  void assemble();
  bool open_more(double least);
  bool open_refused();
  bool iterate(int it);
  void advance(double ap, double ad);

  // interior_point_finish.hpp
  bool on_face(double tol);
  bool near_enough_to_polish() const {
    return best().primal - best_dual_ <= kPolishGap * magnitude(best().primal);
  }
  int polish(int it, const InteriorPointOptions& options, InteriorPointResult& result);
  void restart_on_active(double threshold);
  void project_dual();
  void export_dual(InteriorPointResult& out) const;
  void export_point(const Candidate& point, InteriorPointResult& out);
  void list_used(const Candidate& point, std::vector<std::int32_t>& used) const;
  void quadratic_weights(const std::vector<double>& Y, std::vector<double>& W);
};

}  // namespace sparsvm

#include "solvers/interior_point/interior_point_columns.hpp"
#include "solvers/interior_point/interior_point_equalities.hpp"
#include "solvers/interior_point/interior_point_face.hpp"
#include "solvers/interior_point/interior_point_finish.hpp"
#include "solvers/interior_point/interior_point_start.hpp"
#include "solvers/interior_point/interior_point_step.hpp"
#include "solvers/interior_point/interior_point_values.hpp"
#include "solvers/interior_point/interior_point_working_set.hpp"
