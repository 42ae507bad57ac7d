// Primal-dual interior point for the exact multiclass hinge with a sparse penalty.
//
// In units where the penalty has radius one (lambda_i = p_i / alpha, columns divided by omega):
//
//     minimise  sum_i lambda_i xi_i  +  phi(W) - <V, W>      xi_i >= r_ik + S_ik - S_iy,   S = X W + F b
//
// with dual Y_i in lambda_i * simplex, Y~ = Y - lambda Z, G = X'Y~ - V inside the dual ball, F'Y~ = 0.
// Slacks U = xi 1' - r - S (xi absorbing the true class's score) pair with Y.
//
// * The hinge Hessian is block-diagonal over classes: K factorisations of size n (newton_system.hpp).
// * Only a working set of penalty blocks enters the system; every iteration prices all features with
//   one transposed product, and the dual step is also limited by the features outside, so that dual
//   feasibility is never lost and the dual value is always a valid bound.
// * Every iterate is tried with the coordinates that complementarity calls inactive set to exact
//   zeros; the solver stops when such a sparse point is within the tolerance of the dual value.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "blas.hpp"
#include "design.hpp"
#include "monitor.hpp"
#include "newton_system.hpp"
#include "penalty_blocks.hpp"
#include "penalty_layout.hpp"

namespace sparsvm {

struct HingeTask {
  const Design& design;
  const std::int32_t* y;        // n
  const double* lambda;         // n, mass / alpha
  const double* margins;        // n x K sample-major, zero at the true class
  int n_classes;
  PenaltyKind kind;
  const double* omega;          // d
  bool intercept;
  const double* tilt;           // d x outputs or null: the objective gets -<tilt, W>
  const double* start_dual;     // n x K in units of lambda, balanced, or null
  const double* start_weights;  // d x outputs, with start_dual: the primal part of a warm start
  const double* start_intercept;  // outputs
};

struct InteriorPointOptions {
  double tol = 1e-6;
  int max_iter = 100;
  bool across_features = true;  // may start from flows with X'Y~ near zero, see start_dual
};

struct InteriorPointResult {
  std::vector<double> weights;    // d x outputs, feature-major
  std::vector<double> intercept;  // outputs
  std::vector<double> dual;       // n x K sample-major, in units of lambda
  int iterations = 0;
  bool stalled = false;
};

class InteriorPoint {
 public:
  InteriorPoint(const HingeTask& task, const PenaltyLayout& layout, Monitor& monitor, double objective_unit)
      : t_(task),
        layout_(layout),
        monitor_(monitor),
        unit_(objective_unit),
        n_(static_cast<int>(task.design.n())),
        K_(task.n_classes),
        outputs_(K_ == 2 ? 1 : K_),
        shift_class_(K_ - outputs_),
        d_(task.design.d()),
        quadratic_(task.kind == PenaltyKind::l2),
        system_(make_system()) {}

  InteriorPointResult solve(const InteriorPointOptions& options) {
    across_features_ = options.across_features;
    start();
    InteriorPointResult result;
    int it = 0;
    for (;; ++it) {
      monitor_.poll();
      evaluate();
      record(it);
      if (converged(options.tol) || settled(options.tol) || it >= options.max_iter) break;
      if (no_progress(it) || !iterate(it)) {
        result.stalled = true;
        break;
      }
    }
    if (!free_features_.empty()) project_dual();
    export_dual(result);
    if (!converged(options.tol) && !quadratic_ && it < options.max_iter) it = polish(it, options, result);
    if (result.weights.empty()) export_point(converged(options.tol) ? sparse_ : best(), result);
    result.iterations = it;
    return result;
  }

 private:
  static constexpr double kStepFraction = 0.985;
  static constexpr double kCentrality = 1e-4;
  static constexpr double kShortStep = 0.1;
  static constexpr double kFewFlows = 0.05;
  static constexpr double kProximal = 1e-12;
  static constexpr int kPatience = 30, kPolishSteps = 25, kSettled = 4;
  static constexpr double kPolishMix = 1e-3;
  static constexpr double kWarmSlack = 0.05, kWarmMix = 0.1;  // how far a warm start is pulled inside
  static constexpr double kMinRegularisation = 1e-12, kMaxRegularisation = 1e-4, kAccurate = 1e-9;

  const HingeTask& t_;
  const PenaltyLayout& layout_;
  Monitor& monitor_;
  double unit_;
  int n_, K_, outputs_, shift_class_;
  std::int64_t d_;
  bool quadratic_, across_features_ = true, polishing_ = false;

  std::vector<double> mean_, free_scale_;
  std::vector<std::int32_t> free_features_;
  std::vector<double> gram_;  // quadratic penalty: X X' (full square)
  // Quadratic penalty with a tilt V: W = V - X'Y~ (in scaled columns), so the scores and both values
  // get constant terms from V.
  std::vector<double> tilt_scores_;
  double tilt_norm_ = 0.0;
  NewtonSystem system_;  // after everything that make_system() fills

  PenaltyBlocks blocks_;
  std::vector<char> in_set_;                   // per block of the layout
  std::vector<std::int32_t> column_of_;        // per feature: column in Xw_ or -1
  std::vector<std::int32_t> features_;         // per column
  std::vector<double> Xw_, column_scale_;      // gathered, centred, divided by omega; rms / margin unit

  std::vector<double> Y_, U_, xi_, b_, r_;     // class-major n*K; free coefficients
  std::vector<double> S_, rho_;                // scores and primal residual, class-major
  std::vector<double> G_, dG_;                 // d x outputs: X'Y~ - V
  NewtonVector rhs_, dir_;
  std::vector<double> dU_, c_, wmat_, gmat_, dg_, sample_major_, signed_;
  double mu_ = 0.0, margin_unit_ = 1.0;
  int stuck_ = 0, last_progress_ = 0, settled_for_ = 0;
  double last_gap_ = std::numeric_limits<double>::infinity();
  double solve_residual_ = 0.0;

  // The best primal points met, as they are and with inactive coordinates at exact zero.
  struct Candidate {
    double primal = std::numeric_limits<double>::infinity();
    std::vector<double> values, b, Y;  // Y defines the weights of a quadratic penalty
    bool zero = false;                 // the model without any weight
  };
  Candidate dense_, sparse_;
  double best_dual_ = -std::numeric_limits<double>::infinity();
  std::vector<double> best_Y_, first_Y_, trial_, trial_scores_;

  std::size_t ck(int k) const { return static_cast<std::size_t>(k) * n_; }
  bool pinned(int k) const { return k < shift_class_; }

  void record(int it) {
    const Candidate& point = best();
    const auto nonzeros = point.values.size() - static_cast<std::size_t>(std::count(point.values.begin(), point.values.end(), 0.0));
    monitor_.record(it, unit_ * point.primal, unit_ * (point.primal - best_dual_), static_cast<std::int64_t>(nonzeros));
  }

  // ---- set-up ----

  NewtonSystem make_system() {
    mean_.assign(d_, 0.0);
    std::vector<double> F;
    if (t_.intercept) F.assign(n_, 1.0);
    for (std::int64_t j = 0; j < d_; ++j)
      if (!(t_.omega[j] > 0.0)) add_free_feature(static_cast<std::int32_t>(j), F);
    const int q = n_ > 0 ? static_cast<int>(F.size() / n_) : 0;
    if (quadratic_) form_quadratic_gram();
    return NewtonSystem(n_, K_, std::move(F), q, gram_);
  }

  void add_free_feature(std::int32_t j, std::vector<double>& F) {
    std::vector<double> x(n_);
    t_.design.gather_columns(&j, 1, x.data());
    double sum = 0.0, raw = 0.0;
    for (double v : x) raw = std::max(raw, std::fabs(v));
    centre_column(j, x.data());
    for (double v : x) sum += v * v;
    const double scale = std::sqrt(sum / n_);
    if (!(scale > 1e-14 * raw)) return;  // constant: the intercept already has it
    for (double v : x) F.push_back(v / scale);
    free_features_.push_back(j);
    free_scale_.push_back(scale);
  }

  void form_quadratic_gram() {
    gram_.assign(static_cast<std::size_t>(n_) * n_, 0.0);
    const std::int64_t panel = 512;
    std::vector<std::int32_t> list;
    std::vector<double> X;
    for (std::int64_t j0 = 0; j0 < d_; j0 += panel) {
      list.clear();
      for (std::int64_t j = j0; j < std::min(d_, j0 + panel); ++j)
        if (t_.omega[j] > 0.0) list.push_back(static_cast<std::int32_t>(j));
      X.resize(list.size() * n_);
      gather(list, X.data());
      if (t_.tilt) add_tilt_scores(list, X);
      syrk('U', 'N', n_, static_cast<int>(list.size()), 1.0, X.data(), n_, 1.0, gram_.data(), n_);
      monitor_.poll();
    }
    for (int c = 0; c < n_; ++c)
      for (int r = c + 1; r < n_; ++r)
        gram_[static_cast<std::size_t>(c) * n_ + r] = gram_[static_cast<std::size_t>(r) * n_ + c];
  }

  void add_tilt_scores(const std::vector<std::int32_t>& list, const std::vector<double>& X) {
    tilt_scores_.resize(static_cast<std::size_t>(n_) * K_, 0.0);
    for (std::size_t c = 0; c < list.size(); ++c)
      for (int o = 0; o < outputs_; ++o) {
        const double v = t_.tilt[static_cast<std::size_t>(list[c]) * outputs_ + o] * layout_.inv_omega[list[c]];
        tilt_norm_ += v * v;
        for (int i = 0; i < n_; ++i) tilt_scores_[ck(o + shift_class_) + i] += v * X[c * n_ + i];
      }
  }

  void gather(const std::vector<std::int32_t>& list, double* out) {
    t_.design.gather_columns(list.data(), static_cast<std::int64_t>(list.size()), out);
    for (std::size_t c = 0; c < list.size(); ++c) {
      double* x = out + c * n_;
      centre_column(list[c], x);
      const double f = layout_.inv_omega[list[c]];
      for (int i = 0; i < n_; ++i) x[i] *= f;
    }
  }

  // The free intercept makes centring exact, and it keeps M_k well conditioned. A constant column
  // becomes exactly zero. Sparse columns stay sparse instead.
  void centre_column(std::int32_t j, double* x) {
    if (!t_.intercept || t_.design.sparse()) return;
    double sum = 0.0, total = 0.0;
    for (int i = 0; i < n_; ++i) {
      sum += t_.lambda[i] * (x[i] - x[0]);
      total += t_.lambda[i];
    }
    mean_[j] = x[0] + sum / total;
    for (int i = 0; i < n_; ++i) x[i] -= mean_[j];
  }

  // Strictly dual feasible: Y = lambda Z + eps lambda (pi - Z), with pi the class shares, balances
  // every class's flow, and eps keeps X'Y~ inside the ball.
  void start() {
    const std::size_t nk = static_cast<std::size_t>(n_) * K_;
    r_.resize(nk);
    double total = 0.0, margin_sum = 0.0;
    std::vector<double> share(K_, 0.0), largest(n_, 0.0);
    for (int i = 0; i < n_; ++i) {
      for (int k = 0; k < K_; ++k) {
        r_[ck(k) + i] = t_.margins[static_cast<std::size_t>(i) * K_ + k];
        largest[i] = std::max(largest[i], r_[ck(k) + i]);
      }
      share[t_.y[i]] += t_.lambda[i];
      total += t_.lambda[i];
      margin_sum += t_.lambda[i] * largest[i];
    }
    for (double& s : share) s /= total;
    margin_unit_ = margin_sum > 0.0 ? margin_sum / total : 1.0;

    std::vector<double> centre(nk);  // lambda (pi - Z), sample-major
    for (int i = 0; i < n_; ++i)
      for (int k = 0; k < K_; ++k)
        centre[static_cast<std::size_t>(i) * K_ + k] = t_.lambda[i] * (share[k] - (t_.y[i] == k));
    in_set_.assign(layout_.n_blocks(), 0);
    column_of_.assign(d_, -1);
    start_dual(centre);
    first_Y_ = Y_;
    xi_.assign(n_, 0.0);
    U_.resize(nk);
    b_.assign(system_.n_free(), 0.0);
    double mass = 0.0;
    for (int i = 0; i < n_; ++i) mass += t_.lambda[i];
    system_.proximal = kProximal * mass;
    const bool warm = t_.start_dual != nullptr;
    if (warm) {
      mu_ = kWarmSlack * margin_unit_ * mass / static_cast<double>(nk);
      if (!quadratic_) open_working_set();
      warm_free_coefficients();
    }
    start_slacks(warm ? kWarmSlack : 1.0);
    if (!warm && !quadratic_) open_working_set();
    // The zero model is the first candidate: it is the optimum of a problem without margins.
    sparse_.primal = margin_sum;
    sparse_.values.assign(blocks_.n_coordinates(), 0.0);
    sparse_.b.assign(b_.size(), 0.0);
    sparse_.zero = true;
  }

  // xi above every margin by a multiple of the margins' size.
  void start_slacks(double above) {
    scores(blocks_.w, b_, Y_, S_);
    double sum = 0.0;
    for (int i = 0; i < n_; ++i) {
      double top = -std::numeric_limits<double>::infinity();
      for (int k = 0; k < K_; ++k) top = std::max(top, r_[ck(k) + i] + S_[ck(k) + i]);
      xi_[i] = top + above * margin_unit_;
      for (int k = 0; k < K_; ++k) {
        U_[ck(k) + i] = xi_[i] - r_[ck(k) + i] - S_[ck(k) + i];
        sum += U_[ck(k) + i] * Y_[ck(k) + i];
      }
    }
    mu_ = sum / static_cast<double>(Y_.size());
    // Samples or classes of tiny weight would start far off the central path and block every step.
    for (std::size_t a = 0; a < Y_.size(); ++a) U_[a] = std::max(U_[a], kCentrality * mu_ / Y_[a]);
  }

  // Intercepts and unpenalised weights of the warm start, in centred columns and relative to the class
  // that carries none.
  void warm_free_coefficients() {
    std::vector<double> all(static_cast<std::size_t>(outputs_) * system_.q(), 0.0);
    const int first = t_.intercept ? 1 : 0;
    for (int o = 0; o < outputs_; ++o) {
      double* row = all.data() + static_cast<std::size_t>(o) * system_.q();
      if (t_.intercept) {
        row[0] = t_.start_intercept[o];
        for (std::int64_t j = 0; j < d_; ++j) row[0] += mean_[j] * t_.start_weights[static_cast<std::size_t>(j) * outputs_ + o];
      }
      for (std::size_t f = 0; f < free_features_.size(); ++f)
        row[first + f] = t_.start_weights[static_cast<std::size_t>(free_features_[f]) * outputs_ + o] * free_scale_[f];
    }
    for (int k = shift_class_; k < K_; ++k) {
      if (!system_.has_free(k)) continue;
      for (int f = 0; f < system_.q(); ++f) {
        const double reference = outputs_ > 1 ? all[static_cast<std::size_t>(outputs_ - 1) * system_.q() + f] : 0.0;
        b_[system_.free_offset(k) + f] = all[static_cast<std::size_t>(k - shift_class_) * system_.q() + f] - reference;
      }
    }
  }

  // The largest fraction, up to a cap, of the direction priced in dG_ that leaves every block that is
  // not on its boundary already strictly inside.
  double feasible_fraction(double cap) {
    if (quadratic_) return cap;
    double eps = cap;
    std::vector<double> g(layout_.largest_block());
    for (std::int64_t b = 0; b < layout_.n_blocks(); ++b) {
      const std::int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
      if (size == 0 || layout_.shape.exceeds(g.data(), size, 0.9)) continue;
      while (eps > 0.0) {
        layout_.values(b, G_.data(), dG_.data(), eps, g.data());
        if (!layout_.shape.exceeds(g.data(), size, 0.95)) break;
        monitor_.poll();
        eps = t_.tilt ? 0.5 * eps : std::min(0.999 * eps, eps * 0.949 / layout_.shape.dual_norm(g.data(), size));
      }
    }
    return eps;
  }

  double start_fraction(const std::vector<double>& direction) {
    return feasible_fraction(quadratic_ ? std::min(0.9, best_quadratic_fraction(direction)) : 0.9);
  }

  // The fraction of the direction priced in dG_ with the best dual value under a quadratic penalty.
  double best_quadratic_fraction(const std::vector<double>& direction) const {
    const double gain = margin_gain(direction);
    double square = 0.0;
    for (std::int64_t j = 0; j < d_; ++j)
      for (int o = 0; o < outputs_; ++o) {
        const double g = dG_[static_cast<std::size_t>(j) * outputs_ + o] * layout_.inv_omega[j];
        square += g * g;
      }
    return gain > 0.0 && square > 0.0 ? gain / square : 0.9;
  }

  // With few features and a tiny alpha, X'Y~ would leave the ball long before Y is anywhere near the
  // flows of the optimum. Pulls the centre towards X'Y~ = 0 by damped Newton steps on its equalities.
  std::vector<double> flows_across_features(const std::vector<double>& centre) {
    std::vector<double> columns;
    std::vector<std::int32_t> all(static_cast<std::size_t>(d_));
    std::iota(all.begin(), all.end(), 0);
    std::vector<double> X(static_cast<std::size_t>(n_) * d_);
    t_.design.gather_columns(all.data(), d_, X.data());
    if (t_.intercept) columns.assign(n_, 1.0);
    for (std::int64_t j = 0; j < d_; ++j) {
      double* x = X.data() + static_cast<std::size_t>(j) * n_;
      centre_column(static_cast<std::int32_t>(j), x);
      double sum = 0.0;
      for (int i = 0; i < n_; ++i) sum += x[i] * x[i];
      const double scale = std::sqrt(sum / n_);
      if (scale > 0.0)
        for (int i = 0; i < n_; ++i) columns.push_back(x[i] / scale);
    }
    std::vector<double> Y(centre.size()), direction(centre.size());
    for (int i = 0; i < n_; ++i)
      for (int k = 0; k < K_; ++k)
        Y[ck(k) + i] = t_.lambda[i] * (t_.y[i] == k) + 0.9 * centre[static_cast<std::size_t>(i) * K_ + k];
    Equalities equalities(*this, std::move(columns));
    for (int round = 0; round < 8; ++round)
      if (!equalities.approach(Y)) break;
    for (int k = 0; k < K_; ++k) {
      signed_column(Y, k, signed_);
      for (int i = 0; i < n_; ++i) direction[static_cast<std::size_t>(i) * K_ + k] = signed_[i];
    }
    return direction;
  }

  double margin_gain(const std::vector<double>& direction) const {
    double gain = 0.0;
    for (std::size_t a = 0; a < direction.size(); ++a) gain += direction[a] * t_.margins[a];
    return gain;
  }

  void start_dual(std::vector<double>& direction) {
    G_.assign(static_cast<std::size_t>(d_) * outputs_, 0.0);
    dG_.resize(G_.size());
    if (t_.tilt)
      for (std::size_t a = 0; a < G_.size(); ++a) G_[a] = -t_.tilt[a];
    price(direction.data());
    double eps = start_fraction(direction);
    if (!t_.start_dual && !t_.tilt && across_features_ && eps < kFewFlows && 2 * d_ <= n_) {
      std::vector<double> other = flows_across_features(direction);
      price(other.data());
      const double fraction = start_fraction(other);
      if (fraction * margin_gain(other) > eps * margin_gain(direction)) {
        direction = std::move(other);
        eps = fraction;
      } else {
        price(direction.data());
      }
    }
    if (t_.start_dual) {
      for (int i = 0; i < n_; ++i) {
        const std::size_t row = static_cast<std::size_t>(i) * K_;
        double off = 0.0;
        for (int k = 0; k < K_; ++k) {
          const double y = t_.y[i] == k ? 0.0 : t_.start_dual[row + k];
          direction[row + k] = kWarmMix * eps * direction[row + k] + (1.0 - kWarmMix) * y;
          off += (1.0 - kWarmMix) * y;
        }
        direction[row + t_.y[i]] -= off;
      }
      price(direction.data());
      eps = feasible_fraction(1.0);
    }
    Y_.resize(direction.size());
    for (int i = 0; i < n_; ++i)
      for (int k = 0; k < K_; ++k)
        Y_[ck(k) + i] = t_.lambda[i] * (t_.y[i] == k) + eps * direction[static_cast<std::size_t>(i) * K_ + k];
    for (std::size_t a = 0; a < G_.size(); ++a) G_[a] += eps * dG_[a];
  }

  void open_working_set() {
    const std::int64_t blocks = layout_.n_blocks();
    std::vector<double> g(layout_.largest_block());
    std::vector<std::pair<double, std::int64_t>> ranked;
    std::vector<std::int64_t> forced;
    ranked.reserve(blocks);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
      if (size == 0) continue;
      const double norm = layout_.shape.dual_norm(g.data(), size);
      if (norm >= 0.95 || (t_.start_weights && starts_nonzero(b)))
        forced.push_back(b);
      else
        ranked.emplace_back(norm, b);
    }
    const std::int64_t width = std::max<std::int64_t>(1, layout_.largest_block() / (layout_.joint ? outputs_ : 1));
    const std::int64_t per_class = std::max<std::int64_t>(10, 4 * n_ / width);
    const auto wanted = std::min<std::int64_t>(static_cast<std::int64_t>(ranked.size()),
                                               layout_.joint ? std::max<std::int64_t>(10, 2 * n_ / width) : per_class * outputs_);
    std::nth_element(ranked.begin(), ranked.begin() + wanted, ranked.end(),
                     [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
    for (std::int64_t w = 0; w < wanted; ++w) forced.push_back(ranked[w].second);
    std::sort(forced.begin(), forced.end());
    add_blocks(forced, true);
  }

  bool starts_nonzero(std::int64_t b) const {
    bool any = false;
    layout_.coordinates(b, [&](std::int32_t j, std::int32_t o) {
      any = any || t_.start_weights[static_cast<std::size_t>(j) * outputs_ + o] != 0.0;
    });
    return any;
  }

  void add_blocks(const std::vector<std::int64_t>& list, bool opening = false) {
    std::vector<std::int32_t> fresh;
    for (std::int64_t b : list)
      layout_.coordinates(b, [&](std::int32_t j, std::int32_t) {
        if (column_of_[j] >= 0) return;
        column_of_[j] = static_cast<std::int32_t>(features_.size());
        features_.push_back(j);
        fresh.push_back(j);
      });
    const std::size_t old = Xw_.size();
    Xw_.resize(old + fresh.size() * n_);
    gather(fresh, Xw_.data() + old);
    for (std::size_t c = 0; c < fresh.size(); ++c) {
      double sum = 0.0;
      for (int i = 0; i < n_; ++i) sum += Xw_[old + c * n_ + i] * Xw_[old + c * n_ + i];
      column_scale_.push_back(std::sqrt(sum / n_) / margin_unit_);
    }
    std::vector<double> g(layout_.largest_block()), shift(layout_.largest_block()), weights;
    std::vector<std::int32_t> cols, classes;
    for (std::int64_t b : list) {
      cols.clear();
      classes.clear();
      weights.clear();
      layout_.coordinates(b, [&](std::int32_t j, std::int32_t o) {
        cols.push_back(column_of_[j]);
        classes.push_back(o + shift_class_);
        // Opening blocks start at zero: their own centre depends on the scale of the columns.
        if (opening)
          weights.push_back(t_.start_weights ? t_.start_weights[static_cast<std::size_t>(j) * outputs_ + o] * t_.omega[j] : 0.0);
      });
      const std::int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
      std::fill(shift.begin(), shift.end(), 0.0);
      if (layout_.shape.exceeds(g.data(), size, 1.0 - 1e-9)) {
        const double pull = 0.5 / layout_.shape.dual_norm(g.data(), size) - 1.0;
        for (std::int64_t c = 0; c < size; ++c) shift[c] = pull * g[c];
      }
      blocks_.add(layout_.shape, size, cols.data(), classes.data(), g.data(), shift.data(), mu_,
                  weights.empty() ? nullptr : weights.data());
      in_set_[b] = 1;
    }
  }

  // dG_ = X' (sample-major n x K array), outputs only.
  void price(const double* sample_major) {
    if (outputs_ == K_) {
      t_.design.transposed(sample_major, K_, dG_.data());
      return;
    }
    std::vector<double> column(n_);
    for (int i = 0; i < n_; ++i) column[i] = sample_major[static_cast<std::size_t>(i) * K_ + 1];
    t_.design.transposed(column.data(), 1, dG_.data());
  }

  // ---- one iteration ----

  // Column k of Y~. The true class gets minus the sum of the others: reading Y - lambda there would
  // cancel all digits when alpha is tiny and lambda huge.
  void signed_column(const std::vector<double>& Y, int k, std::vector<double>& out) const {
    out.resize(n_);
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
  void scores(const std::vector<double>& values, const std::vector<double>& b, const std::vector<double>& Y,
              std::vector<double>& S) {
    const int m = static_cast<int>(features_.size());
    S.assign(static_cast<std::size_t>(n_) * K_, 0.0);
    if (m > 0) {
      wmat_.assign(static_cast<std::size_t>(m) * K_, 0.0);
      for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c)
        wmat_[static_cast<std::size_t>(blocks_.cls[c]) * m + blocks_.col[c]] = values[c];
      gemm('N', 'N', n_, K_, m, 1.0, Xw_.data(), n_, wmat_.data(), m, 0.0, S.data(), n_);
    }
    for (int k = 0; k < K_; ++k) {
      if (quadratic_ && !pinned(k)) {
        signed_column(Y, k, signed_);
        symv('U', n_, -1.0, gram_.data(), n_, signed_.data(), 1, 1.0, S.data() + ck(k), 1);
        if (t_.tilt)
          for (int i = 0; i < n_; ++i) S[ck(k) + i] += tilt_scores_[ck(k) + i];
      }
      if (system_.has_free(k))
        gemv('N', n_, system_.q(), 1.0, system_.free_columns(), n_, b.data() + system_.free_offset(k), 1, 1.0,
             S.data() + ck(k), 1);
    }
  }

  double hinge(const std::vector<double>& S) const {
    double total = 0.0;
    for (int i = 0; i < n_; ++i) {
      double top = -std::numeric_limits<double>::infinity();
      for (int k = 0; k < K_; ++k) top = std::max(top, r_[ck(k) + i] + S[ck(k) + i]);
      total += t_.lambda[i] * (top - S[ck(t_.y[i]) + i]);
    }
    return total;
  }

  double tilt_value(const std::vector<double>& values) const {
    if (!t_.tilt || quadratic_) return 0.0;
    double total = 0.0;
    for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c) total += tilt_of(c) * values[c];
    return total;
  }

  double tilt_of(std::int64_t c) const {
    const std::int32_t j = features_[blocks_.col[c]];
    return t_.tilt[static_cast<std::size_t>(j) * outputs_ + blocks_.cls[c] - shift_class_] * layout_.inv_omega[j];
  }

  // sum_k Y~_k' (X X') Y~_k / 2 of the quadratic penalty, and Y~ . (X V) for its tilt.
  std::pair<double, double> quadratic_terms(const std::vector<double>& Y) {
    if (!quadratic_) return {0.0, 0.0};
    double square = 0.0, linear = 0.0;
    std::vector<double> yt, ky(n_);
    for (int k = shift_class_; k < K_; ++k) {
      signed_column(Y, k, yt);
      symv('U', n_, 1.0, gram_.data(), n_, yt.data(), 1, 0.0, ky.data(), 1);
      for (int i = 0; i < n_; ++i) square += yt[i] * ky[i];
      if (t_.tilt)
        for (int i = 0; i < n_; ++i) linear += yt[i] * tilt_scores_[ck(k) + i];
    }
    return {0.5 * square, linear};
  }

  void evaluate() {
    scores(blocks_.w, b_, Y_, S_);
    const auto [square, linear] = quadratic_terms(Y_);
    double dual = -(square - linear + 0.5 * tilt_norm_) - conjugate();
    for (std::size_t a = 0; a < Y_.size(); ++a) dual += Y_[a] * r_[a];
    dual -= infeasibility() + blocks_.shift_value();
    // As long as no dual value can be trusted, the latest point is the best guess.
    if (!polishing_ && (dual > best_dual_ || !std::isfinite(best_dual_))) {
      best_dual_ = dual;
      best_Y_ = Y_;
    }
    const double primal = hinge(S_) + square - 0.5 * tilt_norm_ + blocks_.value(blocks_.w) - tilt_value(blocks_.w);
    consider(dense_, blocks_.w, primal);
    if (quadratic_ || polishing_) {
      consider(sparse_, blocks_.w, primal);
    } else if (primal - best_dual_ < 0.1 * std::fabs(primal)) {
      blocks_.sparse_weights(column_scale_.data(), 1.0, trial_);
      scores(trial_, b_, Y_, trial_scores_);
      consider(sparse_, trial_, hinge(trial_scores_) + blocks_.value(trial_) - tilt_value(trial_));
    }
  }

  // Identifies the active coordinates and solves for these alone, from here: all others are exactly
  // zero, and the dual value stays the one of the whole problem. Lower thresholds keep more
  // coordinates, for degenerate problems in which complementarity does not tell the zeros.
  // Exports the polished point if it meets the tolerance or is better than any before.
  int polish(int it, const InteriorPointOptions& options, InteriorPointResult& result) {
    const PenaltyBlocks blocks = blocks_;
    const std::vector<double> b = b_;
    double best_primal = best().primal;
    export_point(best(), result);
    polishing_ = true;
    for (double threshold = 1.0; threshold > 1e-7; threshold *= 1e-2) {
      blocks_ = blocks;
      b_ = b;
      restart_on_active(threshold);
      for (int step = 0; step < kPolishSteps && it < options.max_iter; ++step) {
        monitor_.poll();
        evaluate();
        record(it);
        if (converged(options.tol) || !iterate(it)) break;
        ++it;
      }
      if (sparse_.primal < best_primal || converged(options.tol)) {
        best_primal = sparse_.primal;
        export_point(sparse_, result);
      }
      if (converged(options.tol) || it >= options.max_iter) break;
    }
    return it;
  }

  // Rebuilds the blocks from the coordinates that are active at the threshold, a little inside.
  void restart_on_active(double threshold) {
    blocks_.sparse_weights(column_scale_.data(), threshold, trial_);
    for (std::size_t a = 0; a < Y_.size(); ++a) Y_[a] = (1.0 - kPolishMix) * best_Y_[a] + kPolishMix * first_Y_[a];
    double mass = 0.0;
    for (int i = 0; i < n_; ++i) mass += t_.lambda[i];
    mu_ = kPolishMix * margin_unit_ * mass / static_cast<double>(Y_.size());
    signed_coordinates();
    PenaltyBlocks active;
    std::vector<std::int32_t> cols, classes;
    std::vector<double> g, weights, shift;
    for (std::int64_t b = 0; b < blocks_.size(); ++b) {
      cols.clear(), classes.clear(), g.clear(), weights.clear();
      bool any = false;
      for (std::int64_t c = blocks_.begin(b); c < blocks_.end(b); ++c) {
        any = any || trial_[c] != 0.0;
        if (trial_[c] == 0.0 && blocks_.separable(b)) continue;
        cols.push_back(blocks_.col[c]);
        classes.push_back(blocks_.cls[c]);
        g.push_back(dg_[c]);
        weights.push_back(trial_[c]);
      }
      if (!any) continue;
      const auto size = static_cast<std::int64_t>(cols.size());
      shift.assign(cols.size(), 0.0);
      if (blocks_.shape(b).exceeds(g.data(), size, 1.0 - 1e-9)) {
        const double pull = 0.9 / blocks_.shape(b).dual_norm(g.data(), size) - 1.0;
        for (std::int64_t c = 0; c < size; ++c) shift[c] = pull * g[c];
      }
      active.add(blocks_.shape(b), size, cols.data(), classes.data(), g.data(), shift.data(), mu_, weights.data());
    }
    blocks_ = std::move(active);
    dense_ = sparse_ = Candidate();
    start_slacks(kPolishMix);
  }

  // What the residuals of the dual's equalities may be worth at the current multipliers. They vanish
  // with the first full step, and this keeps the dual value from being trusted before.
  double infeasibility() {
    residuals();
    double total = 0.0;
    for (int i = 0; i < n_; ++i) total += std::fabs(rhs_.xi[i] * xi_[i]);
    double mass = 0.0;
    for (int i = 0; i < n_; ++i) mass += t_.lambda[i];
    for (std::size_t j = 0; j < b_.size(); ++j) {
      if (std::fabs(rhs_.b[j]) > 1e-8 * mass) return std::numeric_limits<double>::infinity();
      total += std::fabs(rhs_.b[j] * b_[j]);
    }
    return total;
  }

  void consider(Candidate& best, const std::vector<double>& values, double primal) const {
    if (!(primal < best.primal)) return;
    best.primal = primal;
    best.values = values;
    best.b = b_;
    best.zero = false;
    if (quadratic_) best.Y = Y_;
  }

  // The interior point itself has been there for a while; what is missing is a sparse point as good.
  bool settled(double tol) {
    if (quadratic_ || dense_.primal - best_dual_ > 0.1 * tol * std::fabs(dense_.primal)) return false;
    return ++settled_for_ > kSettled;
  }

  // Rounding ends the progress of an ill-conditioned problem; going on would only cost time.
  bool no_progress(int it) {
    const double gap = best().primal - best_dual_;
    if (!(gap > 0.9 * last_gap_)) {
      last_gap_ = gap;
      last_progress_ = it;
    }
    return it - last_progress_ > kPatience;
  }

  bool converged(double tol) const { return std::isfinite(sparse_.primal) && sparse_.primal - best_dual_ <= tol * std::fabs(sparse_.primal); }
  // A sparse point within the tolerance is the answer even where a dense one is a little better.
  const Candidate& best() const { return sparse_.primal <= dense_.primal ? sparse_ : dense_; }

  double average_complementarity() const {
    double sum = blocks_.complementarity();
    for (std::size_t a = 0; a < Y_.size(); ++a) sum += Y_[a] * U_[a];
    return sum / (static_cast<double>(Y_.size()) + blocks_.degree());
  }

  void residuals() {
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

  // dg_ = the working set's coordinates of X' (class-major n x K array).
  void transposed_coordinates(const double* Y) {
    const int m = static_cast<int>(features_.size());
    gmat_.resize(static_cast<std::size_t>(m) * K_);
    dg_.resize(blocks_.n_coordinates());
    if (m > 0) gemm('T', 'N', m, K_, n_, 1.0, Xw_.data(), n_, Y, n_, 0.0, gmat_.data(), m);
    for (std::int64_t c = 0; c < blocks_.n_coordinates(); ++c)
      dg_[c] = gmat_[static_cast<std::size_t>(blocks_.cls[c]) * m + blocks_.col[c]];
  }

  // The conjugate of an elastic net at the current dual point (zero for norms).
  double conjugate() {
    if (layout_.shape.quad <= 0.0) return 0.0;
    signed_coordinates();
    return blocks_.conjugate(dg_.data());
  }

  // dg_ = the working set's coordinates of G, from Y itself.
  void signed_coordinates() {
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
  void exact_row_sums(const NewtonVector& rhs, NewtonVector& step) const {
    for (int i = 0; i < n_; ++i) {
      double others = 0.0;
      for (int k = 0; k < K_; ++k)
        if (k != t_.y[i]) others += step.y[ck(k) + i];
      step.y[ck(t_.y[i]) + i] = rhs.xi[i] - others;
    }
  }

  // Newton direction for complementarity tau; fills dir_, dU_ and the blocks' directions.
  void direction(double tau, bool corrector) {
    blocks_.compute_rhs(tau, corrector);
    const int m = static_cast<int>(features_.size());
    c_.resize(Y_.size());
    if (m > 0) {
      // X (h + D shift), class by class
      wmat_.assign(static_cast<std::size_t>(m) * K_, 0.0);
      for (std::int64_t b = 0; b < blocks_.size(); ++b) {
        double along = 0.0;
        for (std::int64_t c = blocks_.begin(b); c < blocks_.end(b); ++c) along += blocks_.vec[c] * blocks_.shift[c];
        for (std::int64_t c = blocks_.begin(b); c < blocks_.end(b); ++c)
          wmat_[static_cast<std::size_t>(blocks_.cls[c]) * m + blocks_.col[c]] =
              blocks_.h[c] + blocks_.delta[c] * blocks_.shift[c] + blocks_.kappa(b) * along * blocks_.vec[c];
      }
      gemm('N', 'N', n_, K_, m, 1.0, Xw_.data(), n_, wmat_.data(), m, 0.0, rhs_.y.data(), n_);
    } else {
      std::fill(rhs_.y.begin(), rhs_.y.end(), 0.0);
    }
    for (std::size_t a = 0; a < Y_.size(); ++a) {
      c_[a] = tau - U_[a] * Y_[a] - (corrector ? dU_[a] * dir_.y[a] : 0.0);
      rhs_.y[a] += c_[a] / Y_[a] - rho_[a];
    }
    solve_residual_ = system_.solve(rhs_, dir_);
    exact_row_sums(rhs_, dir_);
    dU_.resize(Y_.size());
    for (std::size_t a = 0; a < Y_.size(); ++a) dU_[a] = (c_[a] - U_[a] * dir_.y[a]) / Y_[a];
    transposed_coordinates(dir_.y.data());
    blocks_.recover(dg_.data());
  }

  double ratio(const std::vector<double>& x, const std::vector<double>& dx, double a) const {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (dx[i] < 0.0 && x[i] + a * dx[i] <= 0.0) a = std::min(a, -x[i] / dx[i]);
    return a;
  }

  // Factors and computes the affine direction, regularising more while the solve is inaccurate.
  bool predict() {
    double best = std::numeric_limits<double>::infinity(), best_level = kMinRegularisation;
    system_.regularisation = std::max(kMinRegularisation, 1e-2 * system_.regularisation);
    for (;;) {
      if (system_.factor()) {
        direction(0.0, false);
        if (solve_residual_ <= kAccurate) return true;
        if (solve_residual_ < best) {
          best = solve_residual_;
          best_level = system_.regularisation;
        }
      }
      if (system_.regularisation >= kMaxRegularisation) break;
      system_.regularisation *= 1e2;
    }
    system_.regularisation = best_level;
    if (!std::isfinite(best) || !system_.factor()) return false;
    direction(0.0, false);
    return true;
  }

  std::pair<double, double> step_lengths() const {
    const double ap = std::min(1.0, kStepFraction * std::min(ratio(U_, dU_, 2.0), blocks_.max_primal_step()));
    const double ad = std::min(1.0, kStepFraction * std::min(ratio(Y_, dir_.y, 2.0), blocks_.max_dual_step()));
    return {ap, ad};
  }

  bool iterate(int it) {
    mu_ = average_complementarity();
    blocks_.compute_scaling();
    system_.assemble(blocks_, Xw_.data(), layout_.joint, quadratic_ || (layout_.joint && layout_.shape.kind == BlockKind::euclidean),
                     U_.data(), Y_.data());
    monitor_.poll();
    if (!predict()) return false;
    monitor_.poll();

    double ap = std::min(ratio(U_, dU_, 1.0), blocks_.max_primal_step());
    double ad = std::min(ratio(Y_, dir_.y, 1.0), blocks_.max_dual_step());
    double after = blocks_.complementarity(ap, ad);
    for (std::size_t a = 0; a < Y_.size(); ++a) after += (Y_[a] + ad * dir_.y[a]) * (U_[a] + ap * dU_[a]);
    after /= static_cast<double>(Y_.size()) + blocks_.degree();
    const double sigma = std::pow(std::clamp(after / mu_, 0.0, 1.0), 3);
    direction(sigma * mu_, true);

    std::tie(ap, ad) = step_lengths();
    if (std::min(ap, ad) < kShortStep) {
      // Far off the central path the second-order terms mislead: a plain centring step then.
      direction(std::max(sigma, 0.5) * mu_, false);
      std::tie(ap, ad) = step_lengths();
    }
    std::vector<std::int64_t> entering;
    if (!quadratic_ && !polishing_) ad = limit_by_outsiders(ad, entering);
    if (!std::isfinite(ap) || !std::isfinite(ad)) return false;
    stuck_ = std::max(ap, ad) < 1e-4 ? stuck_ + 1 : 0;
    if (stuck_ >= 4) return false;
    advance(ap, ad);
    mu_ = average_complementarity();
    if (!quadratic_ && !polishing_) {
      collect_near(it < 4 ? 0.9 : 0.98, entering);
      add_blocks(entering);
    }
    return true;
  }

  void advance(double ap, double ad) {
    blocks_.step(ap, ad);
    for (std::size_t a = 0; a < Y_.size(); ++a) {
      U_[a] += ap * dU_[a];
      Y_[a] += ad * dir_.y[a];
    }
    for (int i = 0; i < n_; ++i) xi_[i] += ap * dir_.xi[i];
    for (std::size_t j = 0; j < b_.size(); ++j) b_[j] += ap * dir_.b[j];
    if (!quadratic_ && !polishing_)
      for (std::size_t a = 0; a < G_.size(); ++a) G_[a] += ad * dG_[a];
  }

  // The dual step that keeps the blocks outside the working set inside their ball; those that limit
  // it are told to enter.
  double limit_by_outsiders(double ad, std::vector<std::int64_t>& entering) {
    sample_major_.resize(Y_.size());
    for (int i = 0; i < n_; ++i)
      for (int k = 0; k < K_; ++k) sample_major_[static_cast<std::size_t>(i) * K_ + k] = dir_.y[ck(k) + i];
    price(sample_major_.data());
    std::vector<double> g(layout_.largest_block());
    double limit = ad;
    for (std::int64_t b = 0; b < layout_.n_blocks(); ++b) {
      if (in_set_[b]) continue;
      const std::int64_t size = layout_.values(b, G_.data(), dG_.data(), ad, g.data());
      if (size == 0 || !layout_.shape.exceeds(g.data(), size, 1.0)) continue;
      entering.push_back(b);
      double lo = 0.0, hi = ad;
      for (int bis = 0; bis < 40; ++bis) {
        const double mid = 0.5 * (lo + hi);
        layout_.values(b, G_.data(), dG_.data(), mid, g.data());
        (layout_.shape.exceeds(g.data(), size, 1.0) ? hi : lo) = mid;
      }
      limit = std::min(limit, 0.95 * lo);
    }
    return limit;
  }

  void collect_near(double threshold, std::vector<std::int64_t>& entering) {
    std::vector<double> g(layout_.largest_block());
    for (std::int64_t b = 0; b < layout_.n_blocks(); ++b) {
      if (in_set_[b]) continue;
      const std::int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
      if (size > 0 && layout_.shape.exceeds(g.data(), size, threshold)) entering.push_back(b);
    }
    std::sort(entering.begin(), entering.end());
    entering.erase(std::unique(entering.begin(), entering.end()), entering.end());
    // A poor direction may drive very many blocks to the boundary at once; the worst come first.
    const std::size_t limit = static_cast<std::size_t>(4 * n_ + 50);
    if (entering.size() <= limit) return;
    std::vector<std::pair<double, std::int64_t>> ranked;
    for (std::int64_t b : entering) {
      const std::int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
      ranked.emplace_back(-layout_.shape.dual_norm(g.data(), size), b);
    }
    std::sort(ranked.begin(), ranked.end());
    entering.clear();
    for (std::size_t e = 0; e < limit; ++e) entering.push_back(ranked[e].second);
    std::sort(entering.begin(), entering.end());
  }

  // Newton steps of Y towards row sums lambda and C'Y~_k = 0 for given columns C, small relative to Y.
  class Equalities {
   public:
    Equalities(InteriorPoint& owner, std::vector<double> columns)
        : o_(owner),
          q_(static_cast<int>(columns.size() / owner.n_)),
          columns_(columns),
          system_(owner.n_, owner.K_, std::move(columns), q_, {}),
          ones_(static_cast<std::size_t>(owner.n_) * owner.K_, 1.0) {
      system_.regularisation = 0.0;
    }

    // One damped step that keeps Y positive; false when the system cannot be solved.
    bool approach(std::vector<double>& Y) {
      NewtonVector rhs, step;
      rhs.resize(Y.size(), o_.n_, system_.n_free());
      for (int i = 0; i < o_.n_; ++i) {
        double sum = 0.0;
        for (int k = 0; k < o_.K_; ++k) sum += Y[o_.ck(k) + i];
        rhs.xi[i] = o_.t_.lambda[i] - sum;
      }
      for (int k = 0; k < o_.K_; ++k) {
        if (!system_.has_free(k)) continue;
        o_.signed_column(Y, k, o_.signed_);
        gemv('T', o_.n_, q_, -1.0, columns_.data(), o_.n_, o_.signed_.data(), 1, 0.0, rhs.b.data() + system_.free_offset(k), 1);
      }
      system_.assemble(PenaltyBlocks(), nullptr, false, false, ones_.data(), Y.data());
      if (!system_.factor()) return false;
      system_.solve(rhs, step);
      o_.exact_row_sums(rhs, step);
      const double length = std::min(1.0, 0.9 * o_.ratio(Y, step.y, 2.0));
      for (std::size_t a = 0; a < Y.size(); ++a) Y[a] += length * step.y[a];
      return true;
    }

   private:
    InteriorPoint& o_;
    int q_;
    std::vector<double> columns_;
    NewtonSystem system_;
    std::vector<double> ones_;
  };

  // Removes what rounding left of F'Y~: unpenalised features demand it exactly, and no scaling of the
  // certificate could repair it.
  void project_dual() {
    const std::size_t size = static_cast<std::size_t>(n_) * system_.q();
    Equalities equalities(*this, std::vector<double>(system_.free_columns(), system_.free_columns() + size));
    for (int round = 0; round < 5; ++round)
      if (!equalities.approach(best_Y_)) return;
  }

  // ---- results in the user's coordinates ----

  void export_dual(InteriorPointResult& out) const {
    out.dual.resize(best_Y_.size());
    for (int i = 0; i < n_; ++i)
      for (int k = 0; k < K_; ++k) out.dual[static_cast<std::size_t>(i) * K_ + k] = best_Y_[ck(k) + i];
  }

  void export_point(const Candidate& point, InteriorPointResult& out) {
    out.weights.assign(static_cast<std::size_t>(d_) * outputs_, 0.0);
    out.intercept.assign(outputs_, 0.0);
    if (quadratic_) {
      if (!point.zero) export_quadratic(point, out);
    } else {
      for (std::size_t c = 0; c < point.values.size(); ++c) {
        const std::int32_t j = features_[blocks_.col[c]];
        out.weights[static_cast<std::size_t>(j) * outputs_ + blocks_.cls[c] - shift_class_] = point.values[c] * layout_.inv_omega[j];
      }
    }
    for (int k = shift_class_; k < K_; ++k) {
      if (!system_.has_free(k)) continue;
      const double* b = point.b.data() + system_.free_offset(k);
      const int first = t_.intercept ? 1 : 0;
      if (t_.intercept) out.intercept[k - shift_class_] = b[0];
      for (std::size_t f = 0; f < free_features_.size(); ++f)
        out.weights[static_cast<std::size_t>(free_features_[f]) * outputs_ + k - shift_class_] = b[first + f] / free_scale_[f];
    }
    if (t_.intercept)
      for (std::int64_t j = 0; j < d_; ++j)
        for (int o = 0; o < outputs_; ++o) out.intercept[o] -= mean_[j] * out.weights[static_cast<std::size_t>(j) * outputs_ + o];
  }

  void export_quadratic(const Candidate& point, InteriorPointResult& out) {
    std::vector<double> yt(out.dual.size());
    for (int k = 0; k < K_; ++k) {
      signed_column(point.Y, k, signed_);
      for (int i = 0; i < n_; ++i) yt[static_cast<std::size_t>(i) * K_ + k] = signed_[i];
    }
    price(yt.data());
    for (std::int64_t j = 0; j < d_; ++j)
      for (int o = 0; o < outputs_; ++o) {
        const std::size_t a = static_cast<std::size_t>(j) * outputs_ + o;
        const double g = dG_[a] - (t_.tilt ? t_.tilt[a] : 0.0);
        out.weights[a] = -g * layout_.inv_omega[j] * layout_.inv_omega[j];
      }
  }
};

}  // namespace sparsvm
