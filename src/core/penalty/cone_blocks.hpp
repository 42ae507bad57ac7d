// The penalty side of the interior point: one cone block per penalty group in the working set.
//
// The interior point sees the penalty only through blocks of coordinates W_b (already multiplied
// by their weights) and the dual vector G_b = (X'Y~)_b. Optimality of a block is  -G_b in
// dphi(W_b). Every Newton step of a block has the form
//
//     dW = h - D (dG),      D = diag(delta) + kappa * vec vec',
//
// so the rest of the solver needs no knowledge of the penalty. The variables are in block.hpp, and what
// depends on the norm of a block is the Cone of that norm (norm_*.hpp; MixedCone together with absolute
// values).
//
// `shift` is the dual residual of a coordinate: the block works with G + shift, and a full step
// makes it zero. It is non-zero where a linear term of the objective starts outside the dual ball,
// and where curvature ties the dual slack to W while W and G take steps of different lengths.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "penalty/block.hpp"
#include "penalty/penalty.hpp"

namespace sparsvm {

class ConeBlocks : private ConeState {
 public:
  using ConeState::delta, ConeState::dw, ConeState::h, ConeState::kUnbounded, ConeState::shift,
      ConeState::vec, ConeState::w;
  // Setting. Shifts below this are rounding of a dual ball of radius one.
  static constexpr double kNoShift = 1e-15;

  int64_t size() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t n_coordinates() const { return static_cast<int64_t>(col.size()); }
  int64_t begin(int64_t b) const { return blocks_[b].begin; }
  int64_t end(int64_t b) const { return blocks_[b].end; }
  double kappa(int64_t b) const { return blocks_[b].kappa; }
  const BlockShape& shape(int64_t b) const { return blocks_[b].shape; }

  // Per coordinate: column of the gathered features, and class.
  std::vector<int32_t> col, cls;

  // Makes room for blocks up to this many coordinates; they must be added before anything else.
  void grow(int64_t coordinates) {
    for (auto* a : arrays()) a->resize(static_cast<std::size_t>(coordinates), 0.0);
  }

  // Adds a block at its own central point for the dual vector g (strictly inside the dual ball
  // after adding `shift`), with complementarity mu; or, given weights, near those. `known`: they
  // are those of a solution nearby, also where they are zero.
  void add(const BlockShape& general, int64_t count, const int32_t* cols, const int32_t* classes,
           const double* g, const double* shifts, double mu, const double* weights,
           bool known = true);

  // Takes the marked blocks out; the others move up.
  void remove(const std::vector<char>& marked);

  // <x, z> over all blocks, after hypothetical steps, and the barrier degree.
  double complementarity(double ap = 0.0, double ad = 0.0) const;
  double degree() const;

  void compute_scaling();

  // What the right-hand side of complementarity gets besides the target: nothing, or what the
  // directions now stored (the affine ones) leave in second order.
  void clear_terms();
  void second_order_terms();

  // Prepares h for complementarity target tau and the terms now set.
  void compute_rhs(double tau);

  // All block directions from dG on the coordinates (dg, one value per coordinate).
  void recover(const double* dg);

  // Which blocks the directions now stored (the affine ones) take to a weight other than zero: those
  // whose dual slack falls by a larger part of itself than their weight.
  void keeping_weight(std::vector<char>& out) const;

  double max_primal_step() const;
  double max_dual_step() const;

  void step(double ap, double ad);

  // Penalty value of the weights `values` (one per coordinate).
  double value(const std::vector<double>& values) const;

  // dg -= the dual vector as the slacks have it; what is left is rounding.
  void subtract_held(double* dg) const;

  // The conjugate of the blocks with curvature at the dual vector g, one value per coordinate. It
  // is computed from g and not from the slacks, which follow g only up to their accumulated
  // rounding.
  double conjugate(const double* g) const;

  // What the shifts may be worth at the current weights, for the blocks where G itself must lie in
  // the dual ball (where the penalty has curvature any G will do); unbounded while they are not
  // small.
  double shift_value(double limit) const;

  // Weights with the coordinates that complementarity says are zero set to exactly zero: those
  // whose effect on the scores (|W| times the column's scale) is below their dual slack.
  void sparse_weights(const double* column_scale, std::vector<double>& out) const;

 private:
  std::vector<ConeBlock> blocks_;
};

}  // namespace sparsvm
