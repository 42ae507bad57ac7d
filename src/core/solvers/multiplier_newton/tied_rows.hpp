// The tied samples in the columns of the Newton equation, where the data are sparse.
#pragma once

#include <cstdint>
#include <vector>

#include "design/design.hpp"

namespace sparsvm {

/// Row i has the entries value[e] in column[e], e = first[i] ... first[i + 1] - 1.
struct TiedRows {
  std::vector<int64_t> first;
  std::vector<int32_t> column;
  std::vector<double> value;

  /// Read the listed samples of a sparse design in the listed features, each times its scale; with
  /// `intercept` a column of ones follows.
  void read(const Design& design, const std::vector<int64_t>& samples,
            const std::vector<int32_t>& features, const std::vector<double>& scale,
            bool intercept) {
    const StoredRows stored = design.stored_rows();
    place_.resize(static_cast<std::size_t>(design.d()), -1);
    for (std::size_t c = 0; c < features.size(); ++c) place_[features[c]] = static_cast<int32_t>(c);
    first.assign(1, 0);
    column.clear();
    value.clear();
    for (const int64_t i : samples) {
      const int64_t r = stored.rows(i);
      for (int64_t e = stored.indptr[r]; e < stored.indptr[r + 1]; ++e) {
        const int32_t c = place_[stored.indices[e]];
        if (c < 0) continue;
        const double x =
            stored.singles ? static_cast<double>(stored.singles[e]) : stored.doubles[e];
        column.push_back(c);
        value.push_back(scale[c] * x);
      }
      if (intercept) {
        column.push_back(static_cast<int32_t>(features.size()));
        value.push_back(scale.back());
      }
      first.push_back(static_cast<int64_t>(column.size()));
    }
    for (const int32_t j : features) place_[j] = -1;
  }

 private:
  std::vector<int32_t> place_;  // column of each of the d features, or -1
};

}  // namespace sparsvm
