// Eight samples of a fused pass whose true classes had all the mass after the last one.
//
// Such samples are at rest: their rows of Ỹ are zero, and stay so while no class is to gain more than
// the true one. By how much it gains more, the slack, tells how far the weights may go before the
// scores need be looked at again.
#pragma once

#include <cfloat>
#include <cstdint>

#include "solvers/papers/fbpd_kernels/fused_kernels.hpp"
#include "solvers/papers/fbpd_kernels/fused_listed.hpp"

namespace sparsvm::fused {

/// Of eight samples the first `count` and their true classes.
struct Unit {
  const std::int32_t* label;
  int count;
  const Listed* listed;  // null if entries are not listed
  const double* rows;    // theirs if they are
};

template <typename P>
inline constexpr int turns = width / size<P>;

/// Where lane l has its true class.
SPARSVM_INLINE std::int64_t own_at(const Unit& unit, int l) {
  return unit.label[l] * std::int64_t{lanes} + l;
}

/// Scores into `moved`, their sum above the last threshold into `excess`.
template <typename P>
SPARSVM_INLINE void score_unit(const Pass& whole, P (&excess)[turns<P>][1]) {
  repeat<turns<P>>([&](auto turn) SPARSVM_INLINE_LAMBDA {
    constexpr int h = turn * size<P>;
    Pass a = whole;
    a.X += h, a.threshold += h, a.dual += h, a.moved += h;
    move_margins(a, h);
    excess[turn][0] = P{};
    for_each_tile<tile<P>>(a.outputs, [&]<int T>(std::int64_t k) SPARSVM_INLINE_LAMBDA {
      score_tile<P, T, 1>(a, k, excess[turn]);
    });
  });
}

/// slack[l] = the step of the true class less the largest of the others, from `moved`.
template <typename P>
SPARSVM_INLINE void find_slack(const Pass& a, const Unit& unit, double* slack) {
  double own[width];
  for (int l = 0; l < unit.count; ++l) {
    own[l] = a.moved[own_at(unit, l)];
    a.moved[own_at(unit, l)] = -DBL_MAX;
  }
  repeat<turns<P>>([&](auto turn) SPARSVM_INLINE_LAMBDA {
    constexpr int h = turn * size<P>;
    P top, v;
    load(top, a.moved + h);
    for (std::int64_t k = 1; k < a.outputs; ++k) {
      load(v, a.moved + k * lanes + h);
      keep_larger(top, v);
    }
    store(slack + h, top);
  });
  for (int l = 0; l < unit.count; ++l) {
    slack[l] = (own[l] - a.mass[l]) - slack[l];
    a.moved[own_at(unit, l)] = own[l];
  }
}

/// Whether all true classes have all the mass, but for rounding: then they get it.
SPARSVM_INLINE bool come_to_rest(const Pass& a, const Unit& unit) {
  for (int l = 0; l < unit.count; ++l) {
    if (a.share[l] != 1.0 || !(a.dual[own_at(unit, l)] > 0.0)) return false;
  }
  for (std::int64_t k = 0; k < a.outputs; ++k) {
    for (int l = 0; l < width; ++l) a.dual[k * lanes + l] = 0.0;
  }
  for (int l = 0; l < unit.count; ++l) a.dual[own_at(unit, l)] = a.mass[l];
  return true;
}

/// The slack of eight samples, of which only that of those at rest means something.
template <typename P>
SPARSVM_INLINE void look_at_unit(const Pass& whole, const Unit& unit, double* slack) {
  P excess[turns<P>][1];
  score_unit<P>(whole, excess);
  find_slack<P>(whole, unit, slack);
}

/// A step of eight samples. Whether they rest is looked at first if `asleep`, and then the slack is
/// left; if they do not, their share of XᵀỸ and 1ᵀỸ is added. Says whether they are at rest.
template <typename P>
SPARSVM_INLINE bool step_unit(const Pass& whole, const Unit& unit, bool asleep, double* slack) {
  P excess[turns<P>][1];
  score_unit<P>(whole, excess);
  if (asleep) {
    find_slack<P>(whole, unit, slack);
    bool stays = true;
    for (int l = 0; l < unit.count; ++l) stays &= slack[l] >= 0.0;
    if (stays) return true;
  }
  bool wrong[1] = {};
  repeat<turns<P>>([&](auto turn) SPARSVM_INLINE_LAMBDA {
    constexpr int h = turn * size<P>;
    Pass a = whole;
    a.mass += h, a.threshold += h, a.share += h, a.dual += h, a.moved += h;
    project_tile<P, 1>(a, excess[turn], wrong);
  });
  if (wrong[0]) project_again<P>(whole, 0);
  if (come_to_rest(whole, unit)) return true;
  double own[width];
  for (int l = 0; l < unit.count; ++l) {
    own[l] = whole.dual[own_at(unit, l)];
    whole.dual[own_at(unit, l)] = own[l] - whole.mass[l];
  }
  if (unit.listed) {
    add_unit(*unit.listed, whole.dual, unit.rows, whole.outputs);
  } else {
    add_block<P, 1>(whole);
  }
  for (int l = 0; l < unit.count; ++l) whole.dual[own_at(unit, l)] = own[l];
  return false;
}

}  // namespace sparsvm::fused
