// Stochastic forward-backward splitting (FOBOS), for smooth losses and the hinge.
//
// At the t-th sample i with step η_t = η0/√t and g a (sub)gradient of its loss in the outputs,
//
//   W ← prox_{η_t α·penalty}(W − η_t n p_i x_i gᵀ),   b ← b − η_t n p_i g.
//
// The prox moves every feature at every sample. For the norms that are sums over features, proxes
// compose: prox_s ∘ prox_t = prox_{s+t}; a feature waits for its proxes until a sample has an entry
// in it, and a sample costs its own entries only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "design/row_reader.hpp"
#include "penalty/penalty_prox.hpp"
#include "problem/smooth_problem.hpp"
#include "support/numbers.hpp"

namespace sparsvm {

struct FobosOptions {
  double eta0;
  bool lazy;  // the proxes of a feature may wait
  uint64_t seed;
};

class Fobos {
 public:
  // samples: those to learn from; the masses of the others are left out of the mean.
  Fobos(const SmoothProblem& problem, PenaltyProx prox, const FobosOptions& options,
        std::vector<int64_t> samples)
      : problem_(problem), prox_(std::move(prox)), options_(options), samples_(std::move(samples)),
        K_(problem.outputs()), W_(size(problem.d() * K_)), b_(size(K_)), score_(size(K_)),
        slope_(size(K_)), waited_(options.lazy ? size(problem.d()) : 0),
        features_(size(problem.d())), random_(options.seed) {
    std::iota(features_.begin(), features_.end(), 0);
    if (problem.design->sparse() && problem.design->single_precision()) {
      singles_ = std::make_unique<SampleRows<float>>(*problem.design, features_, false);
    } else {
      doubles_ = std::make_unique<SampleRows<double>>(*problem.design, features_, false);
    }
    double total = 0.0;
    for (const int64_t i : samples_) total += problem.loss.mass[i];
    factor_ = static_cast<double>(samples_.size()) / total;
    if (hinge()) flows_.assign(size(problem.n() * problem.loss.classes), 0.0);
  }

  void start(const double* W, const double* b) {
    std::copy_n(W, W_.size(), W_.begin());
    if (problem_.intercept) std::copy_n(b, b_.size(), b_.begin());
  }

  // So many passes over the samples, each in a new random order.
  template <typename Poll>
  void run(int64_t passes, Poll poll) {
    for (int64_t pass = 0; pass < passes; ++pass) {
      if (passes_ > 2 * forgotten_) {
        std::fill(flows_.begin(), flows_.end(), 0.0);
        forgotten_ += passes_;
        passes_ = 0;
      }
      for (std::size_t left = samples_.size(); left > 1; --left) {
        std::swap(samples_[left - 1], samples_[size(random_.below(static_cast<int64_t>(left)))]);
      }
      for (const int64_t i : samples_) {
        if (singles_) {
          visit(i, (*singles_)(i));
        } else {
          visit(i, (*doubles_)(i));
        }
        poll();
      }
      ++passes_;
    }
    if (!options_.lazy) return;
    for (int64_t j = 0; j < problem_.d(); ++j) catch_up(j);
  }

  const std::vector<double>& weights() const { return W_; }
  const std::vector<double>& intercept() const { return b_; }

  // The mean of the last half or more of the subgradients of the hinge, as dual entries (n x K).
  std::vector<double> dual() const {
    std::vector<double> mean(flows_);
    for (double& value : mean) value /= static_cast<double>(std::max<int64_t>(passes_, 1));
    return mean;
  }
  bool hinge() const { return problem_.loss.kind == LossKind::hinge; }

 private:
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }

  template <typename T>
  void visit(int64_t i, const SampleRow<T>& row) {
    for (int64_t k = 0; k < K_; ++k) score_[k] = b_[k];
    for (int64_t e = 0; e < row.count; ++e) {
      const int64_t j = row.index[e];
      if (options_.lazy) catch_up(j);
      const double* w = W_.data() + j * K_;
      for (int64_t k = 0; k < K_; ++k) score_[k] += static_cast<double>(row.x[e]) * w[k];
    }
    problem_.loss.slopes(i, score_.data(), slope_.data());
    if (hinge()) remember(i);
    const double eta = options_.eta0 / std::sqrt(static_cast<double>(++steps_));
    const double scale = eta * factor_ * problem_.loss.mass[i];
    for (int64_t e = 0; e < row.count; ++e) {
      double* w = W_.data() + row.index[e] * K_;
      for (int64_t k = 0; k < K_; ++k) w[k] -= scale * static_cast<double>(row.x[e]) * slope_[k];
    }
    if (problem_.intercept) {
      for (int64_t k = 0; k < K_; ++k) b_[k] -= scale * slope_[k];
    }
    if (options_.lazy) {
      due_ += eta * problem_.alpha;
      return;
    }
    if (problem_.tilt) {
      for (std::size_t e = 0; e < W_.size(); ++e) W_[e] += eta * problem_.alpha * problem_.tilt[e];
    }
    prox_.apply(W_.data(), eta * problem_.alpha);
  }

  void catch_up(int64_t j) {
    if (waited_[j] == due_) return;
    prox_.apply(W_.data(), due_ - waited_[j], j, j + 1);
    waited_[j] = due_;
  }

  void remember(int64_t i) {
    double* flow = flows_.data() + i * problem_.loss.classes;
    const double mass = problem_.loss.mass[i];
    if (problem_.loss.classes == 2) {
      if (slope_[0] != 0.0) flow[problem_.loss.y[i] == 1 ? 0 : 1] += mass;
      return;
    }
    for (int64_t k = 0; k < K_; ++k) {
      if (slope_[k] > 0.0) flow[k] += mass * slope_[k];
    }
  }

  SmoothProblem problem_;
  PenaltyProx prox_;
  FobosOptions options_;
  std::vector<int64_t> samples_;
  int64_t K_, steps_ = 0;
  int64_t passes_ = 0, forgotten_ = 0;  // in the window of means, and before it
  std::vector<double> W_, b_, score_, slope_, waited_, flows_;
  std::vector<int32_t> features_;
  std::unique_ptr<SampleRows<float>> singles_;
  std::unique_ptr<SampleRows<double>> doubles_;
  double factor_ = 1.0, due_ = 0.0;
  RandomBits random_;
};

}  // namespace sparsvm
