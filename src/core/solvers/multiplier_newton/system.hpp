// The Newton equation of the method of multipliers on the active coordinates.
//
//     (diag(1/σ + δ) - Σ_b δ_b ẑ_b ẑ_bᵀ + H) D = right,       H from the tied samples,
//
// with the coordinates of a tie replaced by their common direction. Up to `direct` unknowns it is
// assembled and factored; beyond, preconditioned conjugate gradients
// (preconditioner.hpp).
//
// Coordinates e = f·outputs + o belong to feature f of the working set, the last `outputs` of them
// to the intercept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "linalg/blas.hpp"
#include "penalty/penalty_manifold.hpp"
#include "solvers/multiplier_newton/augmented_hinge.hpp"
#include "solvers/multiplier_newton/preconditioner.hpp"
#include "solvers/multiplier_newton/settings.hpp"

namespace sparsvm {

class MultiplierNewtonSystem {
 public:
  int64_t direct = 3000;

  explicit MultiplierNewtonSystem(int64_t outputs) : outputs_(outputs) {}

  // D (off included) for the manifold point and the slope g; `anchor` holds 1/σ per coordinate.
  // features and scale are of the working set. False if no factorisation succeeded.
  bool solve(const ManifoldPoint& point, const double* Z, const double* g, const double* anchor,
             const std::vector<int32_t>& features, const std::vector<double>& scale, bool intercept,
             double damping, double accuracy, TiedSamples& tied, std::vector<double>& D,
             Monitor& monitor) {
    damping_ = damping;
    number(point, features, scale, intercept, tied);
    std::vector<double> right(static_cast<std::size_t>(count()), 0.0);
    right_side(point, Z, g, anchor, tied, right.data(), monitor);
    reduce(point);
    std::vector<double> small = down(right);
    const bool done = reduced_ <= direct
                          ? factor_and_solve(point, anchor, tied, small, monitor)
                          : conjugate_gradients(point, anchor, tied, small, accuracy, monitor);
    if (!done) return false;
    D = point.off;
    const std::vector<double> raw = up(small);
    for (int64_t r = 0; r < count(); ++r) D[coordinate_[r]] += raw[r];
    return true;
  }

 private:
  using Vector = std::vector<double>;
  using Settings = MultiplierNewtonSettings;

  int64_t count() const { return static_cast<int64_t>(coordinate_.size()); }
  std::size_t at(int64_t e) const { return static_cast<std::size_t>(e); }

  // Active coordinates ordered by output, and the columns of X that they and `off` need.
  void number(const ManifoldPoint& point, const std::vector<int32_t>& features,
              const std::vector<double>& scale, bool intercept, TiedSamples& tied) {
    const auto width = static_cast<int64_t>(features.size());
    column_of_.assign(features.size() + 1, -1);
    std::vector<int32_t> used;
    Vector factors;
    for (int64_t f = 0; f < width; ++f) {
      bool any = false;
      for (int64_t e = f * outputs_; e < (f + 1) * outputs_; ++e) {
        any = any || point.state[e] != ManifoldPoint::inactive || point.off[e] != 0.0;
      }
      if (!any) continue;
      column_of_[f] = static_cast<int32_t>(used.size());
      used.push_back(features[f]);
      factors.push_back(scale[f]);
    }
    if (intercept) {
      column_of_[width] = static_cast<int32_t>(used.size());
      factors.push_back(1.0);
    }
    tied.set_columns(std::move(used), std::move(factors), intercept);
    lists_.assign(at(outputs_), {});
    offset_.assign(at(outputs_), 0);
    coordinate_.clear();
    raw_of_.assign(point.state.size(), -1);
    for (int64_t o = 0; o < outputs_; ++o) {
      offset_[o] = count();
      for (int64_t f = 0; f <= width; ++f) {
        const int64_t e = f * outputs_ + o;
        if (point.state[e] == ManifoldPoint::inactive) continue;
        raw_of_[e] = count();
        coordinate_.push_back(e);
        lists_[o].push_back(column_of_[f]);
      }
    }
  }

  // -(g + v) + M (Z⁺ - Z) - (H + 1/σ) off.
  void right_side(const ManifoldPoint& point, const double* Z, const double* g,
                  const double* anchor, TiedSamples& tied, double* right, Monitor& monitor) {
    for (int64_t r = 0; r < count(); ++r) {
      const int64_t e = coordinate_[r];
      right[r] = -(g[e] + point.pull[e]) + point.delta[e] * (point.plus[e] - Z[e]) -
                 anchor[e] * point.off[e];
    }
    for (const auto& block : point.curved) {
      double along = 0.0;
      for (std::size_t m = 0; m < block.member.size(); ++m) {
        along += block.direction[m] * (point.plus[block.member[m]] - Z[block.member[m]]);
      }
      for (std::size_t m = 0; m < block.member.size(); ++m) {
        right[raw_of_[block.member[m]]] -= block.delta * along * block.direction[m];
      }
    }
    bool moves = false;
    Vector V(at(tied.columns() * outputs_), 0.0), HV(V.size());
    for (std::size_t e = 0; e < point.off.size(); ++e) {
      if (point.off[e] == 0.0) continue;
      moves = true;
      V[place(static_cast<int64_t>(e))] = point.off[e];
    }
    if (!moves) return;
    tied.product(V.data(), HV.data(), monitor);
    for (int64_t r = 0; r < count(); ++r) right[r] -= HV[place(coordinate_[r])];
  }

  std::size_t place(int64_t e) const {
    return at(column_of_[e / outputs_] * outputs_ + e % outputs_);
  }

  // -------------------------------------------------------------- ties: raw = B small

  void reduce(const ManifoldPoint& point) {
    into_.assign(coordinate_.size(), -1);
    factor_.assign(coordinate_.size(), 1.0);
    reduced_ = count();
    if (point.ties.empty()) {
      for (int64_t r = 0; r < count(); ++r) into_[r] = r;
      return;
    }
    reduced_ = 0;
    for (int64_t r = 0; r < count(); ++r) {
      if (point.state[coordinate_[r]] == ManifoldPoint::single) into_[r] = reduced_++;
    }
    for (const auto& tie : point.ties) {
      for (std::size_t m = 0; m < tie.member.size(); ++m) {
        const int64_t r = raw_of_[tie.member[m]];
        into_[r] = reduced_;
        factor_[r] = tie.sign[m] / std::sqrt(static_cast<double>(tie.member.size()));
      }
      ++reduced_;
    }
  }

  Vector down(const Vector& raw) const {
    Vector small(at(reduced_), 0.0);
    for (int64_t r = 0; r < count(); ++r) small[into_[r]] += factor_[r] * raw[r];
    return small;
  }
  Vector up(const Vector& small) const {
    Vector raw(coordinate_.size());
    for (int64_t r = 0; r < count(); ++r) raw[r] = factor_[r] * small[into_[r]];
    return raw;
  }

  // -------------------------------------------------------------- direct

  bool factor_and_solve(const ManifoldPoint& point, const double* anchor, TiedSamples& tied,
                        Vector& x, Monitor& monitor) {
    const int64_t q = count();
    matrix_.assign(at(q * q), 0.0);
    tied.assemble(lists_, offset_, matrix_.data(), q, monitor);
    monitor.spend(tied.assembly_work(lists_));
    for (int64_t r = 0; r < q; ++r) {
      const int64_t e = coordinate_[r];
      matrix_[r * q + r] += damping_ + anchor[e] + point.delta[e];
    }
    for (const auto& block : point.curved) subtract(block, q);
    if (!point.ties.empty()) merge_ties(q);
    return positive_solve(reduced_, x, monitor);
  }

  void subtract(const ManifoldPoint::Curved& block, int64_t q) {
    for (std::size_t m = 0; m < block.member.size(); ++m) {
      const int64_t r = raw_of_[block.member[m]];
      for (std::size_t p = 0; p <= m; ++p) {
        const int64_t c = raw_of_[block.member[p]];
        matrix_[std::min(r, c) * q + std::max(r, c)] -=
            block.delta * block.direction[m] * block.direction[p];
      }
    }
  }

  void merge_ties(int64_t q) {
    Vector merged(at(reduced_ * reduced_), 0.0);
    for (int64_t c = 0; c < q; ++c) {
      for (int64_t r = c; r < q; ++r) {
        const int64_t low = std::min(into_[r], into_[c]), high = std::max(into_[r], into_[c]);
        const double value = factor_[r] * factor_[c] * matrix_[c * q + r];
        merged[low * reduced_ + high] += r != c && low == high ? 2.0 * value : value;
      }
    }
    matrix_.swap(merged);
  }

  // Cholesky, the diagonal raised by more and more until it succeeds.
  bool positive_solve(int64_t q, Vector& x, Monitor& monitor) {
    const int size = static_cast<int>(q);
    Vector diagonal(at(q));
    for (int64_t r = 0; r < q; ++r) diagonal[r] = matrix_[r * q + r];
    // The upper triangle is free: it keeps the matrix while the lower one is factored.
    for (int64_t c = 0; c < q; ++c) {
      for (int64_t r = c + 1; r < q; ++r) matrix_[r * q + c] = matrix_[c * q + r];
    }
    for (double raise = 0.0; raise < Settings::kLastRaise;
         raise = raise == 0.0 ? Settings::kFirstRaise : Settings::kNextRaise * raise) {
      if (raise > 0.0) {
        for (int64_t c = 0; c < q; ++c) {
          for (int64_t r = c + 1; r < q; ++r) matrix_[c * q + r] = matrix_[r * q + c];
        }
      }
      for (int64_t r = 0; r < q; ++r) matrix_[r * q + r] = diagonal[r] * (1.0 + raise);
      monitor.spend(std::pow(static_cast<double>(q), 3) / 6.0);
      if (potrf('L', size, matrix_.data(), size) != 0) continue;
      Vector solved = x;
      if (potrs('L', size, 1, matrix_.data(), size, solved.data(), size) != 0) return false;
      if (!std::isfinite(nrm2(q, solved.data()))) continue;
      x.swap(solved);
      return true;
    }
    return false;
  }

  // -------------------------------------------------------------- conjugate gradients

  Vector apply(const ManifoldPoint& point, const double* anchor, TiedSamples& tied,
               const Vector& small, Monitor& monitor) const {
    const Vector raw = up(small);
    Vector V(at(tied.columns() * outputs_), 0.0), HV(V.size()), out(raw.size());
    for (int64_t r = 0; r < count(); ++r) V[place(coordinate_[r])] = raw[r];
    tied.product(V.data(), HV.data(), monitor);
    for (int64_t r = 0; r < count(); ++r) {
      const int64_t e = coordinate_[r];
      out[r] = HV[place(e)] + (damping_ + anchor[e] + point.delta[e]) * raw[r];
    }
    for (const auto& block : point.curved) {
      double along = 0.0;
      for (std::size_t m = 0; m < block.member.size(); ++m) {
        along += block.direction[m] * raw[raw_of_[block.member[m]]];
      }
      for (std::size_t m = 0; m < block.member.size(); ++m) {
        out[raw_of_[block.member[m]]] -= block.delta * along * block.direction[m];
      }
    }
    return down(out);
  }

  // The outputs one by one, and the rays of the curved blocks.
  bool precondition(const ManifoldPoint& point, const double* anchor, TiedSamples& tied,
                    Monitor& monitor) {
    Vector diagonal(coordinate_.size());
    for (int64_t r = 0; r < count(); ++r) {
      const int64_t e = coordinate_[r];
      diagonal[r] = damping_ + anchor[e] + point.delta[e];
    }
    const auto limit = static_cast<int64_t>(
        std::sqrt(static_cast<double>(Settings::kLargestFactors) / static_cast<double>(outputs_)));
    blocks_.resize(at(outputs_));
    for (int64_t o = 0; o < outputs_; ++o) {
      if (!blocks_[o].factor(o, lists_[o], diagonal.data() + offset_[o], limit, tied, monitor)) {
        return false;
      }
      monitor.poll();
    }
    rays_.factor(point, raw_of_, column_of_, outputs_, diagonal.data(), Settings::kMostRays, tied,
                 monitor);
    return true;
  }

  Vector preconditioned(const Vector& small) {
    const Vector raw = up(small);
    Vector out = raw;
    for (int64_t o = 0; o < outputs_; ++o) blocks_[o].solve(out.data() + offset_[o]);
    rays_.add(raw.data(), out.data());
    return down(out);
  }

  bool conjugate_gradients(const ManifoldPoint& point, const double* anchor, TiedSamples& tied,
                           Vector& x, double accuracy, Monitor& monitor) {
    if (!precondition(point, anchor, tied, monitor)) return false;
    Vector residual = x;
    std::fill(x.begin(), x.end(), 0.0);
    Vector z = preconditioned(residual), direction = z;
    double rho = dot(reduced_, residual.data(), z.data());
    const double stop = accuracy * accuracy * rho;
    for (int64_t turn = 0; turn < Settings::kMostIterations && rho > stop; ++turn) {
      const Vector image = apply(point, anchor, tied, direction, monitor);
      monitor.spend(Settings::kFewColumns * tied.product_work());
      const double curvature = dot(reduced_, direction.data(), image.data());
      if (!(curvature > 0.0)) break;
      const double step = rho / curvature;
      for (int64_t r = 0; r < reduced_; ++r) {
        x[r] += step * direction[r];
        residual[r] -= step * image[r];
      }
      z = preconditioned(residual);
      const double next = dot(reduced_, residual.data(), z.data());
      for (int64_t r = 0; r < reduced_; ++r) direction[r] = z[r] + next / rho * direction[r];
      rho = next;
    }
    return std::isfinite(nrm2(reduced_, x.data()));
  }

  int64_t outputs_, reduced_ = 0;
  std::vector<int32_t> column_of_;            // of each feature of the working set, or -1
  std::vector<int64_t> coordinate_, raw_of_;  // active coordinates by output, and back
  std::vector<std::vector<int32_t>> lists_;   // columns of the active coordinates by output
  std::vector<int64_t> offset_;               // where each output starts
  std::vector<int64_t> into_;                 // unknown of each active coordinate
  double damping_ = 0.0;
  Vector factor_, matrix_;
  std::vector<OutputBlock> blocks_;
  BlockRays rays_;
};

}  // namespace sparsvm
