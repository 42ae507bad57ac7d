// The derivative of W(V) of sdca_features.hpp, for the shapes whose rows are easily differentiated.
#pragma once

#include <cmath>
#include <cstdint>

#include "solvers/sdca/sdca_map.hpp"

namespace sparsvm {

/// One feature: its row of V, and what is known about it.
struct SdcaRow {
  const double* v;
  double gain, level, size;  // size: the squares of v for rows_l2, the largest |v| for entries
};

inline bool sdca_differentiable(SdcaMap map) {
  return map == SdcaMap::rows_l2 || map == SdcaMap::entries;
}

/// Whether W is not zero there.
inline bool sdca_in_use(SdcaMap map, const SdcaRow& row) {
  return row.size > (map == SdcaMap::rows_l2 ? row.level * row.level : row.level);
}

/// u <- W'(V) u for a feature in use.
inline void sdca_slope(SdcaMap map, const SdcaRow& row, int64_t K, double* u) {
  if (map == SdcaMap::entries) {
    for (int64_t k = 0; k < K; ++k) u[k] = std::abs(row.v[k]) > row.level ? row.gain * u[k] : 0.0;
    return;
  }
  // W = γ(1 − ω/‖v‖)v.
  const double part = row.level / std::sqrt(row.size);
  double along = 0.0;
  for (int64_t k = 0; k < K; ++k) along += row.v[k] * u[k];
  along *= part / row.size;
  for (int64_t k = 0; k < K; ++k) u[k] = row.gain * ((1.0 - part) * u[k] + along * row.v[k]);
}

/// The mean of the diagonal of W'(V), or a bound of it.
inline double sdca_mean_slope(SdcaMap map, const SdcaRow& row, int64_t K) {
  if (map == SdcaMap::entries) return row.gain;
  const double part = row.level / std::sqrt(row.size);
  return row.gain * (1.0 - part + part / static_cast<double>(K));
}

/// Φ(V), whose gradient is W.
inline double sdca_potential(SdcaMap map, const SdcaRow& row, int64_t K) {
  if (!sdca_in_use(map, row)) return 0.0;
  double squares = 0.0;
  if (map == SdcaMap::rows_l2) {
    const double over = std::sqrt(row.size) - row.level;
    squares = over * over;
  } else {
    for (int64_t k = 0; k < K; ++k) {
      const double over = soft(row.v[k], row.level);
      squares += over * over;
    }
  }
  return 0.5 * row.gain * squares;
}

}  // namespace sparsvm
