// The automatic choice of the proximal parameters.
#pragma once

#include <algorithm>

namespace sparsvm {

/// Doubles or halves a proximal parameter where sweeps and proximal steps are unequally far from
/// done. Every change of direction makes the next one harder: the estimates are noisy, and every
/// change costs some sweeps.
class SdcaBalance {
 public:
  double factor(double sweeps, double steps) {
    const int direction = sweeps > threshold_ * steps ? -1 : steps > threshold_ * sweeps ? 1 : 0;
    if (direction == 0) return 1.0;
    if (direction == -last_) threshold_ = std::min(1.5 * threshold_, 16.0);
    last_ = direction;
    return direction > 0 ? 2.0 : 0.5;
  }

 private:
  double threshold_ = 2.0;
  int last_ = 0;
};

}  // namespace sparsvm
