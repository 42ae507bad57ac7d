// A small generator of random numbers, the same on every platform.
#pragma once

#include <cstdint>

namespace sparsvm {

using std::int64_t;

/// Marsaglia's xorshift with 64 bits.
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : state_(2 * seed + 1) {
    for (int round = 0; round < 8; ++round) next();
  }
  /// A number in 0 ... count − 1.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(static_cast<double>(next() >> 11) * 0x1p-53 *
                                static_cast<double>(count));
  }

 private:
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  std::uint64_t state_;
};

}  // namespace sparsvm
