// Full-gradient methods for a smooth loss plus a penalty with a prox.
//
// With f the smooth part, F = f + α·penalty and p_L(y) = prox_{(α/L)·penalty}(y − ∇f(y)/L):
//
//   forward_backward   x⁺ = p_L(x); L fixed, or raised by η until
//                      f(x⁺) <= f(x) + ⟨∇f(x), x⁺ − x⟩ + L/2 ‖x⁺ − x‖²
//   fista              the same from y = x + ((t − 1)/t⁺)(x − x⁻), t⁺ = (1 + √(1 + 4t²))/2
//   sparsa             L = ⟨Δx, Δ∇f⟩/‖Δx‖² (Barzilai–Borwein) within [α_min, α_max], raised by η
//                      until F(x⁺) <= max of the last M + 1 values − σ/2 L‖x⁺ − x‖²
//
// The unpenalised intercept is part of x, as c = b + Wᵀ mean(X): the intercept of centred features,
// at right angles to them. With b itself the means of the features join the conditioning, and iris
// as it is measured takes 30 to 55 times the iterations. The scores of extrapolated points are
// extrapolated scores, so every trial costs one product with X and every iteration one with Xᵀ.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "design/row_reader.hpp"
#include "penalty/penalty.hpp"
#include "problem/problem.hpp"
#include "support/numbers.hpp"

namespace sparsvm {

enum class FirstOrderMethod { forward_backward, fista, sparsa };

struct FirstOrderOptions {
  FirstOrderMethod method;
  bool line_search;          // forward_backward and fista
  double L;                  // the constant, or where the line search starts; sparsa: the first
  double eta;                // factor of the line search
  int64_t memory;            // sparsa: M
  double sigma;              // sparsa
  double smallest, largest;  // bounds of L: of sparsa; a Lipschitz constant for the others
};

struct FirstOrderSettings {
  // Of f: two values that differ by less are equal to rounding, which must not drive L up.
  double rounding = 8.0 * DBL_EPSILON;
  // Doublings of L leave the range of doubles before that: there is no step.
  int most_tries = 200;
};
inline constexpr FirstOrderSettings kFirstOrder;

// Problem: a SmoothProblem, or another with its functions.
template <typename Problem>
class FirstOrder {
 public:
  FirstOrder(const Problem& problem, ProxTerm penalty, const FirstOrderOptions& options)
      : problem_(problem), penalty_(std::move(penalty)), options_(options), L_(options.L),
        now_(problem), last_(problem), trial_(problem), from_(problem),
        slopes_(static_cast<std::size_t>(problem.n() * problem.outputs())),
        shifted_(static_cast<std::size_t>(problem.outputs())),
        mean_(static_cast<std::size_t>(problem.d())) {
    if (!problem.intercept) return;
    std::vector<double> variance(mean_), norm2(mean_), largest(mean_);
    problem.design->column_stats(problem.loss.mass, mean_.data(), variance.data(), norm2.data(),
                                 largest.data());
  }

  void start(const double* W, const double* b) {
    std::copy_n(W, now_.W.size(), now_.W.begin());
    if (problem_.intercept) {
      shift(now_, shifted_);  // b − c
      for (std::size_t k = 0; k < now_.b.size(); ++k) now_.b[k] = b[k] - shifted_[k];
    }
    begun_ = false;
  }

  // Up to `count` iterations, fewer if ‖x⁺ − x‖ <= tolerance·‖x⁺‖ (not asked if negative) or if
  // the line search finds no step. Returns the number done.
  template <typename Poll>
  int64_t run(int64_t count, double tolerance, Poll poll) {
    settled_ = false;
    if (!begun_) begin(poll);
    for (int64_t done = 1; done <= count; ++done) {
      const bool moved =
          options_.method == FirstOrderMethod::sparsa ? sparsa(poll) : forward_backward(poll);
      const double change = distance(now_, last_);
      if (!moved || (tolerance >= 0.0 && change <= tolerance * size(now_))) {
        settled_ = true;
        return done;
      }
    }
    return count;
  }

  bool settled() const { return settled_; }
  const std::vector<double>& weights() const { return now_.W; }
  std::vector<double> intercept() const {
    std::vector<double> b(now_.b.size());
    shift(now_, b);
    for (std::size_t k = 0; k < b.size(); ++k) b[k] += now_.b[k];
    return b;
  }

 private:
  struct Point {
    explicit Point(const Problem& p)
        : W(static_cast<std::size_t>(p.d() * p.outputs())),
          b(static_cast<std::size_t>(p.outputs())),
          S(static_cast<std::size_t>(p.n() * p.outputs())) {}
    std::vector<double> W, b, S;  // b: of centred features
  };
  struct Gradient {
    std::vector<double> W, b;
  };

  template <typename Poll>
  void begin(Poll poll) {
    scores(now_);
    poll();
    last_ = now_;
    from_ = now_;
    t_ = 1.0;
    L_ = options_.L;
    values_.clear();
    gradient_.W.assign(now_.W.size(), 0.0);
    gradient_.b.assign(now_.b.size(), 0.0);
    if (options_.method == FirstOrderMethod::sparsa) {
      smooth_ = problem_.slopes(now_.W.data(), now_.S.data(), slopes_.data());
      gradient();
      values_.push_back(smooth_ + penalty(now_));
      poll();
    }
    begun_ = true;
  }

  // One step from `from_` (which is x itself without acceleration).
  template <typename Poll>
  bool forward_backward(Poll poll) {
    const double f = problem_.slopes(from_.W.data(), from_.S.data(), slopes_.data());
    gradient();
    poll();
    for (;;) {
      step(from_, L_);
      poll();
      if (!options_.line_search) break;
      const double model = f + along(from_) + 0.5 * L_ * squared_distance(trial_, from_);
      // Beyond the Lipschitz constant the inequality needs no check.
      if (problem_.value(trial_.W.data(), trial_.S.data()) <=
          model + kFirstOrder.rounding * std::abs(f))
        break;
      if (L_ >= options_.largest) break;
      L_ = std::min(options_.eta * L_, options_.largest);
    }
    std::swap(last_, now_);
    std::swap(now_, trial_);
    if (options_.method == FirstOrderMethod::fista) {
      const double next = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * t_ * t_)), beta = (t_ - 1.0) / next;
      extrapolate(beta, now_.W, last_.W, from_.W);
      extrapolate(beta, now_.b, last_.b, from_.b);
      extrapolate(beta, now_.S, last_.S, from_.S);
      t_ = next;
    } else {
      from_ = now_;
    }
    return true;
  }

  template <typename Poll>
  bool sparsa(Poll poll) {
    const double reference = *std::max_element(values_.begin(), values_.end());
    double F = 0.0, moved = 0.0;
    for (int tries = 0;; ++tries) {
      step(now_, L_);
      poll();
      smooth_ = problem_.slopes(trial_.W.data(), trial_.S.data(), slopes_.data());
      F = smooth_ + penalty(trial_);
      moved = squared_distance(trial_, now_);
      if (F <= reference - 0.5 * options_.sigma * L_ * moved + kFirstOrder.rounding * std::abs(F))
        break;
      if (tries == kFirstOrder.most_tries) return false;
      L_ *= options_.eta;
    }
    values_.push_back(F);
    if (static_cast<int64_t>(values_.size()) > options_.memory + 1) values_.erase(values_.begin());
    std::swap(last_, now_);
    std::swap(now_, trial_);
    std::swap(gradient_, before_);
    gradient_.W.resize(now_.W.size());
    gradient_.b.resize(now_.b.size());
    gradient();
    poll();
    double curvature = 0.0;
    for (std::size_t e = 0; e < now_.W.size(); ++e)
      curvature += (now_.W[e] - last_.W[e]) * (gradient_.W[e] - before_.W[e]);
    for (std::size_t k = 0; k < now_.b.size(); ++k)
      curvature += (now_.b[k] - last_.b[k]) * (gradient_.b[k] - before_.b[k]);
    if (moved > 0.0) L_ = std::clamp(curvature / moved, options_.smallest, options_.largest);
    return true;
  }

  // trial = p_L(y) and its scores.
  void step(const Point& y, double L) {
    for (std::size_t e = 0; e < y.W.size(); ++e) trial_.W[e] = y.W[e] - gradient_.W[e] / L;
    for (std::size_t k = 0; k < y.b.size(); ++k) trial_.b[k] = y.b[k] - gradient_.b[k] / L;
    penalty_.prox(trial_.W.data(), problem_.alpha / L);
    scores(trial_);
  }

  // −Wᵀ mean(X), 0 without an intercept.
  void shift(const Point& x, std::vector<double>& out) const {
    std::fill(out.begin(), out.end(), 0.0);
    if (!problem_.intercept) return;
    for (std::size_t j = 0, e = 0; j < mean_.size(); ++j) {
      for (double& value : out) value -= mean_[j] * x.W[e++];
    }
  }

  void scores(Point& x) {
    shift(x, shifted_);
    for (std::size_t k = 0; k < shifted_.size(); ++k) shifted_[k] += x.b[k];
    problem_.scores(x.W.data(), shifted_.data(), x.S.data());
  }

  // ∇f in W and c from the slopes.
  void gradient() {
    problem_.gradient(slopes_.data(), gradient_.W.data(), gradient_.b.data());
    if (!problem_.intercept) return;
    for (std::size_t j = 0, e = 0; j < mean_.size(); ++j) {
      for (const double value : gradient_.b) gradient_.W[e++] -= mean_[j] * value;
    }
  }

  double penalty(const Point& x) const { return problem_.alpha * penalty_.value(x.W.data()); }

  // ⟨∇f(y), trial − y⟩.
  double along(const Point& y) const {
    double total = 0.0;
    for (std::size_t e = 0; e < y.W.size(); ++e) total += gradient_.W[e] * (trial_.W[e] - y.W[e]);
    for (std::size_t k = 0; k < y.b.size(); ++k) total += gradient_.b[k] * (trial_.b[k] - y.b[k]);
    return total;
  }

  static void extrapolate(double beta, const std::vector<double>& now,
                          const std::vector<double>& last, std::vector<double>& out) {
    for (std::size_t e = 0; e < now.size(); ++e) out[e] = now[e] + beta * (now[e] - last[e]);
  }
  static double squared_distance(const Point& u, const Point& v) {
    double total = 0.0;
    for (std::size_t e = 0; e < u.W.size(); ++e) total += (u.W[e] - v.W[e]) * (u.W[e] - v.W[e]);
    for (std::size_t k = 0; k < u.b.size(); ++k) total += (u.b[k] - v.b[k]) * (u.b[k] - v.b[k]);
    return total;
  }
  static double distance(const Point& u, const Point& v) {
    return std::sqrt(squared_distance(u, v));
  }
  static double size(const Point& u) {
    double total = 0.0;
    for (const double w : u.W) total += w * w;
    for (const double b : u.b) total += b * b;
    return std::sqrt(total);
  }

  Problem problem_;
  ProxTerm penalty_;
  FirstOrderOptions options_;
  double L_, t_ = 1.0, smooth_ = 0.0;
  bool begun_ = false, settled_ = false;
  Point now_, last_, trial_, from_;
  Gradient gradient_, before_;
  std::vector<double> slopes_, values_, shifted_, mean_;
};

// -----------------------------------------------------------------
// Stochastic forward-backward splitting (FOBOS), for smooth losses and the hinge.
//
// At the t-th sample i with step η_t = η0/√t and g a (sub)gradient of its loss in the outputs,
//
//   W ← prox_{η_t α·penalty}(W − η_t n p_i x_i gᵀ),   b ← b − η_t n p_i g.
//
// The prox moves every feature at every sample. For the norms that are sums over features, proxes
// compose: prox_s ∘ prox_t = prox_{s+t}; a feature waits for its proxes until a sample has an entry
// in it, and a sample costs its own entries only.

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
    if (problem_.linear_term) {
      for (std::size_t e = 0; e < W_.size(); ++e)
        W_[e] += eta * problem_.alpha * problem_.linear_term[e];
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
