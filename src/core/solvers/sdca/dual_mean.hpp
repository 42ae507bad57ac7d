// The mean of the duals at the ends of proximal steps.
//
// With A = aC − G and W = W(A) the move of the centre, a(W − C), is what keeps −G out of the
// subdifferential of the penalty at W, however well the step is solved; so is (b − c)/σ_b what the
// sums of the duals lack of zero. Over T steps both moves add up to the way from the first to the
// last centre: the mean of the duals violates the constraints of the dual by a T-th of that way,
// whereas the centres of single steps go to and fro. The dual is concave, its value loses nothing.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "support/mmap_vector.hpp"

namespace sparsvm {

class SdcaDualMean {
 public:
  // Begin anew with the next step, for n rows of K.
  void begin(int64_t n, int64_t K) {
    K_ = K;
    steps_ = 0;
    sum_ = MmapVector<double>();
    sum_.resize(static_cast<std::size_t>(n * K));
    counted_.assign(static_cast<std::size_t>(n), 0);
  }

  // The row i of Y is about to change: count it for the steps since it did last.
  void leave(int64_t i, const double* row) {
    const int32_t steps = std::exchange(counted_[i], steps_);
    if (steps == steps_) return;
    const double times = static_cast<double>(steps_ - steps);
    double* sum = sum_.data() + i * K_;
    for (int64_t k = 0; k < K_; ++k) sum[k] += times * row[k];
  }

  // A proximal step ends with the present duals.
  void step() { ++steps_; }
  int64_t steps() const { return steps_; }
  // Whether steps are counted.
  bool running() const { return !sum_.empty(); }

  // The mean, of at least one step; nothing is held any more.
  MmapVector<double> take(const MmapVector<double>& dual) {
    for (int64_t i = 0; i < std::ssize(counted_); ++i) leave(i, dual.data() + i * K_);
    const double share = 1.0 / static_cast<double>(steps_);
    for (double& value : sum_) value *= share;
    steps_ = 0;
    return std::exchange(sum_, MmapVector<double>());
  }

 private:
  int64_t K_ = 0;
  int32_t steps_ = 0;
  MmapVector<double> sum_;
  std::vector<int32_t> counted_;
};

}  // namespace sparsvm
