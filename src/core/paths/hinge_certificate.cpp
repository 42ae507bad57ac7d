#include "paths/hinge_certificate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "linalg/dense.hpp"
#include "paths/settings.hpp"
#include "support/numbers.hpp"

namespace sparsvm {

using namespace hinge_path_settings;

namespace {

double exponent(double beta) { return std::clamp(beta, -kMostExponent, kMostExponent); }

}  // namespace

HingeCertificate::HingeCertificate(const HingeProblem& problem, double column_dual_norm)
    : p_(problem), layout_(problem.penalty), column_dual_norm_(column_dual_norm), n_(problem.n()),
      K_(problem.classes), outputs_(problem.outputs()), first_(K_ - outputs_) {
  std::vector<double> column(static_cast<std::size_t>(n_));
  for (int64_t j = 0; j < problem.d(); ++j) {
    if (problem.penalty.omega[j] > 0.0) continue;
    const auto feature = static_cast<int32_t>(j);
    problem.design->gather_columns(&feature, 1, column.data());
    double size = 0.0;
    for (int64_t i = 0; i < n_; ++i) size += p_.mass[i] * std::abs(column[i]);
    for (const double x : column) free_.push_back(size > 0.0 ? x / size : x);
  }
}

double HingeCertificate::loss(const std::vector<double>& S, const double* intercept) const {
  ExactSum total;
  for (int64_t i = 0; i < n_; ++i) {
    const double* s = S.data() + i * outputs_;
    double largest = -std::numeric_limits<double>::infinity(), own = 0.0;
    for (int64_t k = 0; k < K_; ++k) {
      const double score = k < first_ ? 0.0 : s[k - first_] + intercept[k - first_];
      largest = std::max(largest, p_.margin(i, k) + score);
      if (k == p_.y[i]) own = score;
    }
    total.add(p_.mass[i] * (largest - own));
  }
  return total.value();
}

double HingeCertificate::prove(std::vector<double>& Y, double alpha, std::vector<double>& found,
                               bool thinning) {
  if (!repair(Y)) return -std::numeric_limits<double>::infinity();
  strengths(Y, alpha, found);
  double factor = 1.0 / excess(Y, alpha, found);
  double bound = factor * value(Y) * kDown;
  if (thinning && factor < 1.0 && p_.design->sparse()) {
    std::vector<double> other = Y, norms;
    if (thin(other, found)) {
      strengths(other, alpha, norms);
      const double share = 1.0 / excess(other, alpha, norms);
      const double thinned = share * value(other) * kDown;
      if (thinned > bound) Y.swap(other), found.swap(norms), factor = share, bound = thinned;
    }
  }
  if (!(factor > 0.0)) return -std::numeric_limits<double>::infinity();
  for (double& y : Y) y *= factor;
  return bound;
}

// Scales down only the samples that have a feature beyond the ball: of sparse samples a single rare
// feature concerns few, and scaling all of them for its sake may cost most of the gap. False where there
// is nothing to choose between samples.
bool HingeCertificate::thin(std::vector<double>& Y, const std::vector<double>& norms) const {
  if (layout_.n_groups() != p_.d()) return false;
  std::vector<double> beyond(norms), worst(static_cast<std::size_t>(n_));
  for (double& norm : beyond) norm = std::max(norm - 1.0, 0.0);
  p_.design->largest_weights(beyond.data(), worst.data());
  const auto [least, most] = std::minmax_element(worst.begin(), worst.end());
  if (*least >= (1.0 - kAlike) * *most) return false;
  for (int64_t i = 0; i < n_; ++i)
    for (int64_t k = 0; k < K_; ++k) Y[i * K_ + k] /= 1.0 + worst[i];
  return repair(Y);
}

// The factor that brings the sum of a row under its mass.
double HingeCertificate::fit(const std::vector<double>& Y, int64_t i) const {
  double sum = 0.0;
  for (int64_t k = 0; k < K_; ++k) sum += Y[i * K_ + k];
  return sum > p_.mass[i] ? p_.mass[i] / sum : 1.0;
}

bool HingeCertificate::repair(std::vector<double>& Y) const {
  for (int64_t i = 0; i < n_; ++i) {
    double* row = Y.data() + i * K_;
    row[p_.y[i]] = 0.0;
    for (int64_t k = 0; k < K_; ++k)
      if (!(row[k] > 0.0 && std::isfinite(row[k]))) row[k] = 0.0;
    const double factor = fit(Y, i);
    for (int64_t k = 0; k < K_; ++k) row[k] *= factor;
  }
  return (!p_.intercept || balance_within_masses(Y)) && balanced_on_free_features(Y);
}

// Balances, and scales by the one factor that brings every row under its mass. Where that is far from 1
// (a sample of tiny mass in a class whose entries were far from balanced holds all others back), cutting
// single rows and balancing again does better.
bool HingeCertificate::balance_within_masses(std::vector<double>& Y) const {
  std::vector<double> best, factors(static_cast<std::size_t>(n_));
  double best_gain = 0.0;
  const auto scale = [](std::vector<double>& values, double factor) {
    for (double& v : values) v *= factor;
  };
  for (int cut = 0; cut < kCuts; ++cut) {
    if (!balance(Y)) break;
    for (int64_t i = 0; i < n_; ++i) factors[i] = fit(Y, i);
    const double least = *std::min_element(factors.begin(), factors.end());
    const double gain = least * value(Y);
    const bool worth_it = gain > (least > kNearOne ? kWorthACutNearOne : kWorthACut) * best_gain;
    const bool better = gain > best_gain;
    if (better) best_gain = gain;
    if (least > 1.0 - kWithinMass || !worth_it) {
      if (!better) break;
      scale(Y, least);
      return true;
    }
    if (better) {
      best = Y;
      scale(best, least);
    }
    // Balancing gives about half of a cut back, hence the square.
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t k = 0; k < K_; ++k) Y[i * K_ + k] *= factors[i] * factors[i];
  }
  Y.swap(best);
  return !Y.empty();
}

// Entry (z, k): the sum of column k over the samples of class z.
std::vector<double> HingeCertificate::class_sums(const std::vector<double>& Y) const {
  std::vector<ExactSum> sums(static_cast<std::size_t>(K_ * K_));
  for (int64_t i = 0; i < n_; ++i)
    for (int64_t k = 0; k < K_; ++k)
      if (Y[i * K_ + k] != 0.0) sums[p_.y[i] * K_ + k].add(Y[i * K_ + k]);
  std::vector<double> out(sums.size());
  std::transform(sums.begin(), sums.end(), out.begin(),
                 [](const ExactSum& s) { return s.value(); });
  return out;
}

// The strongly connected component of each class, where entry (z, k) > least is an arc.
std::vector<int> HingeCertificate::components(const std::vector<double>& sums, double least) const {
  std::vector<int64_t> order, stack;
  std::vector<char> seen(static_cast<std::size_t>(K_), 0);
  std::vector<int> component(static_cast<std::size_t>(K_), -1);
  // Kosaraju: classes by the end of a search along the arcs, then searches against them.
  const std::function<void(int64_t)> along = [&](int64_t z) {
    seen[z] = 1;
    for (int64_t k = 0; k < K_; ++k)
      if (!seen[k] && sums[z * K_ + k] > least) along(k);
    order.push_back(z);
  };
  for (int64_t z = 0; z < K_; ++z)
    if (!seen[z]) along(z);
  int count = 0;
  for (auto root = order.rbegin(); root != order.rend(); ++root) {
    if (component[*root] >= 0) continue;
    stack.assign(1, *root);
    component[*root] = count;
    while (!stack.empty()) {
      const int64_t k = stack.back();
      stack.pop_back();
      for (int64_t z = 0; z < K_; ++z)
        if (component[z] < 0 && sums[z * K_ + k] > least) {
          component[z] = count;
          stack.push_back(z);
        }
    }
    ++count;
  }
  return component;
}

// Multiplies the entries between each two classes by one factor exp(beta_z - beta_k), after which the
// sums of every class are alike: beta minimises the convex sum of the entries (Osborne's balancing), by
// Newton steps damped by log(1 + a) / a, a being the largest increase of an exponent. Entries between
// different strongly connected components, which no factors balance, are dropped.
bool HingeCertificate::balance(std::vector<double>& Y) const {
  const auto K = static_cast<std::size_t>(K_);
  std::vector<double> sums = class_sums(Y), factors(K * K, 1.0), now(sums), size(K), excess(K);
  const auto measure = [&] {
    bool relative = true;
    double worst = 0.0, total = 0.0;
    for (std::size_t k = 0; k < K; ++k) {
      size[k] = excess[k] = 0.0;
      for (std::size_t l = 0; l < K; ++l) {
        size[k] += now[l * K + k] + now[k * K + l];
        excess[k] += now[l * K + k] - now[k * K + l];
      }
      relative = relative && std::abs(excess[k]) <= 0.5 * kBalanced * size[k];
      worst = std::max(worst, std::abs(excess[k]));
      total += 0.5 * size[k];
    }
    return std::tuple(relative, worst, total);
  };
  if (std::get<0>(measure())) return true;
  const double least = kNegligible * *std::max_element(sums.begin(), sums.end());
  const std::vector<int> component = components(sums, least);
  for (std::size_t z = 0; z < K; ++z)
    for (std::size_t k = 0; k < K; ++k)
      if (!(sums[z * K + k] > least) || component[z] != component[k])
        sums[z * K + k] = factors[z * K + k] = 0.0;
  std::vector<double> beta(K, 0.0), best(beta), step;
  double best_worst = std::numeric_limits<double>::infinity();
  ScaledCholesky laplacian;
  for (int it = 0, stalls = 0; it < kNewtonSteps; ++it) {
    for (std::size_t z = 0; z < K; ++z)
      for (std::size_t k = 0; k < K; ++k)
        now[z * K + k] = sums[z * K + k] * std::exp(exponent(beta[z] - beta[k]));
    const auto [relative, worst, total] = measure();
    if (!(total > 0.0)) return false;
    if (worst / total < best_worst) {
      best_worst = worst / total;
      best = beta;
      stalls = 0;
    } else if (++stalls > (best_worst <= kRounded ? 1 : kStalls)) {
      break;
    }
    if (relative) break;
    laplacian.factorise(K - 1, {kRidge, 1.0}, 0.0, [&](std::size_t r, std::size_t c) {
      ++r, ++c;
      return r == c ? size[c] : -now[r * K + c] - now[c * K + r];
    });
    step = excess;
    step[0] = 0.0;
    laplacian.solve(step.data() + 1);
    double growth = 0.0;
    for (std::size_t z = 0; z < K; ++z)
      for (std::size_t k = 0; k < K; ++k)
        if (sums[z * K + k] > 0.0) growth = std::max(growth, step[z] - step[k]);
    const double damping = growth > 0.0 ? std::log1p(growth) / growth : 1.0;
    for (std::size_t k = 0; k < K; ++k) beta[k] += damping * step[k];
  }
  for (std::size_t z = 0; z < K; ++z)
    for (std::size_t k = 0; k < K; ++k) factors[z * K + k] *= std::exp(exponent(best[z] - best[k]));
  for (int64_t i = 0; i < n_; ++i)
    for (int64_t k = 0; k < K_; ++k) Y[i * K_ + k] *= factors[p_.y[i] * K + k];
  now = class_sums(Y);
  return std::get<1>(measure()) <= kBalanced;
}

bool HingeCertificate::balanced_on_free_features(const std::vector<double>& Y) const {
  if (free_.empty()) return true;
  const std::vector<double> signs = signed_outputs(Y);
  for (auto column = free_.begin(); column != free_.end(); column += n_)
    for (int64_t o = 0; o < outputs_; ++o) {
      ExactSum sum;
      for (int64_t i = 0; i < n_; ++i) sum.add(column[i] * signs[i * outputs_ + o]);
      if (!(std::abs(sum.value()) <= kBalanced)) return false;
    }
  return true;
}

double HingeCertificate::value(const std::vector<double>& Y) const {
  ExactSum total;
  for (int64_t i = 0; i < n_; ++i)
    for (int64_t k = 0; k < K_; ++k)
      if (Y[i * K_ + k] != 0.0) total.add(Y[i * K_ + k] * p_.margin(i, k));
  return total.value();
}

// Y~ without the class that has no output: minus the sum of the others at the true class.
std::vector<double> HingeCertificate::signed_outputs(const std::vector<double>& Y) const {
  std::vector<double> out(static_cast<std::size_t>(n_ * outputs_));
  for (int64_t i = 0; i < n_; ++i) {
    double sum = 0.0;
    for (int64_t k = 0; k < K_; ++k) sum += Y[i * K_ + k];
    for (int64_t o = 0; o < outputs_; ++o)
      out[i * outputs_ + o] = o + first_ == p_.y[i] ? -sum : Y[i * K_ + o + first_];
  }
  return out;
}

void HingeCertificate::strengths(const std::vector<double>& Y, double alpha,
                                 std::vector<double>& out) {
  std::vector<double> signs = signed_outputs(Y);
  G_.resize(static_cast<std::size_t>(p_.d() * outputs_));
  p_.design->transposed(signs.data(), outputs_, G_.data());
  out.assign(static_cast<std::size_t>(layout_.n_groups()), 0.0);
  layout_.norms(G_.data(), [&](int64_t block, double norm) {
    double& largest = out[layout_.group_of(block)];
    const double strength = norm / alpha;
    if (strength > largest || strength != strength) largest = strength;
  });
}

// A sum of n products errs by at most (n + 2) units of |x_j| |y_k|; the dual norms are monotone and obey
// the triangle inequality, so the error of the norm is at most the norm of the errors.
double HingeCertificate::excess(const std::vector<double>& Y, double alpha,
                                const std::vector<double>& strengths) const {
  const std::vector<double> signs = signed_outputs(Y);
  std::vector<double> squares(static_cast<std::size_t>(outputs_), 0.0);
  for (std::size_t a = 0; a < signs.size(); ++a) squares[a % squares.size()] += signs[a] * signs[a];
  const double size = std::sqrt(*std::max_element(squares.begin(), squares.end()));
  const double terms = static_cast<double>(n_ + layout_.largest_block()) + kOtherRoundings;
  double largest = 0.0;
  for (const double strength : strengths)
    if (strength > largest || strength != strength) largest = strength;
  return std::max(1.0, largest + terms * kUnit / alpha * size * column_dual_norm_);
}

}  // namespace sparsvm
