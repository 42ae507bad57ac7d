// For code that is written once and compiled for several sizes of registers: a file that includes this
// has said for which machines by SPARSVM_TARGET, and includes rows_of_four.hpp or rows_of_eight.hpp before
// what is written in their terms.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "support/cpu_dispatch.hpp"

// Everything stays in registers only if nothing of it is passed to a function that is called.
#define SPARSVM_TARGET_INLINE inline SPARSVM_TARGET __attribute__((always_inline))
#define SPARSVM_TARGET_LAMBDA SPARSVM_TARGET __attribute__((always_inline))

namespace sparsvm::registers {

namespace {

/// use(0), ..., use(N − 1) written out.
template <int N, typename Use>
SPARSVM_TARGET_INLINE void repeat(Use use) {
  [&]<int... i>(std::integer_sequence<int, i...>) SPARSVM_TARGET_LAMBDA {
    (use(std::integral_constant<int, i>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}

constexpr int most_classes = 128;  // of a row that is held in registers, or nearly

constexpr auto make_shares() {
  std::array<double, most_classes + 1> shares{};
  for (std::size_t count = 1; count < shares.size(); ++count) {
    shares[count] = 1.0 / static_cast<double>(count);
  }
  return shares;
}

constexpr auto shares = make_shares();  // one over a number of entries

constexpr double below_all = -1e300;  // what lanes without a class have

}  // namespace

}  // namespace sparsvm::registers
