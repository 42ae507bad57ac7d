#include "solvers/papers/score_differences.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "prox/prox.hpp"

namespace sparsvm {

namespace {

/// Power iteration.
struct NormSettings {
  int most_passes = 300;  // of a slowly separating pair of singular values
  int least_passes = 5;   // the random start of T may look settled before it is
  double still = 1e-4;    // relative growth of a pass that ends it
  double raise = 1.01;    // ten times what the last passes may have left, and more
  std::uint64_t seed = 0x9E3779B97F4A7C15ULL;
};
constexpr NormSettings kNorm;

/// Numbers between −½ and 3/2, the same every time: the leading direction of data that are not
/// negative is not negative either.
class Random {
 public:
  double next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) * 0x1p-52 - 0.5;
  }

 private:
  std::uint64_t state_ = kNorm.seed;
};

/// The norm of a map x -> T x for x = (W, b): `apply` fills S (n x m) with TᵀT's left half, that is
/// TᵢᵀTᵢ of the scores in S, and returns ‖T x‖².
template <typename Apply>
double power_iteration(const Design& X, bool intercept, int64_t m, std::vector<double>& W,
                       std::vector<double>& b, int least_passes, const Poll& poll, Apply apply) {
  const int64_t n = X.n(), d = X.d();
  std::vector<double> S(static_cast<std::size_t>(n * m));
  double norm = 0.0;
  for (int pass = 0; pass < kNorm.most_passes; ++pass) {
    const double length = std::hypot(norm2(W.data(), d * m), norm2(b.data(), m));
    if (!(length > 0.0)) break;
    for (double& value : W) value /= length;
    for (double& value : b) value /= length;
    X.scores(W.data(), m, S.data());
    poll();
    double squares = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < m; ++k) S[i * m + k] += b[k];
      squares += apply(i, &S[i * m]);
    }
    X.transposed(S.data(), m, W.data());
    poll();
    std::fill(b.begin(), b.end(), 0.0);
    if (intercept) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < m; ++k) b[k] += S[i * m + k];
      }
    }
    const double last = norm;
    norm = std::max(norm, std::sqrt(squares));
    if (pass + 1 >= least_passes && norm <= last * (1.0 + kNorm.still)) break;
  }
  return norm;
}

/// Random numbers times the lengths of the columns: neither tied to the scale of a few columns nor
/// likely to be orthogonal to the leading direction. Returns the Frobenius norm of [X 1].
double random_start(const Design& X, bool intercept, int64_t m, std::vector<double>& W,
                    std::vector<double>& b) {
  std::vector<double> norms(static_cast<std::size_t>(X.d()));
  X.column_norms(norms.data());
  const double ones = intercept ? std::sqrt(static_cast<double>(X.n())) : 0.0;
  Random random;
  W.resize(static_cast<std::size_t>(X.d() * m));
  b.resize(static_cast<std::size_t>(m));
  for (int64_t j = 0; j < X.d(); ++j) {
    for (int64_t k = 0; k < m; ++k) W[j * m + k] = norms[j] * random.next();
  }
  for (double& value : b) value = ones * random.next();
  return std::hypot(norm2(norms.data(), X.d()), ones);
}

}  // namespace

void ScoreDifferences::forward(int64_t i, const double* scores, double* out) const {
  const int32_t own = y_[i];
  if (outputs_ == 1) {
    out[own] = 0.0;
    out[1 - own] = own == 0 ? scores[0] : -scores[0];
    return;
  }
  const double base = scores[own];
  for (int64_t k = 0; k < classes_; ++k) out[k] = scores[k] - base;
}

void ScoreDifferences::adjoint(int64_t i, const double* dual, double* out) const {
  const int32_t own = y_[i];
  if (outputs_ == 1) {
    out[0] = own == 0 ? dual[1] : -dual[0];
    return;
  }
  double others = 0.0;
  for (int64_t k = 0; k < classes_; ++k) {
    out[k] = dual[k];
    if (k != own) others += dual[k];
  }
  out[own] = -others;
}

double operator_norm(const Design& X, bool intercept, const Poll& poll) {
  std::vector<double> W, b;
  const double frobenius = random_start(X, intercept, 1, W, b);
  if (!(frobenius > 0.0)) return 0.0;
  const double norm =
      power_iteration(X, intercept, 1, W, b, 1, poll, [](int64_t, double* s) { return *s * *s; });
  return norm > 0.0 ? std::min(kNorm.raise * norm, frobenius) : frobenius;
}

double difference_norm(const HingeProblem& problem, const Poll& poll) {
  const ScoreDifferences T(problem);
  std::vector<double> W, b, row(static_cast<std::size_t>(problem.classes));
  random_start(*problem.design, problem.intercept, problem.outputs(), W, b);
  const auto apply = [&](int64_t i, double* s) {
    T.forward(i, s, row.data());
    T.adjoint(i, row.data(), s);
    double squares = 0.0;
    for (const double value : row) squares += value * value;
    return squares;
  };
  return kNorm.raise * power_iteration(*problem.design, problem.intercept, problem.outputs(), W, b,
                                       kNorm.least_passes, poll, apply);
}

}  // namespace sparsvm
