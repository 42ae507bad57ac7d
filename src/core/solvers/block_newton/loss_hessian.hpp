// The Hessian of the loss in single weights (feature, output), formed at a reference point.
//
// With c_ik = mass times the second derivative of a sample's loss in output k, two weights of one
// output have the entry sum_i c_ik x_ij x_il. Outputs k and l are coupled by
//
//   logistic        -sum_i p_i q_ik q_il x x      q: the probabilities
//   squared_hinge   -sum_i 2 p_i x x              over samples of k that violate against l, and vice versa
//
// and not at all with one output or one-vs-rest. So every entry is a sum of terms of one sign: none
// is lost where probabilities come near 0 or 1.
//
// Weights that join later are added at the same reference point: along a path the matrix serves for
// several alphas, as long as the curvature has hardly changed. In the curvature of the squared hinges,
// which is that of a sample or zero, the matrix is linear: there the samples that have changed are added.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "design/column_reader.hpp"
#include "linalg/blas.hpp"
#include "loss/smooth_rows.hpp"
#include "support/monitor.hpp"
#include "support/simd.hpp"

namespace sparsvm {

// out = a b.
SPARSVM_DISPATCH static void multiply_into(const double* a, const double* b, int64_t count,
                                           double* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
}

struct WeightIndex {
  static constexpr int32_t kIntercept = -1;  // in the place of the feature
  int32_t feature, output;
};

class LossHessian {
 public:
  LossHessian(const SmoothRows& rows, const ColumnSource& columns, Monitor& monitor)
      : rows_(rows), columns_(columns), monitor_(monitor) {}

  // Forget all weights and take the present curvature of the samples.
  void restart() {
    place_.clear(), weights_.clear(), features_.clear(), tile_of_.clear();
    members_.assign(at(rows_.outputs), {});
    const std::size_t n = at(rows_.n), outputs = at(rows_.outputs);
    curvature_.resize(n * outputs), shares_.resize(n * outputs);
    for (std::size_t i = 0; i < n; ++i)
      curvature_of(i, &curvature_[i * outputs], &shares_[i * outputs]);
    set_factors(curvature_);
    changed_ = 0.0;
    started_ = true;
  }

  // Take the present curvature of the samples, by adding its change: exact, and much less work where few
  // samples have changed. Only where the matrix is linear in the curvature.
  void update() {
    const std::size_t n = at(rows_.n), outputs = at(rows_.outputs);
    std::vector<double> change(n * outputs);
    changed_ += this->change();
    for (std::size_t i = 0; i < n; ++i) {
      double* to = &change[i * outputs];
      curvature_of(i, to, nullptr);
      for (std::size_t k = 0; k < outputs; ++k)
        std::swap(to[k], curvature_[i * outputs + k]), to[k] = curvature_[i * outputs + k] - to[k];
    }
    set_factors(change);
    if (size() > 0) form(0, true);
    set_factors(curvature_);
  }

  // Sum of the relative changes that have been added since the matrix was formed.
  double changed() const { return changed_; }
  bool linear() const {
    return rows_.loss() == LossKind::squared_hinge || rows_.loss() == LossKind::ovr_squared_hinge;
  }
  // Whether weights of different outputs have entries other than zero.
  bool coupled() const { return rows_.outputs > 1 && rows_.loss() != LossKind::ovr_squared_hinge; }

  bool started() const { return started_; }
  int size() const { return static_cast<int>(weights_.size()); }
  double entry(int a, int b) const { return matrix_[at(b) * at(capacity_) + at(a)]; }
  const double* column(int a) const { return matrix_.data() + at(a) * at(capacity_); }

  // How far the curvature of the samples is from that of the reference point, relative to it.
  double change() const {
    double moved = 0.0, total = 0.0;
    const std::size_t outputs = at(rows_.outputs);
    std::vector<double> c(outputs), q(outputs);
    for (std::size_t i = 0; i < at(rows_.n); ++i) {
      curvature_of(i, c.data(), q.data());
      for (std::size_t k = 0; k < outputs; ++k) {
        const double before = curvature_[i * outputs + k];
        moved += std::abs(c[k] - before), total += before;
      }
    }
    return total > 0.0 ? moved / total : 1.0;
  }

  // Make sure that all of the list are there; `place` tells where.
  void require(const std::vector<WeightIndex>& list, std::vector<int>& place) {
    const int before = size();
    place.resize(list.size());
    for (std::size_t e = 0; e < list.size(); ++e) {
      const auto [found, fresh] = place_.try_emplace(key(list[e]), size());
      place[e] = found->second;
      if (fresh) add(list[e]);
    }
    reserve(size());
    if (size() > before) form(before);
  }

 private:
  // Samples multiplied at once, and the side of a square that fits the fastest cache.
  static constexpr int64_t kBatch = 512;
  static constexpr int kTile = 32;

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

  bool differences() const { return rows_.outputs > 1 && rows_.loss() == LossKind::squared_hinge; }
  int64_t key(const WeightIndex& w) const {
    return (int64_t{w.feature} + 1) * rows_.outputs + w.output;
  }

  // The samples with curvature, and its factors.
  void set_factors(const std::vector<double>& curvature) {
    const std::size_t n = at(rows_.n), outputs = at(rows_.outputs);
    position_.assign(n, -1);
    samples_.clear();
    for (std::size_t i = 0; i < n; ++i) {
      const double* c = &curvature[i * outputs];
      if (std::all_of(c, c + outputs, [](double x) { return x == 0.0; })) continue;
      position_[i] = static_cast<int32_t>(samples_.size());
      samples_.push_back(static_cast<int32_t>(i));
    }
    const std::size_t active = samples_.size();
    diagonal_.resize(active * outputs);
    if (coupled()) link_.resize(active * outputs);
    if (differences()) own_.assign(active * outputs, 0.0);
    for (std::size_t a = 0; a < active; ++a) {
      const std::size_t i = at(samples_[a]);
      const double *c = &curvature[i * outputs], *q = &shares_[i * outputs];
      const double root = std::sqrt(rows_.data().mass[i]);
      const auto y = static_cast<std::size_t>(rows_.data().y[i]);
      for (std::size_t k = 0; k < outputs; ++k) {
        diagonal_[k * active + a] = c[k];
        if (differences())
          link_[k * active + a] = k == y ? 0.0 : c[k];
        else if (coupled())
          link_[k * active + a] = root * q[k];
      }
      if (differences()) own_[y * active + a] = 1.0;
    }
  }

  double curvature_of(std::size_t i, double* c, double* q) const {
    const RowData& data = rows_.data();
    const bool shares = coupled() && !differences();
    return row_loss::curvatures(data.loss, rows_.D.data() + i * at(rows_.width), rows_.outputs,
                                static_cast<int>(data.y[i]), data.mass[i], c, shares ? q : nullptr);
  }

  void add(const WeightIndex& w) {
    const auto [found, fresh] = tile_of_.try_emplace(w.feature, static_cast<int>(features_.size()));
    if (fresh) features_.push_back(w.feature);
    members_[at(w.output)].push_back(size());
    weights_.push_back(w);
    tile_.resize(weights_.size());
    tile_.back() = found->second;
  }

  void reserve(int count) {
    if (count <= capacity_) return;
    const int wider = std::max(count, capacity_ + capacity_ / 2);
    std::vector<double> matrix(at(wider) * at(wider), 0.0);
    for (int c = 0; c < capacity_; ++c)
      std::copy_n(column(c), capacity_, matrix.data() + at(c) * at(wider));
    matrix_.swap(matrix);
    capacity_ = wider;
  }

  // The rows and columns of the weights from `first` on; `change`: add to what is there.
  void form(int first, bool change = false) {
    const int total = size(), active = static_cast<int>(samples_.size());
    monitor_.spend(static_cast<double>(active) * total * (total - first));
    for (int c = first; c < total && !change; ++c)
      std::fill_n(matrix_.data() + at(c) * at(capacity_), total, 0.0);
    std::vector<std::vector<double>> same(members_.size());
    std::vector<int> before(members_.size());
    for (std::size_t k = 0; k < members_.size(); ++k) {
      const auto& list = members_[k];
      before[k] =
          static_cast<int>(std::lower_bound(list.begin(), list.end(), first) - list.begin());
      same[k].assign(list.size() * (list.size() - at(before[k])), 0.0);
    }
    for (int from = 0; from < active; from += static_cast<int>(kBatch)) {
      monitor_.poll();
      const int rows = std::min(static_cast<int>(kBatch), active - from);
      load(from, rows);
      if (coupled()) add_coupling(first, from, rows);
      for (std::size_t k = 0; k < members_.size(); ++k)
        add_same(k, before[k], from, rows, change, same[k]);
    }
    for (std::size_t k = 0; k < members_.size(); ++k) {
      const std::size_t upto = members_[k].size();
      for (std::size_t b = at(before[k]); b < upto; ++b)
        for (std::size_t a = 0; a <= b; ++a) {
          double& entry = matrix_[at(members_[k][b]) * at(capacity_) + at(members_[k][a])];
          entry = (change ? entry : 0.0) + same[k][(b - at(before[k])) * upto + a];
        }
    }
    mirror(first);
  }

  // Copy the upper triangle of the columns from `first` on to the lower one.
  void mirror(int first) {
    const int total = size();
    for (int c = first; c < total; c += kTile)
      for (int a = 0; a < total; a += kTile)
        for (int column = c; column < std::min(c + kTile, total); ++column)
          for (int row = a; row < std::min(a + kTile, column); ++row)
            matrix_[at(row) * at(capacity_) + at(column)] =
                matrix_[at(column) * at(capacity_) + at(row)];
  }

  // Weights of two outputs; what is added to two of one output is replaced later (of differences, it is zero).
  void add_coupling(int first, int from, int rows) {
    const int total = size(), count = total - first;
    double* block = matrix_.data() + at(first) * at(capacity_);
    scale(link_, from, rows, total, left_);
    if (differences()) {
      scale(own_, from, rows, total, right_);
      for (const auto* pair : {&left_, &right_}) {
        const auto* other = pair == &left_ ? &right_ : &left_;
        gemm('T', 'N', total, count, rows, -1.0, pair->data(), rows,
             other->data() + at(first) * at(rows), rows, 1.0, block, capacity_);
      }
    } else {
      upper_product(first == 0, -1.0, left_.data(), left_.data() + at(first) * at(rows), first,
                    total, rows, block, capacity_);
    }
  }

  // Two weights of output k. Without `change` no curvature is negative.
  void add_same(std::size_t k, int before, int from, int rows, bool change,
                std::vector<double>& sum) {
    const auto& list = members_[k];
    const int upto = static_cast<int>(list.size());
    if (upto == before) return;
    const double* c = diagonal_.data() + k * samples_.size() + at(from);
    left_.resize(std::max(left_.size(), at(upto) * at(rows)));
    right_.resize(std::max(right_.size(), at(upto - before) * at(rows)));
    const bool square = before == 0 && !change;
    if (square) {
      root_.resize(at(rows));
      for (int i = 0; i < rows; ++i) root_[at(i)] = std::sqrt(c[i]);
      c = root_.data();
    }
    for (int b = before; b < upto; ++b)
      multiply_into(tiles_.data() + at(tile_[at(list[at(b)])]) * at(rows), c, rows,
                    right_.data() + at(b - before) * at(rows));
    for (int a = 0; a < upto && !square; ++a)
      std::copy_n(tiles_.data() + at(tile_[at(list[at(a)])]) * at(rows), rows,
                  left_.data() + at(a) * at(rows));
    upper_product(square, 1.0, left_.data(), right_.data(), before, upto, rows, sum.data(), upto);
  }

  // Add a multiple of left' right to the columns from `first` on of a symmetric matrix; the triangle below
  // the diagonal is not needed. Where it is a square it is right' right.
  static void upper_product(bool square, double multiple, const double* left, const double* right,
                            int first, int total, int rows, double* out, int ld) {
    if (square)
      syrk('U', 'T', total, rows, multiple, right, rows, 1.0, out, ld);
    else
      gemm('T', 'N', total, total - first, rows, multiple, left, rows, right, rows, 1.0, out, ld);
  }

  // The columns of the features in use, on some samples with curvature.
  void load(int from, int rows) {
    tiles_.assign(features_.size() * at(rows), 0.0);
    const int32_t first = samples_[at(from)], last = samples_[at(from + rows - 1)];
    for (std::size_t f = 0; f < features_.size(); ++f) {
      double* tile = tiles_.data() + f * at(rows);
      if (features_[f] == WeightIndex::kIntercept) {
        std::fill_n(tile, rows, 1.0);
        continue;
      }
      const ColumnView c = columns_[features_[f]];
      if (c.single)
        load(c, static_cast<const float*>(c.values), from, first, last, tile);
      else
        load(c, static_cast<const double*>(c.values), from, first, last, tile);
    }
  }

  template <typename X>
  void load(const ColumnView& c, const X* x, int from, int32_t first, int32_t last,
            double* tile) const {
    const int32_t *end = c.rows + c.count, *row = std::lower_bound(c.rows, end, first);
    const int32_t* stop = std::upper_bound(row, end, last);
    x += row - c.rows;
    const int64_t count = stop - row;
    if (count == last - first + 1 && position_[at(last)] - from == last - first) {
      for (int64_t e = 0; e < count; ++e) tile[e] = static_cast<double>(x[e]);
      return;
    }
    for (int64_t e = 0; e < count; ++e) {
      const int32_t position = position_[at(row[e])];
      if (position >= 0) tile[position - from] = static_cast<double>(x[e]);
    }
  }

  // Columns of the first `total` weights, times the factors of their outputs.
  void scale(const std::vector<double>& factors, int from, int rows, int total,
             std::vector<double>& out) {
    out.resize(std::max(out.size(), at(total) * at(rows)));
    for (int c = 0; c < total; ++c) {
      multiply_into(tiles_.data() + at(tile_[at(c)]) * at(rows),
                    factors.data() + at(weights_[at(c)].output) * samples_.size() + at(from), rows,
                    out.data() + at(c) * at(rows));
    }
  }

  const SmoothRows& rows_;
  const ColumnSource& columns_;
  Monitor& monitor_;
  bool started_ = false;
  double changed_ = 0.0;
  std::vector<int32_t> samples_, position_;  // samples with curvature, and where each is among them
  // Per output and sample with curvature: c, and the factors of the coupling.
  std::vector<double> diagonal_, link_, own_;
  std::vector<double> curvature_, shares_;  // of all samples
  std::unordered_map<int64_t, int> place_;
  std::unordered_map<int32_t, int> tile_of_;
  std::vector<WeightIndex> weights_;
  std::vector<int32_t> features_;
  std::vector<int> tile_;                  // of each weight's feature
  std::vector<std::vector<int>> members_;  // weights of each output
  int capacity_ = 0;
  std::vector<double> matrix_, tiles_, left_, right_, root_;
};

}  // namespace sparsvm
