// The problem of a smooth loss, as every native solver of smooth losses is given it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "design/design.hpp"
#include "loss/smooth_loss.hpp"
#include "penalty/penalty.hpp"

namespace sparsvm {

// Minimise over W (d x outputs) and b (outputs)
//
//   f(W, b) + α penalty(W),   f = Σ_i p_i loss_i(X_i W + b) − α<tilt, W>,
//
// with two classes having one output. The pointers must outlive the solver.
struct SmoothProblem {
  const Design* design;
  LossRows loss;
  double alpha;
  bool intercept;
  const double* tilt;  // d x outputs, or null
  Penalty penalty;

  int64_t n() const { return design->n(); }
  int64_t d() const { return design->d(); }
  int64_t outputs() const { return loss.outputs(); }

  // S (n x outputs) = X W + b.
  void scores(const double* W, const double* b, double* S) const {
    const int64_t K = outputs();
    design->scores(W, K, S);
    if (!intercept) return;
    for (int64_t i = 0; i < n(); ++i) {
      for (int64_t k = 0; k < K; ++k) S[i * K + k] += b[k];
    }
  }

  // f at W with the scores S.
  double value(const double* W, const double* S) const {
    const int64_t K = outputs();
    double total = 0.0;
    for (int64_t i = 0; i < n(); ++i) total += loss.mass[i] * loss.value(i, S + i * K);
    return total - tilted(W);
  }

  // f, and R (n x outputs) = p_i times the derivative of the loss.
  double slopes(const double* W, const double* S, double* R) const {
    const int64_t K = outputs();
    double total = 0.0;
    for (int64_t i = 0; i < n(); ++i) {
      double* r = R + i * K;
      total += loss.mass[i] * loss.slopes(i, S + i * K, r);
      for (int64_t k = 0; k < K; ++k) r[k] *= loss.mass[i];
    }
    return total - tilted(W);
  }

  // G (d x outputs) and gb (outputs) from R.
  void gradient(const double* R, double* G, double* gb) const {
    const int64_t K = outputs();
    design->transposed(R, K, G);
    if (tilt) {
      for (int64_t e = 0; e < d() * K; ++e) G[e] -= alpha * tilt[e];
    }
    std::fill(gb, gb + K, 0.0);
    if (!intercept) return;
    for (int64_t i = 0; i < n(); ++i) {
      for (int64_t k = 0; k < K; ++k) gb[k] += R[i * K + k];
    }
  }

 private:
  double tilted(const double* W) const {
    if (!tilt) return 0.0;
    double total = 0.0;
    for (int64_t e = 0; e < d() * outputs(); ++e) total += tilt[e] * W[e];
    return alpha * total;
  }
};

}  // namespace sparsvm
