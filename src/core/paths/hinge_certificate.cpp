#include "paths/hinge_certificate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linalg/cholesky.hpp"
#include "paths/settings.hpp"
#include "support/numbers.hpp"

namespace sparsvm {

using namespace hinge_path_settings;

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

bool HingeCertificate::repair(std::vector<double>& Y) const {
  const auto fit = [&](int64_t i) {
    double sum = 0.0;
    for (int64_t k = 0; k < K_; ++k) sum += Y[i * K_ + k];
    return sum > p_.mass[i] ? p_.mass[i] / sum : 1.0;
  };
  for (int64_t i = 0; i < n_; ++i) {
    double* row = Y.data() + i * K_;
    row[p_.y[i]] = 0.0;
    for (int64_t k = 0; k < K_; ++k)
      if (!(row[k] > 0.0 && std::isfinite(row[k]))) row[k] = 0.0;
    const double factor = fit(i);
    for (int64_t k = 0; k < K_; ++k) row[k] *= factor;
  }
  if (p_.intercept && !balance(Y)) return false;
  // One factor for all: rows of their own would spoil the balance.
  double least = 1.0;
  for (int64_t i = 0; i < n_; ++i) least = std::min(least, fit(i));
  for (double& y : Y) y *= least;
  return balanced_on_free_features(Y);
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

bool HingeCertificate::balance(std::vector<double>& Y) const {
  const auto K = static_cast<std::size_t>(K_);
  std::vector<double> sums = class_sums(Y), size(K), excess(K);
  const auto measure = [&] {
    bool relative = true, absolute = true;
    for (std::size_t k = 0; k < K; ++k) {
      size[k] = excess[k] = 0.0;
      for (std::size_t l = 0; l < K; ++l) {
        size[k] += sums[l * K + k] + sums[k * K + l];
        excess[k] += sums[l * K + k] - sums[k * K + l];
      }
      relative = relative && std::abs(excess[k]) <= 0.5 * kBalanced * size[k];
      absolute = absolute && std::abs(excess[k]) <= kBalanced;
    }
    return std::pair(relative, absolute);
  };
  if (measure().first) return true;
  // Factors exp(beta_z - beta_k) of the entries between two classes; the first class stays.
  ScaledCholesky laplacian;
  laplacian.factorise(K - 1, {kRidge, 1.0}, 0.0, [&](std::size_t r, std::size_t c) {
    ++r, ++c;
    return r == c ? size[c] : -sums[r * K + c] - sums[c * K + r];
  });
  std::vector<double> beta(excess);
  beta[0] = 0.0;
  laplacian.solve(beta.data() + 1);
  for (const double b : beta)
    if (!(std::abs(b) < kMostExponent)) return false;
  for (int64_t i = 0; i < n_; ++i)
    for (int64_t k = 0; k < K_; ++k) Y[i * K_ + k] *= std::exp(beta[p_.y[i]] - beta[k]);
  sums = class_sums(Y);
  return measure().second;
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
