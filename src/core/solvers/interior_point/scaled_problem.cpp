#include "solvers/interior_point/scaled_problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linalg/blas.hpp"
#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

using namespace interior_point_settings;

ScaledProblem::ScaledProblem(const HingeProblem& problem, const std::function<void()>& poll)
    : given(problem), design(*problem.design), n(static_cast<int>(problem.n())),
      classes(static_cast<int>(problem.classes)), outputs(static_cast<int>(problem.outputs())),
      first_class(classes - outputs), d(problem.d()), penalty(problem.penalty),
      quadratic(!penalty.selects()), layout(penalty), y(problem.y), lambda(problem.lambda),
      linear_term(problem.linear_term), offset(problem.offset / problem.alpha) {
  set_margins();
  mean.assign(d, 0.0);
  free = {n, classes, problem.intercept ? 1 : 0, {}};
  if (problem.intercept) free.values.assign(n, 1.0);
  for (int64_t j = 0; j < d; ++j)
    if (!(penalty.omega[j] > 0.0)) add_free_feature(static_cast<int32_t>(j));
  if (quadratic) form_quadratic_part(poll);
}

void ScaledProblem::set_margins() {
  margins.resize(static_cast<std::size_t>(n) * classes);
  double sizes = 0.0;
  shares.assign(classes, 0.0);
  for (int i = 0; i < n; ++i) {
    double size = 0.0, largest = 0.0;
    for (int k = 0; k < classes; ++k) {
      const double margin = margins[at(k) + i] = given.margin(i, k);
      largest = std::max(largest, margin);
      size = std::max(size, std::abs(margin));
    }
    sizes += lambda[i] * size;
    shares[y[i]] += lambda[i];
    total_lambda += lambda[i];
    zero_value += lambda[i] * largest;
  }
  for (double& s : shares) s /= total_lambda;
  // A class without samples, as a linearised ramp loss may leave it, needs dual variables to start
  // from too; the equalities of the intercept then begin with a residual.
  for (double& s : shares)
    if (s == 0.0) {
      s = kEmptyShare;
      empty_class = true;
    }
  margin_unit = sizes > 0.0 ? sizes / total_lambda : 1.0;
}

void ScaledProblem::add_free_feature(int32_t j) {
  std::vector<double> x(n);
  design.gather_columns(&j, 1, x.data());
  double sum = 0.0, raw = 0.0;
  for (double v : x) raw = std::max(raw, std::abs(v));
  centre(j, x.data());
  for (double v : x) sum += v * v;
  const double scale = std::sqrt(sum / n);
  if (!(scale > kNoVariation * raw)) return;  // the intercept already has it
  for (double v : x) free.values.push_back(v / scale);
  ++free.q;
  free_features.push_back(j);
  free_scale.push_back(scale);
}

// All features of a quadratic penalty are active from the first iteration to the last: few of them
// are kept as columns, of many only X X'. The costs are those of the two eliminations.
void ScaledProblem::form_quadratic_part(const std::function<void()>& poll) {
  std::vector<int32_t> list;
  for (int64_t j = 0; j < d; ++j)
    if (penalty.omega[j] > 0.0) list.push_back(static_cast<int32_t>(j));
  if (linear_term) linear_scores_.assign(static_cast<std::size_t>(n) * classes, 0.0);
  const double m = n, columns = outputs * (static_cast<double>(list.size()) + free.q);
  const double features = m * columns * columns + columns * columns * columns / 3.0;
  if (kFeatureCost * features >= outputs * m * m * m + m * m * m / 3.0) return form_gram(poll);
  quadratic_part.columns.resize(list.size() * n);
  gather(list, quadratic_part.columns.data());
  if (linear_term) add_linear_scores(list, quadratic_part.columns);
}

void ScaledProblem::form_gram(const std::function<void()>& poll) {
  std::vector<double>& gram = quadratic_part.gram;
  gram.assign(static_cast<std::size_t>(n) * n, 0.0);
  std::vector<int32_t> list;
  std::vector<double> X;
  for (int64_t j0 = 0; j0 < d; j0 += kGramPanel) {
    list.clear();
    for (int64_t j = j0; j < std::min(d, j0 + kGramPanel); ++j)
      if (penalty.omega[j] > 0.0) list.push_back(static_cast<int32_t>(j));
    X.resize(list.size() * n);
    gather(list, X.data());
    if (linear_term) add_linear_scores(list, X);
    syrk('U', 'N', n, static_cast<int>(list.size()), 1.0, X.data(), n, 1.0, gram.data(), n);
    poll();
  }
  for (int c = 0; c < n; ++c)
    for (int r = c + 1; r < n; ++r)
      gram[static_cast<std::size_t>(c) * n + r] = gram[static_cast<std::size_t>(r) * n + c];
}

void ScaledProblem::add_linear_scores(const std::vector<int32_t>& list,
                                      const std::vector<double>& X) {
  for (std::size_t c = 0; c < list.size(); ++c)
    for (int o = 0; o < outputs; ++o) {
      const double v =
          linear_term[static_cast<std::size_t>(list[c]) * outputs + o] * layout.inv_omega[list[c]];
      linear_norm += v * v;
      for (int i = 0; i < n; ++i) linear_scores_[at(o + first_class) + i] += v * X[c * n + i];
    }
}

void ScaledProblem::gather(const std::vector<int32_t>& list, double* out) {
  design.gather_columns(list.data(), static_cast<int64_t>(list.size()), out);
  for (std::size_t c = 0; c < list.size(); ++c) {
    double* x = out + c * n;
    centre(list[c], x);
    const double f = layout.inv_omega[list[c]];
    for (int i = 0; i < n; ++i) x[i] *= f;
  }
}

// A constant column becomes exactly zero. Sparse columns stay sparse, unless that takes most of them
// away: what is all but constant would compete with the intercept.
void ScaledProblem::centre(int32_t j, double* x) {
  if (!given.intercept) return;
  double sum = 0.0, total = 0.0;
  for (int i = 0; i < n; ++i) {
    sum += lambda[i] * (x[i] - x[0]);
    total += lambda[i];
  }
  const double centre = x[0] + sum / total;
  if (design.sparse()) {
    double before = 0.0, after = 0.0;
    for (int i = 0; i < n; ++i) {
      before += x[i] * x[i];
      after += (x[i] - centre) * (x[i] - centre);
    }
    if (!(after < kConstantColumn * before)) return;
  }
  mean[j] = centre;
  for (int i = 0; i < n; ++i) x[i] -= centre;
}

void ScaledProblem::transposed(const double* sample_major, double* out) const {
  if (outputs == classes) {
    design.transposed(sample_major, classes, out);
    return;
  }
  std::vector<double> column(n);
  for (int i = 0; i < n; ++i) column[i] = sample_major[static_cast<std::size_t>(i) * classes + 1];
  design.transposed(column.data(), 1, out);
}

// The true class gets minus the sum of the others: reading Y - lambda there would cancel all digits
// when alpha is tiny and lambda huge.
void ScaledProblem::signed_column(const std::vector<double>& Y, int k,
                                  std::vector<double>& out) const {
  out.resize(n);
  if (classes == 2) {
    const double *own = Y.data() + at(k), *other = Y.data() + at(1 - k);
    for (int i = 0; i < n; ++i) out[i] = y[i] == k ? -other[i] : own[i];
    return;
  }
  for (int i = 0; i < n; ++i) {
    if (y[i] != k) {
      out[i] = Y[at(k) + i];
      continue;
    }
    double sum = 0.0;
    for (int l = 0; l < classes; ++l)
      if (l != k) sum += Y[at(l) + i];
    out[i] = -sum;
  }
}

std::vector<double> ScaledProblem::signed_rows(const std::vector<double>& Y) const {
  std::vector<double> rows(Y.size()), column;
  for (int k = 0; k < classes; ++k) {
    signed_column(Y, k, column);
    for (int i = 0; i < n; ++i) rows[static_cast<std::size_t>(i) * classes + k] = column[i];
  }
  return rows;
}

void ScaledProblem::residuals(const FreeColumns& columns, const std::vector<double>& Y,
                              std::vector<double>& out) const {
  std::vector<double> column;
  out.assign(columns.count(), 0.0);
  for (int k = 0; k < classes; ++k) {
    if (!columns.has(k)) continue;
    signed_column(Y, k, column);
    gemv('T', n, columns.q, -1.0, columns.data(), n, column.data(), 1, 0.0,
         out.data() + columns.offset(k), 1);
  }
}

void ScaledProblem::add_free_scores(const std::vector<double>& b, std::vector<double>& S) const {
  for (int k = 0; k < classes; ++k)
    if (free.has(k))
      gemv('N', n, free.q, 1.0, free.data(), n, b.data() + free.offset(k), 1, 1.0, S.data() + at(k),
           1);
}

double ScaledProblem::hinge(const std::vector<double>& S) const {
  double total = 0.0;
  for (int i = 0; i < n; ++i) {
    double top = -std::numeric_limits<double>::infinity();
    for (int k = 0; k < classes; ++k) top = std::max(top, margins[at(k) + i] + S[at(k) + i]);
    total += lambda[i] * (top - S[at(y[i]) + i]);
  }
  return total;
}

// out = factor * X X' v + rest * out
void ScaledProblem::quadratic_product(double factor, const double* v, double rest,
                                      double* out) const {
  const std::vector<double>& columns = quadratic_part.columns;
  if (!quadratic_part.gram.empty()) {
    symv('U', n, factor, quadratic_part.gram.data(), n, v, 1, rest, out, 1);
    return;
  }
  if (columns.empty()) {  // nothing is penalised
    for (int i = 0; i < n; ++i) out[i] *= rest;
    return;
  }
  const int m = static_cast<int>(columns.size() / n);
  std::vector<double> along(m);
  gemv('T', n, m, 1.0, columns.data(), n, v, 1, 0.0, along.data(), 1);
  gemv('N', n, m, factor, columns.data(), n, along.data(), 1, rest, out, 1);
}

void ScaledProblem::add_quadratic_scores(const std::vector<double>& Y,
                                         std::vector<double>& S) const {
  std::vector<double> column;
  for (int k = first_class; k < classes; ++k) {
    signed_column(Y, k, column);
    quadratic_product(-1.0, column.data(), 1.0, S.data() + at(k));
    if (linear_term)
      for (int i = 0; i < n; ++i) S[at(k) + i] += linear_scores_[at(k) + i];
  }
}

std::pair<double, double> ScaledProblem::quadratic_terms(const std::vector<double>& Y) const {
  if (!quadratic) return {0.0, 0.0};
  double square = 0.0, linear = 0.0;
  std::vector<double> column, product(n);
  for (int k = first_class; k < classes; ++k) {
    signed_column(Y, k, column);
    quadratic_product(1.0, column.data(), 0.0, product.data());
    for (int i = 0; i < n; ++i) square += column[i] * product[i];
    if (linear_term)
      for (int i = 0; i < n; ++i) linear += column[i] * linear_scores_[at(k) + i];
  }
  return {0.5 * square, linear};
}

void ScaledProblem::quadratic_weights(const std::vector<double>& Y, std::vector<double>& W) const {
  W.resize(static_cast<std::size_t>(d) * outputs);
  transposed(signed_rows(Y).data(), W.data());
  for (int64_t j = 0; j < d; ++j)
    for (int o = 0; o < outputs; ++o) {
      const std::size_t a = static_cast<std::size_t>(j) * outputs + o;
      const double g = W[a] - (linear_term ? linear_term[a] : 0.0);
      W[a] = -g * layout.inv_omega[j] * layout.inv_omega[j];
    }
}

double ScaledProblem::exact_quadratic_scores(const std::vector<double>& Y,
                                             const std::vector<double>& b,
                                             std::vector<double>& S) const {
  std::vector<double> W, out(static_cast<std::size_t>(n) * outputs), shift(outputs, 0.0);
  quadratic_weights(Y, W);
  double square = 0.0;
  for (int64_t j = 0; j < d; ++j)
    for (int o = 0; o < outputs; ++o) {
      const double w = W[static_cast<std::size_t>(j) * outputs + o];
      square += penalty.omega[j] * w * penalty.omega[j] * w;
      shift[o] += mean[j] * w;
    }
  design.scores(W.data(), outputs, out.data());
  S.assign(Y.size(), 0.0);
  for (int k = first_class; k < classes; ++k) {
    const int o = k - first_class;
    for (int i = 0; i < n; ++i)
      S[at(k) + i] = out[static_cast<std::size_t>(i) * outputs + o] - shift[o];
  }
  add_free_scores(b, S);
  // With a linear term V the objective has -<V, W> as well; in the terms of InteriorPoint::consider that is
  // |W|^2/2 - <V, W> + |V|^2/2, as the rest is added there.
  if (!linear_term) return 0.5 * square;
  double linear = 0.0;
  for (std::size_t a = 0; a < W.size(); ++a) linear += linear_term[a] * W[a];
  return 0.5 * square - linear + 0.5 * linear_norm;
}

}  // namespace sparsvm
