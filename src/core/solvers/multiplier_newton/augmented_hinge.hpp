// The augmented hinge and its Hessian.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "design/design.hpp"
#include "linalg/blas.hpp"
#include "problem/problem.hpp"
#include "prox/prox.hpp"
#include "solvers/multiplier_newton/settings.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

// -----------------------------------------------------------------
// The hinge of all samples, smoothed by a proximal term around given multipliers.
//
//   e_i(s) = max { <Y, u> - ‖Y - Ȳ_i‖²/(2 c_i) : Y in λ_i·simplex },   u_k = s_k + r_ik - s_{y_i},
//
// has the gradient Y_i - λ_i e_{y_i} with Y_i = P(Ȳ_i + c_i u), and the (generalised) Hessian
// c_i (diag(on) - on onᵀ/|on|), on = [Y_i > 0]: zero unless two classes are tied. c_i = gain·λ_i, so
// that heavy and light samples are smoothed alike.

// A sum and the sum of the sizes of its terms, by which its rounding error is measured.
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

  // Σ e_i for scores S (n x outputs, intercepts included) around the multipliers center (n x K);
  // Y (n x K) gets the maximisers.
  SizedSum evaluate(const double* S, const double* center, double gain, double* Y) {
    const int64_t K = t_.classes;
    constexpr int kLanes = SimplexBatch::kLanes;
    SizedSum total;
    int64_t i = 0;
    if (K <= SimplexBatch::kLongest) {
      double* block = batch_.block();
      for (; i + kLanes <= t_.n(); i += kLanes) {
        for (int l = 0; l < kLanes; ++l) {
          batch_.mass()[l] = t_.lambda[i + l];
          move(i + l, S, center, gain, block + l, kLanes);
        }
        batch_.project();
        for (int l = 0; l < kLanes; ++l) {
          for (int64_t k = 0; k < K; ++k) Y[(i + l) * K + k] = block[k * kLanes + l];
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

 private:
  // u_ik, entries `stride` apart.
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

// -----------------------------------------------------------------
// The Hessian of the augmented hinge: a sum over the samples at which classes are tied.
//
//   H_(j,k),(j',k') = Σ_i c_i x_ij x_ij' J_i[k,k'],     J_i = diag(on_i) - on_i on_iᵀ/|on_i|
//
// Only tied samples, and of them only the classes on, enter. The columns are scaled and may end
// with one of ones for the intercept. Sparse samples are read once in the columns that matter. Dense
// ones are gathered by panels, so that no copy of the data is ever held; a panel that holds all of
// them is kept for the next product.

// The tied samples of sparse data in the columns of the Newton equation: row
// i has the entries value[e] in column[e], e = first[i] ... first[i + 1] - 1.
struct TiedRows {
  std::vector<int64_t> first;
  std::vector<int32_t> column;
  std::vector<double> value;

  // Read the listed samples of a sparse design in the listed features, each times its scale; with
  // `intercept` a column of ones follows.
  void read(const Design& design, const std::vector<int64_t>& samples,
            const std::vector<int32_t>& features, const std::vector<double>& scale,
            bool intercept) {
    const StoredRows stored = design.stored_rows();
    place_.resize(static_cast<std::size_t>(design.d()), -1);
    for (std::size_t c = 0; c < features.size(); ++c) place_[features[c]] = static_cast<int32_t>(c);
    first.assign(1, 0);
    column.clear();
    value.clear();
    for (const int64_t i : samples) {
      const int64_t r = stored.rows(i);
      for (int64_t e = stored.indptr[r]; e < stored.indptr[r + 1]; ++e) {
        const int32_t c = place_[stored.indices[e]];
        if (c < 0) continue;
        const double x =
            stored.singles ? static_cast<double>(stored.singles[e]) : stored.doubles[e];
        column.push_back(c);
        value.push_back(scale[c] * x);
      }
      if (intercept) {
        column.push_back(static_cast<int32_t>(features.size()));
        value.push_back(scale.back());
      }
      first.push_back(static_cast<int64_t>(column.size()));
    }
    for (const int32_t j : features) place_[j] = -1;
  }

 private:
  std::vector<int32_t> place_;  // column of each of the d features, or -1
};

class TiedSamples {
 public:
  explicit TiedSamples(const HingeProblem& problem) : design_(problem.design), t_(problem) {}

  // Find the tied samples of Y (n x K).
  void find(const double* Y, double gain) {
    samples_.clear();
    on_.clear();
    weight_.clear();
    share_.clear();
    class_.clear();
    first_class_.assign(1, 0);
    const int64_t K = t_.classes;
    for (int64_t i = 0; i < t_.n(); ++i) {
      int64_t count = 0;
      for (int64_t k = 0; k < K; ++k) count += Y[i * K + k] > 0.0;
      if (count < 2) continue;
      samples_.push_back(i);
      weight_.push_back(gain * t_.lambda[i]);
      share_.push_back(1.0 / static_cast<double>(count));
      for (int64_t k = K - t_.outputs(); k < K; ++k) {
        on_.push_back(Y[i * K + k] > 0.0);
        if (on_.back()) class_.push_back(static_cast<int32_t>(k - (K - t_.outputs())));
      }
      first_class_.push_back(static_cast<int64_t>(class_.size()));
    }
    kept_ = false;
  }

  int64_t count() const { return static_cast<int64_t>(samples_.size()); }

  // Σ_i c_i J_i[k,k] of every output, the scale of the diagonal.
  std::vector<double> diagonal_mass() const {
    std::vector<double> mass(static_cast<std::size_t>(t_.outputs()), 0.0);
    for (int64_t i = 0; i < count(); ++i) {
      for (int64_t k = 0; k < t_.outputs(); ++k) {
        if (on(i, k)) mass[k] += weight_[i] * (1.0 - share_[i]);
      }
    }
    return mass;
  }

  // The columns that the following calls are about; scale multiplies each.
  void set_columns(std::vector<int32_t> features, std::vector<double> scale, bool intercept) {
    features_ = std::move(features);
    scale_ = std::move(scale);
    intercept_ = intercept;
    kept_ = false;
    if (sparse()) rows_.read(*design_, samples_, features_, scale_, intercept_);
  }
  int64_t columns() const { return static_cast<int64_t>(features_.size()) + intercept_; }

  bool sparse() const { return design_->sparse(); }
  bool on(int64_t i, int64_t k) const { return on_[i * t_.outputs() + k] != 0; }
  // The outputs on at a sample, in order.
  const int32_t* classes(int64_t i) const { return class_.data() + first_class_[i]; }
  int64_t classes_on(int64_t i) const { return first_class_[i + 1] - first_class_[i]; }
  double weight(int64_t i) const { return weight_[i]; }
  double share(int64_t i) const { return share_[i]; }

  // visit(i, values, their columns, how many) for every tied sample.
  template <typename Visit>
  void visit_rows(Visit visit) {
    if (sparse()) {
      for (int64_t i = 0; i < count(); ++i) {
        const int64_t e = rows_.first[i];
        visit(i, rows_.value.data() + e, rows_.column.data() + e, rows_.first[i + 1] - e);
      }
      return;
    }
    std::vector<int32_t> all(static_cast<std::size_t>(columns()));
    std::iota(all.begin(), all.end(), 0);
    for_each_panel([&](int64_t first, int64_t rows, const double* X) {
      for (int64_t i = 0; i < rows; ++i)
        visit(first + i, X + i * columns(), static_cast<const int32_t*>(all.data()), columns());
    });
  }

  // Multiplications of assemble(): of each sample the coordinates that are on with one another.
  double assembly_work(const std::vector<std::vector<int32_t>>& lists) const {
    double work = 0.0;
    for (int64_t i = 0; i < count(); ++i) {
      double coordinates = 0.0;
      for (int64_t c = 0; c < classes_on(i); ++c)
        coordinates += static_cast<double>(lists[classes(i)[c]].size());
      work += 0.5 * coordinates * coordinates;
    }
    return work;
  }

  // Those of product(), where all classes are on at sparse samples.
  double product_work() const {
    const double entries = sparse() ? static_cast<double>(rows_.value.size())
                                    : static_cast<double>(count()) * static_cast<double>(columns());
    return 2.0 * entries * static_cast<double>(t_.outputs());
  }

  // out (columns x outputs) = H V, V of the same shape.
  void product(const double* V, double* out, Monitor& monitor) {
    const int m = static_cast<int>(columns()), q = static_cast<int>(t_.outputs());
    std::fill(out, out + static_cast<int64_t>(m) * q, 0.0);
    if (sparse()) {
      sparse_product(V, out);
      monitor.poll();
      return;
    }
    for_each_panel([&](int64_t first, int64_t rows, const double* X) {
      scores_.resize(static_cast<std::size_t>(rows * q));
      gemm('N', 'N', q, static_cast<int>(rows), m, 1.0, V, q, X, m, 0.0, scores_.data(), q);
      for (int64_t i = 0; i < rows; ++i) apply(first + i, scores_.data() + i * q);
      gemm('N', 'T', q, m, static_cast<int>(rows), 1.0, scores_.data(), q, X, m, 1.0, out, q);
      monitor.poll();
    });
  }

  // Add H over the listed coordinates to the lower triangle of `out` (size x size, column-major):
  // coordinates of output k are its columns lists[k], and come at offset[k].
  void assemble(const std::vector<std::vector<int32_t>>& lists, const std::vector<int64_t>& offset,
                double* out, int64_t size, Monitor& monitor) {
    for_each_panel([&](int64_t first, int64_t rows, const double* X) {
      for (int64_t k = 0; k < t_.outputs(); ++k) {
        for (int64_t l = 0; l <= k; ++l) add_pair(k, l, first, rows, X, lists, offset, out, size);
        monitor.poll();
      }
    });
  }

  // The same for one output alone.
  void assemble_output(int64_t k, const std::vector<int32_t>& list, double* out, int64_t size,
                       Monitor& monitor) {
    for_each_panel([&](int64_t first, int64_t rows, const double* X) {
      add_own(k, first, rows, X, list, out, size);
      monitor.poll();
    });
  }

 private:
  // Only the classes on at a sample are touched.
  void sparse_product(const double* V, double* out) {
    const int64_t q = t_.outputs();
    scores_.resize(static_cast<std::size_t>(q));
    for (int64_t i = 0; i < count(); ++i) {
      const int32_t* k = classes(i);
      const int64_t on = classes_on(i);
      std::fill(scores_.begin(), scores_.begin() + on, 0.0);
      for (int64_t e = rows_.first[i]; e < rows_.first[i + 1]; ++e) {
        const double* v = V + rows_.column[e] * q;
        for (int64_t c = 0; c < on; ++c) scores_[c] += rows_.value[e] * v[k[c]];
      }
      double sum = 0.0;
      for (int64_t c = 0; c < on; ++c) sum += scores_[c];
      for (int64_t c = 0; c < on; ++c) scores_[c] = weight_[i] * (scores_[c] - share_[i] * sum);
      for (int64_t e = rows_.first[i]; e < rows_.first[i + 1]; ++e) {
        double* o = out + rows_.column[e] * q;
        for (int64_t c = 0; c < on; ++c) o[k[c]] += rows_.value[e] * scores_[c];
      }
    }
  }

  // s <- c J s for one sample.
  void apply(int64_t i, double* s) const {
    double sum = 0.0;
    for (int64_t k = 0; k < t_.outputs(); ++k) sum += on(i, k) ? s[k] : 0.0;
    const double mean = share_[i] * sum;
    for (int64_t k = 0; k < t_.outputs(); ++k) s[k] = on(i, k) ? weight_[i] * (s[k] - mean) : 0.0;
  }

  template <typename Visit>
  void for_each_panel(Visit visit) {
    const int64_t m = columns();
    if (m == 0 || count() == 0) return;
    const int64_t tall =
        std::max<int64_t>(1, std::min(count(), MultiplierNewtonSettings::kPanel / m));
    block_.resize(static_cast<std::size_t>(tall * m));
    for (int64_t first = 0; first < count(); first += tall) {
      const int64_t rows = std::min(tall, count() - first);
      if (!kept_) gather(first, rows);
      kept_ = rows == count();
      visit(first, rows, static_cast<const double*>(block_.data()));
    }
  }

  void gather(int64_t first, int64_t rows) {
    const auto width = static_cast<int64_t>(features_.size()), m = columns();
    for (int64_t i = 0; i < rows; ++i) {
      double* row = block_.data() + i * m;
      design_->sample(samples_[first + i], features_.data(), width, row);
      if (intercept_) row[width] = 1.0;
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < m; ++j) block_[i * m + j] *= scale_[j];
    }
  }

  static double* pack(const double* x, const std::vector<int32_t>& list, double factor,
                      double* to) {
    for (const int32_t j : list) *to++ = factor * x[j];
    return to;
  }

  // The part of H of one output from the samples of a panel at which it is on.
  void add_own(int64_t k, int64_t first, int64_t rows, const double* X,
               const std::vector<int32_t>& list, double* block, int64_t stride) {
    const int height = static_cast<int>(list.size());
    if (height == 0) return;
    left_.resize(static_cast<std::size_t>(rows * height));
    double* left = left_.data();
    int found = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = first + r;
      if (!on(i, k)) continue;
      ++found;
      left = pack(X + r * columns(), list, std::sqrt(weight_[i] * (1.0 - share_[i])), left);
    }
    if (found == 0) return;
    syrk('L', 'N', height, found, 1.0, left_.data(), height, 1.0, block, static_cast<int>(stride));
  }

  // The part of H between outputs k and l from the samples of a panel at which both are on.
  void add_pair(int64_t k, int64_t l, int64_t first, int64_t rows, const double* X,
                const std::vector<std::vector<int32_t>>& lists, const std::vector<int64_t>& offset,
                double* out, int64_t size) {
    double* block = out + offset[l] * size + offset[k];
    if (k == l) return add_own(k, first, rows, X, lists[k], block, size);
    const int height = static_cast<int>(lists[k].size()), width = static_cast<int>(lists[l].size());
    if (height == 0 || width == 0) return;
    left_.resize(static_cast<std::size_t>(rows * height));
    right_.resize(static_cast<std::size_t>(rows * width));
    double *left = left_.data(), *right = right_.data();
    int found = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = first + r;
      if (!on(i, k) || !on(i, l)) continue;
      ++found;
      const double* x = X + r * columns();
      left = pack(x, lists[k], -weight_[i] * share_[i], left);
      right = pack(x, lists[l], 1.0, right);
    }
    if (found == 0) return;
    gemm('N', 'T', height, width, found, 1.0, left_.data(), height, right_.data(), width, 1.0,
         block, static_cast<int>(size));
  }

  const Design* design_;
  HingeProblem t_;
  std::vector<int64_t> samples_;
  std::vector<unsigned char> on_;       // count x outputs
  std::vector<double> weight_, share_;  // c_i and 1/|on_i|
  std::vector<int64_t> first_class_;    // where the outputs on at a sample begin
  std::vector<int32_t> class_;
  TiedRows rows_;  // of sparse data
  std::vector<int32_t> features_;
  std::vector<double> scale_;
  bool intercept_ = false, kept_ = false;
  std::vector<double> block_, scores_, left_, right_;
};

}  // namespace sparsvm
