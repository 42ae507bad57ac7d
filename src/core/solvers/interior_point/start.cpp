// Where the interior point starts: strictly dual feasible, near the central path.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "solvers/interior_point/interior_point.hpp"
#include "solvers/interior_point/scaled_problem.hpp"
#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

using namespace interior_point_settings;

namespace {

// The first dual point: Y = lambda Z + eps D, where D balances every class, and eps keeps X'Y~ inside
// the ball. D = lambda (pi - Z), with pi the class shares, is the centre. D is sample-major.
class DualStart {
 public:
  // Prices go to set.G and set.dG.
  DualStart(ScaledProblem& problem, WorkingSet& set, const InteriorPointStart& start,
            const InteriorPointOptions& options, const std::function<void()>& poll)
      : p_(problem), layout_(problem.layout), G_(set.G), dG_(set.dG), start_(start),
        options_(options), poll_(poll) {}

  std::vector<double> find() {
    G_.assign(static_cast<std::size_t>(p_.d) * p_.outputs, 0.0);
    dG_.resize(G_.size());
    if (p_.linear_term)
      for (std::size_t a = 0; a < G_.size(); ++a) G_[a] = -p_.linear_term[a];
    std::vector<double> direction = centre();
    price(direction);
    for (double g : dG_)
      if (!std::isfinite(g))
        throw std::invalid_argument(
            "interior_point: the design matrix holds NaN, infinite or overflowing values.");
    double eps = start_fraction(direction);
    if (!(eps > kLeastFraction))
      throw std::invalid_argument(
          "interior_point: the features are too large against alpha; scale them.");
    if (!start_.dual && !p_.linear_term && options_.across_features && eps < kSmallFraction)
      eps = across_features(direction, eps);
    if (start_.dual) {
      mix_with_start(direction, eps);
      price(direction);
      eps = feasible_fraction(1.0);
    }
    // With a tiny alpha the dual variables inside the ball, or with l2 those of the best value, may
    // all be tiny, their products with the slacks many orders apart, and the steps from there too
    // short. Outside, the dual residuals go with the steps; with l2 there are none.
    if (!options_.inside && !start_.dual) eps = kOutsideFraction;
    for (std::size_t a = 0; a < G_.size(); ++a) G_[a] += eps * dG_[a];
    return point(direction, eps);
  }

 private:
  ScaledProblem& p_;
  const PenaltyLayout& layout_;
  std::vector<double>&G_, &dG_;
  const InteriorPointStart& start_;
  const InteriorPointOptions& options_;
  const std::function<void()>& poll_;

  std::size_t row(int i) const { return static_cast<std::size_t>(i) * p_.classes; }
  std::size_t entry(int64_t j, int o) const { return static_cast<std::size_t>(j) * p_.outputs + o; }
  void price(const std::vector<double>& direction) { p_.transposed(direction.data(), dG_.data()); }

  std::vector<double> centre() const {
    std::vector<double> out(static_cast<std::size_t>(p_.n) * p_.classes);
    for (int i = 0; i < p_.n; ++i)
      for (int k = 0; k < p_.classes; ++k)
        out[row(i) + k] = p_.lambda[i] * (p_.shares[k] - (p_.y[i] == k));
    return out;
  }

  // lambda Z + eps direction, class-major.
  std::vector<double> point(const std::vector<double>& direction, double eps) const {
    std::vector<double> Y(direction.size());
    for (int i = 0; i < p_.n; ++i)
      for (int k = 0; k < p_.classes; ++k)
        Y[p_.at(k) + i] = p_.lambda[i] * (p_.y[i] == k) + eps * direction[row(i) + k];
    return Y;
  }

  // The largest fraction, up to a cap, of the direction priced in dG that leaves every block that is
  // not on its boundary already strictly inside.
  double feasible_fraction(double cap) {
    if (p_.quadratic) return cap;
    double eps = cap;
    std::vector<double> g(layout_.largest_block());
    const auto reduce = [&](int64_t b) {
      const int64_t size = layout_.values(b, G_.data(), nullptr, 0.0, g.data());
      if (size == 0 || layout_.shape.exceeds(g.data(), size, kOnBoundary)) return;
      while (eps > 0.0) {
        layout_.values(b, G_.data(), dG_.data(), eps, g.data());
        if (!layout_.shape.exceeds(g.data(), size, kInsideBall)) break;
        poll_();
        eps = p_.linear_term
                  ? 0.5 * eps
                  : std::min(kFractionFall * eps,
                             eps * kAimedInside / layout_.shape.dual_norm(g.data(), size));
      }
    };
    if (p_.linear_term)
      for (int64_t b = 0; b < layout_.n_blocks(); ++b) reduce(b);
    else  // G is zero, and of few blocks more than the dual norms is needed.
      layout_.norm_bounds(dG_.data(), [&](int64_t b, double norm) {
        if (!(eps * norm < kAimedInside)) reduce(b);
      });
    return eps;
  }

  double start_fraction(const std::vector<double>& direction) {
    return feasible_fraction(p_.quadratic
                                 ? std::min(kLargestFraction, best_quadratic_fraction(direction))
                                 : kLargestFraction);
  }

  // The fraction of the direction priced in dG with the best dual value under a quadratic penalty.
  double best_quadratic_fraction(const std::vector<double>& direction) const {
    const double gain = margin_gain(direction);
    double square = 0.0;
    for (int64_t j = 0; j < p_.d; ++j)
      for (int o = 0; o < p_.outputs; ++o) {
        const double g = dG_[entry(j, o)] * layout_.inv_omega[j];
        square += g * g;
      }
    return gain > 0.0 && square > 0.0 ? gain / square : kLargestFraction;
  }

  double margin_gain(const std::vector<double>& direction) const {
    double gain = 0.0;
    for (int i = 0; i < p_.n; ++i)
      for (int k = 0; k < p_.classes; ++k) gain += direction[row(i) + k] * p_.margins[p_.at(k) + i];
    return gain;
  }

  // Tries directions with X'Y~ near zero on some features in place of this one, of which the fraction
  // eps is feasible; returns the fraction of the best.
  double across_features(std::vector<double>& direction, double eps) {
    const std::vector<double> first = direction;
    for (const auto& list : holding_back()) {
      std::vector<double> other = across_features(first, list);
      price(other);
      const double fraction = start_fraction(other);
      if (!(fraction * margin_gain(other) > eps * margin_gain(direction))) continue;
      direction = std::move(other);
      eps = fraction;
    }
    price(direction);
    return eps;
  }

  // Features that keep the direction priced in dG from all but a small fraction, as lists worth
  // trying, each of at most half as many as there are samples, and no more than pay: all of them,
  // and those up to where the next is smaller by the largest factor.
  std::vector<std::vector<int32_t>> holding_back() const {
    std::vector<std::pair<double, int32_t>> pulls;
    for (int64_t j = 0; j < p_.d; ++j) {
      double pull = 0.0;
      for (int o = 0; o < p_.outputs; ++o) pull = std::max(pull, std::abs(dG_[entry(j, o)]));
      pull *= layout_.inv_omega[j];
      if (pull > (p_.quadratic ? 0.0 : 1.0 / kSmallFraction))
        pulls.emplace_back(-pull, static_cast<int32_t>(j));
    }
    const auto most =
        static_cast<std::size_t>(std::min(p_.n / 2, kMostEqualities / std::max(1, p_.classes - 1)));
    const std::size_t first = std::min(pulls.size(), most + 1);
    std::partial_sort(pulls.begin(), pulls.begin() + static_cast<std::ptrdiff_t>(first),
                      pulls.end());
    std::size_t cut = 0;
    double relief = kRelief;
    for (std::size_t c = 1; c < first; ++c)
      if (pulls[c - 1].first <= relief * pulls[c].first) {
        relief = pulls[c - 1].first / pulls[c].first;
        cut = c;
      }
    std::vector<std::vector<int32_t>> lists;
    for (const std::size_t count : {pulls.size(), cut}) {
      if (count == 0 || count > most) continue;
      lists.emplace_back();
      for (std::size_t c = 0; c < count; ++c) lists.back().push_back(pulls[c].second);
    }
    return lists;
  }

  // With few features and a tiny alpha, or with a few columns far larger than the others, X'Y~ would
  // leave the ball long before Y is anywhere near the optimum. Pulls the centre towards X'Y~ = 0 on
  // the listed features by damped Newton steps on its equalities.
  std::vector<double> across_features(const std::vector<double>& first,
                                      const std::vector<int32_t>& list) {
    const int n = p_.n;
    std::vector<double> columns, X(list.size() * n);
    p_.design.gather_columns(list.data(), static_cast<int64_t>(list.size()), X.data());
    if (p_.given.intercept) columns.assign(n, 1.0);
    for (std::size_t c = 0; c < list.size(); ++c) {
      double* x = X.data() + c * n;
      p_.centre(list[c], x);
      double sum = 0.0;
      for (int i = 0; i < n; ++i) sum += x[i] * x[i];
      const double scale = std::sqrt(sum / n);
      if (scale > 0.0)
        for (int i = 0; i < n; ++i) columns.push_back(x[i] / scale);
    }
    std::vector<double> Y = point(first, kLargestFraction);
    Equalities equalities(p_, std::move(columns), poll_);
    for (int round = 0; round < kEqualitySteps; ++round) {
      const double length = equalities.approach(Y);
      if (length == 0.0 || length == 1.0) break;
    }
    return p_.signed_rows(Y);
  }

  void mix_with_start(std::vector<double>& direction, double eps) const {
    for (int i = 0; i < p_.n; ++i) {
      double off = 0.0;
      for (int k = 0; k < p_.classes; ++k) {
        const double y = p_.y[i] == k ? 0.0 : start_.dual[row(i) + k];
        direction[row(i) + k] = kWarmMix * eps * direction[row(i) + k] + (1.0 - kWarmMix) * y;
        off += (1.0 - kWarmMix) * y;
      }
      direction[row(i) + p_.y[i]] -= off;
    }
  }
};

}  // namespace

void InteriorPoint::start() {
  x_.Y = DualStart(p_, set_, start_, options_, monitor_.poll).find();
  first_Y_ = x_.Y;
  x_.xi.assign(p_.n, 0.0);
  x_.U.resize(x_.Y.size());
  x_.b.assign(p_.free.count(), 0.0);
  const bool warm = start_.dual != nullptr;
  if (warm) {
    x_.mu = kWarmSlack * p_.margin_unit * p_.total_lambda / static_cast<double>(x_.Y.size());
    if (!p_.quadratic) set_.open(x_.Y, x_.mu, start_.weights);
    warm_free_coefficients();
  }
  start_slacks(warm ? kWarmSlack : 1.0);
  if (!warm && !p_.quadratic) set_.open(x_.Y, x_.mu, nullptr);
  // The zero model is the first candidate: it is the optimum of a problem without margins.
  incumbent_.sparse.primal = p_.zero_value;
  incumbent_.sparse.b.assign(x_.b.size(), 0.0);
  incumbent_.sparse.scale = 0.0;
}

// xi above every margin by a multiple of the margins' size.
void InteriorPoint::start_slacks(double above) {
  const auto& r = p_.margins;
  set_.scores(set_.blocks.w, x_.b, x_.Y, x_.S);
  double sum = 0.0;
  for (int i = 0; i < p_.n; ++i) {
    double top = -std::numeric_limits<double>::infinity();
    for (int k = 0; k < p_.classes; ++k) top = std::max(top, r[p_.at(k) + i] + x_.S[p_.at(k) + i]);
    x_.xi[i] = top + above * p_.margin_unit;
    for (int k = 0; k < p_.classes; ++k) {
      const std::size_t a = p_.at(k) + i;
      x_.U[a] = x_.xi[i] - r[a] - x_.S[a];
      sum += x_.U[a] * x_.Y[a];
    }
  }
  x_.mu = sum / static_cast<double>(x_.Y.size());
  // Samples or classes of tiny weight would start far off the central path and block every step.
  for (std::size_t a = 0; a < x_.Y.size(); ++a)
    x_.U[a] = std::max(x_.U[a], kCentrality * x_.mu / x_.Y[a]);
}

// Intercepts and unpenalised weights of the warm start, in centred columns and relative to the
// class that carries none.
void InteriorPoint::warm_free_coefficients() {
  const int q = p_.free.q, outputs = p_.outputs, first = p_.given.intercept ? 1 : 0;
  std::vector<double> all(static_cast<std::size_t>(outputs) * q, 0.0);
  for (int o = 0; o < outputs; ++o) {
    double* row = all.data() + static_cast<std::size_t>(o) * q;
    if (p_.given.intercept) {
      row[0] = start_.intercept[o];
      for (int64_t j = 0; j < p_.d; ++j)
        row[0] += p_.mean[j] * start_.weights[static_cast<std::size_t>(j) * outputs + o];
    }
    for (std::size_t f = 0; f < p_.free_features.size(); ++f)
      row[first + f] = start_.weights[static_cast<std::size_t>(p_.free_features[f]) * outputs + o] *
                       p_.free_scale[f];
  }
  for (int k = p_.first_class; k < p_.classes; ++k) {
    if (!p_.free.has(k)) continue;
    for (int f = 0; f < q; ++f) {
      const double reference =
          outputs > 1 ? all[static_cast<std::size_t>(outputs - 1) * q + f] : 0.0;
      x_.b[p_.free.offset(k) + f] =
          all[static_cast<std::size_t>(k - p_.first_class) * q + f] - reference;
    }
  }
}

}  // namespace sparsvm
