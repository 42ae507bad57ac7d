// Elimination of the Newton system by features, and the solves by either.
#include "solvers/interior_point/newton_system.hpp"
#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

using namespace interior_point_settings;

// Compares the flops of the two eliminations. A quadratic penalty has no working set: what was
// formed of its features decides.
bool NewtonSystem::prefer_features(const ConeBlocks& blocks, bool joint) const {
  if (!quadratic_.gram.empty()) return false;
  if (!quadratic_.columns.empty()) return true;
  double columns = free_.count(), samples = 0.0, groups = 0.0;
  for (int64_t b = 0; b < blocks.size() && joint; ++b) groups += blocks.kappa(b) > 0.0;
  const double n = n_;
  for (int k = 0; k < K_; ++k) {
    const double width =
        static_cast<double>(class_coords_[k].size() + (joint ? 0 : class_blocks_[k].size()));
    columns += width;
    if (width > 0.0)
      samples += n * n * n + n * n * width + 2.0 * n * n * groups + n * groups * groups;
  }
  columns += groups;
  const double schur = n + free_.count() + groups;
  samples += schur * schur * schur / 3.0;
  columns += explicit_.count();
  // Explicit coordinates need this side: eliminating the samples first would cancel the digits that
  // opening saves.
  if (explicit_.count() > 0 && at_any_cost_ && columns <= kMostColumns) return true;
  const double cost = explicit_.count() > 0 ? kExplicitFeatureCost : kFeatureCost;
  return cost * (n * columns * columns + columns * columns * columns / 3.0) < samples;
}

void NewtonSystem::assemble_features(const ConeBlocks& blocks, const double* Xw, const double* U,
                                     const double* Y) {
  std::vector<std::vector<double>> columns(K_);
  for (int k = 0; k < K_; ++k) {
    factored_[k] = true;
    if (quadratic_.columns.empty())
      scaled_columns(blocks, Xw, k, columns[k]);
    else if (K_ > 2 || k == 1)
      columns[k] = quadratic_.columns;
    double sum = 0.0;
    for (double v : columns[k]) sum += v * v;
    curvature_scale_ = std::max(curvature_scale_, sum / n_);
    if (free_.has(k)) {
      columns[k].resize(columns[k].size() + free_.values.size());
      std::transform(free_.values.begin(), free_.values.end(),
                     columns[k].end() - static_cast<std::ptrdiff_t>(free_.values.size()),
                     std::negate<>());
    }
  }
  for (std::size_t a = 0; a < diag_.size(); ++a) diag_[a] = U[a] / Y[a];
  features_.set_columns(n_, std::move(columns), coupling_);
}

bool NewtonSystem::factor_features() {
  const int m = schur_size_ = features_.size();
  C_.resize(static_cast<std::size_t>(m) * m);
  std::vector<double> delta(diag_);
  for (double& v : delta) v += regularisation * curvature_scale_;
  features_.form(delta, C_.data(), poll);
  for (int k = 0; k < K_; ++k) {
    const int own = own_columns(k);
    for (int c = 0; c < features_.width(k); ++c)
      C_[at(features_.offset(k) + c, features_.offset(k) + c)] += c < own ? 1.0 : proximal;
  }
  for (int r = 0, first = m - coupling_.count(); r < coupling_.count(); ++r)
    C_[at(first + r, first + r)] += coupling_.weight(r);
  return factor_schur();
}

void NewtonSystem::solve_features(NewtonVector& v) {
  z_.resize(schur_size_);
  features_.start(v.y, v.xi, g_);
  features_.gather(g_, z_.data());
  for (int k = 0; k < K_; ++k)
    for (int f = 0; free_.has(k) && f < free_.q; ++f)
      z_[free_slot(k) + f] += v.b[free_.offset(k) + f];
  double* explicits = z_.data() + schur_size_ - coupling_.n_explicit();
  for (std::size_t o = 0; o < v.z.size(); ++o) explicits[o] -= v.z[o];
  solve_factored(schur_size_, C_.data(), z_.data());
  std::copy(explicits, explicits + coupling_.n_explicit(), v.z.begin());
  const std::vector<double> row = v.xi;
  features_.finish(v.y, row, z_.data(), g_, v.xi);
  std::swap(v.y, g_);
  for (int k = 0; k < K_; ++k)
    for (int f = 0; free_.has(k) && f < free_.q; ++f)
      v.b[free_.offset(k) + f] = z_[free_slot(k) + f];
}

double NewtonSystem::solve(const NewtonVector& rhs, NewtonVector& out, double target) {
  out = rhs;
  solve_once(out);
  best_ = out;
  double now = residual(rhs, out, res_), best = now, before = now;
  const double scale = largest(rhs.y), scale_dual = largest(out.y);
  target = std::max(target, attainable());
  for (int it = 0; it < kMaxRefinements && best > target && std::isfinite(now); ++it) {
    poll();
    if (!refine(it, scale, scale_dual, out)) break;
    now = residual(rhs, out, res_);
    if (now < best) {
      best = now;
      best_ = out;
    }
    if (method_ == Method::single && it > 0) {
      single_suffices_ = false;
      if (it >= kFewRefinements) break;
    }
    if (it >= kFewRefinements) inverse_suffices_ = inverse_suffices_ && method_ == Method::single;
    if (it % kRefinementPatience == kRefinementPatience - 1) {
      if (best > 0.5 * before) break;
      before = best;
    }
  }
  std::swap(out, best_);
  return best;
}

// One step of generalised conjugate residuals: adds the combination of the directions tried so far
// that leaves least of the residual res_, weighed like in residual(). False where there is none.
// (Conjugate gradients need all constraints kept to the last digit, which an elimination that has lost
// most of them does not do, and a plain refinement with a strong regularisation does not converge.)
bool NewtonSystem::refine(int it, double scale, double scale_dual, NewtonVector& out) {
  const double primal = scale > 0.0 ? 1.0 / scale : 1.0;
  const double dual = scale_dual > 0.0 ? 1.0 / scale_dual : 1.0;
  const auto product = [&](const NewtonVector& a, const NewtonVector& b) {
    return primal * primal * dot(a.y, b.y) +
           dual * dual * (dot(a.xi, b.xi) + dot(a.b, b.b) + dot(a.z, b.z));
  };
  if (static_cast<int>(tried_.size()) <= it) tried_.resize(it + 1);
  auto& [direction, image, square] = tried_[it];
  direction = res_;
  solve_once(direction);
  image.resize(res_.y.size(), res_.xi.size(), res_.b.size());
  image.z.assign(res_.z.size(), 0.0);
  subtract_operator(direction, image);
  for (int past = 0; past < it; ++past) {
    const Tried& other = tried_[past];
    const double along = -product(image, other.image) / other.square;
    combine(image, along, other.image);
    combine(direction, along, other.direction);
  }
  square = product(image, image);
  const double step = -product(res_, image) / square;
  if (!std::isfinite(step) || !(square > 0.0)) return false;
  combine(out, step, direction);
  return true;
}

// res = rhs - operator(v); returns its largest entry relative to the size of the terms.
double NewtonSystem::residual(const NewtonVector& rhs, const NewtonVector& v, NewtonVector& res) {
  res = rhs;
  subtract_operator(v, res);
  const double worst = largest(res.y), scale = largest(rhs.y), scale_dual = largest(v.y);
  const double worst_dual = std::max({largest(res.xi), largest(res.b), largest(res.z)});
  const double primal = scale > 0.0 ? worst / scale : worst;
  const double dual = scale_dual > 0.0 ? worst_dual / scale_dual : worst_dual;
  return std::isfinite(primal) && std::isfinite(dual) ? std::max(primal, dual)
                                                      : ConeBlocks::kUnbounded;
}

// res -= operator(v)
void NewtonSystem::subtract_operator(const NewtonVector& v, NewtonVector& res) {
  const int R = coupling_.count();
  z_.assign(R, 0.0);
  if (R > 0)
    for (int k = 0; k < K_; ++k)
      if (factored_[k])
        coupling_.gather(k, v.y.data() + static_cast<std::size_t>(k) * n_, z_.data());
  for (int o = 0, r = coupling_.n_groups(); r < R; ++o, ++r) {
    res.z[o] -= z_[r] - coupling_.weight(r) * v.z[o];
    z_[r] = v.z[o];
  }
  for (int k = 0; k < K_; ++k) {
    const double* y = v.y.data() + static_cast<std::size_t>(k) * n_;
    double* out = res.y.data() + static_cast<std::size_t>(k) * n_;
    subtract_product(k, y, out);
    if (R > 0 && factored_[k]) coupling_.scatter(k, -1.0, z_.data(), out);
    for (int i = 0; i < n_; ++i) {
      out[i] -= v.xi[i];
      res.xi[i] -= y[i];
    }
    if (free_.has(k)) {
      for (int f = free_.offset(k); f < free_.offset(k) + free_.q; ++f)
        res.b[f] -= proximal * v.b[f];
      gemv('N', n_, free_.q, 1.0, free_.data(), n_, v.b.data() + free_.offset(k), 1, 1.0, out, 1);
      gemv('T', n_, free_.q, -1.0, free_.data(), n_, y, 1, 1.0, res.b.data() + free_.offset(k), 1);
    }
  }
}

// out -= M_k y
void NewtonSystem::subtract_product(int k, const double* y, double* out) {
  const double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
  if (by_features_) {
    const int own = own_columns(k);
    product_.resize(own);
    gemv('T', n_, own, 1.0, features_.columns(k), n_, y, 1, 0.0, product_.data(), 1);
    gemv('N', n_, own, -1.0, features_.columns(k), n_, product_.data(), 1, 1.0, out, 1);
    for (int i = 0; i < n_; ++i) out[i] -= dg[i] * y[i];
  } else if (factored_[k] && method_ == Method::single) {
    for (int i = 0; i < n_; ++i) out[i] -= dg[i] * y[i];
    add_symmetric_product(single_block(k), n_, -1.0, y, out);
  } else if (factored_[k]) {
    symv('U', n_, -1.0, block(k), n_, y, 1, 1.0, out, 1);
    // The diagonal in storage is the factor's, or zero.
    for (int i = 0; i < n_; ++i) out[i] -= (dg[i] - block(k)[idx(i, i)]) * y[i];
  } else {
    for (int i = 0; i < n_; ++i) out[i] -= dg[i] * y[i];
  }
}

// Largest absolute value; four running maxima, as one alone waits for itself at every entry.
double NewtonSystem::largest(const std::vector<double>& a) {
  const auto larger = [](double s, double t) { return s > t ? s : t; };
  const double* v = a.data();
  const std::size_t size = a.size();
  double top0 = 0.0, top1 = 0.0, top2 = 0.0, top3 = 0.0;
  std::size_t i = 0;
  for (; i + 4 <= size; i += 4) {
    top0 = larger(std::abs(v[i]), top0);
    top1 = larger(std::abs(v[i + 1]), top1);
    top2 = larger(std::abs(v[i + 2]), top2);
    top3 = larger(std::abs(v[i + 3]), top3);
  }
  for (; i < size; ++i) top0 = larger(std::abs(v[i]), top0);
  return larger(larger(top0, top1), larger(top2, top3));
}

double NewtonSystem::dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// a += f * b
void NewtonSystem::combine(NewtonVector& a, double f, const NewtonVector& b) {
  for (std::size_t i = 0; i < a.y.size(); ++i) a.y[i] += f * b.y[i];
  for (std::size_t i = 0; i < a.xi.size(); ++i) a.xi[i] += f * b.xi[i];
  for (std::size_t i = 0; i < a.b.size(); ++i) a.b[i] += f * b.b[i];
  for (std::size_t i = 0; i < a.z.size(); ++i) a.z[i] += f * b.z[i];
}

void NewtonSystem::solve_factored(int size, const double* factor, double* x) {
  trsv('L', 'N', 'N', size, factor, size, x, 1);
  trsv('L', 'T', 'N', size, factor, size, x, 1);
}

void NewtonSystem::remove_drift(const double* drift, std::vector<double>& z) const {
  z.assign(explicit_.count(), 0.0);
  for (int o = 0; o < explicit_.count(); ++o) {
    for (const auto* t = explicit_.begin(o); t < explicit_.end(o); ++t)
      if (explicit_.is_explicit(t->coordinate)) z[o] -= t->factor * drift[t->coordinate];
    z[o] *= coupling_.unknown_scale(o);
  }
}

void NewtonSystem::complete(const NewtonVector& v, double* dg) const {
  if (explicit_.count() == 0) return;
  std::vector<double> z(v.z);
  for (int o = 0; o < explicit_.count(); ++o) z[o] *= coupling_.unknown_scale(o);
  explicit_.complete(z.data(), dg);
}

}  // namespace sparsvm
