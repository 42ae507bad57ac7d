// How far weights may go before samples at rest need be looked at again.
//
// A sample rests while its true class is to gain more than every other, by its slack. Both gains are
// products with (x, 1): between two iterations their difference changes by at most
// 2‖(x, 1)‖·max_k ‖change of (w_k, b_k)‖. Distances are taken from weights of reference, so that they
// neither have to be kept for every sample nor add up while the iterates circle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace sparsvm {

/// Weights (d x K) with their intercepts (K).
struct Affine {
  const double *weights, *intercept;
  std::int64_t features, outputs;

  /// The intercepts follow as a last row.
  void copy_to(std::vector<double>& out) const {
    out.assign(weights, weights + features * outputs);
    out.insert(out.end(), intercept, intercept + outputs);
  }
};

/// The distance that a sample bears per slack, a little less for rounding; `square` is ‖(x, 1)‖².
inline double tolerance_per_slack(double square) { return 0.4999999 / std::sqrt(square); }

/// max_k ‖(w_k, b_k) − those in `reference`‖, which has the intercepts in its last row.
double farthest_class(const Affine& now, const double* reference);

/// Units of samples that came to rest, by their number.
class RestingUnits {
 public:
  /// No unit is at rest.
  void clear() { allowed_.clear(); }

  /// Units first, ..., first + allowed.size() − 1 may let the weights go that far from those now.
  void set(std::int64_t first, std::vector<double> allowed, const Affine& now) {
    first_ = first;
    allowed_ = std::move(allowed);
    awake_.assign(allowed_.size(), 0);
    looked_.assign(allowed_.size(), 0);
    now.copy_to(reference_);
  }

  bool any() const { return !allowed_.empty(); }
  std::int64_t first() const { return first_; }
  std::int64_t end() const { return first_ + static_cast<std::int64_t>(allowed_.size()); }
  double distance(const Affine& now) {
    return any() ? farthest_class(now, reference_.data()) : 0.0;
  }

  bool asleep(std::int64_t unit) const { return !awake_[at(unit)]; }
  /// Whether it rests without a look at its scores.
  bool rests(std::int64_t unit, double distance) const { return distance <= allowed_[at(unit)]; }

  /// A look at `distance` from the reference: the unit is at rest, and `slack`, a distance too, is
  /// what it can bear from here; or it is not.
  void look(std::int64_t unit, bool at_rest, double slack, double distance) {
    awake_[at(unit)] = !at_rest;
    allowed_[at(unit)] = at_rest ? slack - distance : -1.0;
    looked_[at(unit)] = at_rest;
    count_ += at_rest;
  }

  /// After a pass with `now`, at `distance`: take it for the reference if many had to be looked at.
  void end_pass(const Affine& now, double distance) {
    const bool many = 8 * count_ > static_cast<std::int64_t>(allowed_.size());
    count_ = 0;
    if (many) now.copy_to(reference_);
    for (std::size_t u = 0; many && u < allowed_.size(); ++u) {
      if (!awake_[u]) allowed_[u] += looked_[u] ? distance : -distance;
    }
    std::fill(looked_.begin(), looked_.end(), 0);
  }

 private:
  std::size_t at(std::int64_t unit) const { return static_cast<std::size_t>(unit - first_); }

  std::int64_t first_ = 0, count_ = 0;
  std::vector<double> allowed_, reference_;
  std::vector<char> awake_, looked_;
};

}  // namespace sparsvm
