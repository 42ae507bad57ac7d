// Penalised coordinates that are unknowns of the interior point's Newton system in their own right.
//
// Where a group holds columns of very different sizes, the weight of the largest is far below the
// group's bound and all but free: D gives it a curvature 1e12 times that of the others. With a tiny
// alpha all weights are all but free. Eliminated like the rest, X D X' would have no digits of them
// left. Such coordinates are taken out of their blocks one by one, largest first: with
// D = diag(delta) + kappa v v' and coordinate o,
//
//     D = (1/rho) l l' + D_rest,     1/rho = delta_o + kappa v_o^2,     l_o = 1,
//     l_r = rho kappa v_o v_r,       D_rest = diag(delta_rest) + kappa rho delta_o v_r v_r'
//
// so that what is left of a block has the same form and nothing cancels. The unknown of o is z =
// l' dG / rho, its column in the system P = sum_c l_c x_c.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "penalty/cone_blocks.hpp"

namespace sparsvm {

class OpenCoordinates {
 public:
  struct Term {
    std::int64_t coordinate;
    double factor;
  };

  // Opens the coordinates with D |x|^2 above `free` times the limit, and in groups of very different
  // columns above the limit if that is less; column_size has |x| of each column. Those that were open
  // stay so.
  void choose(const ConeBlocks& blocks, const double* column_size, double limit, double free) {
    is_open_.resize(static_cast<std::size_t>(blocks.n_coordinates()), 0);
    bool any = false;
    for (std::int64_t b = 0; b < blocks.size(); ++b) {
      double least = ConeBlocks::kUnbounded;
      for (std::int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
        if (column_size[blocks.col[c]] > 0.0) least = std::min(least, column_size[blocks.col[c]]);
      for (std::int64_t c = blocks.begin(b); c < blocks.end(b); ++c) {
        const double size = column_size[blocks.col[c]];
        const double curvature = blocks.delta[c] * size * size;
        if (curvature > limit * (size > kContrast * least ? std::min(free, 1.0) : free))
          is_open_[c] = 1;
        any = any || is_open_[c];
      }
    }
    eliminate(blocks, column_size, any);
  }

  void clear() {
    is_open_.clear();
    eliminate(ConeBlocks(), nullptr, false);
  }

  int count() const { return static_cast<int>(rho_.size()); }
  bool is_open(std::int64_t c) const {
    return count() > 0 && c < static_cast<std::int64_t>(is_open_.size()) && is_open_[c];
  }
  // Weight of the rank-one part of what is left of a block.
  double kappa(const ConeBlocks& blocks, std::int64_t b) const {
    return count() > 0 ? kappa_[b] : blocks.kappa(b);
  }
  double rho(int o) const { return rho_[o]; }
  // The terms l_c of an open coordinate, its own first.
  const Term* begin(int o) const { return terms_.data() + first_[o]; }
  const Term* end(int o) const { return terms_.data() + first_[o + 1]; }

  // Completes dG with the open coordinates, given l' dG = rho z. (x' dY itself, which all but
  // cancels, has no digits that delta could multiply.)
  void complete(const double* z, double* dg) const {
    for (int o = count() - 1; o >= 0; --o) {
      double value = rho_[o] * z[o];
      for (const Term* t = begin(o) + 1; t < end(o); ++t) value -= t->factor * dg[t->coordinate];
      dg[begin(o)->coordinate] = value;
    }
  }

 private:
  std::vector<char> is_open_, done_;
  std::vector<double> kappa_, rho_;
  std::vector<Term> terms_;
  std::vector<std::size_t> first_;

  static constexpr double kContrast = 100.0;

  // Takes the open coordinates out of their blocks, largest first.
  void eliminate(const ConeBlocks& blocks, const double* column_size, bool any) {
    terms_.clear();
    first_.assign(1, 0);
    rho_.clear();
    if (!any) return;
    kappa_.resize(static_cast<std::size_t>(blocks.size()));
    done_.assign(is_open_.size(), 0);
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t b = 0; b < blocks.size(); ++b) {
      kappa_[b] = blocks.kappa(b);
      order.clear();
      for (std::int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
        if (is_open_[c]) order.emplace_back(-column_size[blocks.col[c]], c);
      std::sort(order.begin(), order.end());
      for (const auto& [size, c] : order) open(blocks, b, c);
    }
  }

  void open(const ConeBlocks& blocks, std::int64_t b, std::int64_t o) {
    const double along = kappa_[b] * blocks.vec[o];
    const double rho = 1.0 / (blocks.delta[o] + along * blocks.vec[o]);
    done_[o] = 1;
    terms_.push_back({o, 1.0});
    for (std::int64_t c = blocks.begin(b); c < blocks.end(b) && along != 0.0; ++c)
      if (!done_[c]) terms_.push_back({c, rho * along * blocks.vec[c]});
    kappa_[b] *= rho * blocks.delta[o];
    rho_.push_back(rho);
    first_.push_back(terms_.size());
  }
};

}  // namespace sparsvm
