// Hybrid steepest descent for the hierarchical problem (003, Theorem 1).
//
// Unknowns: p = (w_k, b_k) per class, u in R^{nK}, one difference ω_rt per pair of classes, and t.
// With A p = (S_ik − S_{i y_i})_ik, the scores less that of the true class, one iteration is
//
//   z ← P_L of all pairs, in turn    L_rt = {ω_rt = w_r − w_t of P_N(p, u)},  N = {u = A p}
//   z ← P_E of all pairs, in turn    E_rt = {‖ω_rt‖ <= t}
//   (p, u) ← (1 − α)(p, u) + α T(p, u),  T = (2 prox_f − I)(2 P_N − I),  f = γ Σ_i s_i h_i(u_i)
//   z ← P_B (balls around zero),     t ← t − λ₀ / iteration^decay.
//
// P_N(p, u) = (p̂, A p̂) with M p̂ = p + Aᵀu and M = I + AᵀA. M is not formed: a part of p common to
// all classes is in the null space of A, and on the rest, with G_k the Gram matrix of [x 1] over
// class k, G their sum and D_k = I + G + K G_k,
//
//   (M p)_k = D_k p_k − Σ_l G_l p_l,   so   p_k = D_k⁻¹(q_k + c),  c = −C⁻¹ Σ D_k⁻¹ q_k,  C = Σ D_k⁻¹,
//
// K + 1 Cholesky factors of the size of a sample. Projecting on L_rt moves (p, u) by (p', A p') with
// M p' = Ωᵀa, which moves p̂ by p' as well; so all pairs together need one product with the samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "linalg/blas.hpp"
#include "prox/prox.hpp"

namespace sparsvm {

struct HsdmOptions {
  double gamma, relaxation, step, decay, radius;
};

class Hsdm {
 public:
  // x: n x r samples, row-major; y: class numbers; weight: n factors of the hinge; all are copied.
  template <typename Poll>
  Hsdm(const double* x, int64_t n, int64_t r, const int32_t* y, const double* weight,
       int64_t classes, const HsdmOptions& options, Poll poll)
      : n_(n), r_(r), m_(r + 1), K_(classes), options_(options), x_(size(n * m_)), y_(y, y + n),
        weight_(weight, weight + n), p_(size(K_ * m_)), u_(size(n * K_)), t_(0.0),
        omega_(size(pair_count() * r)), hat_(size(K_ * m_)), moved_(size(K_ * m_)),
        q_(size(K_ * m_)), c_(size(m_)), a_(size(m_)), scores_(size(n * K_)), shift_(size(n * K_)) {
    double longest = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      std::copy(x + i * r, x + (i + 1) * r, &x_[size(i * m_)]);
      x_[size(i * m_ + r)] = 1.0;
      longest = std::max(longest, norm2(x + i * r, r));
    }
    const double K = static_cast<double>(K_), rows = static_cast<double>(n);
    bound_u_ = 2.0 * options.radius * std::sqrt(K * rows) * (longest * longest + 1.0);
    bound_omega_ = options.radius * K * (K - 1.0);
    bound_t_ = 2.0 * options.radius;
    scratch_.reserve(K_);
    margin_.assign(size(K_), 1.0);
    factor(poll);
  }

  // `count` iterations; `poll` is called after each, and after each pair of classes.
  template <typename Poll>
  void run(int64_t count, Poll poll) {
    for (int64_t done = 0; done < count; ++done) {
      ++iteration_;
      project_null_space();
      project_links(poll);
      project_cones();
      splitting_step();
      project_balls();
      t_ -= options_.step / std::pow(static_cast<double>(iteration_), options_.decay);
      poll();
    }
  }

  int64_t iteration() const { return iteration_; }
  const std::vector<double>& point() const { return p_; }  // K x (r + 1)
  double t() const { return t_; }
  // The distance between the last two (p, u), over the relaxation and the length of the last.
  double change() const { return change_; }
  // Whether the bounding ball of p, u, ω or t cut the last iterate.
  bool ball_active() const { return ball_active_; }

  // The multipliers of the hinge at the last iterate, rows summing to γ times the weights, n x K.
  void dual(double* out) {
    project_null_space();
    scores_of(hat_, shift_);
    for (int64_t i = 0; i < n_; ++i) {
      const double* s = &shift_[size(i * K_)];
      const double own = s[y_[size(i)]];
      for (int64_t k = 0; k < K_; ++k) {
        out[i * K_ + k] =
            2.0 * (s[k] - own) - u_[size(i * K_ + k)] + (k != y_[size(i)] ? 1.0 : 0.0);
      }
      project_simplex(out + i * K_, K_, options_.gamma * weight_[size(i)], out + i * K_, scratch_);
    }
  }

 private:
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }
  int64_t pair_count() const { return K_ * (K_ - 1) / 2; }

  template <typename Poll>
  void factor(Poll poll) {
    const int m = static_cast<int>(m_);
    const int64_t square = m_ * m_;
    std::vector<double> gram(size(square), 0.0);
    inverse_.assign(size(K_ * square), 0.0);
    std::vector<double> members;
    for (int64_t k = 0; k < K_; ++k) {
      members.clear();
      for (int64_t i = 0; i < n_; ++i) {
        if (y_[size(i)] != k) continue;
        members.insert(members.end(), &x_[size(i * m_)], &x_[size(i * m_)] + m_);
      }
      const int count = static_cast<int>(static_cast<int64_t>(members.size()) / m_);
      syrk('L', 'N', m, count, 1.0, members.data(), m, 0.0, &inverse_[size(k * square)], m);
      for (int64_t e = 0; e < square; ++e) gram[size(e)] += inverse_[size(k * square + e)];
      poll();
    }
    coupling_.assign(size(square), 0.0);
    for (int64_t k = 0; k < K_; ++k) {
      double* D = &inverse_[size(k * square)];
      for (int64_t e = 0; e < square; ++e) D[e] = gram[size(e)] + static_cast<double>(K_) * D[e];
      for (int64_t j = 0; j < m_; ++j) D[j * m_ + j] += 1.0;
      invert(D, m);
      for (int64_t e = 0; e < square; ++e) coupling_[size(e)] += D[e];
      poll();
    }
    check(potrf('L', m, coupling_.data(), m));
    factor_links(poll);
  }

  // I + Γ for each pair, Γ = D_r⁻¹ + D_t⁻¹ − (D_r⁻¹ − D_t⁻¹) C⁻¹ (D_r⁻¹ − D_t⁻¹) over the weights.
  template <typename Poll>
  void factor_links(Poll poll) {
    const int m = static_cast<int>(m_), r = static_cast<int>(r_);
    const int64_t square = m_ * m_;
    links_.assign(size(pair_count() * r_ * r_), 0.0);
    std::vector<double> difference(size(square)), solved(size(square)), product(size(square));
    int64_t pair = 0;
    for (int64_t a = 0; a < K_; ++a) {
      for (int64_t b = a + 1; b < K_; ++b, ++pair) {
        const double* Da = &inverse_[size(a * square)];
        const double* Db = &inverse_[size(b * square)];
        for (int64_t e = 0; e < square; ++e) difference[size(e)] = Da[e] - Db[e];
        solved = difference;
        check(potrs('L', m, m, coupling_.data(), m, solved.data(), m));
        gemm('N', 'N', m, m, m, 1.0, difference.data(), m, solved.data(), m, 0.0, product.data(),
             m);
        double* link = &links_[size(pair * r_ * r_)];
        for (int64_t j = 0; j < r_; ++j) {
          for (int64_t i = 0; i < r_; ++i) {
            const int64_t e = j * m_ + i;
            link[j * r_ + i] = Da[e] + Db[e] - product[size(e)] + (i == j ? 1.0 : 0.0);
          }
        }
        check(potrf('L', r, link, r));
        poll();
      }
    }
  }

  static void check(int info) {
    if (info != 0) {
      throw std::runtime_error("A matrix of hsdm is not positive definite; scale the features.");
    }
  }

  // A full symmetric inverse from the lower triangle.
  static void invert(double* D, int m) {
    check(potrf('L', m, D, m));
    check(potri('L', m, D, m));
    for (int j = 0; j < m; ++j) {
      for (int i = 0; i < j; ++i) D[j * m + i] = D[i * m + j];
    }
  }

  // out = [x 1] pᵀ, n x K.
  void scores_of(const std::vector<double>& p, std::vector<double>& out) const {
    // Row-major n x K is column-major K x n.
    gemm('T', 'N', static_cast<int>(K_), static_cast<int>(n_), static_cast<int>(m_), 1.0, p.data(),
         static_cast<int>(m_), x_.data(), static_cast<int>(m_), 0.0, out.data(),
         static_cast<int>(K_));
  }

  // hat = M⁻¹ q, where q is overwritten by its deviation from the mean of the classes.
  void solve(std::vector<double>& q, std::vector<double>& hat) {
    const int m = static_cast<int>(m_);
    std::fill(a_.begin(), a_.end(), 0.0);
    for (int64_t k = 0; k < K_; ++k) {
      for (int64_t j = 0; j < m_; ++j) a_[size(j)] += q[size(k * m_ + j)] / static_cast<double>(K_);
    }
    std::fill(c_.begin(), c_.end(), 0.0);
    for (int64_t k = 0; k < K_; ++k) {
      for (int64_t j = 0; j < m_; ++j) q[size(k * m_ + j)] -= a_[size(j)];
      symv('L', m, 1.0, &inverse_[size(k * m_ * m_)], m, &q[size(k * m_)], 1, 1.0, c_.data(), 1);
    }
    check(potrs('L', m, 1, coupling_.data(), m, c_.data(), m));
    for (int64_t k = 0; k < K_; ++k) {
      for (int64_t j = 0; j < m_; ++j) {
        q[size(k * m_ + j)] -= c_[size(j)];
        hat[size(k * m_ + j)] = a_[size(j)];
      }
      symv('L', m, 1.0, &inverse_[size(k * m_ * m_)], m, &q[size(k * m_)], 1, 1.0,
           &hat[size(k * m_)], 1);
    }
  }

  // p̂ of P_N(p, u).
  void project_null_space() {
    for (int64_t i = 0; i < n_; ++i) {
      double sum = 0.0;
      for (int64_t k = 0; k < K_; ++k) {
        scores_[size(i * K_ + k)] = u_[size(i * K_ + k)];
        sum += u_[size(i * K_ + k)];
      }
      scores_[size(i * K_ + y_[size(i)])] -= sum;
    }
    q_ = p_;
    gemm('N', 'T', static_cast<int>(m_), static_cast<int>(K_), static_cast<int>(n_), 1.0, x_.data(),
         static_cast<int>(m_), scores_.data(), static_cast<int>(K_), 1.0, q_.data(),
         static_cast<int>(m_));
    solve(q_, hat_);
  }

  // P_L of all pairs: moves p, u and p̂, and sets every ω.
  template <typename Poll>
  void project_links(Poll poll) {
    const int r = static_cast<int>(r_);
    moved_ = hat_;
    int64_t pair = 0;
    for (int64_t a = 0; a < K_; ++a) {
      for (int64_t b = a + 1; b < K_; ++b, ++pair) {
        double* omega = &omega_[size(pair * r_)];
        const double* ha = &moved_[size(a * m_)];
        const double* hb = &moved_[size(b * m_)];
        std::fill(q_.begin(), q_.end(), 0.0);
        double* step = &q_[size(a * m_)];
        for (int64_t j = 0; j < r_; ++j) step[j] = omega[j] - (ha[j] - hb[j]);
        check(potrs('L', r, 1, &links_[size(pair * r_ * r_)], r, step, r));
        for (int64_t j = 0; j < r_; ++j) q_[size(b * m_ + j)] = -step[j];
        solve(q_, link_step());
        for (int64_t e = 0; e < K_ * m_; ++e) moved_[size(e)] += link_step_[size(e)];
        for (int64_t j = 0; j < r_; ++j) omega[j] = ha[j] - hb[j];
        poll();
      }
    }
    for (int64_t e = 0; e < K_ * m_; ++e) {
      const double change = moved_[size(e)] - hat_[size(e)];
      p_[size(e)] += change;
      hat_[size(e)] = change;  // for the moment
    }
    scores_of(hat_, shift_);
    for (int64_t i = 0; i < n_; ++i) {
      const double own = shift_[size(i * K_ + y_[size(i)])];
      for (int64_t k = 0; k < K_; ++k) u_[size(i * K_ + k)] += shift_[size(i * K_ + k)] - own;
    }
    hat_ = moved_;
  }

  std::vector<double>& link_step() {
    link_step_.resize(size(K_ * m_));
    return link_step_;
  }

  // P_E of all pairs: the projection on a second-order cone.
  void project_cones() {
    for (int64_t pair = 0; pair < pair_count(); ++pair) {
      double* omega = &omega_[size(pair * r_)];
      const double length = norm2(omega, r_);
      if (length <= t_) continue;
      double factor = 0.0;
      if (length <= -t_) {
        t_ = 0.0;
      } else {
        t_ = 0.5 * (length + t_);
        factor = t_ / length;
      }
      for (int64_t j = 0; j < r_; ++j) omega[j] *= factor;
    }
  }

  // The relaxed Douglas-Rachford operator on (p, u); p̂ is that of the present (p, u).
  void splitting_step() {
    const double alpha = options_.relaxation;
    double moved = 0.0, length = 0.0;
    for (int64_t e = 0; e < K_ * m_; ++e) {
      // prox_f leaves p alone, so T takes p to 2 p̂ − p.
      const double step = 2.0 * (hat_[size(e)] - p_[size(e)]);
      p_[size(e)] += alpha * step;
      moved += step * step;
      length += p_[size(e)] * p_[size(e)];
    }
    scores_of(hat_, shift_);
    row_.resize(size(K_));
    for (int64_t i = 0; i < n_; ++i) {
      double* u = &u_[size(i * K_)];
      const double* s = &shift_[size(i * K_)];
      const int32_t own = y_[size(i)];
      margin_[size(own)] = 0.0;
      for (int64_t k = 0; k < K_; ++k) row_[size(k)] = 2.0 * (s[k] - s[own]) - u[k];
      prox_hinge(row_.data(), margin_.data(), K_, options_.gamma * weight_[size(i)], row_.data(),
                 scratch_);
      margin_[size(own)] = 1.0;
      for (int64_t k = 0; k < K_; ++k) {
        const double reflected = 2.0 * (s[k] - s[own]) - u[k];
        const double step = 2.0 * row_[size(k)] - reflected - u[k];
        u[k] += alpha * step;
        moved += step * step;
        length += u[k] * u[k];
      }
    }
    change_ = length > 0.0 ? std::sqrt(moved / length) : 0.0;
  }

  void project_balls() {
    ball_active_ = false;
    shrink(p_, options_.radius);
    shrink(u_, bound_u_);
    shrink(omega_, bound_omega_);
    const double inside = std::min(std::max(t_, -bound_t_), bound_t_);
    ball_active_ = ball_active_ || inside != t_;
    t_ = inside;
  }

  void shrink(std::vector<double>& v, double radius) {
    const double length = norm2(v.data(), static_cast<int64_t>(v.size()));
    if (!(length > radius)) return;
    ball_active_ = true;
    for (double& value : v) value *= radius / length;
  }

  int64_t n_, r_, m_, K_;
  HsdmOptions options_;
  std::vector<double> x_;
  std::vector<int32_t> y_;
  std::vector<double> weight_;
  std::vector<double> p_, u_;
  double t_;
  std::vector<double> omega_;
  std::vector<double> hat_, moved_, q_, c_, a_, scores_, shift_, link_step_, row_, margin_;
  std::vector<double> inverse_;   // D_k⁻¹, full
  std::vector<double> coupling_;  // Cholesky factor of C
  std::vector<double> links_;     // Cholesky factors of I + Γ
  double bound_u_ = 0.0, bound_omega_ = 0.0, bound_t_ = 0.0, change_ = 0.0;
  bool ball_active_ = false;
  int64_t iteration_ = 0;
  ProxScratch scratch_;
};

}  // namespace sparsvm
