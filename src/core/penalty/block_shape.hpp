// The norm of one penalty block, and its dual.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sparsvm {

using std::int32_t;
using std::int64_t;

enum class BlockKind : std::uint8_t { absolute, maximum, euclidean, sparse };

struct BlockShape {
  BlockKind kind;
  double l1 = 1.0;    // radius of the absolute part
  double l2 = 1.0;    // radius of the Euclidean part
  double quad = 0.0;  // curvature of the absolute part (elastic net)

  /// A block of one coordinate is an absolute value whatever the norm.
  BlockShape for_size(int64_t size) const {
    if (size > 1 || kind == BlockKind::absolute) return *this;
    const double radius = kind == BlockKind::sparse      ? l1 + l2
                          : kind == BlockKind::euclidean ? l2
                                                         : 1.0;
    return {BlockKind::absolute, radius, 0.0, quad};
  }

  /// Is the dual norm of g greater than theta?
  bool exceeds(const double* g, int64_t size, double theta) const {
    const BlockShape s = for_size(size);
    double sum = 0.0;
    switch (s.kind) {
      case BlockKind::absolute: return !(std::fabs(g[0]) <= theta * s.l1);
      case BlockKind::maximum:
        for (int64_t c = 0; c < size; ++c) sum += std::fabs(g[c]);
        return !(sum <= theta);
      case BlockKind::euclidean:
        for (int64_t c = 0; c < size; ++c) sum += g[c] * g[c];
        return !(std::sqrt(sum) <= theta * s.l2);
      case BlockKind::sparse:
        for (int64_t c = 0; c < size; ++c) {
          const double a = std::max(std::fabs(g[c]) - theta * s.l1, 0.0);
          sum += a * a;
        }
        return !(std::sqrt(sum) <= theta * s.l2);
    }
    return true;
  }

  /// The dual norm of g can exceed theta only if the sum over its coordinates is at least this: of
  /// |g_c|, or of the squares of |g_c| (of what is left of it beyond theta * l1 if sparse).
  double least_sum(double theta) const {
    const bool linear = kind == BlockKind::absolute || kind == BlockKind::maximum;
    return linear ? theta * l1 : theta * l2 * theta * l2;
  }

  /// The dual norm of g by bisection on `exceeds`; accurate to 1e-12, used where a few blocks
  /// matter.
  double dual_norm(const double* g, int64_t size) const {
    const BlockShape s = for_size(size);
    if (s.kind == BlockKind::euclidean) {
      double sum = 0.0;
      for (int64_t c = 0; c < size; ++c) sum += g[c] * g[c];
      return std::sqrt(sum) / s.l2;
    }
    double hi = 0.0;
    for (int64_t c = 0; c < size; ++c) hi += std::fabs(g[c]);
    if (s.kind == BlockKind::absolute) return hi / s.l1;
    if (s.kind == BlockKind::maximum) return hi;
    hi /= std::max(s.l1, s.l2);
    double lo = 0.0;
    for (int it = 0; it < 60 && hi - lo > 1e-12 * hi; ++it) {
      const double mid = 0.5 * (lo + hi);
      (exceeds(g, size, mid) ? lo : hi) = mid;
    }
    return hi;
  }

  /// An upper bound of the dual norm that takes no search: the norm itself unless sparse, where
  /// l1 |w|_1 + l2 |w|_2 is at least l1 |w|_1 and (l1 + l2) |w|_2.
  double norm_bound(const double* g, int64_t size) const {
    if (kind != BlockKind::sparse) return dual_norm(g, size);
    double largest = 0.0, squares = 0.0;
    for (int64_t c = 0; c < size; ++c) {
      largest = std::max(largest, std::fabs(g[c]));
      squares += g[c] * g[c];
    }
    const double euclidean = std::sqrt(squares) / (l1 + l2);
    // Written so that NaN stays.
    return l1 * euclidean > largest ? largest / l1 : euclidean;
  }
};

}  // namespace sparsvm
