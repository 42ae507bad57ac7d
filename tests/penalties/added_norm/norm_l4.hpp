// The l4 norm of a block, of which nothing is known but its values and its prox.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "penalty/block.hpp"
#include "prox/prox.hpp"

namespace sparsvm {

struct FourNorm : OnlyProx {
  static constexpr const char* kName = "l1/l4";

  static double join(double total, double z) { return total + z * z * z * z; }
  static double finish(double total) { return std::sqrt(std::sqrt(total)); }
  static double norm(const double* z, int64_t n) {
    double total = 0.0;
    for (int64_t r = 0; r < n; ++r) total = join(total, z[r]);
    return finish(total);
  }
  static double dual_term(double g) { return std::pow(std::abs(g), 4.0 / 3.0); }
  static double dual(double sum) { return std::pow(sum, 0.75); }

  static void prox(const double* v, int64_t n, double t, double* out, ProxScratch&) {
    shrink(v, [](int64_t) { return 1.0; }, n, t, out);
  }
  static void prox_weighted(const double* v, const double* omega, int64_t n, double t, double* out,
                            ProxScratch&) {
    shrink(v, [omega](int64_t r) { return omega[r]; }, n, t, out);
  }

 private:
  // u + c o⁴ u³ = v with c = t / |o∘u|³, which grows with c: the c is found by bisection.
  template <typename Weight>
  static void shrink(const double* v, Weight o, int64_t n, double t, double* out) {
    const auto root = [&](int64_t r, double c) {
      const double a = c * std::pow(o(r), 4.0), goal = std::abs(v[r]);
      double u = std::min(goal, a > 0.0 ? std::cbrt(goal / a) : goal);
      for (int pass = 0; pass < 100; ++pass) {
        const double move = (u + a * u * u * u - goal) / (1.0 + 3.0 * a * u * u);
        u -= move;
        if (std::abs(move) <= 1e-16 * u) break;
      }
      return u;
    };
    double sum = 0.0;
    for (int64_t r = 0; r < n; ++r)
      if (o(r) > 0.0) sum += dual_term(v[r] / o(r));
    const bool vanishes = !(dual(sum) > t);
    double low = -700.0, high = 700.0;
    for (int pass = 0; pass < 100 && !vanishes; ++pass) {
      const double middle = 0.5 * (low + high), c = std::exp(middle);
      double total = 0.0;
      for (int64_t r = 0; r < n; ++r) total = join(total, o(r) * root(r, c));
      (c * std::pow(total, 0.75) < t ? low : high) = middle;
    }
    for (int64_t r = 0; r < n; ++r) {
      const double u = vanishes ? 0.0 : root(r, std::exp(low));
      out[r] = o(r) == 0.0 ? v[r] : std::copysign(u, v[r]);
    }
  }
};

}  // namespace sparsvm
