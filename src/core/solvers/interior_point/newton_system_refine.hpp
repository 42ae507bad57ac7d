// Refinement of the Newton system's solutions against the operator itself.
// Member functions of NewtonSystem, declared in newton_system.hpp.
#pragma once

#include "solvers/interior_point/newton_system.hpp"

namespace sparsvm {

inline double NewtonSystem::solve(const NewtonVector& rhs, NewtonVector& out, double target) {
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
    if (means_ == Means::single && it > 0) {
      single_suffices_ = false;
      if (it >= kFewRefinements) break;
    }
    if (it >= kFewRefinements) inverse_suffices_ = inverse_suffices_ && means_ == Means::single;
    if (it % kPatience == kPatience - 1) {
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
inline bool NewtonSystem::refine(int it, double scale, double scale_dual, NewtonVector& out) {
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
inline double NewtonSystem::residual(const NewtonVector& rhs, const NewtonVector& v,
                                     NewtonVector& res) {
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
inline void NewtonSystem::subtract_operator(const NewtonVector& v, NewtonVector& res) {
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
    if (has_free(k)) {
      for (int f = free_offset(k); f < free_offset(k) + q_; ++f) res.b[f] -= proximal * v.b[f];
      gemv('N', n_, q_, 1.0, F_.data(), n_, v.b.data() + free_offset(k), 1, 1.0, out, 1);
      gemv('T', n_, q_, -1.0, F_.data(), n_, y, 1, 1.0, res.b.data() + free_offset(k), 1);
    }
  }
}

// out -= M_k y
inline void NewtonSystem::subtract_product(int k, const double* y, double* out) {
  const double* dg = diag_.data() + static_cast<std::size_t>(k) * n_;
  if (feature_side_) {
    const int own = own_columns(k);
    product_.resize(own);
    gemv('T', n_, own, 1.0, features_.columns(k), n_, y, 1, 0.0, product_.data(), 1);
    gemv('N', n_, own, -1.0, features_.columns(k), n_, product_.data(), 1, 1.0, out, 1);
    for (int i = 0; i < n_; ++i) out[i] -= dg[i] * y[i];
  } else if (factored_[k] && means_ == Means::single) {
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
inline double NewtonSystem::largest(const std::vector<double>& a) {
  const auto larger = [](double s, double t) { return s > t ? s : t; };
  const double* v = a.data();
  const std::size_t size = a.size();
  double top0 = 0.0, top1 = 0.0, top2 = 0.0, top3 = 0.0;
  std::size_t i = 0;
  for (; i + 4 <= size; i += 4) {
    top0 = larger(std::fabs(v[i]), top0);
    top1 = larger(std::fabs(v[i + 1]), top1);
    top2 = larger(std::fabs(v[i + 2]), top2);
    top3 = larger(std::fabs(v[i + 3]), top3);
  }
  for (; i < size; ++i) top0 = larger(std::fabs(v[i]), top0);
  return larger(larger(top0, top1), larger(top2, top3));
}

inline double NewtonSystem::dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// a += f * b
inline void NewtonSystem::combine(NewtonVector& a, double f, const NewtonVector& b) {
  for (std::size_t i = 0; i < a.y.size(); ++i) a.y[i] += f * b.y[i];
  for (std::size_t i = 0; i < a.xi.size(); ++i) a.xi[i] += f * b.xi[i];
  for (std::size_t i = 0; i < a.b.size(); ++i) a.b[i] += f * b.b[i];
  for (std::size_t i = 0; i < a.z.size(); ++i) a.z[i] += f * b.z[i];
}

}  // namespace sparsvm
