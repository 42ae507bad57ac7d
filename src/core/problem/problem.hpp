// The problems of the hinge and of smooth losses, as every native solver is given them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "design/design.hpp"
#include "loss/smooth_loss.hpp"
#include "penalty/penalty.hpp"

namespace sparsvm {

// Minimise over W (d x outputs) and b (outputs)
//
//   Σ_i p_i max_k (m_ik + S_ik - S_iy_i) + α (penalty(W) - <V, W>) + offset,   S = X W + b,
//
// with two classes having one output and the scores (0, S_i). Solvers that divide by α work with
// λ_i = p_i / α. The pointers must outlive the solver.
struct HingeProblem {
  const Design* design;
  const int32_t* y;            // n class numbers
  const double* mass;          // n, p_i > 0
  const double* lambda;        // n, λ_i > 0
  const double* cost;          // K x K margins, row = true class
  const double* margin_scale;  // n factors of the rows of cost, or null
  const double* margins;       // n x K in place of cost and margin_scale, of either sign, or null
  int64_t classes;
  double alpha;
  bool intercept;
  const double* linear_term;  // d x outputs, or null
  double offset;
  Penalty penalty;

  int64_t n() const { return design->n(); }
  int64_t d() const { return design->d(); }
  int64_t outputs() const { return classes == 2 ? 1 : classes; }
  double margin(int64_t i, int64_t k) const {
    if (margins) return margins[i * classes + k];
    const double m = cost[y[i] * classes + k];
    return margin_scale ? margin_scale[i] * m : m;
  }
};

// Minimise over W (d x outputs) and b (outputs)
//
//   f(W, b) + α penalty(W),   f = Σ_i p_i loss_i(X_i W + b) − α<V, W>,
//
// with two classes having one output. The pointers must outlive the solver.
struct SmoothProblem {
  const Design* design;
  LossRows loss;
  double alpha;
  bool intercept;
  const double* linear_term;  // d x outputs, or null
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
    return total - linear_value(W);
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
    return total - linear_value(W);
  }

  // G (d x outputs) and gb (outputs) from R.
  void gradient(const double* R, double* G, double* gb) const {
    const int64_t K = outputs();
    design->transposed(R, K, G);
    if (linear_term) {
      for (int64_t e = 0; e < d() * K; ++e) G[e] -= alpha * linear_term[e];
    }
    std::fill(gb, gb + K, 0.0);
    if (!intercept) return;
    for (int64_t i = 0; i < n(); ++i) {
      for (int64_t k = 0; k < K; ++k) gb[k] += R[i * K + k];
    }
  }

 private:
  double linear_value(const double* W) const {
    if (!linear_term) return 0.0;
    double total = 0.0;
    for (int64_t e = 0; e < d() * outputs(); ++e) total += linear_term[e] * W[e];
    return alpha * total;
  }
};

}  // namespace sparsvm
