// One step of Newton's method on the active manifold of the penalty, by conjugate gradients or, where
// that costs no more than they may, by factorising its matrix.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "design/column_reader.hpp"
#include "loss/smooth_rows.hpp"
#include "penalty/group_penalty.hpp"
#include "solvers/block_newton/block_newton.hpp"
#include "solvers/block_newton/loss_hessian.hpp"
#include "solvers/block_newton/manifold.hpp"
#include "solvers/block_newton/preconditioner.hpp"
#include "solvers/block_newton/products.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

class NewtonStep {
 public:
  NewtonStep(SmoothPoint& point, SmoothRows& rows, ColumnSource& columns, GroupPenalty& penalty,
             const double* linear, bool intercept, Monitor& monitor)
      : point_(point), rows_(rows), columns_(columns), penalty_(penalty), linear_(linear),
        intercept_(intercept), monitor_(monitor), width_(rows.width), outputs_(rows.outputs),
        u_(static_cast<std::size_t>(rows.stride)), panels_(columns, rows.n, rows.width),
        preconditioner_(rows, penalty, monitor), hessian_(rows, columns, monitor) {}

  struct Options {
    double forcing;
    int cg_limit;
  };

  struct Outcome {
    bool moved = false;     // the objective fell
    bool full = false;      // by the whole step, cut at the kinks it met
    double fraction = 0.0;  // of the direction that was tried last
    int cg = 0;             // iterations of conjugate gradients
    double residual = 0.0;  // largest entry of the gradient on the manifold before the step
    // The loss plus the penalty of the listed groups; NaN where there was nothing to do.
    double before = std::nan(""), after = std::nan("");
  };

  // Step on the listed groups (all that are not zero, and the free ones) and the intercept.
  Outcome run(const std::vector<int64_t>& groups, const Options& options) {
    Outcome outcome;
    gather(groups);
    if (size_ == 0) return outcome;
    gradient();
    tangent();
    rows_.refresh_curvature();
    diagonal();
    // The gradient, the diagonal and the scores of the step.
    monitor_.spend(3.0 * Settings::kOperations *
                   static_cast<double>(active_.features.size() * at(width_)));
    bend();
    for (std::size_t e = 0; e < g_.size(); ++e) {
      if (mark_[e] != GroupPenalty::fixed)
        outcome.residual = std::max(outcome.residual, std::abs(g_[e] + q_[e]));
    }
    const SmoothNewtonSystem system{groups, starts_, features_, intercept_, active_,
                                    w_,     mark_,   h_,        straight_};
    descend();
    const bool direct = direct_pays(options.cg_limit) && solve_direct();
    if (!direct) {
      preconditioner_.prepare(system, ring_);
      outcome.cg = conjugate_gradients(options);
      preconditioner_.spend(outcome.cg);
      products_ += outcome.cg;
    }
    line_search(outcome);
    if (direct) adapt_damping(outcome.full);
    return outcome;
  }

  // Products with the Hessian made so far.
  int64_t products() const { return products_; }

 private:
  using Settings = BlockNewtonSettings;

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

  void gather(const std::vector<int64_t>& groups) {
    groups_ = &groups;
    features_.clear();
    starts_.clear();
    for (const int64_t u : groups) {
      starts_.push_back(static_cast<int64_t>(features_.size()));
      features_.insert(features_.end(), penalty_.features(u),
                       penalty_.features(u) + penalty_.size(u));
    }
    const auto m = static_cast<int64_t>(features_.size());
    size_ = m + (intercept_ ? 1 : 0);
    const std::size_t cells = at(size_ * width_);
    w_.assign(cells, 0.0);
    for (int64_t f = 0; f < m; ++f) {
      std::copy_n(point_.W + int64_t{features_[at(f)]} * outputs_, outputs_,
                  w_.data() + f * width_);
    }
    mark_.assign(cells, static_cast<unsigned char>(GroupPenalty::fixed));
    q_.assign(cells, 0.0), g_.resize(cells), h_.resize(cells);
    if (features_ != built_ || active_.starts.empty()) {
      built_ = features_;
      active_.build(columns_, features_, rows_.n);
      dense_.clear();
    }
  }

  GroupCells cells() const { return {penalty_, *groups_, starts_, width_}; }

  void tangent() {
    cells().tangent(w_.data(), g_.data(), mark_.data(), q_.data());
    if (!intercept_) return;
    const int64_t m = size_ - 1;
    for (int k = 0; k < outputs_; ++k) mark_[at(m * width_ + k)] = GroupPenalty::loose;
  }

  void gradient() {
    const auto m = static_cast<int64_t>(features_.size());
    panels_.gradients(features_.data(), features_.size(), rows_.D.data(), g_.data());
    for (int64_t f = 0; f < m && linear_; ++f)
      for (int k = 0; k < outputs_; ++k)
        g_[at(f * width_ + k)] -=
            penalty_.alpha * linear_[int64_t{features_[at(f)]} * outputs_ + k];
    if (!intercept_) return;
    double* own = g_.data() + m * width_;
    std::fill(own, own + width_, 0.0);
    for (int64_t i = 0; i < rows_.n; ++i) {
      for (int k = 0; k < width_; ++k) own[k] += rows_.D[at(i * width_ + k)];
    }
  }

  void diagonal() {
    const auto m = static_cast<int64_t>(features_.size());
    for (int64_t f = 0; f < m; ++f) {
      column_curvature(columns_[features_[at(f)]], width_, rows_.C.data(), rows_.stride,
                       h_.data() + f * width_);
    }
    if (intercept_) {
      double* own = h_.data() + m * width_;
      std::fill(own, own + width_, 0.0);
      for (const int32_t i : rows_.active) {
        for (int k = 0; k < outputs_; ++k) own[k] += rows_.C[at(int64_t{i} * rows_.stride + k)];
      }
    }
    // A coordinate without curvature would be moved without bound.
    for (int64_t f = 0; f < size_; ++f) {
      double* h = h_.data() + f * width_;
      double mean = 0.0;
      for (int k = 0; k < outputs_; ++k) mean += h[k] / outputs_;
      for (int k = 0; k < outputs_; ++k) h[k] = std::max(h[k], Settings::kFlatDiagonal * mean);
    }
  }

  // The curvature of the penalty.
  void bend() {
    straight_.assign(w_.size(), 0.0);
    if (!penalty_.curved()) return;
    ring_.assign(w_.size(), 0.0);
    cells().curvature(w_.data(), mark_.data(), straight_.data(), ring_.data());
  }

  void add_rings(const std::vector<double>& p, std::vector<double>& out) const {
    const std::size_t width = at(width_);
    cells().each([&](int64_t u, std::size_t from) {
      const std::size_t to = from + at(penalty_.size(u)) * width;
      const std::size_t blocks = penalty_.joint() ? 1 : width;
      for (std::size_t r = 0; r < blocks; ++r) {
        double along = 0.0;
        for (std::size_t e = from + r; e < to; e += blocks) along += ring_[e] * p[e];
        for (std::size_t e = from + r; e < to; e += blocks) out[e] -= ring_[e] * along;
      }
    });
  }

  // out = (Hessian of the loss + curvature of the penalty) p.
  void product(const std::vector<double>& p, std::vector<double>& out) {
    const int stride = rows_.stride;
    from_.assign(at(size_ * stride), 0.0F);
    to_.assign(at(size_ * stride), 0.0F);
    for (int64_t f = 0; f < size_; ++f) {
      for (int k = 0; k < outputs_; ++k) {
        from_[at(f * stride + k)] = static_cast<float>(p[at(f * width_ + k)]);
      }
    }
    monitor_.spend(hessian_work());
    const RowData& data = rows_.data();
    const HessianRows rows{data.loss,
                           stride,
                           data.y,
                           data.mass,
                           rows_.C.data(),
                           rows_.Q.data(),
                           rows_.active.data(),
                           rows_.active.size()};
    if (dense()) {
      if (dense_.empty()) dense_.build(columns_, features_, intercept_, rows_.n);
      dense_.product(rows, from_.data(), to_.data());
    } else {
      hessian_product(rows, active_, from_.data(), intercept_ ? size_ - 1 : -1, to_.data(),
                      u_.data());
    }
    for (int64_t f = 0; f < size_; ++f) {
      for (int k = 0; k < outputs_; ++k) {
        const std::size_t e = at(f * width_ + k);
        out[e] = static_cast<double>(to_[at(f * stride + k)]) + straight_[e] * p[e];
      }
    }
    if (penalty_.bends()) add_rings(p, out);
  }

  // A product reads the entries of the samples with curvature.
  double hessian_work() const {
    const double share = dense() ? 1.0 / Settings::kDenseSpeed
                                 : static_cast<double>(rows_.active.size()) /
                                       static_cast<double>(std::max<int64_t>(rows_.n, 1));
    return Settings::kOperations * share * static_cast<double>(active_.features.size()) *
           std::max(rows_.stride, 8);
  }

  // Whether BLAS beats walking the entries of the samples with curvature.
  bool dense() const {
    return outputs_ > 1 && !columns_.thin() &&
           Settings::kDenseSpeed * static_cast<double>(rows_.active.size()) >=
               static_cast<double>(rows_.n);
  }

  static double inner(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t e = 0; e < a.size(); ++e) sum += a[e] * b[e];
    return sum;
  }

  // r_ = the steepest descent on the manifold.
  void descend() {
    r_.resize(w_.size()), z_.resize(w_.size());
    for (std::size_t e = 0; e < w_.size(); ++e) {
      r_[e] = mark_[e] == GroupPenalty::fixed ? 0.0 : -(g_[e] + q_[e]);
    }
  }

  // -------------------------------------------------------------- in double precision
  //
  // Conjugate gradients on a Hessian in single precision see no directions a million times flatter
  // than others. Columns with means far above their spread make such directions, and so do samples
  // that are nearly separated. Where the active coefficients are few, the matrix costs less than the
  // iterations would.
  //
  // Where the penalty has kinks, exact steps go from kink to kink: on raw measurements l1 stalled so at
  // every alpha. A multiple of the diagonal, which falls as long as whole steps succeed, keeps them
  // as short as they need to be.

  // Whether the matrix is small and costs less than this many products with the Hessian.
  bool direct_pays(int products) const {
    const auto free = static_cast<double>(
        std::count_if(mark_.begin(), mark_.end(), [](auto m) { return m != GroupPenalty::fixed; }));
    if (free > Settings::kLargest || free == 0.0) return false;
    // Multiplications to form it for each sample and pair of variables: of symmetric products for each output
    // and of the probabilities, and of two products that are not symmetric for differences.
    const double own = 0.5 / outputs_;
    const double each = !hessian_.coupled()                  ? own
                        : rows_.loss() == LossKind::logistic ? own + 0.5
                                                             : own + 2.0;
    return (each * static_cast<double>(rows_.active.size()) + free / 3.0) * free * free <=
           std::max(Settings::kCheapMatrix, products * hessian_work());
  }

  bool solve_direct() {
    const GroupCells own = cells();
    all_.resize(w_.size());
    std::iota(all_.begin(), all_.end(), 0);
    system_.number(own, all_, w_.data(), mark_.data(), w_.size());
    weights_.clear();
    for (const int e : system_.moving()) {
      const std::size_t f = at(e) / at(width_);
      weights_.push_back({f < features_.size() ? features_[f] : WeightIndex::kIntercept,
                          static_cast<int32_t>(at(e) % at(width_))});
    }
    hessian_.restart();
    hessian_.require(weights_, place_);
    placed_.assign(w_.size(), -1);
    for (std::size_t a = 0; a < place_.size(); ++a) placed_[at(system_.moving()[a])] = place_[a];
    const double size = system_.count();
    monitor_.spend(size * size * size / 3.0);
    step_.assign(w_.size(), 0.0);
    return system_.solve(own, system_.moving(), 0, at(system_.count()),
                         [&](int e) { return hessian_.column(placed_[at(e)]); }, placed_.data(),
                         straight_.data(), ring_.data(), r_.data(), Settings::kDirectRidge,
                         penalty_.selects() ? damping_ : 0.0, step_.data());
  }

  // Steps that met no kink too early may be longer next time.
  void adapt_damping(bool full) {
    damping_ = full ? damping_ / Settings::kLonger
                    : std::clamp(Settings::kShorter * damping_, Settings::kLeastDamping, 1.0);
  }

  int conjugate_gradients(const Options& options) {
    const std::size_t cells = w_.size();
    step_.assign(cells, 0.0);
    hp_.assign(cells, 0.0);
    preconditioner_.apply(r_, z_);
    p_ = z_;
    double rz = inner(r_, z_);
    const double goal = options.forcing * options.forcing * rz;
    int it = 0;
    while (it < options.cg_limit && rz > goal && rz > 0.0) {
      monitor_.poll();
      product(p_, hp_);
      const double bend = inner(p_, hp_);
      // Along a direction that is flat to rounding only a kink, or a sample that comes to life,
      // ends the descent: go far and let the line search find it.
      double diagonal = 0.0;
      for (std::size_t e = 0; e < cells; ++e) diagonal += p_[e] * (h_[e] + straight_[e]) * p_[e];
      const bool flat = !(bend > Settings::kFlat * diagonal);
      if (!(diagonal > 0.0)) break;
      const double a = rz / (flat ? Settings::kFlat * diagonal : bend);
      for (std::size_t e = 0; e < cells; ++e) step_[e] += a * p_[e], r_[e] -= a * hp_[e];
      ++it;
      if (flat) break;
      preconditioner_.apply(r_, z_);
      const double next = inner(r_, z_);
      const double beta = next / rz;
      rz = next;
      for (std::size_t e = 0; e < cells; ++e) p_[e] = z_[e] + beta * p_[e];
    }
    if (it == 0) step_ = z_;
    return it;
  }

  double penalty_at(const std::vector<double>& step, double t) {
    moved_.resize(w_.size());
    for (std::size_t e = 0; e < w_.size(); ++e) moved_[e] = w_[e] + t * step[e];
    return cells().value(moved_.data());
  }

  double slope_of(const std::vector<double>& step) const {
    double slope = 0.0;
    for (std::size_t e = 0; e < step.size(); ++e) slope += (g_[e] + q_[e]) * step[e];
    return slope;
  }

  void scores_of(const std::vector<double>& step) {
    rows_.begin_step();
    const auto m = static_cast<int64_t>(features_.size());
    panels_.add(features_, step.data(), rows_.U.data());
    if (!intercept_) return;
    const double* own = step.data() + m * width_;
    for (int64_t i = 0; i < rows_.n; ++i) {
      for (int k = 0; k < outputs_; ++k) rows_.U[at(i * width_ + k)] += own[k];
    }
  }

  void line_search(Outcome& outcome) {
    const double loss = rows_.value(), before = loss + penalty_at(step_, 0.0);
    outcome.before = outcome.after = before;
    cut_ = step_;
    cells().cut_at_kinks(w_.data(), cut_.data());
    if (try_direction(cut_, before, Settings::kLengths, outcome)) {
      outcome.full = outcome.fraction == 1.0;
      return;
    }
    // Too many kinks at once: up to some of them, at last to the first.
    for (const double t : stops()) {
      for (std::size_t e = 0; e < cut_.size(); ++e) cut_[e] = t * step_[e];
      cells().cut_at_kinks(w_.data(), cut_.data());
      if (try_direction(cut_, before, {Settings::kLengths, 1}, outcome)) return;
    }
  }

  // Fractions of the step worth trying, falling.
  std::vector<double> stops() {
    std::vector<double> times = cells().kinks(w_.data(), step_.data()), found;
    std::sort(times.begin(), times.end());
    for (const double share : Settings::kKinkShares) {
      if (times.empty()) break;
      const auto which = static_cast<std::size_t>(share * static_cast<double>(times.size()));
      const double t = times[which] * Settings::kBeyondKink;
      if (found.empty() || t < found.back()) found.push_back(t);
    }
    for (int shorter = 0; shorter < Settings::kShorterStops; ++shorter)
      found.push_back(Settings::kStopRatio * (found.empty() ? 1.0 : found.back()));
    return found;
  }

  bool try_direction(const std::vector<double>& step, double before, std::span<const double> sizes,
                     Outcome& outcome) {
    const double slope = slope_of(step);
    if (!(slope < 0.0)) return false;
    scores_of(step);
    const double linear = linear_ ? linear_change(step) : 0.0;
    for (const double t : sizes) {
      const double after = rows_.value(t) + penalty_at(step, t) - t * linear;
      // Below rounding of the objective a step counts if it does not raise it.
      const double noise = Settings::kRounding * std::abs(before);
      if (!(after <= before + Settings::kArmijo * t * slope + noise)) continue;
      take(step, t);
      outcome.moved = true;
      outcome.fraction = t;
      outcome.after = after;
      return true;
    }
    return false;
  }

  double linear_change(const std::vector<double>& step) const {
    double sum = 0.0;
    for (std::size_t f = 0; f < features_.size(); ++f) {
      for (int k = 0; k < outputs_; ++k) {
        sum += linear_[int64_t{features_[f]} * outputs_ + k] * step[f * at(width_) + at(k)];
      }
    }
    return penalty_.alpha * sum;
  }

  void take(const std::vector<double>& step, double t) {
    for (std::size_t f = 0; f < features_.size(); ++f) {
      double* w = point_.W + int64_t{features_[f]} * outputs_;
      for (int k = 0; k < outputs_; ++k) {
        const std::size_t e = f * at(width_) + at(k);
        // A step cut at a kink ends there exactly.
        w[k] = t == 1.0 && step[e] == -w_[e] ? 0.0 : w_[e] + t * step[e];
      }
    }
    if (intercept_) {
      for (int k = 0; k < outputs_; ++k) point_.b[k] += t * step[at((size_ - 1) * width_ + k)];
    }
    rows_.take_step(t);
  }

  SmoothPoint& point_;
  SmoothRows& rows_;
  ColumnSource& columns_;
  GroupPenalty& penalty_;
  const double* linear_;
  bool intercept_;
  Monitor& monitor_;
  int width_, outputs_;
  const std::vector<int64_t>* groups_ = nullptr;
  std::vector<int32_t> features_, built_;
  std::vector<int64_t> starts_;
  int64_t size_ = 0, products_ = 0;
  ActiveRows active_;
  DenseActive dense_;
  std::vector<unsigned char> mark_;
  std::vector<double> w_, q_, g_, h_, straight_, ring_, step_, r_, z_, p_, hp_;
  // The line search comes when the vectors of the conjugate gradients are free.
  std::vector<double>&cut_ = z_, &moved_ = hp_;
  std::vector<float> from_, to_, u_;
  ColumnPanels panels_;
  NewtonPreconditioner preconditioner_;
  LossHessian hessian_;
  ManifoldSystem system_;
  std::vector<WeightIndex> weights_;
  std::vector<int> all_, place_, placed_;
  double damping_ = Settings::kFirstDamping;
};

}  // namespace sparsvm
