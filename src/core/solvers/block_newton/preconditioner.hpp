// Preconditioners of the conjugate gradients in newton_step.hpp.
//
// The diagonal costs nothing. Where many samples share few active features, correlated features
// make it poor: then the Gram matrix of these features, weighted with the samples' curvature, is
// factorised, once for all classes with the squared hinge of differences of scores, otherwise once
// for each. On 60000 x 784 pixels that takes the time of ten products with the Hessian and leaves
// 16 iterations of 100. It may be out of date: it is made again when the products since then have
// cost as much as it did.
//
// A loss of differences is flat along equal shifts of all classes. With a penalty that treats the
// classes alike only its own curvature acts there, so shifts are split off: without that, five
// times as many iterations.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "linalg/blas.hpp"
#include "loss/smooth_rows.hpp"
#include "penalty/group_penalty.hpp"
#include "solvers/block_newton/hessian.hpp"
#include "solvers/block_newton/settings.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

// A Newton system on the active manifold: features by outputs, padded to `width`, the intercept
// last. `diagonal` is that of the loss, `straight` that of the penalty.
struct SmoothNewtonSystem {
  const std::vector<int64_t>& groups;
  const std::vector<int64_t>& starts;  // first row of each group
  const std::vector<int32_t>& features;
  bool intercept;
  const ActiveRows& X;
  const std::vector<double>& w;
  const std::vector<unsigned char>& mark;
  const std::vector<double>& diagonal;
  const std::vector<double>& straight;

  int64_t rows() const { return static_cast<int64_t>(features.size()) + (intercept ? 1 : 0); }
};

class NewtonPreconditioner {
 public:
  NewtonPreconditioner(const SmoothRows& rows, GroupPenalty& penalty, Monitor& monitor)
      : rows_(rows), penalty_(penalty), monitor_(monitor), width_(rows.width),
        outputs_(rows.outputs),
        coupled_(outputs_ > 1 && rows.loss() != LossKind::ovr_squared_hinge),
        shifts_(coupled_ && penalty.alike()),
        separate_(!coupled_ || (shifts_ && rows.loss() == LossKind::logistic)),
        usable_(shifts_ || (!coupled_ && !penalty.ties())) {}

  // Make ready for a system at the current curvature of the samples.
  void prepare(const SmoothNewtonSystem& system) {
    system_ = &system;
    inverse_.assign(system.w.size(), 0.0);
    for (std::size_t e = 0; e < inverse_.size(); ++e) {
      const double below = system.diagonal[e] + system.straight[e];
      if (system.mark[e] == GroupPenalty::loose && below > 0.0) inverse_[e] = 1.0 / below;
    }
    const double cost = cost_of_gram();
    if (spent_ >= cost) build();
    factorise();
  }

  // Count the products that were made with the help of this preconditioner.
  void spend(int products) { spent_ += products; }

  void apply(const std::vector<double>& r, std::vector<double>& z) {
    const std::vector<double>* input = &r;
    if (shifts_) {
      centre(r);
      input = &centred_;
    }
    for (std::size_t e = 0; e < z.size(); ++e) z[e] = inverse_[e] * (*input)[e];
    for (const Factor& factor : factors_) solve(factor, *input, z);
    if (shifts_) add_shifts(z);
    if (!penalty_.ties()) return;
    for (std::size_t k = 0; k < system_->groups.size(); ++k) {
      const std::size_t o = at(system_->starts[k] * width_);
      penalty_.precondition_ties(system_->groups[k], &system_->w[o], &system_->mark[o],
                                 &system_->diagonal[o], &r[o], &z[o]);
    }
  }

 private:
  using Settings = BlockNewtonSettings;
  static constexpr int32_t kIntercept = -1;  // in the place of a feature's number

  struct Factor {
    int first, count;           // outputs it serves
    std::vector<int64_t> rows;  // of the system
    std::vector<double> cholesky;
  };

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

  int matrices() const { return separate_ ? outputs_ : 1; }

  float weight(int64_t i, int matrix) const {
    const float* c = rows_.C.data() + i * rows_.stride;
    if (separate_) return c[matrix];
    float sum = 0.0F;
    for (int k = 0; k < outputs_; ++k) sum += c[k];
    return sum / static_cast<float>(outputs_);
  }

  // The time of building and factorising, in products with the Hessian; infinite where there is
  // no room for the matrices, and where classes or features are coupled otherwise than by them:
  // with l1 on a loss of differences, and with l1/linf, it took longer than the diagonal.
  double cost_of_gram() const {
    const auto m = static_cast<double>(system_->rows());
    const auto entries = static_cast<double>(system_->X.features.size());
    const double room = std::max(static_cast<double>(Settings::kSmall), entries);
    if (m * m * matrices() > room || entries == 0.0 || !usable_)
      return std::numeric_limits<double>::infinity();
    double samples = 0.0;
    for (int k = 0; k < (separate_ ? outputs_ : 0); ++k) {
      for (const int32_t i : rows_.active) samples += weight(i, k) > 0.0F;
    }
    if (!separate_) samples = static_cast<double>(rows_.active.size());
    const double share = static_cast<double>(rows_.active.size()) / static_cast<double>(rows_.n);
    const double product = Settings::kOperations * entries * share * std::max(rows_.stride, 8);
    return (samples * m * m + matrices() * m * m * m / 3.0) / std::max(product, 1.0);
  }

  void build() {
    spent_ = 0.0;
    built_ = system_->features;
    if (system_->intercept) built_.push_back(kIntercept);
    const std::size_t m = built_.size();
    gram_.assign(at(matrices()), {});
    samples_.clear();
    std::vector<double> batch(m * at(Settings::kBatch));
    for (int k = 0; k < matrices(); ++k) {
      gram_[at(k)].assign(m * m, 0.0);
      samples_.push_back(0);
      int64_t filled = 0;
      for (const int32_t i : rows_.active) {
        const float c = weight(i, k);
        if (!(c > 0.0F)) continue;
        ++samples_.back();
        const double root = std::sqrt(static_cast<double>(c));
        double* row = batch.data() + at(filled) * m;
        std::fill(row, row + m, 0.0);
        const ActiveRows& X = system_->X;
        for (int64_t e = X.starts[at(i)]; e < X.starts[at(i) + 1]; ++e) {
          row[X.features[at(e)]] = root * static_cast<double>(X.values[at(e)]);
        }
        if (system_->intercept) row[m - 1] = root;
        if (++filled == Settings::kBatch) multiply(batch, filled, gram_[at(k)]), filled = 0;
      }
      multiply(batch, filled, gram_[at(k)]);
    }
  }

  void multiply(const std::vector<double>& batch, int64_t count, std::vector<double>& gram) {
    monitor_.poll();
    const int m = static_cast<int>(built_.size());
    syrk('L', 'N', m, static_cast<int>(count), 1.0, batch.data(), m, 1.0, gram.data(), m);
  }

  // For each row of the system its place in the Gram matrices, or -1.
  std::vector<int64_t> places() const {
    std::vector<int64_t> found(at(system_->rows()), -1);
    const auto row_of = [&](std::size_t f) {
      return f < system_->features.size() ? system_->features[f] : kIntercept;
    };
    std::unordered_map<int32_t, int64_t> place;
    for (std::size_t f = 0; f < built_.size(); ++f) place[built_[f]] = static_cast<int64_t>(f);
    for (std::size_t f = 0; f < found.size(); ++f) {
      if (const auto known = place.find(row_of(f)); known != place.end()) found[f] = known->second;
    }
    return found;
  }

  void factorise() {
    factors_.clear();
    if (built_.empty()) return;
    const std::vector<int64_t> place = places();
    for (int k = 0; k < (separate_ ? outputs_ : 1); ++k) {
      Factor factor{k, separate_ ? 1 : outputs_, {}, {}};
      for (int64_t f = 0; f < system_->rows(); ++f) {
        if (place[at(f)] >= 0 && system_->mark[at(f * width_ + k)] == GroupPenalty::loose)
          factor.rows.push_back(f);
      }
      const std::size_t matrix = at(separate_ ? k : 0);
      if (samples_[matrix] < Settings::kSamples * factor.rows.size()) continue;
      if (!factor.rows.empty() && factorise(gram_[matrix], place, factor))
        factors_.push_back(std::move(factor));
    }
  }

  bool factorise(const std::vector<double>& gram, const std::vector<int64_t>& place,
                 Factor& factor) const {
    const std::size_t m = factor.rows.size(), M = built_.size();
    for (double ridge = 1e-12; ridge < 1e-2; ridge *= 1e3) {
      factor.cholesky.resize(m * m);
      for (std::size_t a = 0; a < m; ++a) {
        const std::size_t pa = at(place[at(factor.rows[a])]);
        for (std::size_t b = a; b < m; ++b) {
          const std::size_t pb = at(place[at(factor.rows[b])]);
          factor.cholesky[a * m + b] = gram[std::min(pa, pb) * M + std::max(pa, pb)];
        }
        double& diagonal = factor.cholesky[a * m + a];
        diagonal += system_->straight[at(factor.rows[a] * width_ + factor.first)];
        diagonal += ridge * diagonal;
        if (!(diagonal > 0.0)) diagonal = 1.0;
      }
      if (potrf('L', static_cast<int>(m), factor.cholesky.data(), static_cast<int>(m)) == 0)
        return true;
    }
    return false;
  }

  void solve(const Factor& factor, const std::vector<double>& r, std::vector<double>& z) {
    const std::size_t m = factor.rows.size();
    work_.resize(m * at(factor.count));
    for (int k = 0; k < factor.count; ++k) {
      for (std::size_t a = 0; a < m; ++a)
        work_[at(k) * m + a] = r[at(factor.rows[a] * width_ + factor.first + k)];
    }
    const int size = static_cast<int>(m);
    if (factor.count == 1)
      potrs_one(size, factor.cholesky.data(), work_.data());
    else
      potrs('L', size, factor.count, factor.cholesky.data(), size, work_.data(), size);
    for (int k = 0; k < factor.count; ++k) {
      for (std::size_t a = 0; a < m; ++a)
        z[at(factor.rows[a] * width_ + factor.first + k)] = work_[at(k) * m + a];
    }
  }

  double mean(const double* row) const {
    double sum = 0.0;
    for (int k = 0; k < outputs_; ++k) sum += row[k];
    return sum / outputs_;
  }

  void centre(const std::vector<double>& r) {
    centred_.assign(r.size(), 0.0);
    shift_.resize(at(system_->rows()));
    for (int64_t f = 0; f < system_->rows(); ++f) {
      const double* row = r.data() + f * width_;
      const double level = shift_[at(f)] = mean(row);
      for (int k = 0; k < outputs_; ++k) centred_[at(f * width_ + k)] = row[k] - level;
    }
  }

  void add_shifts(std::vector<double>& z) const {
    for (int64_t f = 0; f < system_->rows(); ++f) {
      double* row = z.data() + f * width_;
      const double bend = system_->straight[at(f * width_)];
      const double move = (bend > 0.0 ? shift_[at(f)] / bend : 0.0) - mean(row);
      for (int k = 0; k < outputs_; ++k) row[k] += move;
    }
  }

  const SmoothRows& rows_;
  GroupPenalty& penalty_;
  Monitor& monitor_;
  int width_, outputs_;
  // Whether the loss couples the classes, shifts are split off, and each class has its own matrix.
  bool coupled_, shifts_, separate_, usable_;
  const SmoothNewtonSystem* system_ = nullptr;
  std::vector<double> inverse_, centred_, shift_, work_;
  std::vector<int32_t> built_;
  std::vector<std::vector<double>> gram_;
  std::vector<std::size_t> samples_;  // behind each of them
  std::vector<Factor> factors_;
  double spent_ = 0.0;
};

}  // namespace sparsvm
