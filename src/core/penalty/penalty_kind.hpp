// The convex penalties by name.
#pragma once

#include <stdexcept>
#include <string>

namespace sparsvm {

enum class PenaltyKind : int {
  l1 = 0,
  l2 = 1,
  elasticnet = 2,
  group_l2 = 3,
  group_linf = 4,
  sparse_group = 5
};

inline PenaltyKind penalty_kind(const std::string& name) {
  const char* names[] = {"l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group"};
  for (int i = 0; i < 6; ++i) {
    if (name == names[i]) return static_cast<PenaltyKind>(i);
  }
  throw std::invalid_argument(
      "The penalty kind must be one of l1, l2, elasticnet, l1/l2, l1/linf "
      "and sparse_group, but is '" +
      name + "'.");
}

}  // namespace sparsvm
