// Blocks of coordinates under one norm, as the solvers hand them to it. The norms are in norm_*.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace sparsvm {

// A place in the list of norms (norms.hpp). Without a norm of groups, blocks are single coordinates.
enum class GroupNorm : uint8_t { none };

// The penalty of one block, absolute ‖z‖₁ + radius N(z) + quad/2 ‖z‖², and its dual norm. Blocks of
// single coordinates have their absolute value for N, and are the only ones with a square.
struct BlockShape {
  GroupNorm norm = GroupNorm::none;
  double absolute = 0.0, radius = 1.0, quad = 0.0;

  // A block of one coordinate is an absolute value whatever the norm.
  BlockShape for_size(int64_t size) const {
    return size > 1 ? *this : BlockShape{GroupNorm::none, 0.0, absolute + radius, quad};
  }
  // Single coordinates, without a norm of groups.
  bool single() const { return norm == GroupNorm::none; }
  // Zeros inside a block may be left out of it only where its norm allows them one by one.
  bool separable() const { return absolute > 0.0; }
  // Whether N is smooth away from zero; whether the dual norm is the root of a sum of squares; whether the
  // diagonal of a block's Newton system is constant.
  bool smooth() const;
  bool sums_squares() const;
  bool shared_scaling() const;

  // Is the dual norm of g greater than theta?
  bool exceeds(const double* g, int64_t size, double theta) const;
  // The dual norm of g can exceed theta only if the sum of the dual's terms (of what is left of |g_c|
  // beyond theta * absolute) is at least this.
  double least_sum(double theta) const;
  // The dual norm of g.
  double dual_norm(const double* g, int64_t size) const;
  // That of N alone.
  double plain_dual_norm(const double* g, int64_t size) const;
  // An upper bound of the dual norm that takes no search: the norm itself without absolute values.
  double norm_bound(const double* g, int64_t size) const;
};

// One block in coordinate descent: the coordinates w[place[r]] with weights o[r]; the norm is that of
// their products.
struct GroupBlock {
  enum Mark : unsigned char { fixed, loose, tied };
  const int32_t* place;
  const double* o;
  std::size_t m;
};

// What a proximal step found; every vector has one entry per coordinate.
struct ManifoldPoint {
  enum : unsigned char { inactive, single, tied };
  struct Curved {  // δ (I - ẑẑᵀ) over the active coordinates of a block
    std::vector<int64_t> member;
    std::vector<double> direction;
    double delta;
  };
  struct Tie {  // coordinates that move together, with their signs
    std::vector<int64_t> member;
    std::vector<double> sign;
  };
  std::vector<double> plus, off, pull, delta;
  std::vector<unsigned char> state;
  std::vector<Curved> curved;
  std::vector<Tie> ties;

  void reset(std::size_t count) {
    for (auto* values : {&plus, &off, &pull, &delta}) values->assign(count, 0.0);
    state.assign(count, inactive);
    curved.clear();
    ties.clear();
  }
};

// One feature in dual coordinate ascent: its row of V, and what is known about it.
struct SdcaRow {
  const double* v;
  // size: the sum of the dual norm's terms, the largest |v| for entries; cut: where rows are clipped.
  double gain, level, size, cut;
};

// What the prox makes of such a row: a multiple of it, or its entries clipped at a level. For anything
// else there is no kernel, and the prox itself is called.
enum class RowForm { scaled, clipped, other };

// -----------------------------------------------------------------
// The variables of the interior point's blocks, and the two cones that norms are written in: positive pairs
// (x, z) with x z -> mu, and the second-order cone with (t, W) and (radius, v) in it, under Nesterov-Todd
// scaling. Which of them a block has, and how they depend on W and G, is its norm's.

struct ConeBlock {
  BlockShape shape;
  int64_t begin = 0, end = 0;
  bool pairs = false, cone = false;
  double t = 0.0, dt = 0.0, ht = 0.0, kappa = 0.0, eta2 = 0.0, w0 = 0.0;
  // Scaled directions, scaled point and terms of a cone: their radial parts.
  double dx0 = 0.0, ds0 = 0.0, l0 = 0.0, term0 = 0.0;
};

struct ConeState {
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  // Determinants below this part of the square they are a difference of are rounding.
  static constexpr double kLeastDeterminant = 1e-32;

  // Per coordinate: weight, the Newton data, and the dual residual.
  std::vector<double> w, delta, vec, h, dw, shift;
  // v: vector part of the cone dual; x, z: the positive pairs; c1, c2: their complementarity
  // targets; a1, a2: right-hand sides of the pair and cone parts; w1: vector part of the NT scaling
  // point.
  std::vector<double> v, dv, x1, x2, z1, z2, dx1, dx2, dz1, dz2, c1, c2, a1, a2, w1;
  // Terms of the pairs and the vector parts of those of the cones; scaled point and directions.
  std::vector<double> term1, term2, term, l, sdx, sds;

  std::array<std::vector<double>*, 27> arrays() {
    return {&w,   &delta, &vec, &h,  &dw, &shift, &v,  &dv, &x1,  &x2,  &z1,    &z2,    &dx1, &dx2,
            &dz1, &dz2,   &c1,  &c2, &a1, &a2,    &w1, &l,  &sdx, &sds, &term1, &term2, &term};
  }

  // -------------------------------------------------------------- pairs

  double pair_scaling(int64_t c) const { return x1[c] / z1[c] + x2[c] / z2[c]; }
  void pair_directions(int64_t c, double dz) {
    dz1[c] = dz;
    dz2[c] = -dz;
    dx1[c] = (c1[c] - x1[c] * dz) / z1[c];
    dx2[c] = (c2[c] + x2[c] * dz) / z2[c];
  }
  // The primal slacks of W = x1 - x2, at least the mu / dual slack of their own.
  void pairs_around(const ConeBlock& b, double mu) {
    for (int64_t c = b.begin; c < b.end; ++c) {
      x1[c] = std::max(mu / z1[c], mu / z2[c] + w[c]);
      x2[c] = x1[c] - w[c];
    }
  }
  // Zero where complementarity says that W = x1 - x2 is.
  void zero_pairs(const ConeBlock& b, double radius, double scale, double* out) const {
    for (int64_t c = b.begin; c < b.end; ++c)
      if (std::max(x1[c], x2[c]) * scale < std::min(z1[c], z2[c]) / radius) out[c] = 0.0;
  }

  // -------------------------------------------------------------- second-order cones

  double dot(const ConeBlock& b, const std::vector<double>& one,
             const std::vector<double>& other) const {
    double sum = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) sum += one[c] * other[c];
    return sum;
  }
  // The central point for the dual vector v.
  void enter_cone(ConeBlock& b, double mu) {
    const double norm = std::sqrt(dot(b, v, v)), radius = b.shape.radius;
    const double f = mu / ((radius - norm) * (radius + norm));
    b.t = f * radius;
    for (int64_t c = b.begin; c < b.end; ++c) w[c] = -f * v[c];
  }
  // The radius t of given weights where its own barrier has the slope that the norm costs. (Read off the dual
  // slacks, t would come out as three times itself.)
  void cone_around(ConeBlock& b, double mu, bool known) {
    const double half = 0.5 * mu / b.shape.radius;
    b.t = known ? half + std::sqrt(half * half + dot(b, w, w))
                : mu / (b.shape.radius - std::sqrt(dot(b, v, v)));
  }
  void zero_cone(const ConeBlock& b, double scale, double* out) const {
    if (b.t * scale < 1.0 - std::sqrt(dot(b, v, v)) / b.shape.radius)
      std::fill(out + b.begin, out + b.end, 0.0);
  }
  void scale_cone(ConeBlock& b);
  void rhs_cone(ConeBlock& b, double tau);
  // dt of the cone from dw. Reading it off dv instead, dt = ht - 2 eta2 w0 (w1 . dv), multiplies
  // the rounding of dv by |w1|^2, which grows like 1/mu, and throws (t, W) out of the cone.
  double cone_radius_direction(const ConeBlock& b) const;
  // The directions where point and dual are the same l: T^-1 dx and T ds.
  void scale_directions(ConeBlock& b);
  // Largest a with (t, w) + a (dt, dw) in the cone.
  static double cone_step(double t, double dt, const double* w, const double* dw, int64_t size);
};

// -----------------------------------------------------------------

// The base of a norm of which no more is known than its values, its dual norm and its prox. The proximal methods
// and `sdca` take it; the other solvers, told by PenaltyTerms.only_prox, refuse it before they come here.
struct OnlyProx {
  static constexpr bool kSmooth = false, kDualOfSquares = false;

  [[noreturn]] static void refuse() {
    throw std::logic_error("This norm has a prox and nothing else.");
  }
  template <typename Each>
  static double change(double before, double after, Each) {
    return after - before;
  }
  template <typename... Any>
  static void minimise(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static void tangent(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static void curvature(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static void kinks(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static bool cut(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static void add_piece(Any&&...) {
    refuse();
  }
  struct Rows {
    static constexpr RowForm kForm = RowForm::other;
    static bool in_use(double, double) { refuse(); }
    static double factor(double, double) { refuse(); }
    static void slope(const SdcaRow&, int64_t, double*) { refuse(); }
    static double mean_slope(const SdcaRow&, int64_t) { refuse(); }
    static double squares(const SdcaRow&, int64_t) { refuse(); }
  };
  struct Cone {
    static constexpr bool kPairs = false, kCone = false, kSharedScaling = false;
    template <typename... Any>
    static void enter(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void move_to(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void scale(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void rhs(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void recover(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static double weight(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static double without_dual(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void set_zeros(Any&&...) {
      refuse();
    }
  };
};

}  // namespace sparsvm
