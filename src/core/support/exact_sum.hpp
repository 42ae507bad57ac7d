// Sums whose error does not grow with the number of terms.
#pragma once

#include <cmath>

namespace sparsvm {

/// Neumaier's compensated sum: what each addition rounds off is added at the end.
class ExactSum {
 public:
  void add(double x) {
    const double next = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0.0, lost_ = 0.0;
};

}  // namespace sparsvm
