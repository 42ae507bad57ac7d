// XᵀY from the entries of Y that are not zero, for fused passes in registers of four or eight doubles.
//
// A projection on a simplex leaves few classes: of a hundred two to ten. Class by class their entries
// are listed, without a branch on them, and the rows of their samples added up in registers.
#pragma once

#include <cstdint>

#include "support/cpu_dispatch.hpp"

namespace sparsvm::fused {

/// The rows of all samples and where their sums go.
struct Listed {
  static constexpr std::int64_t lanes = 24;
  std::int64_t length = 0;         // of a row: d features, a one for the column sums, and zeros
  const double* rows = nullptr;    // samples x length, null if entries are not listed
  double* sums = nullptr;          // K x length: Yᵀ(X, 1)
  std::int32_t* places = nullptr;  // room for the samples and sixteen more

  static std::int64_t length_for(std::int64_t features) { return (features + 8) / 8 * 8; }
};

/// Whether there is sum_listed() on this machine.
bool lists();

/// sums += Yᵀ·rows for the first 8·units samples; entry k of sample l of block b of Y is at
/// dual[(b * outputs + k) * lanes + l]. Y is added to `along` too if that is not null.
void sum_listed(const Listed& to, const double* dual, std::int64_t outputs, std::int64_t units,
                double* along);

#if defined(SPARSVM_FOUR)
void sum_in_four(const Listed& to, const double* dual, std::int64_t outputs, std::int64_t units,
                 double* along);
#endif
#if defined(SPARSVM_EIGHT)
void sum_in_eight(const Listed& to, const double* dual, std::int64_t outputs, std::int64_t units,
                  double* along);
#endif

/// sums += Yᵀ·rows of eight samples, where Y and their rows begin.
void add_unit(const Listed& to, const double* dual, const double* rows, std::int64_t outputs);

}  // namespace sparsvm::fused
