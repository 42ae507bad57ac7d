// Sums whose error does not grow with the number of terms, and random numbers that are the same on
// every platform.
#pragma once

#include <cmath>
#include <cstdint>

namespace sparsvm {

// Neumaier's compensated sum: what each addition rounds off is added at the end.
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

// Marsaglia's xorshift with 64 bits: the next state, which must not be zero at first.
inline uint64_t xorshift(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}
// A state to begin with that is not special: the golden ratio.
inline constexpr uint64_t kRandomState = 0x9E3779B97F4A7C15ULL;

class RandomBits {
 public:
  explicit RandomBits(uint64_t seed) : state_(2 * seed + 1) {
    for (int round = 0; round < 8; ++round) xorshift(state_);
  }
  // A number in 0 ... count − 1.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(static_cast<double>(xorshift(state_) >> 11) * 0x1p-53 *
                                static_cast<double>(count));
  }

 private:
  uint64_t state_;
};

}  // namespace sparsvm
