// The losses of one sample as functions of its outputs: value, derivative, diagonal curvature.
//
// An output is the score of a class; two classes have one output, the score of class 1, that of
// class 0 being zero. With margins m and Δ_k = s_k − s_y:
//
//   hinge              max(0, max_{k≠y} m_k + Δ_k)
//   squared_hinge      Σ_{k≠y} max(0, m_k + Δ_k)²
//   logistic           log(1 + Σ_{k≠y} exp(m_k + Δ_k))
//   ovr_squared_hinge  Σ_k max(0, 1 − t_k s_k)², t = ±1; one term for two classes
//
// The loss is chosen at run time once per row: a row costs K operations or more.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace sparsvm {

enum class LossKind : int { hinge = 0, squared_hinge = 1, logistic = 2, ovr_squared_hinge = 3 };

inline LossKind loss_kind(const std::string& name) {
  const char* names[] = {"hinge", "squared_hinge", "logistic", "ovr_squared_hinge"};
  for (int i = 0; i < 4; ++i) {
    if (name == names[i]) return static_cast<LossKind>(i);
  }
  throw std::invalid_argument(
      "The loss must be one of hinge, squared_hinge, logistic and ovr_squared_hinge, but is '" +
      name + "'.");
}

/// The losses of all samples; the pointers must outlive it.
struct LossRows {
  LossKind kind;
  const std::int32_t* y;       // n class numbers
  const double* mass;          // n positive weights
  const double* cost;          // K x K margins, row = true class
  const double* margin_scale;  // n factors of the margins, or null
  std::int64_t classes;

  std::int64_t outputs() const { return classes == 2 ? 1 : classes; }

  /// The loss of sample i at its outputs s.
  double value(std::int64_t i, const double* s) const { return row<0>(i, s, nullptr, nullptr); }
  /// The loss, and g = its derivative in the outputs.
  double slopes(std::int64_t i, const double* s, double* g) const {
    return row<1>(i, s, g, nullptr);
  }
  /// The loss, g, and h = the (generalised) second derivatives in each output alone.
  double curvatures(std::int64_t i, const double* s, double* g, double* h) const {
    return row<2>(i, s, g, h);
  }

  /// The factor κ of the constants of 001, κ Σ p_i ‖x_i‖²: 4(K − 1) for the squared hinge (twice
  /// the sum of ‖e_k − e_y‖²), ½ for the logistic loss, 2 for one-vs-rest; with one output, whose
  /// e_k − e_y has length 1, half of the first two.
  double curvature_bound() const {
    if (kind == LossKind::squared_hinge && classes > 2)
      return 4.0 * static_cast<double>(classes - 1);
    return largest_curvature();
  }

  /// The largest curvature of a sample's loss in any direction of its outputs: as above, but for
  /// the squared hinge twice the largest eigenvalue K of the Laplacian of a star.
  double largest_curvature() const {
    const bool one = classes == 2;
    switch (kind) {
      case LossKind::squared_hinge: return one ? 2.0 : 2.0 * static_cast<double>(classes);
      case LossKind::logistic: return one ? 0.25 : 0.5;
      case LossKind::ovr_squared_hinge: return 2.0;
      default: return std::numeric_limits<double>::infinity();
    }
  }

 private:
  template <int order>
  double row(std::int64_t i, const double* s, double* g, double* h) const {
    const std::int32_t true_class = y[i];
    const double scale = margin_scale ? margin_scale[i] : 1.0;
    const double* m = cost + static_cast<std::int64_t>(true_class) * classes;
    if (classes == 2) {
      const double sign = true_class == 1 ? 1.0 : -1.0;
      const double margin =
          kind == LossKind::ovr_squared_hinge ? 1.0 : scale * m[true_class == 1 ? 0 : 1];
      return single<order>(margin - sign * s[0], sign, g, h);
    }
    switch (kind) {
      case LossKind::squared_hinge: return squared<order>(true_class, scale, m, s, g, h);
      case LossKind::logistic: return logistic<order>(true_class, scale, m, s, g, h);
      case LossKind::ovr_squared_hinge: return one_vs_rest<order>(true_class, s, g, h);
      default: return hinge<order>(true_class, scale, m, s, g, h);
    }
  }

  /// Two classes: the loss is a function of z = m − t s.
  template <int order>
  double single(double z, double sign, double* g, double* h) const {
    if (kind == LossKind::logistic) {
      const double e = std::exp(-std::abs(z)), q = z > 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
      if constexpr (order >= 1) g[0] = -sign * q;
      if constexpr (order >= 2) h[0] = e / ((1.0 + e) * (1.0 + e));
      return std::max(z, 0.0) + std::log1p(e);
    }
    const double violation = std::max(z, 0.0);
    if (kind == LossKind::hinge) {
      if constexpr (order >= 1) g[0] = z > 0.0 ? -sign : 0.0;
      if constexpr (order >= 2) h[0] = 0.0;
      return violation;
    }
    if constexpr (order >= 1) g[0] = -2.0 * sign * violation;
    if constexpr (order >= 2) h[0] = z > 0.0 ? 2.0 : 0.0;
    return violation * violation;
  }

  template <int order>
  double squared(std::int32_t own, double scale, const double* m, const double* s, double* g,
                 double* h) const {
    double total = 0.0, sum = 0.0, active = 0.0;
    const double level = s[own];
    for (std::int64_t k = 0; k < classes; ++k) {
      double violation = std::max(scale * m[k] + s[k] - level, 0.0);
      if (k == own) violation = 0.0;
      total += violation * violation;
      if constexpr (order >= 1) g[k] = 2.0 * violation, sum += violation;
      if constexpr (order >= 2) h[k] = violation > 0.0 ? 2.0 : 0.0, active += h[k];
    }
    if constexpr (order >= 1) g[own] = -2.0 * sum;
    if constexpr (order >= 2) h[own] = active;
    return total;
  }

  template <int order>
  double logistic(std::int32_t own, double scale, const double* m, const double* s, double* g,
                  double* h) const {
    const double level = s[own];
    double top = 0.0;
    for (std::int64_t k = 0; k < classes; ++k) {
      if (k != own) top = std::max(top, scale * m[k] + s[k] - level);
    }
    double others = 0.0;
    for (std::int64_t k = 0; k < classes; ++k) {
      const double e = k == own ? 0.0 : std::exp(scale * m[k] + s[k] - level - top);
      others += e;
      if constexpr (order >= 1) g[k] = e;
    }
    const double mine = std::exp(-top), total = others + mine;
    if constexpr (order >= 1) {
      for (std::int64_t k = 0; k < classes; ++k) {
        g[k] /= total;
        if constexpr (order >= 2) h[k] = g[k] * (1.0 - g[k]);
      }
      g[own] = -others / total;
      if constexpr (order >= 2) h[own] = -g[own] * (1.0 + g[own]);
    }
    // A class that is sure keeps the digits of its tiny loss.
    return top > 0.0 ? top + std::log(total) : std::log1p(others);
  }

  template <int order>
  double one_vs_rest(std::int32_t own, const double* s, double* g, double* h) const {
    double total = 0.0;
    for (std::int64_t k = 0; k < classes; ++k) {
      const double sign = k == own ? 1.0 : -1.0, violation = std::max(1.0 - sign * s[k], 0.0);
      total += violation * violation;
      if constexpr (order >= 1) g[k] = -2.0 * sign * violation;
      if constexpr (order >= 2) h[k] = violation > 0.0 ? 2.0 : 0.0;
    }
    return total;
  }

  template <int order>
  double hinge(std::int32_t own, double scale, const double* m, const double* s, double* g,
               double* h) const {
    double worst = 0.0;
    std::int64_t at = own;
    for (std::int64_t k = 0; k < classes; ++k) {
      const double value = scale * m[k] + s[k] - s[own];
      if (k != own && value > worst) worst = value, at = k;
    }
    if constexpr (order >= 1) {
      std::fill(g, g + classes, 0.0);
      if (at != own) g[at] = 1.0, g[own] = -1.0;
    }
    if constexpr (order >= 2) std::fill(h, h + classes, 0.0);
    return worst;
  }
};

}  // namespace sparsvm
