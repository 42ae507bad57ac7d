// The list of group norms, and the choice of one at run time.
//
// A norm N is a struct of static functions in a file of its own, and a line in the list below: solvers
// call `with_norm` or `with_group_norm` once for a sweep or a block, and their loops are compiled for each norm.
// N must be monotone in |z|, with N(e_i) = 1, and its dual norm a function of a sum over coordinates.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "penalty/absolute_value.hpp"
#include "penalty/block.hpp"
#include "penalty/norm_l2.hpp"
#include "penalty/norm_linf.hpp"

namespace sparsvm {

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
