// Newton steps of a dual point towards linear equalities.
#pragma once

#include "solvers/interior_point/interior_point.hpp"

namespace sparsvm {

// Newton steps of Y towards row sums lambda and C'Y~_k = 0 for given columns C, small relative to
// Y.
class InteriorPoint::Equalities {
 public:
  Equalities(InteriorPoint& owner, std::vector<double> columns)
      : o_(owner), q_(static_cast<int>(columns.size() / owner.n_)), columns_(columns),
        system_(owner.n_, owner.K_, std::move(columns), q_, {}, {}),
        ones_(static_cast<std::size_t>(owner.n_) * owner.K_, 1.0) {
    system_.regularisation = 0.0;
    system_.poll = [this] { o_.monitor_.poll(); };
  }

  // One damped step that keeps Y positive; returns its length, 0 when the system cannot be solved.
  // The equalities are linear: a step of length 1 satisfies them up to rounding.
  double approach(std::vector<double>& Y) {
    NewtonVector rhs, step;
    rhs.resize(Y.size(), o_.n_, system_.n_free());
    for (int i = 0; i < o_.n_; ++i) {
      double sum = 0.0;
      for (int k = 0; k < o_.K_; ++k) sum += Y[o_.ck(k) + i];
      rhs.xi[i] = o_.t_.lambda[i] - sum;
    }
    for (int k = 0; k < o_.K_; ++k) {
      if (!system_.has_free(k)) continue;
      o_.signed_column(Y, k, o_.signed_);
      gemv('T', o_.n_, q_, -1.0, columns_.data(), o_.n_, o_.signed_.data(), 1, 0.0,
           rhs.b.data() + system_.free_offset(k), 1);
    }
    system_.assemble(ConeBlocks(), nullptr, false, false, ones_.data(), Y.data());
    if (!system_.factor()) return 0.0;
    system_.solve(rhs, step);
    o_.exact_row_sums(rhs, step);
    const double length = std::min(1.0, 0.9 * o_.ratio(Y, step.y, 2.0));
    for (std::size_t a = 0; a < Y.size(); ++a) Y[a] += length * step.y[a];
    return length;
  }

 private:
  InteriorPoint& o_;
  int q_;
  std::vector<double> columns_;
  NewtonSystem system_;
  std::vector<double> ones_;
};

}  // namespace sparsvm
