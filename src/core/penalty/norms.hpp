// The list of group norms, and the choice of one at run time.
//
// A norm N is a struct of static functions in a file of its own, and a line in the list below: solvers
// call `with_norm` or `with_group_norm` once for a sweep or a block, and their loops are compiled for each norm.
// N must be monotone in |z|, with N(e_i) = 1, and its dual norm a function of a sum over coordinates.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "penalty/block.hpp"
#include "penalty/norm_l2.hpp"
#include "penalty/norm_linf.hpp"

namespace sparsvm {

// The norm of a single coordinate.
struct AbsoluteValue {
  static constexpr bool kSmooth = false, kDualOfSquares = false;

  static double join(double total, double z) { return total + z; }
  static double finish(double total) { return total; }
  static double dual_term(double g) { return std::abs(g); }
  static double dual(double sum) { return sum; }

  // radius |W| + quad/2 W²:  W = x1 - x2,  z1, z2 = radius +- (G + quad W).
  struct Cone {
    static constexpr bool kPairs = true, kCone = false, kSharedScaling = false;

    static void enter(ConeState& s, ConeBlock& b, const double* g, double mu) {
      const int64_t c = b.begin;
      s.z1[c] = b.shape.radius + g[0];
      s.z2[c] = b.shape.radius - g[0];
      // With curvature the slacks depend on W, so it enters at exactly zero.
      s.x1[c] = b.shape.quad > 0.0 ? mu / std::sqrt(s.z1[c] * s.z2[c]) : mu / s.z1[c];
      s.x2[c] = b.shape.quad > 0.0 ? s.x1[c] : mu / s.z2[c];
      s.w[c] = s.x1[c] - s.x2[c];
    }
    static void move_to(ConeState& s, ConeBlock& b, double mu, bool) { s.pairs_around(b, mu); }

    static void scale(ConeState& s, ConeBlock& b) {
      const double d1 = s.pair_scaling(b.begin);
      s.delta[b.begin] = d1 / (1.0 + b.shape.quad * d1);
    }
    static void rhs(ConeState& s, ConeBlock& b, double) {
      const int64_t c = b.begin;
      s.h[c] = (s.c1[c] / s.z1[c] - s.c2[c] / s.z2[c]) / (1.0 + b.shape.quad * s.pair_scaling(c));
    }
    static void recover(ConeState& s, ConeBlock& b, const double* dg, double) {
      const int64_t c = b.begin;
      s.pair_directions(c, dg[c] - s.shift[c] + b.shape.quad * s.dw[c]);
    }

    // The pairs carry W where they are alone, so that it never drifts from them.
    static double weight(const ConeState& s, int64_t c, double) { return s.x1[c] - s.x2[c]; }
    // g less the dual vector as the slacks have it.
    static double without_dual(const ConeState& s, const ConeBlock& b, int64_t c, double g) {
      return g - (0.5 * (s.z1[c] - s.z2[c]) - b.shape.quad * s.w[c]);
    }
    static void set_zeros(const ConeState& s, const ConeBlock& b, double scale, double* out) {
      s.zero_pairs(b, b.shape.radius, scale, out);
    }
  };
};

template <typename... Norms>
struct NormList {};

using GroupNorms = NormList<EuclideanNorm,  //
                            MaximumNorm>;

namespace detail {

template <int place, typename Use, typename First, typename... Rest>
decltype(auto) choose_norm(GroupNorm norm, Use& use, NormList<First, Rest...>) {
  if constexpr (sizeof...(Rest) > 0)
    if (norm != static_cast<GroupNorm>(place))
      return choose_norm<place + 1>(norm, use, NormList<Rest...>());
  return use(First());
}

}  // namespace detail

// The norm of that name; none if there is none.
inline GroupNorm norm_named(std::string_view name) {
  return []<typename... Norms>(std::string_view wanted, NormList<Norms...>) {
    int place = 0, found = 0;
    ((++place, found = wanted == Norms::kName ? place : found), ...);
    return static_cast<GroupNorm>(found);
  }(name, GroupNorms());
}

// use(the norm), for a penalty with groups.
template <typename Use>
decltype(auto) with_group_norm(GroupNorm norm, Use&& use) {
  return detail::choose_norm<1>(norm, use, GroupNorms());
}

// The same where a block may be a single coordinate.
template <typename Use>
decltype(auto) with_norm(GroupNorm norm, Use&& use) {
  if (norm == GroupNorm::none) return use(AbsoluteValue());
  return with_group_norm(norm, use);
}

// The dual norm of absolute ‖·‖₁ + radius N, where N allows for absolute values beside it.
inline double mixed_dual_norm(GroupNorm norm, const double* g, int64_t size, double absolute,
                              double radius) {
  return with_group_norm(norm, [&](auto kind) {
    if constexpr (requires { kind.mixed_dual(g, size, absolute, radius); })
      return kind.mixed_dual(g, size, absolute, radius);
    else
      return std::numeric_limits<double>::quiet_NaN();
  });
}

// N(z), each(visit) giving the |z_c|.
template <typename Norm, typename Each>
double norm_of(Each each) {
  double total = 0.0;
  each([&](double z) { total = Norm::join(total, z); });
  return Norm::finish(total);
}

}  // namespace sparsvm
