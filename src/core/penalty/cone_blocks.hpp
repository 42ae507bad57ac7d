// The penalty side of the interior point: one cone block per penalty group in the working set.
//
// The interior point sees the penalty only through blocks of coordinates W_b (already multiplied
// by their weights) and the dual vector G_b = (X'Y~)_b. Optimality of a block is  -G_b in
// dphi(W_b). Every Newton step of a block has the form
//
//     dW = h - D (dG),      D = diag(delta) + kappa * vec vec',
//
// so the rest of the solver needs no knowledge of the penalty. The kinds:
//
//   absolute   radius*|W| + quad/2 W^2    W = x1 - x2,  z1, z2 = radius +- (G + quad W)
//   maximum    max_j |W_j|                x1, x2 = t -+ W,  z1 - z2 = -G,  sum(z1 + z2) = 1
//   euclidean  radius*||W||_2             (t, W) and (radius, v = G) in the second-order cone
//   sparse     l1*||W||_1 + l2*||W||_2    both: G = u + v,  z1, z2 = l1 +- u,  ||v|| <= l2
//
// x and z are positive pairs with x*z -> mu; the second-order cone uses Nesterov-Todd scaling.
//
// `shift` is the dual residual of a coordinate: the block works with G + shift, and a full step
// makes it zero. It is non-zero where a linear tilt of the objective starts outside the dual ball,
// and where curvature ties the dual slack to W while W and G take steps of different lengths.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "penalty/penalty.hpp"

namespace sparsvm {

class ConeBlocks {
 public:
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  // Settings. Newton's and bisection steps to the central point of a maximum, which take a handful, and
  // their relative accuracy: a start needs little.
  static constexpr int kMostNewton = 50, kMostBisections = 100;
  static constexpr double kNewtonEnd = 1e-14, kBisectionEnd = 1e-3;
  // Shifts below this are rounding of a dual ball of radius one; determinants below this part of the
  // square they are a difference of are rounding too.
  static constexpr double kNoShift = 1e-15, kLeastDeterminant = 1e-32;

  int64_t size() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t n_coordinates() const { return static_cast<int64_t>(col.size()); }
  int64_t begin(int64_t b) const { return blocks_[b].begin; }
  int64_t end(int64_t b) const { return blocks_[b].end; }
  double kappa(int64_t b) const { return blocks_[b].kappa; }
  const BlockShape& shape(int64_t b) const { return blocks_[b].shape; }

  // Per coordinate: column of the gathered features, class, weight, and the Newton data.
  std::vector<int32_t> col, cls;
  std::vector<double> w, delta, vec, h, dw, shift;

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
  // Adds what would bring the products after hypothetical steps into [low, high].
  void add_centring_terms(double ap, double ad, double low, double high);
  static double centring_term(double product, double low, double high) {
    // Pulling down what is far above would take all of the direction.
    return product < low ? low - product : product > high ? std::max(high - product, -high) : 0.0;
  }

  // Keeps the directions; takes the primal or the dual ones back.
  void save_directions();
  void restore_directions(bool primal, bool dual);

  // Prepares h for complementarity target tau and the terms now set.
  void compute_rhs(double tau);

  // All block directions from dG on the coordinates (dg, one value per coordinate).
  void recover(const double* dg);

  // Which blocks the directions now stored (the affine ones) take to a weight other than zero: those
  // whose dual slack falls by a larger part of itself than their weight.
  void keeping_weight(std::vector<char>& out) const;

  // values -= D dg on the first coordinates, where they are not zero.
  void add_response(const double* dg, int64_t known, std::vector<double>& values) const;

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
  void sparse_weights(const double* column_scale, double threshold, std::vector<double>& out) const;

 private:
  struct Block {
    BlockShape shape;
    int64_t begin = 0, end = 0;
    double t = 0.0, dt = 0.0, ht = 0.0, kappa = 0.0, eta2 = 0.0, w0 = 0.0;
    // Scaled directions, scaled point and terms of a cone: their radial parts.
    double dx0 = 0.0, ds0 = 0.0, l0 = 0.0, term0 = 0.0, saved_dt = 0.0;
    bool has_pairs() const { return shape.kind != BlockKind::euclidean; }
    bool has_cone() const {
      return shape.kind == BlockKind::euclidean || shape.kind == BlockKind::sparse;
    }
  };
  std::vector<Block> blocks_;
  // v: vector part of the cone dual; x, z: the positive pairs; c1, c2: their complementarity
  // targets; a1, a2: right-hand sides of the pair and cone parts; w1: vector part of the NT scaling
  // point.
  std::vector<double> v_, dv_, x1_, x2_, z1_, z2_, dx1_, dx2_, dz1_, dz2_, c1_, c2_, a1_, a2_, w1_;
  // Terms of the pairs and the vector parts of those of the cones; scaled point and directions.
  std::vector<double> term1_, term2_, term_, l_, sdx_, sds_;
  struct {
    std::vector<double> w, x1, x2, v, z1, z2;
  } saved_;

  double pair_scaling(int64_t c) const { return x1_[c] / z1_[c] + x2_[c] / z2_[c]; }
  void pair_directions(int64_t c, double dz);
  // Of the two slacks t - W and t + W at most one is small. The dual of the large one comes from
  // its own complementarity, that of the small one from dz1 - dz2 = -dG: the other way round the
  // small slack's rounding error is divided by itself.
  void maximum_directions(const Block& b, int64_t c, double dg);
  double dot_w1(const Block& b, const std::vector<double>& a) const {
    double s = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) s += w1_[c] * a[c];
    return s;
  }
  // dt of the cone from dw. Reading it off dv instead, dt = ht - 2 eta2 w0 (w1 . dv), multiplies
  // the rounding of dv by |w1|^2, which grows like 1/mu, and throws (t, W) out of the cone.
  double cone_radius_direction(const Block& b) const;
  std::array<std::vector<double>*, 27> arrays() {
    return {&w,   &delta, &vec, &h,    &dw,   &shift, &v_,     &dv_,    &x1_,
            &x2_, &z1_,   &z2_, &dx1_, &dx2_, &dz1_,  &dz2_,   &c1_,    &c2_,
            &a1_, &a2_,   &w1_, &l_,   &sdx_, &sds_,  &term1_, &term2_, &term_};
  }
  static void zero(const Block& b, std::vector<double>& out) {
    for (int64_t c = b.begin; c < b.end; ++c) out[c] = 0.0;
  }

  void enter(Block& b, const double* g, double mu);
  void enter_maximum(Block& b, const double* g, double mu);
  void enter_sparse(Block& b, const double* g, double mu);
  void move_to(Block& b, const double* weights, double mu, bool known);
  double central_maximum(const Block& b, double mu) const;
  void scale_maximum(Block& b);
  void scale_cone(Block& b);
  void scale_sparse(Block& b);
  void rhs_maximum(Block& b);
  void rhs_cone(Block& b, double tau);
  void scale_directions(Block& b);
  void add_cone_centring(Block& b, double ap, double ad, double low, double high);
  void rhs_sparse(Block& b);
  void split_direction(Block& b, const double* dg);
  static double cone_step(double t, double dt, const double* w, const double* dw, int64_t size);
};

}  // namespace sparsvm
