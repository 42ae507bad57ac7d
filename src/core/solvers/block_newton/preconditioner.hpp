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
//
// The curvature of a group's length is diag(straight) - r r', with r along the group: the diagonal alone makes the
// only direction in which the length has no curvature the stiffest. So the r are taken off again,
//
//   (P - R R')^-1 = P^-1 + P^-1 R (I - R' P^-1 R)^-1 R' P^-1.
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
#include "solvers/block_newton/products.hpp"
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

  // Make ready for a system at the current curvature of the samples, and the rings of its penalty.
  void prepare(const SmoothNewtonSystem& system, const std::vector<double>& ring) {
    system_ = &system;
    inverse_.assign(system.w.size(), 0.0);
    for (std::size_t e = 0; e < inverse_.size(); ++e) {
      const double below = system.diagonal[e] + system.straight[e];
      if (system.mark[e] == GroupPenalty::loose && below > 0.0) inverse_[e] = 1.0 / below;
    }
    const double cost = cost_of_gram();
    if (spent_ >= cost) build();
    load_rings(ring);
    factorise();
    factorise_rings();
  }

  // Count the products that were made with the help of this preconditioner.
  void spend(int products) { spent_ += products; }

  void apply(const std::vector<double>& r, std::vector<double>& z) {
    const std::vector<double>* input = &r;
    if (shifts_) {
      centre(r);
      input = &centred_;
    }
    solve(*input, z);
    if (rings_ > 0) add_rings(*input, z);
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
  static constexpr int32_t kIntercept = -1;   // in the place of a feature's number
  static constexpr double kLeastKept = 1e-8;  // of I - R'P^-1R, against rounding
  // Added to it where P is a Gram matrix: weight exchanged between groups of features that are tied has no
  // curvature, and rounding there would fill the steps. (1000 x 100 in five classes and 30 columns twice: a
  // path of 0.9 s took 10.2, with 1e-3 it takes 1.2.)
  static constexpr double kExchange = 1e-2;

  struct Factor {
    int first, count;              // outputs it serves
    std::vector<int64_t> rows;     // of the system
    std::vector<double> cholesky;  // or, where there are rings, the inverse (lower triangles)
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
    monitor_.spend(0.5 * static_cast<double>(count) * m * m);
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
    for (double ridge = Settings::kGramRidge; ridge < Settings::kMostGramRidge;
         ridge *= Settings::kGramRidgeGrowth) {
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
      const int size = static_cast<int>(m);
      if (potrf('L', size, factor.cholesky.data(), size) != 0) continue;
      return rings_ == 0 || potri('L', size, factor.cholesky.data(), size) == 0;
    }
    return false;
  }

  // z = P^-1 r.
  void solve(const std::vector<double>& r, std::vector<double>& z) {
    for (std::size_t e = 0; e < z.size(); ++e) z[e] = inverse_[e] * r[e];
    for (const Factor& factor : factors_) solve(factor, r, z);
  }

  void solve(const Factor& factor, const std::vector<double>& r, std::vector<double>& z) {
    const std::size_t m = factor.rows.size();
    work_.resize(m * at(factor.count));
    for (int k = 0; k < factor.count; ++k) {
      for (std::size_t a = 0; a < m; ++a)
        work_[at(k) * m + a] = r[at(factor.rows[a] * width_ + factor.first + k)];
    }
    const int size = static_cast<int>(m);
    if (rings_ > 0) {
      solved_.resize(work_.size());
      for (int k = 0; k < factor.count; ++k)
        symv('L', size, 1.0, factor.cholesky.data(), size, work_.data() + at(k) * m, 1, 0.0,
             solved_.data() + at(k) * m, 1);
      work_.swap(solved_);
    } else if (factor.count == 1)
      potrs_one(size, factor.cholesky.data(), work_.data());
    else
      potrs('L', size, factor.count, factor.cholesky.data(), size, work_.data(), size);
    for (int k = 0; k < factor.count; ++k) {
      for (std::size_t a = 0; a < m; ++a)
        z[at(factor.rows[a] * width_ + factor.first + k)] = work_[at(k) * m + a];
    }
  }

  // Number the rings, one a group or one a group and output; with shifts split off they are centred.
  void load_rings(const std::vector<double>& ring) {
    rings_ = 0;
    if (!penalty_.bends()) return;
    ring_ = ring;
    ring_of_.assign(ring.size(), -1);
    const std::size_t width = at(width_);
    for (std::size_t k = 0; k < system_->groups.size(); ++k) {
      const std::size_t from = at(system_->starts[k]) * width;
      const std::size_t to = from + at(penalty_.size(system_->groups[k])) * width;
      for (std::size_t e = from; e < to; ++e)
        ring_of_[e] = rings_ + (penalty_.joint() ? 0 : static_cast<int>(e % width));
      rings_ += penalty_.joint() ? 1 : width_;
      for (std::size_t row = from; shifts_ && row < to; row += width) {
        const double level = mean(&ring_[row]);
        for (std::size_t e = row; e < row + at(outputs_); ++e) ring_[e] -= level;
      }
    }
  }

  // I - R' P^-1 R: a diagonal where P is one.
  void factorise_rings() {
    if (rings_ == 0) return;
    const std::size_t m = at(rings_);
    std::vector<unsigned char> covered(ring_.size(), 0);
    kept_.assign(m, 1.0);
    capacity_.assign(factors_.empty() ? 0 : m * m, 0.0);
    for (const Factor& factor : factors_) {
      const std::size_t size = factor.rows.size();
      for (int k = factor.first; k < factor.first + factor.count; ++k)
        for (std::size_t a = 0; a < size; ++a) {
          const std::size_t e = at(factor.rows[a] * width_ + k);
          covered[e] = 1;
          if (ring_of_[e] < 0) continue;
          double* to = capacity_.data() + at(ring_of_[e]) * m;
          for (std::size_t b = a; b < size; ++b) {
            const std::size_t f = at(factor.rows[b] * width_ + k);
            if (ring_of_[f] >= 0)
              to[ring_of_[f]] -= (a < b && ring_of_[e] == ring_of_[f] ? 2.0 : 1.0) * ring_[e] *
                                 ring_[f] * factor.cholesky[a * size + b];
          }
        }
    }
    for (std::size_t e = 0; e < ring_.size(); ++e)
      if (ring_of_[e] >= 0 && !covered[e])
        kept_[at(ring_of_[e])] -= ring_[e] * ring_[e] * inverse_[e];
    if (factors_.empty()) {
      for (double& x : kept_) x = std::max(x, kLeastKept);
      return;
    }
    for (std::size_t a = 0; a < m; ++a) capacity_[a * (m + 1)] += kept_[a] + kExchange;
    if (potrf('L', rings_, capacity_.data(), rings_) == 0) return;
    factors_.clear();
    factorise_rings();
  }

  // z = P^-1 r is made (P - R R')^-1 r.
  void add_rings(const std::vector<double>& r, std::vector<double>& z) {
    along_.assign(at(rings_), 0.0);
    for (std::size_t e = 0; e < z.size(); ++e)
      if (ring_of_[e] >= 0) along_[at(ring_of_[e])] += ring_[e] * z[e];
    if (factors_.empty()) {
      for (std::size_t a = 0; a < along_.size(); ++a) along_[a] /= kept_[a];
      for (std::size_t e = 0; e < z.size(); ++e)
        if (ring_of_[e] >= 0) z[e] += inverse_[e] * ring_[e] * along_[at(ring_of_[e])];
      return;
    }
    potrs_one(rings_, capacity_.data(), along_.data());
    loaded_ = r;
    for (std::size_t e = 0; e < z.size(); ++e)
      if (ring_of_[e] >= 0) loaded_[e] += ring_[e] * along_[at(ring_of_[e])];
    solve(loaded_, z);
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
  std::vector<double> inverse_, centred_, shift_, work_, solved_;
  int rings_ = 0;
  std::vector<int> ring_of_;  // which of them each coordinate belongs to, or -1
  std::vector<double> ring_, kept_, capacity_, along_, loaded_;
  std::vector<int32_t> built_;
  std::vector<std::vector<double>> gram_;
  std::vector<std::size_t> samples_;  // behind each of them
  std::vector<Factor> factors_;
  double spent_ = 0.0;
};

}  // namespace sparsvm
