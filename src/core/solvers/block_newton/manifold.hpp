// The active manifold of the penalty on some groups: where steps meet its kinks, and the Newton equation of
// the weights that move.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "linalg/dense.hpp"
#include "penalty/group_penalty.hpp"

namespace sparsvm {

// Weights of groups, one group after the other, by features by outputs, padded to `width`; all arrays have
// this order.
struct GroupCells {
  GroupPenalty& penalty;
  const std::vector<int64_t>& groups;
  const std::vector<int64_t>& starts;  // the first row of each group
  int width;

  // visit(group, its first cell).
  template <typename Visit>
  void each(Visit visit) const {
    for (std::size_t k = 0; k < groups.size(); ++k)
      visit(groups[k], static_cast<std::size_t>(starts[k] * width));
  }

  double value(const double* w) const {
    double total = 0.0;
    each([&](int64_t u, std::size_t o) { total += penalty.value(u, w + o); });
    return total;
  }
  void tangent(const double* w, const double* g, unsigned char* mark, double* q) const {
    each([&](int64_t u, std::size_t o) { penalty.tangent(u, w + o, g + o, mark + o, q + o); });
  }
  void curvature(const double* w, const unsigned char* mark, double* straight, double* ring) const {
    each([&](int64_t u, std::size_t o) {
      penalty.curvature(u, w + o, mark + o, straight + o, ring + o);
    });
  }
  void cut_at_kinks(const double* w, double* step) const {
    each([&](int64_t u, std::size_t o) { penalty.cut_at_kinks(u, w + o, step + o); });
  }
  std::vector<double> kinks(const double* w, const double* step) const {
    std::vector<double> times;
    each([&](int64_t u, std::size_t o) { penalty.kinks(u, w + o, step + o, times); });
    return times;
  }
};

// The equation (H + diag(straight) - ring ring') s = r on the manifold. Its variables are the weights that
// move by themselves, and one for each tie.
class ManifoldSystem {
 public:
  // The variables of the listed cells; others stay where they are.
  template <typename Cells>
  void number(const GroupCells& own, const Cells& cells, const double* w, const unsigned char* mark,
              std::size_t size) {
    number_.assign(size, -1), factor_.assign(size, 1.0);
    count_ = 0;
    for (const int e : cells)
      if (mark[e] == GroupPenalty::loose) number_[at(e)] = count_++;
    if (own.penalty.ties())
      own.each([&](int64_t u, std::size_t o) {
        count_ = own.penalty.number_ties(u, w + o, mark + o, count_, &number_[o], &factor_[o]);
      });
    moving_.clear();
    for (const int e : cells)
      if (number_[at(e)] >= 0) moving_.push_back(e);
  }

  int count() const { return count_; }
  const std::vector<int>& moving() const { return moving_; }  // cells

  // The steps of these moving weights, `size` variables from number `base` on; false where the matrix
  // cannot be factorised. H has the entry column(e)[place[f]] for cells e and f; `damping` is added to its
  // unit diagonal.
  template <typename Column>
  bool solve(const GroupCells& own, std::span<const int> moving, int base, std::size_t size,
             Column column, const int* place, const double* straight, const double* ring,
             const double* r, const ScaledCholesky::Ridge& ridge, double damping, double* step) {
    matrix_.assign(size * size, 0.0), right_.assign(size, 0.0);
    for (const int e : moving) {
      const double* h = column(e);
      const std::size_t row = at(number_[at(e)] - base);
      double* to = matrix_.data() + row * size;
      const double f = factor_[at(e)];
      right_[row] += f * r[e];
      for (const int c : moving) to[number_[at(c)] - base] += f * factor_[at(c)] * h[place[c]];
      to[row] += straight[e];
    }
    if (own.penalty.bends()) add_rings(own, size, ring);
    const auto entry = [&](std::size_t a, std::size_t b) { return matrix_[b * size + a]; };
    if (!cholesky_.factorise(size, ridge, damping, entry)) return false;
    cholesky_.solve(right_.data());
    for (const int e : moving) step[e] = factor_[at(e)] * right_[at(number_[at(e)] - base)];
    return true;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void add_rings(const GroupCells& own, std::size_t size, const double* ring) {
    const std::size_t width = at(own.width);
    own.each([&](int64_t u, std::size_t from) {
      const std::size_t to = from + static_cast<std::size_t>(own.penalty.size(u)) * width;
      for (std::size_t e = from; e < to; ++e) {
        if (number_[e] < 0 || ring[e] == 0.0) continue;
        for (std::size_t f = from; f < to; ++f) {
          const bool together = own.penalty.joint() || (e - f) % width == 0;
          if (together && number_[f] >= 0)
            matrix_[at(number_[f]) * size + at(number_[e])] -= ring[e] * ring[f];
        }
      }
    });
  }

  int count_ = 0;
  std::vector<int> number_, moving_;  // the variable of each cell, or -1
  std::vector<double> factor_;        // how far each cell moves with its variable
  ScaledCholesky cholesky_;
  std::vector<double> matrix_, right_;
};

}  // namespace sparsvm
