// The part of the Newton system that couples the classes: one column per penalty group that spans
// them. N_k (n x R) is the class-k part of those columns, scaled so that the coupling is sum_k N_k
// N_k' with unit weights. After them come the columns of open coordinates, normalised, with weights
// of their own: N' dY = weight * z.
//
// On text the columns are sparse, and then working with the explicit inverse of M_k costs
// nnz(N_k) * (n + R) instead of the n^2 R + n R^2 of dense triangular solves (News20, 200
// documents, 20 classes: 5 x less time for an iteration).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "linalg/blas.hpp"
#include "linalg/gram.hpp"
#include "penalty/cone_blocks.hpp"
#include "solvers/interior_point/open_coordinates.hpp"

namespace sparsvm {

class ClassCoupling {
 public:
  int count() const { return count_; }
  bool sparse() const { return sparse_; }

  int n_open() const { return static_cast<int>(weight_.size()); }  // the last of the columns
  int n_groups() const { return count_ - n_open(); }
  double weight(int r) const { return r < n_groups() ? 1.0 : weight_[r - n_groups()]; }

  void clear() {
    count_ = 0;
    weight_.clear();
  }

  // Xw: gathered columns, n x m. Blocks without a rank-one part do not couple. `joint`: blocks span
  // classes.
  void build(const ConeBlocks& blocks, const OpenCoordinates& open, const double* Xw, int n,
             int n_classes, bool joint, bool allow_sparse) {
    n_ = n;
    list_terms(blocks, open, joint);
    sparse_ = allow_sparse;
    if (sparse_) find_pattern(blocks, Xw);
    values_.assign(static_cast<std::size_t>(n_classes) * per_class(), 0.0);
    for (int r = 0; r < count_; ++r)
      for (std::size_t a = first_[r]; a < first_[r + 1]; ++a) {
        const std::int64_t c = terms_[a].coordinate;
        const double* x = Xw + static_cast<std::size_t>(blocks.col[c]) * n_;
        const double f = terms_[a].factor;
        double* out = values_.data() + blocks.cls[c] * per_class();
        if (sparse_) {
          for (std::int64_t p = start_[r]; p < start_[r + 1]; ++p) out[p] += f * x[row_[p]];
        } else {
          out += static_cast<std::size_t>(r) * n_;
          for (int i = 0; i < n_; ++i) out[i] += f * x[i];
        }
      }
    for (int o = 0; o < open.count(); ++o) normalise(o, open.rho(o), n_classes);
  }

  // What z has to be multiplied by for the open coordinates as they are, before normalisation.
  double unknown_scale(int o) const { return 1.0 / size_[o]; }

  // Mean over samples of the diagonal of N_k N_k', without the open coordinates.
  double mean_diagonal(int k) const {
    const double* v = values_.data() + k * per_class();
    const std::size_t last = sparse_ ? static_cast<std::size_t>(start_[n_groups()])
                                     : static_cast<std::size_t>(n_) * n_groups();
    double sum = 0.0;
    for (std::size_t p = 0; p < last; ++p) sum += v[p] * v[p];
    return sum / n_;
  }

  // N_k as an n x R matrix, when built without sparsity.
  const double* dense(int k) const { return values_.data() + k * per_class(); }

  // z += N_k' y
  void gather(int k, const double* y, double* z) const {
    const double* v = values_.data() + k * per_class();
    if (!sparse_) {
      gemv('T', n_, count_, 1.0, v, n_, y, 1, 1.0, z, 1);
      return;
    }
    for (int r = 0; r < count_; ++r)
      for (std::int64_t p = start_[r]; p < start_[r + 1]; ++p) z[r] += v[p] * y[row_[p]];
  }

  // out += f N_k z
  void scatter(int k, double f, const double* z, double* out) const {
    const double* v = values_.data() + k * per_class();
    if (!sparse_) {
      gemv('N', n_, count_, f, v, n_, z, 1, 1.0, out, 1);
      return;
    }
    for (int r = 0; r < count_; ++r)
      for (std::int64_t p = start_[r]; p < start_[r + 1]; ++p) out[row_[p]] += f * v[p] * z[r];
  }

  // P (n x R) = M_k^-1 N_k and the lower triangle of T += N_k' P, from the full inverse of M_k if it
  // is given, which sparse columns need, or from its Cholesky factor. (With 38 samples and 40 to 110
  // columns the triangular solves take three times as long as products with the inverse.)
  void eliminate(int k, const double* factor, const double* inverse, std::vector<double>& P,
                 double* T, int ldt) {
    const double* v = values_.data() + k * per_class();
    const std::size_t size = static_cast<std::size_t>(n_) * count_;
    if (!sparse_ && inverse) {
      P.resize(size);
      gemm('N', 'N', n_, count_, n_, 1.0, inverse, n_, v, n_, 0.0, P.data(), n_);
      add_lower_product(count_, n_, v, P.data(), T, ldt);
      return;
    }
    if (!sparse_) {
      P.assign(v, v + size);
      trsm('L', 'L', 'N', 'N', n_, count_, 1.0, factor, n_, P.data(), n_);
      syrk('L', 'T', count_, n_, 1.0, P.data(), n_, 1.0, T, ldt);
      trsm('L', 'L', 'T', 'N', n_, count_, 1.0, factor, n_, P.data(), n_);
      return;
    }
    P.assign(size, 0.0);
    rows_of_P_.resize(size);
    for (int r = 0; r < count_; ++r) {
      double* column = P.data() + static_cast<std::size_t>(r) * n_;
      for (std::int64_t p = start_[r]; p < start_[r + 1]; ++p) {
        const double* a = inverse + static_cast<std::size_t>(row_[p]) * n_;
        for (int i = 0; i < n_; ++i) column[i] += v[p] * a[i];
      }
      for (int i = 0; i < n_; ++i) rows_of_P_[static_cast<std::size_t>(i) * count_ + r] = column[i];
    }
    // Row s of N_k' P up to its diagonal: contiguous in the rows of P, which the vectoriser likes
    // better than gathering from its columns (10 % of a News20 solve).
    row_sum_.resize(count_);
    for (int s = 0; s < count_; ++s) {
      std::fill(row_sum_.begin(), row_sum_.begin() + s + 1, 0.0);
      for (std::int64_t p = start_[s]; p < start_[s + 1]; ++p) {
        const double* from = rows_of_P_.data() + static_cast<std::size_t>(row_[p]) * count_;
        for (int r = 0; r <= s; ++r) row_sum_[r] += v[p] * from[r];
      }
      for (int r = 0; r <= s; ++r) T[static_cast<std::size_t>(r) * ldt + s] += row_sum_[r];
    }
  }

 private:
  static constexpr double kSparseBelow = 0.2;  // density of the columns

  int n_ = 0, count_ = 0;
  bool sparse_ = false;
  std::vector<OpenCoordinates::Term> terms_;  // of column r: [first_[r], first_[r + 1])
  std::vector<std::size_t> first_;
  std::vector<double> weight_, size_;  // per open coordinate
  std::vector<std::int64_t> start_;
  std::vector<std::int32_t> row_;
  std::vector<double> values_;  // per class: the pattern's values, or n x R dense
  std::vector<double> rows_of_P_, row_sum_;

  std::size_t per_class() const {
    return sparse_ ? row_.size() : static_cast<std::size_t>(n_) * count_;
  }

  void list_terms(const ConeBlocks& blocks, const OpenCoordinates& open, bool joint) {
    terms_.clear();
    first_.assign(1, 0);
    for (std::int64_t b = 0; b < blocks.size() && joint; ++b) {
      if (!(blocks.kappa(b) > 0.0)) continue;
      const double root = std::sqrt(open.kappa(blocks, b));
      for (std::int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
        if (!open.is_open(c)) terms_.push_back({c, root * blocks.vec[c]});
      first_.push_back(terms_.size());
    }
    for (int o = 0; o < open.count(); ++o) {
      terms_.insert(terms_.end(), open.begin(o), open.end(o));
      first_.push_back(terms_.size());
    }
    count_ = static_cast<int>(first_.size()) - 1;
    weight_.assign(open.count(), 0.0);
    size_.assign(open.count(), 0.0);
  }

  // Brings the column of an open coordinate to a mean square of one.
  void normalise(int o, double rho, int n_classes) {
    const int r = n_groups() + o;
    const std::size_t from = sparse_ ? start_[r] : static_cast<std::size_t>(r) * n_;
    const std::size_t to = sparse_ ? start_[r + 1] : from + n_;
    double sum = 0.0;
    for (int k = 0; k < n_classes; ++k)
      for (std::size_t p = from; p < to; ++p) {
        const double v = values_[k * per_class() + p];
        sum += v * v;
      }
    size_[o] = std::sqrt(sum / n_);
    weight_[o] = rho / (size_[o] * size_[o]);
    for (int k = 0; k < n_classes; ++k)
      for (std::size_t p = from; p < to; ++p) values_[k * per_class() + p] /= size_[o];
  }

  // The rows that any feature of a group touches, as long as they are few.
  void find_pattern(const ConeBlocks& blocks, const double* Xw) {
    start_.assign(1, 0);
    row_.clear();
    const double limit = kSparseBelow * n_ * count_;
    sparse_ = true;
    for (int r = 0; r < count_ && sparse_; ++r) {
      for (int i = 0; i < n_; ++i) {
        bool touched = false;
        for (std::size_t a = first_[r]; a < first_[r + 1] && !touched; ++a)
          touched = Xw[static_cast<std::size_t>(blocks.col[terms_[a].coordinate]) * n_ + i] != 0.0;
        if (touched) row_.push_back(i);
      }
      start_.push_back(static_cast<std::int64_t>(row_.size()));
      sparse_ = static_cast<double>(row_.size()) <= limit;
    }
    if (!sparse_) row_.clear();
  }
};

}  // namespace sparsvm
