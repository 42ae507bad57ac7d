// Batcher's odd-even merge sort as a fixed sequence of comparisons.
#pragma once

#include <array>
#include <utility>

namespace sparsvm {

/// Calls compare(a, b), a < b, for every comparison of the network: exchanging the entries a and b
/// wherever a should not come first sorts any `count` entries, without a branch on their values.
/// There are 3 comparisons for 3 entries, 31 for 10, 97 for 20.
template <typename Compare>
constexpr void for_each_comparison(int count, Compare compare) {
  for (int run = 1; run < count; run *= 2) {
    for (int gap = run; gap >= 1; gap /= 2) {
      for (int first = gap % run; first + gap < count; first += 2 * gap) {
        for (int a = first; a < first + gap && a + gap < count; ++a) {
          // Both within the same pair of runs that are being merged.
          if (a / (2 * run) == (a + gap) / (2 * run)) compare(a, a + gap);
        }
      }
    }
  }
}

/// The same comparisons as a table, for loops that are unrolled.
template <int count>
inline constexpr auto sorting_network = [] {
  constexpr int comparisons = [] {
    int total = 0;
    for_each_comparison(count, [&](int, int) { ++total; });
    return total;
  }();
  std::array<std::pair<int, int>, comparisons> table{};
  int e = 0;
  for_each_comparison(count, [&](int a, int b) { table[e++] = {a, b}; });
  return table;
}();

}  // namespace sparsvm
