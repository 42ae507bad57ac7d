#include "solvers/interior_point/class_coupling.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "linalg/blas.hpp"
#include "linalg/dense.hpp"
#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

using namespace interior_point_settings;

void ExplicitCoordinates::choose(const ConeBlocks& blocks, const double* column_size, double limit,
                                 double alike) {
  is_explicit_.resize(static_cast<std::size_t>(blocks.n_coordinates()), 0);
  bool any = false;
  for (int64_t b = 0; b < blocks.size(); ++b) {
    double least = ConeBlocks::kUnbounded;
    for (int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
      if (column_size[blocks.col[c]] > 0.0) least = std::min(least, column_size[blocks.col[c]]);
    for (int64_t c = blocks.begin(b); c < blocks.end(b); ++c) {
      const double size = column_size[blocks.col[c]];
      const double curvature = blocks.delta[c] * size * size;
      if (curvature > limit * (size > kContrast * least ? std::min(alike, 1.0) : alike))
        is_explicit_[c] = 1;
      any = any || is_explicit_[c];
    }
  }
  eliminate(blocks, column_size, any);
}

void ExplicitCoordinates::clear() {
  is_explicit_.clear();
  eliminate(ConeBlocks(), nullptr, false);
}

void ExplicitCoordinates::complete(const double* z, double* dg) const {
  for (int o = count() - 1; o >= 0; --o) {
    double value = rho_[o] * z[o];
    for (const Term* t = begin(o) + 1; t < end(o); ++t) value -= t->factor * dg[t->coordinate];
    dg[begin(o)->coordinate] = value;
  }
}

void ExplicitCoordinates::eliminate(const ConeBlocks& blocks, const double* column_size, bool any) {
  terms_.clear();
  first_.assign(1, 0);
  rho_.clear();
  if (!any) return;
  kappa_.resize(static_cast<std::size_t>(blocks.size()));
  done_.assign(is_explicit_.size(), 0);
  std::vector<std::pair<double, int64_t>> order;
  for (int64_t b = 0; b < blocks.size(); ++b) {
    kappa_[b] = blocks.kappa(b);
    order.clear();
    for (int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
      if (is_explicit_[c]) order.emplace_back(-column_size[blocks.col[c]], c);
    std::sort(order.begin(), order.end());
    for (const auto& [size, c] : order) take_out(blocks, b, c);
  }
}

void ExplicitCoordinates::take_out(const ConeBlocks& blocks, int64_t b, int64_t o) {
  const double along = kappa_[b] * blocks.vec[o];
  const double rho = 1.0 / (blocks.delta[o] + along * blocks.vec[o]);
  done_[o] = 1;
  terms_.push_back({o, 1.0});
  for (int64_t c = blocks.begin(b); c < blocks.end(b) && along != 0.0; ++c)
    if (!done_[c]) terms_.push_back({c, rho * along * blocks.vec[c]});
  kappa_[b] *= rho * blocks.delta[o];
  rho_.push_back(rho);
  first_.push_back(terms_.size());
}

void ClassCoupling::clear() {
  count_ = 0;
  weight_.clear();
}

void ClassCoupling::build(const ConeBlocks& blocks, const ExplicitCoordinates& explicits,
                          const double* Xw, int n, int n_classes, bool joint, bool allow_sparse) {
  n_ = n;
  list_terms(blocks, explicits, joint);
  sparse_ = allow_sparse;
  if (sparse_) find_pattern(blocks, Xw);
  values_.assign(static_cast<std::size_t>(n_classes) * per_class(), 0.0);
  for (int r = 0; r < count_; ++r)
    for (std::size_t a = first_[r]; a < first_[r + 1]; ++a) {
      const int64_t c = terms_[a].coordinate;
      const double* x = Xw + static_cast<std::size_t>(blocks.col[c]) * n_;
      const double f = terms_[a].factor;
      double* out = values_.data() + blocks.cls[c] * per_class();
      if (sparse_) {
        for (int64_t p = start_[r]; p < start_[r + 1]; ++p) out[p] += f * x[row_[p]];
      } else {
        out += static_cast<std::size_t>(r) * n_;
        for (int i = 0; i < n_; ++i) out[i] += f * x[i];
      }
    }
  for (int o = 0; o < explicits.count(); ++o) normalise(o, explicits.rho(o), n_classes);
}

double ClassCoupling::mean_diagonal(int k) const {
  const double* v = values_.data() + k * per_class();
  const std::size_t last = sparse_ ? static_cast<std::size_t>(start_[n_groups()])
                                   : static_cast<std::size_t>(n_) * n_groups();
  double sum = 0.0;
  for (std::size_t p = 0; p < last; ++p) sum += v[p] * v[p];
  return sum / n_;
}

void ClassCoupling::gather(int k, const double* y, double* z) const {
  const double* v = values_.data() + k * per_class();
  if (!sparse_) {
    gemv('T', n_, count_, 1.0, v, n_, y, 1, 1.0, z, 1);
    return;
  }
  for (int r = 0; r < count_; ++r)
    for (int64_t p = start_[r]; p < start_[r + 1]; ++p) z[r] += v[p] * y[row_[p]];
}

void ClassCoupling::scatter(int k, double f, const double* z, double* out) const {
  const double* v = values_.data() + k * per_class();
  if (!sparse_) {
    gemv('N', n_, count_, f, v, n_, z, 1, 1.0, out, 1);
    return;
  }
  for (int r = 0; r < count_; ++r)
    for (int64_t p = start_[r]; p < start_[r + 1]; ++p) out[row_[p]] += f * v[p] * z[r];
}

void ClassCoupling::eliminate(int k, const double* factor, const double* inverse,
                              std::vector<double>& P, double* T, int ldt) {
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
    for (int64_t p = start_[r]; p < start_[r + 1]; ++p) {
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
    for (int64_t p = start_[s]; p < start_[s + 1]; ++p) {
      const double* from = rows_of_P_.data() + static_cast<std::size_t>(row_[p]) * count_;
      for (int r = 0; r <= s; ++r) row_sum_[r] += v[p] * from[r];
    }
    for (int r = 0; r <= s; ++r) T[static_cast<std::size_t>(r) * ldt + s] += row_sum_[r];
  }
}

void ClassCoupling::list_terms(const ConeBlocks& blocks, const ExplicitCoordinates& explicits,
                               bool joint) {
  terms_.clear();
  first_.assign(1, 0);
  for (int64_t b = 0; b < blocks.size() && joint; ++b) {
    if (!(blocks.kappa(b) > 0.0)) continue;
    const double root = std::sqrt(explicits.kappa(blocks, b));
    for (int64_t c = blocks.begin(b); c < blocks.end(b); ++c)
      if (!explicits.is_explicit(c)) terms_.push_back({c, root * blocks.vec[c]});
    first_.push_back(terms_.size());
  }
  for (int o = 0; o < explicits.count(); ++o) {
    terms_.insert(terms_.end(), explicits.begin(o), explicits.end(o));
    first_.push_back(terms_.size());
  }
  count_ = static_cast<int>(first_.size()) - 1;
  weight_.assign(explicits.count(), 0.0);
  size_.assign(explicits.count(), 0.0);
}

void ClassCoupling::normalise(int o, double rho, int n_classes) {
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

void ClassCoupling::find_pattern(const ConeBlocks& blocks, const double* Xw) {
  start_.assign(1, 0);
  row_.clear();
  const double limit = kSparseDensity * n_ * count_;
  sparse_ = true;
  for (int r = 0; r < count_ && sparse_; ++r) {
    for (int i = 0; i < n_; ++i) {
      bool touched = false;
      for (std::size_t a = first_[r]; a < first_[r + 1] && !touched; ++a)
        touched = Xw[static_cast<std::size_t>(blocks.col[terms_[a].coordinate]) * n_ + i] != 0.0;
      if (touched) row_.push_back(i);
    }
    start_.push_back(static_cast<int64_t>(row_.size()));
    sparse_ = static_cast<double>(row_.size()) <= limit;
  }
  if (!sparse_) row_.clear();
}

void FeatureElimination::set_columns(int n, std::vector<std::vector<double>> columns,
                                     const ClassCoupling& coupling) {
  n_ = n;
  K_ = static_cast<int>(columns.size());
  columns_ = std::move(columns);
  coupling_ = &coupling;
  offset_.assign(1, 0);
  for (const auto& c : columns_)
    offset_.push_back(offset_.back() + static_cast<int>(c.size() / n_));
  size_ = offset_.back() + coupling.count();
}

void FeatureElimination::form(const std::vector<double>& delta, double* C,
                              const std::function<void()>& poll) {
  pair_ = K_ == 2 && coupling_->count() == 0;
  if (pair_)
    invert_pairs(delta);
  else
    invert(delta);
  std::fill(C, C + static_cast<std::size_t>(size_) * size_, 0.0);
  for (int l = 0; l < K_; ++l) {
    if (width(l) == 0) continue;
    poll();
    for (int k = l; k < K_; ++k)
      if (width(k) > 0) add_block(k, l, C);
  }
  if (coupling_->count() > 0) add_coupling(C);
}

void FeatureElimination::start(const std::vector<double>& f, const std::vector<double>& row,
                               std::vector<double>& y0) {
  y0.resize(f.size());
  apply(f, row, y0, nullptr);
}

void FeatureElimination::gather(const std::vector<double>& y, double* z) const {
  for (int k = 0; k < K_; ++k) {
    if (width(k) > 0)
      gemv('T', n_, width(k), 1.0, columns_[k].data(), n_, y.data() + at(k, 0), 1, 0.0,
           z + offset_[k], 1);
  }
  const int R = coupling_->count();
  std::fill(z + offset_[K_], z + offset_[K_] + R, 0.0);
  for (int k = 0; k < K_ && R > 0; ++k) coupling_->gather(k, y.data() + at(k, 0), z + offset_[K_]);
}

void FeatureElimination::finish(std::vector<double>& f, const std::vector<double>& row,
                                const double* z, std::vector<double>& dY,
                                std::vector<double>& dxi) {
  for (int k = 0; k < K_; ++k) {
    if (width(k) > 0)
      gemv('N', n_, width(k), -1.0, columns_[k].data(), n_, z + offset_[k], 1, 1.0,
           f.data() + at(k, 0), 1);
    if (coupling_->count() > 0) coupling_->scatter(k, -1.0, z + offset_[K_], f.data() + at(k, 0));
  }
  dY.resize(f.size());
  apply(f, row, dY, &dxi);
}

void FeatureElimination::invert_pairs(const std::vector<double>& delta) {
  delta_ = delta;
  h_.resize(n_);
  for (int i = 0; i < n_; ++i) h_[i] = 1.0 / (delta_[at(0, i)] + delta_[at(1, i)]);
}

void FeatureElimination::invert(const std::vector<double>& delta) {
  e_.resize(delta.size());
  sum_.assign(n_, 0.0);
  pivot_.assign(n_, 0);
  for (int k = 0; k < K_; ++k)
    for (int i = 0; i < n_; ++i) {
      e_[at(k, i)] = 1.0 / delta[at(k, i)];
      sum_[i] += e_[at(k, i)];
      if (e_[at(k, i)] > e_[at(pivot_[i], i)]) pivot_[i] = k;
    }
}

double FeatureElimination::hessian(int k, int l, int i) const {
  if (pair_) return k == l ? h_[i] : -h_[i];
  if (k != l) return -e_[at(k, i)] * e_[at(l, i)] / sum_[i];
  double others = 0.0;
  for (int m = 0; m < K_; ++m)
    if (m != k) others += e_[at(m, i)];
  return e_[at(k, i)] * (others / sum_[i]);
}

void FeatureElimination::add_block(int k, int l, double* C) {
  const int wl = width(l);
  weighted_.resize(static_cast<std::size_t>(n_) * wl);
  std::vector<double> h(n_);
  for (int i = 0; i < n_; ++i) h[i] = k == l ? std::sqrt(hessian(k, k, i)) : hessian(k, l, i);
  for (int c = 0; c < wl; ++c)
    for (int i = 0; i < n_; ++i)
      weighted_[static_cast<std::size_t>(c) * n_ + i] =
          h[i] * columns_[l][static_cast<std::size_t>(c) * n_ + i];
  double* block = C + static_cast<std::size_t>(offset_[l]) * size_ + offset_[k];
  if (k == l)
    syrk('L', 'T', wl, n_, 1.0, weighted_.data(), n_, 0.0, block, size_);
  else
    gemm('T', 'N', width(k), wl, n_, 1.0, columns_[k].data(), n_, weighted_.data(), n_, 0.0, block,
         size_);
}

void FeatureElimination::add_coupling(double* C) {
  const int R = coupling_->count(), first = offset_[K_];
  const std::size_t part = static_cast<std::size_t>(n_) * R;
  std::vector<double> D(part * K_), Z(part * K_);
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < n_; ++i) {
      const std::size_t a = static_cast<std::size_t>(r) * n_ + i;
      const int p = pivot_[i];
      const double base = coupling_->dense(p)[a];
      double mean = 0.0, others = 0.0;
      for (int k = 0; k < K_; ++k) {
        D[k * part + a] = k == p ? 0.0 : coupling_->dense(k)[a] - base;
        mean += e_[at(k, i)] * D[k * part + a];
      }
      mean /= sum_[i];
      for (int k = 0; k < K_; ++k) {
        if (k == p) continue;
        Z[k * part + a] = e_[at(k, i)] * (D[k * part + a] - mean);
        others += Z[k * part + a];
      }
      Z[p * part + a] = -others;
    }
  for (int k = 0; k < K_; ++k) {
    if (width(k) > 0)
      gemm('T', 'N', R, width(k), n_, 1.0, Z.data() + k * part, n_, columns_[k].data(), n_, 0.0,
           C + static_cast<std::size_t>(offset_[k]) * size_ + first, size_);
    add_lower_product(R, n_, D.data() + k * part, Z.data() + k * part,
                      C + static_cast<std::size_t>(first) * size_ + first, size_);
  }
}

void FeatureElimination::apply(const std::vector<double>& g, const std::vector<double>& row,
                               std::vector<double>& out, std::vector<double>* dxi) const {
  if (pair_) return apply_pairs(g.data(), row.data(), out.data(), dxi ? dxi->data() : nullptr);
  for (int i = 0; i < n_; ++i) {
    const int p = pivot_[i];
    const double base = g[at(p, i)];
    double mean = 0.0, others = 0.0;
    for (int k = 0; k < K_; ++k)
      if (k != p) mean += e_[at(k, i)] * (g[at(k, i)] - base);
    mean /= sum_[i];
    for (int k = 0; k < K_; ++k) {
      if (k == p) continue;
      out[at(k, i)] = e_[at(k, i)] * (g[at(k, i)] - base - mean + row[i] / sum_[i]);
      others += out[at(k, i)];
    }
    out[at(p, i)] = row[i] - others;
    if (dxi) (*dxi)[i] = base + mean - row[i] / sum_[i];
  }
}

void FeatureElimination::apply_pairs(const double* g, const double* row, double* out,
                                     double* dxi) const {
  const double *g0 = g, *g1 = g + n_, *d0 = delta_.data(), *d1 = d0 + n_, *h = h_.data();
  double *out0 = out, *out1 = out + n_;
  for (int i = 0; i < n_; ++i) {
    const double difference = g1[i] - g0[i];
    out0[i] = h[i] * (d1[i] * row[i] - difference);
    out1[i] = h[i] * (d0[i] * row[i] + difference);
  }
  if (!dxi) return;
  for (int i = 0; i < n_; ++i) dxi[i] = h[i] * (d1[i] * g0[i] + d0[i] * (g1[i] - d1[i] * row[i]));
}

}  // namespace sparsvm
