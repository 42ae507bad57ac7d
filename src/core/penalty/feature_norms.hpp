// The dual norm of every feature of |XᵀY|·scale + error, for certificates on sparse data.
//
// XᵀY may be larger than sparse data; one block of features is held at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "design/design.hpp"
#include "penalty/block_shape.hpp"

namespace sparsvm {

struct FeatureNorms {
  const Design* design;
  BlockShape shape;
  bool joint;                  // the outputs of a feature form one block
  const double* omega;         // d factors of the features, 0 if unpenalised
  const double* column_norms;  // d

  /// out_j (0 if unpenalised) for Y (n x outputs); error[o]·column_norms[j] is added to every entry.
  void find(const double* Y, int64_t outputs, double scale, const double* error,
            double* out) const {
    const int64_t d = design->d();
    const int64_t wide = std::min(d, std::max<int64_t>(1, block_entries / outputs));
    std::vector<double> G(static_cast<std::size_t>(wide * outputs));
    std::vector<int32_t> places(static_cast<std::size_t>(design->n()), 0);
    for (int64_t first = 0; first < d; first += wide) {
      const int64_t last = std::min(first + wide, d);
      design->transposed_range(first, last, Y, outputs, G.data(), places.data());
      for (int64_t j = first; j < last; ++j) {
        double* g = G.data() + (j - first) * outputs;
        if (!(omega[j] > 0.0) || column_norms[j] == 0.0) {
          out[j] = 0.0;
          continue;
        }
        for (int64_t o = 0; o < outputs; ++o)
          g[o] = (std::abs(g[o]) * scale + error[o] * column_norms[j]) / omega[j];
        out[j] = norm(g, outputs);
      }
    }
  }

 private:
  static constexpr int64_t block_entries = int64_t{1} << 16;

  double norm(const double* g, int64_t outputs) const {
    if (joint) return shape.dual_norm(g, outputs);
    double largest = 0.0;
    for (int64_t o = 0; o < outputs; ++o) largest = std::max(largest, shape.dual_norm(g + o, 1));
    return largest;
  }
};

}  // namespace sparsvm
