// The automatic choice of the proximal parameters.
#pragma once

#include <algorithm>
#include <cmath>

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

  /// With Newton steps, whose mean damping tells how far from quadratic a proximal step's dual is:
  /// a smaller parameter makes it smoother, and where steps are all but undamped, which solves large
  /// proximal steps as well as small ones, it can be larger.
  static double newton_factor(double damping, double sweeps, double steps) {
    if (damping > 0.1) return sweeps > 0.25 * steps ? 0.5 : 1.0;
    if (damping > 3e-3 || !(steps > 2.0 * sweeps)) return 1.0;
    return std::min(std::sqrt(steps / sweeps), 10.0);
  }

 private:
  double threshold_ = 2.0;
  int last_ = 0;
};

}  // namespace sparsvm
