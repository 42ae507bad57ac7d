// Minimise a quadratic with a dense matrix plus the penalty.
//
//     g's + s'Hs / 2 + alpha penalty(w + s)
//
// Block coordinate descent keeps the gradient g + Hs up to date: a move costs one column of H for each
// weight that changes. Single weights are moved to their minimum; a group is moved by proximal steps on its
// own block, with the sums of the absolute rows as a diagonal that bounds it. In between, Newton steps
// on the active manifold, which no correlation slows down: the matrix of the active weights is
// factorised, and a step ends at the kinks it meets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "linalg/blas.hpp"
#include "linalg/dense.hpp"
#include "penalty/group_penalty.hpp"
#include "solvers/block_newton/manifold.hpp"
#include "support/monitor.hpp"
#include "support/simd.hpp"

namespace sparsvm {

// y += a x.
SPARSVM_DISPATCH static void add_multiple(double a, const double* x, int64_t count, double* y) {
  for (int64_t i = 0; i < count; ++i) y[i] += a * x[i];
}

class PenalisedQuadratic {
 public:
  PenalisedQuadratic(GroupPenalty& penalty, int width, Monitor& monitor)
      : penalty_(penalty), monitor_(monitor), width_(width) {
    const auto cells = static_cast<std::size_t>(penalty.widest() * width);
    for (auto* buffer : {&bound_, &target_, &moved_, &local_}) buffer->assign(cells, 0.0);
  }

  // The weights: groups by features by outputs, padded to `width`, `starts` the first row of each group;
  // `variable` tells the place of each in the matrix (in this order), or -1 where it stays zero. The matrix
  // is block-diagonal; `blocks` are where its blocks begin, and its end. Of penalties on single weights the
  // order is that of the blocks; with groups there is one block.
  struct Layout {
    const std::vector<int64_t>& groups;
    const std::vector<int64_t>& starts;
    const std::vector<int>& variable;
    const std::vector<int>& blocks;
  };

  // The matrix (m x m, column-major; nothing is read outside the blocks) and the gradient at s = 0, to be
  // filled in by the caller.
  std::vector<double> H, g;

  struct Outcome {
    double first = 0.0, last = 0.0;  // violations, in the units of the gradient
    double change = 0.0;             // of the model, never positive
    int sweeps = 0;
  };

  // Change w until the violation is this share of the first one, or below `enough`.
  Outcome minimise(const Layout& layout, double share, double enough, std::vector<double>& w) {
    layout_ = &layout;
    w_ = &w;
    m_ = static_cast<int>(g.size());
    cell_.assign(at(m_), 0);
    for (std::size_t e = 0; e < w.size(); ++e)
      if (layout.variable[e] >= 0) cell_[at(layout.variable[e])] = static_cast<int>(e);
    block_.resize(at(m_));
    for (std::size_t b = 0; b + 1 < layout.blocks.size(); ++b)
      std::fill(block_.begin() + layout.blocks[b], block_.begin() + layout.blocks[b + 1], b);
    prepare();
    Outcome outcome;
    int since = 0, steps = 0;
    double before = 0.0;
    for (; outcome.sweeps < kMostSweeps;) {
      monitor_.poll();
      monitor_.spend(kFactorSpeed / 3.0 * m_ * m_);
      const double violation = sweep((outcome.sweeps & 1) == 0, outcome.change);
      outcome.last = violation;
      if (outcome.sweeps++ == 0) outcome.first = violation;
      if (violation <= std::max(share * outcome.first, enough)) break;
      if (++since < sweeps_of_factor()) continue;
      since = 0;
      // After a step that ended at a kink the next one follows at once, with fewer weights. A sweep in between would
      // bring back what went to zero: where weights are nearly as many as the rank of the Hessian, gaps then fell as
      // 1 / iterations (171 x 775, K = 3, one-vs-rest, l1, 0.003 alpha_max: 0.19 s, 0.05 without).
      for (int cut = 0; newton(outcome.change) && cut < kMostCut; ++cut) ++steps;
      if (++steps >= kMostNewton || outcome.change > (1.0 + kWorthIt) * before) break;
      before = outcome.change;
    }
    return outcome;
  }

 private:
  // Sweeps between two Newton steps at least, sweeps at most (the outer iteration goes on from any point),
  // and how much faster than a sweep a factorisation is, for each operation.
  static constexpr int kLeastSweeps = 3, kMostSweeps = 300;
  static constexpr double kFactorSpeed = 40.0;
  // Newton steps at most, and the share of the model's fall that justifies going on.
  static constexpr int kMostNewton = 12;
  static constexpr double kWorthIt = 1e-3;
  // Proximal steps on one group, and the share of its violation that they leave.
  static constexpr int kSteps = 8;
  static constexpr double kInner = 0.05;
  // Newton steps: a weight without curvature takes its own gradient as step. With more than the limit of the
  // diagonal added, sweeps do as well.
  static constexpr ScaledCholesky::Ridge kRidge{1e-14, 1e-5, 1.0};
  // The parts of a step tried; where none lowers the model, the step ends after these shares of the kinks it meets.
  // By how much it goes beyond, so that rounding does not stop it short. Such steps in a row, each with fewer weights.
  static constexpr double kLengths[] = {1.0, 0.5, 0.25}, kBeyond = 1.0 + 1e-12;
  static constexpr double kKinkShares[] = {0.5, 0.2, 0.05, 0.0};
  static constexpr int kMostCut = 20;

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }
  const double* column(int c) const { return H.data() + at(c) * at(m_); }

  // y += a times column c of the matrix.
  void add_column(double a, int c, std::vector<double>& y) const {
    const int first = layout_->blocks[block_[at(c)]], last = layout_->blocks[block_[at(c)] + 1];
    add_multiple(a, column(c) + first, last - first, y.data() + first);
  }

  // The sweeps that take as long as a factorisation: with a weights that are not zero in b blocks, 2 a m / b
  // operations each against a^3 / (3 b^2).
  int sweeps_of_factor() const {
    const auto a = static_cast<double>(
        std::count_if(w_->begin(), w_->end(), [](double x) { return x != 0.0; }));
    const auto blocks = static_cast<double>(layout_->blocks.size() - 1);
    return std::max(kLeastSweeps, static_cast<int>(a * a / (kFactorSpeed * m_ * blocks)));
  }

  void prepare() {
    if (penalty_.separable()) {
      threshold_.resize(at(m_)), stiffness_.resize(at(m_));
      for (std::size_t k = 0; k < layout_->groups.size(); ++k) {
        const int64_t u = layout_->groups[k];
        const double o = penalty_.weight(penalty_.features(u)[0]);
        for (int r = 0; r < width_; ++r) {
          const int c = layout_->variable[at(layout_->starts[k] * width_ + r)];
          if (c < 0) continue;
          threshold_[at(c)] = penalty_.alpha * penalty_.absolute() * o;
          stiffness_[at(c)] = penalty_.alpha * penalty_.square() * o * o;
        }
      }
      return;
    }
    rows_.assign(at(m_), 0.0);
    for (std::size_t k = 0; k < layout_->groups.size(); ++k) {
      const auto [first, last] = range(k);
      for (int c = first; c < last; ++c)
        for (int r = first; r < last; ++r) rows_[at(c)] += std::abs(column(c)[r]);
    }
  }

  // The variables of a group: all of its weights, one after the other.
  std::pair<int, int> range(std::size_t k) const {
    const std::size_t from = at(layout_->starts[k] * width_);
    const int first = layout_->variable[from];
    const auto outputs = static_cast<int>(penalty_.outputs());
    return {first, first + static_cast<int>(penalty_.size(layout_->groups[k])) * outputs};
  }

  double sweep(bool forwards, double& change) {
    double largest = 0.0;
    if (penalty_.separable()) {
      for (int s = 0; s < m_; ++s)
        largest = std::max(largest, move_one(forwards ? s : m_ - 1 - s, change));
      return largest;
    }
    const std::size_t count = layout_->groups.size();
    for (std::size_t s = 0; s < count; ++s)
      largest = std::max(largest, move_group(forwards ? s : count - 1 - s, change));
    return largest;
  }

  double move_one(int c, double& change) {
    double& w = (*w_)[at(cell_[at(c)])];
    const double h = column(c)[c], t = threshold_[at(c)], q = stiffness_[at(c)];
    const double u = h * w - g[at(c)];
    const double v = u > t ? (u - t) / (h + q) : u < -t ? (u + t) / (h + q) : 0.0;
    const double s = v - w;
    if (s == 0.0) return 0.0;
    change += s * g[at(c)] + 0.5 * h * s * s + t * (std::abs(v) - std::abs(w)) +
              0.5 * q * (v * v - w * w);
    add_column(s, c, g);
    w = v;
    return std::abs(h + q) * std::abs(s);
  }

  double move_group(std::size_t k, double& change) {
    const int64_t u = layout_->groups[k];
    const std::size_t from = at(layout_->starts[k] * width_);
    const std::size_t cells = at(penalty_.size(u) * width_);
    const auto [first, last] = range(k);
    double* w = w_->data() + from;
    double violation = 0.0;
    local_.assign(g.begin() + first, g.begin() + last);
    start_.assign(w, w + cells);
    for (int step = 0; step < kSteps; ++step) {
      std::fill_n(bound_.begin(), cells, 1.0), std::fill_n(target_.begin(), cells, 0.0);
      for (std::size_t e = 0; e < cells; ++e) {
        const int c = layout_->variable[from + e];
        if (c < 0) continue;
        bound_[e] = rows_[at(c)];
        target_[e] = bound_[e] * w[e] - local_[at(c - first)];
      }
      penalty_.minimise(u, bound_.data(), target_.data(), moved_.data());
      double size = 0.0;
      for (std::size_t e = 0; e < cells; ++e) {
        const int c = layout_->variable[from + e];
        const double s = c < 0 ? 0.0 : moved_[e] - w[e];
        if (s == 0.0) continue;
        size += bound_[e] * s * bound_[e] * s;
        add_multiple(s, column(c) + first, last - first, local_.data());
        w[e] += s;
        if (moved_[e] == 0.0) w[e] = 0.0;
      }
      size = std::sqrt(size);
      if (step == 0) violation = size;
      if (size <= kInner * violation) break;
    }
    if (violation == 0.0) return 0.0;
    // s'(g + Hs + g) / 2 is the change of the quadratic.
    double gained = penalty_.value(u, w) - penalty_.value(u, start_.data());
    for (std::size_t e = 0; e < cells; ++e) {
      const int c = layout_->variable[from + e];
      if (c >= 0) gained += 0.5 * (w[e] - start_[e]) * (g[at(c)] + local_[at(c - first)]);
    }
    change += gained;
    for (std::size_t e = 0; e < cells; ++e) {
      const int c = layout_->variable[from + e];
      if (c >= 0 && w[e] != start_[e]) add_column(w[e] - start_[e], c, g);
    }
    return violation;
  }

  // ------------------------------------------------------------------ Newton steps

  // A step on the manifold; whether it had to end at a kink.
  bool newton(double& change) {
    const std::size_t cells = w_->size();
    mark_.assign(cells, static_cast<unsigned char>(GroupPenalty::fixed));
    pull_.assign(cells, 0.0), straight_.assign(cells, 0.0), ring_.assign(cells, 0.0);
    slope_.assign(cells, 0.0);
    for (std::size_t e = 0; e < cells; ++e)
      if (layout_->variable[e] >= 0) slope_[e] = g[at(layout_->variable[e])];
    const GroupCells own = this->cells();
    own.tangent(w_->data(), slope_.data(), mark_.data(), pull_.data());
    if (penalty_.curved()) own.curvature(w_->data(), mark_.data(), straight_.data(), ring_.data());
    system_.number(own, cell_, w_->data(), mark_.data(), cells);
    if (system_.count() == 0 || !solve()) return false;
    cut_ = step_;
    own.cut_at_kinks(w_->data(), cut_.data());
    if (take(cut_, change)) return false;
    std::vector<double> times = own.kinks(w_->data(), step_.data());
    std::sort(times.begin(), times.end());
    const auto count = static_cast<double>(times.size());
    for (const double share : kKinkShares) {
      if (times.empty()) return false;
      const double time = std::min(times[static_cast<std::size_t>(share * count)], 1.0);
      for (std::size_t e = 0; e < cells; ++e) cut_[e] = time * kBeyond * step_[e];
      own.cut_at_kinks(w_->data(), cut_.data());
      if (take(cut_, change)) return true;
    }
    return false;
  }

  GroupCells cells() const { return {penalty_, layout_->groups, layout_->starts, width_}; }

  // Block by block. Ties, of which there are fewer than weights, come with groups, in one block.
  bool solve() {
    const std::vector<int>& moving = system_.moving();
    const bool whole = layout_->blocks.size() == 2;
    step_.assign(w_->size(), 0.0);
    for (const int e : moving) slope_[at(e)] = -(slope_[at(e)] + pull_[at(e)]);
    auto from = moving.begin();
    for (std::size_t b = 0; b + 1 < layout_->blocks.size(); ++b) {
      const auto to = std::find_if(from, moving.end(), [&](int e) {
        return layout_->variable[at(e)] >= layout_->blocks[b + 1];
      });
      const std::span<const int> block{from, to};
      const std::size_t size = whole ? at(system_.count()) : block.size();
      if (from != to &&
          !system_.solve(cells(), block, static_cast<int>(from - moving.begin()), size,
                         [&](int e) { return column(layout_->variable[at(e)]); },
                         layout_->variable.data(), straight_.data(), ring_.data(), slope_.data(),
                         kRidge, 0.0, step_.data()))
        return false;
      from = to;
    }
    return true;
  }

  // Take the longest of a few parts of the step that lowers the model.
  bool take(const std::vector<double>& step, double& change) {
    along_.assign(at(m_), 0.0);
    double slope = 0.0, bend = 0.0;
    for (const int e : system_.moving()) {
      if (step[at(e)] == 0.0) continue;
      const int c = layout_->variable[at(e)];
      slope += step[at(e)] * g[at(c)];
      add_column(step[at(e)], c, along_);
    }
    for (const int e : system_.moving()) bend += step[at(e)] * along_[at(layout_->variable[at(e)])];
    const double before = penalty_at(step, 0.0);
    for (const double t : kLengths) {
      const double gained = t * slope + 0.5 * t * t * bend + penalty_at(step, t) - before;
      if (!(gained < 0.0)) continue;
      for (std::size_t e = 0; e < w_->size(); ++e) {
        double& w = (*w_)[e];
        w = t == 1.0 && step[e] == -w ? 0.0 : w + t * step[e];
      }
      add_multiple(t, along_.data(), m_, g.data());
      change += gained;
      return true;
    }
    return false;
  }

  double penalty_at(const std::vector<double>& step, double t) {
    trial_.resize(w_->size());
    for (std::size_t e = 0; e < w_->size(); ++e) trial_[e] = (*w_)[e] + t * step[e];
    return cells().value(trial_.data());
  }

  GroupPenalty& penalty_;
  Monitor& monitor_;
  int width_, m_ = 0;
  const Layout* layout_ = nullptr;
  std::vector<double>* w_ = nullptr;
  std::vector<int> cell_;
  std::vector<std::size_t> block_;  // of each variable
  std::vector<unsigned char> mark_;
  std::vector<double> threshold_, stiffness_, rows_, bound_, target_, moved_, local_, start_;
  std::vector<double> pull_, straight_, ring_, slope_, step_, cut_, trial_, along_;
  ManifoldSystem system_;
};

}  // namespace sparsvm
