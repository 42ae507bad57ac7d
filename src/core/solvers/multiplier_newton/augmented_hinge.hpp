// The hinge of all samples, smoothed by a proximal term around given multipliers.
//
//   e_i(s) = max { <Y, u> - ‖Y - Ȳ_i‖²/(2 c_i) : Y in λ_i·simplex },   u_k = s_k + r_ik - s_{y_i},
//
// has the gradient Y_i - λ_i e_{y_i} with Y_i = P(Ȳ_i + c_i u), and the (generalised) Hessian
// c_i (diag(on) - on onᵀ/|on|), on = [Y_i > 0]: zero unless two classes are tied. c_i = gain·λ_i, so
// that heavy and light samples are smoothed alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "problem/hinge_problem.hpp"
#include "prox/prox.hpp"
#include "prox/simplex.hpp"

namespace sparsvm {

using std::int32_t;
using std::int64_t;

/// A sum and the sum of the sizes of its terms, by which its rounding error is measured.
struct SizedSum {
  double value = 0.0, size = 0.0;

  void add(double term) {
    value += term;
    size += std::abs(term);
  }
};

class AugmentedHinge {
 public:
  explicit AugmentedHinge(const HingeProblem& problem)
      : t_(problem), batch_(problem.classes), row_(static_cast<std::size_t>(problem.classes)) {
    scratch_.reserve(problem.classes);
  }

  /// Σ e_i for scores S (n x outputs, intercepts included) around the multipliers center (n x K);
  /// Y (n x K) gets the maximisers.
  SizedSum evaluate(const double* S, const double* center, double gain, double* Y) {
    const int64_t K = t_.classes;
    constexpr int lanes = SimplexBatch::kLanes;
    SizedSum total;
    int64_t i = 0;
    if (K <= SimplexBatch::kLongest) {
      double* block = batch_.block();
      for (; i + lanes <= t_.n(); i += lanes) {
        for (int l = 0; l < lanes; ++l) {
          batch_.mass()[l] = t_.lambda[i + l];
          move(i + l, S, center, gain, block + l, lanes);
        }
        batch_.project();
        for (int l = 0; l < lanes; ++l) {
          for (int64_t k = 0; k < K; ++k) Y[(i + l) * K + k] = block[k * lanes + l];
          add(i + l, S, center, gain, Y, total);
        }
      }
    }
    for (; i < t_.n(); ++i) {
      move(i, S, center, gain, row_.data(), 1);
      project_simplex(row_.data(), K, t_.lambda[i], Y + i * K, scratch_);
      add(i, S, center, gain, Y, total);
    }
    return total;
  }

  /// Σ λ_i max_k u_ik, the hinge itself.
  double hinge(const double* S) {
    double total = 0.0;
    for (int64_t i = 0; i < t_.n(); ++i) {
      differences(i, S, row_.data(), 1);
      total += t_.lambda[i] * *std::max_element(row_.begin(), row_.end());
    }
    return total;
  }

 private:
  /// u_ik, entries `stride` apart.
  void differences(int64_t i, const double* S, double* out, int64_t stride) const {
    const int64_t K = t_.classes;
    const int32_t own = t_.y[i];
    const double* r = t_.cost + own * K;
    const double scale = t_.margin_scale ? t_.margin_scale[i] : 1.0;
    if (K == 2) {
      // Class 0 is pinned to the score 0.
      const double score = own == 0 ? S[i] : -S[i];
      out[(1 - own) * stride] = score + scale * r[1 - own];
      out[own * stride] = 0.0;
      return;
    }
    const double* s = S + i * K;
    for (int64_t k = 0; k < K; ++k) out[k * stride] = (s[k] - s[own]) + scale * r[k];
  }

  void move(int64_t i, const double* S, const double* center, double gain, double* out,
            int64_t stride) const {
    const double c = gain * t_.lambda[i];
    differences(i, S, out, stride);
    const double* at = center + i * t_.classes;
    for (int64_t k = 0; k < t_.classes; ++k) out[k * stride] = at[k] + c * out[k * stride];
  }

  void add(int64_t i, const double* S, const double* center, double gain, const double* Y,
           SizedSum& total) {
    const double half = 0.5 / (gain * t_.lambda[i]);
    const double* now = Y + i * t_.classes;
    const double* at = center + i * t_.classes;
    double* u = row_.data();
    differences(i, S, u, 1);
    for (int64_t k = 0; k < t_.classes; ++k) {
      const double moved = now[k] - at[k];
      total.add(now[k] * u[k]);
      total.add(-half * moved * moved);
    }
  }

  HingeProblem t_;
  SimplexBatch batch_;
  ProxScratch scratch_;
  std::vector<double> row_;
};

}  // namespace sparsvm
