// The proximal operator of a whole penalty, applied to a coefficient matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "penalty/penalty.hpp"
#include "prox/prox.hpp"

namespace sparsvm {

// prox of step·base(ω∘W) for W of size d x K, row-major ("feature-major").
//
// A group is a set of features; joint groups span the K outputs, per-class groups are repeated in
// each. The penalty is a sum over parts, which are groups, or features where each stands alone.
class PenaltyProx {
 public:
  // Takes copies of the penalty's arrays; throws if groups or weights are out of range.
  explicit PenaltyProx(const Penalty& penalty);

  // Whether each part is one feature.
  bool by_feature() const { return by_feature_; }
  int64_t parts() const { return by_feature_ ? d_ : std::ssize(first_) - 1; }

  // V <- prox(V), everywhere or on the parts [from, to); the rest of V is not touched.
  void apply(double* V, double step) { apply(V, step, 0, parts()); }
  void apply(double* V, double step, int64_t from, int64_t to);

  // base(ω∘V) on the parts [from, to).
  double value(const double* V, int64_t from, int64_t to) const;

  // The features of a part, in ascending order.
  void members(int64_t part, std::vector<int64_t>& out) const {
    out.assign(begin(part), begin(part + 1));
  }
  double weight(int64_t feature) const { return omega_[feature]; }

 private:
  const int64_t* begin(int64_t part) const {
    return order_.data() + (by_feature_ ? part : first_[part]);
  }
  void sort_features(const int32_t* groups, int64_t n_groups);
  void soften(double* V, double shrink, double damp, int64_t from, int64_t to) const;
  void shrink_groups(double* V, double step, int64_t from, int64_t to);
  void shrink_group(double* v, const int64_t* features, int64_t size, int64_t width, double step);

  PenaltyTerm term_;
  int64_t d_, outputs_;
  bool per_class_;
  bool by_feature_ = true;
  std::vector<double> omega_;
  // The features of group g are order_[first_[g] .. first_[g + 1]).
  std::vector<int64_t> first_, order_;
  std::vector<double> gathered_, gathered_omega_;
  ProxScratch work_;
};

// Weights W are d x outputs, row-major.
struct ProxTerm {
  std::function<void(double* W, double step)> prox;  // W <- prox of step·penalty at W
  std::function<double(const double* W)> value;      // penalty(W)
};

inline ProxTerm built_in_term(const Penalty& p) {
  const auto prox = std::make_shared<PenaltyProx>(p);
  return {[prox](double* W, double step) { prox->apply(W, step); },
          [prox](const double* W) { return prox->value(W, 0, prox->parts()); }};
}

}  // namespace sparsvm
