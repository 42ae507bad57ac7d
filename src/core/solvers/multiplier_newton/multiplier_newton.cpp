#include "solvers/multiplier_newton/multiplier_newton.hpp"

#include <cmath>

namespace sparsvm {

MultiplierNewton::MultiplierNewton(const HingeProblem& problem, const double* rms)
    : p_(problem), rms_(rms), n_(problem.n()), d_(problem.d()), outputs_(problem.outputs()),
      hinge_(problem), manifold_(problem.penalty), tied_(problem), system_(outputs_),
      weights_(size(d_ * outputs_), 0.0), intercept_(size(outputs_), 0.0),
      center_weights_(weights_), center_intercept_(intercept_),
      multipliers_(size(n_ * problem.classes), 0.0), scores_(size(n_ * outputs_)),
      trial_scores_(scores_.size()), change_(scores_.size()), dual_(multipliers_.size()),
      trial_dual_(multipliers_.size()), signed_(scores_.size()), set_(problem, rms) {
  for (int64_t i = 0; i < n_; ++i) mass_ += p_.lambda[i];
}

void MultiplierNewton::start(const double* weights, const double* intercept, const double* dual) {
  std::copy(weights, weights + d_ * outputs_, weights_.begin());
  for (int64_t j = 0; j < d_; ++j) {
    for (int64_t o = 0; o < outputs_; ++o) weights_[j * outputs_ + o] /= set_.inverse[j];
  }
  std::copy(intercept, intercept + outputs_, intercept_.begin());
  std::copy(dual, dual + n_ * p_.classes, multipliers_.begin());
  center_weights_ = weights_;
  center_intercept_ = intercept_;
  dual_ = multipliers_;
  set_.features.clear();
}

void MultiplierNewton::weights(double* out) const {
  for (int64_t j = 0; j < d_; ++j) {
    for (int64_t o = 0; o < outputs_; ++o) {
      out[j * outputs_ + o] = weights_[j * outputs_ + o] * set_.inverse[j];
    }
  }
}

double MultiplierNewton::typical_size() const {
  double sum = 0.0;
  int64_t count = 0;
  for (std::size_t e = 0; e < weights_.size(); ++e) {
    if (weights_[e] != 0.0) sum += std::abs(weights_[e]), ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0.0;
}

void MultiplierNewton::accept() {
  center_weights_ = weights_;
  center_intercept_ = intercept_;
  multipliers_ = dual_;
}

NewtonReport MultiplierNewton::solve(double gain, double sigma, double sigma_free, double accuracy,
                                     int64_t limit, double typical, Monitor& monitor) {
  gain_ = gain;
  sigma_ = sigma;
  sigma_free_ = sigma_free;
  NewtonReport report;
  damping_ = 0.0;
  typical_ = typical;
  if (set_.features.empty()) choose_features(accuracy, true, monitor);
  for (;;) {
    gather();
    evaluate_afresh(monitor);
    newton(accuracy, limit, report, monitor);
    scatter();
    if (!report.solved || !choose_features(accuracy, false, monitor)) return report;
    report.solved = false;
  }
}

double MultiplierNewton::forcing(double residual) {
  return std::min(Settings::kRough, Settings::kForcing * residual);
}

bool MultiplierNewton::choose_features(double accuracy, bool afresh, Monitor& monitor) {
  if (set_.take_all()) {
    if (afresh) set_.take_all_features();
    return afresh;
  }
  sign_dual(dual_.data());
  Vector G(size(d_ * outputs_));
  p_.design->transposed(signed_.data(), outputs_, G.data());
  monitor.poll();
  return set_.choose(G.data(), weights_.data(), accuracy, afresh);
}

void MultiplierNewton::gather() {
  const std::size_t count = size(coordinates());
  Z_.resize(count), center_.resize(count), anchor_.resize(count), g_.resize(count);
  trial_.resize(count), D_.resize(count);
  for (int64_t f = 0; f < width(); ++f) {
    const int64_t j = set_.features[f];
    for (int64_t o = 0; o < outputs_; ++o) {
      const int64_t e = f * outputs_ + o;
      Z_[e] = weights_[j * outputs_ + o];
      center_[e] = center_weights_[j * outputs_ + o];
      anchor_[e] = 1.0 / (p_.penalty.omega[j] > 0.0 ? sigma_ : sigma_free_);
    }
  }
  for (int64_t o = 0; o < outputs_; ++o) {
    const int64_t e = width() * outputs_ + o;
    Z_[e] = intercept_[o];
    center_[e] = center_intercept_[o];
    anchor_[e] = 1.0 / sigma_free_;
  }
}

void MultiplierNewton::scatter() {
  for (int64_t f = 0; f < width(); ++f) {
    std::copy_n(&Z_[f * outputs_], outputs_, &weights_[set_.features[f] * outputs_]);
  }
  std::copy_n(&Z_[width() * outputs_], outputs_, intercept_.begin());
}

void MultiplierNewton::scores_of(const double* D, Vector& out, Monitor& monitor) {
  std::vector<int32_t> used;
  Vector rows;
  for (int64_t f = 0; f < width(); ++f) {
    const double* row = D + f * outputs_;
    if (std::all_of(row, row + outputs_, [](double v) { return v == 0.0; })) continue;
    used.push_back(set_.features[f]);
    for (int64_t o = 0; o < outputs_; ++o) rows.push_back(row[o] * set_.scale[f]);
  }
  p_.design->scores_subset(used.data(), static_cast<int64_t>(used.size()), rows.data(), outputs_,
                           out.data());
  monitor.spend(Settings::kFewColumns *
                static_cast<double>(n_ * static_cast<int64_t>(used.size()) * outputs_));
  monitor.poll();
  const double* b = D + width() * outputs_;
  for (int64_t i = 0; i < n_; ++i) {
    for (int64_t o = 0; o < outputs_; ++o) out[i * outputs_ + o] += b[o];
  }
}

SizedSum MultiplierNewton::objective(const double* Z, const double* S, double* Y) {
  SizedSum total = hinge_.evaluate(S, multipliers_.data(), gain_, Y);
  total.add(manifold_.value(set_.blocks, Z));
  for (std::size_t e = 0; e < center_.size(); ++e) {
    const double moved = Z[e] - center_[e];
    total.add(0.5 * anchor_[e] * moved * moved);
  }
  if (!p_.linear_term) return total;
  for (int64_t f = 0; f < width(); ++f) {
    for (int64_t o = 0; o < outputs_; ++o) {
      total.add(-set_.linear_term(set_.features[f], o) * set_.scale[f] * Z[f * outputs_ + o]);
    }
  }
  return total;
}

void MultiplierNewton::evaluate_afresh(Monitor& monitor) {
  scores_of(Z_.data(), scores_, monitor);
  value_ = objective(Z_.data(), scores_.data(), dual_.data()).value;
}

void MultiplierNewton::sign_dual(const double* Y) {
  const int64_t K = p_.classes;
  for (int64_t i = 0; i < n_; ++i) {
    const double lam = p_.lambda[i];
    const int32_t own = p_.y[i];
    if (outputs_ == 1) {
      signed_[i] = own == 1 ? -Y[i * 2] : Y[i * 2 + 1];
      continue;
    }
    double rest = 0.0;
    for (int64_t k = 0; k < K; ++k) {
      const double entry = k == own ? 0.0 : Y[i * K + k];
      signed_[i * K + k] = entry;
      rest += entry;
    }
    signed_[i * K + own] = -std::min(rest, lam);
  }
}

void MultiplierNewton::slope(Monitor& monitor) {
  sign_dual(dual_.data());
  if (width() == d_) {
    p_.design->transposed(signed_.data(), outputs_, g_.data());
  } else {
    p_.design->transposed_subset(set_.features.data(), width(), signed_.data(), outputs_,
                                 g_.data());
  }
  monitor.spend(Settings::kFewColumns * static_cast<double>(n_ * width() * outputs_));
  monitor.poll();
  double* sums = &g_[width() * outputs_];
  std::fill(sums, sums + outputs_, 0.0);
  if (p_.intercept) {
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t o = 0; o < outputs_; ++o) sums[o] += signed_[i * outputs_ + o];
    }
  }
  for (int64_t f = 0; f < width(); ++f) {
    for (int64_t o = 0; o < outputs_; ++o) {
      double& g = g_[f * outputs_ + o];
      g = (g - set_.linear_term(set_.features[f], o)) * set_.scale[f];
    }
  }
  for (std::size_t e = 0; e < g_.size(); ++e) g_[e] += anchor_[e] * (Z_[e] - center_[e]);
}

void MultiplierNewton::newton(double accuracy, int64_t limit, NewtonReport& report,
                              Monitor& monitor) {
  while (report.steps < limit && monitor.spent() <= most_work_) {
    slope(monitor);
    tied_.find(dual_.data(), gain_);
    report.residual = residual();
    if (report.residual <= accuracy) {
      report.solved = true;
      return;
    }
    ++report.steps;
    bool moved = false;
    for (int attempt = 0; attempt < Settings::kAttempts && !moved; ++attempt)
      moved = newton_step(report, monitor);
    if (!moved) return;
  }
}

bool MultiplierNewton::newton_step(NewtonReport& report, Monitor& monitor) {
  find_manifold();
  const bool found =
      system_.solve(point_, Z_.data(), g_.data(), anchor_.data(), set_.features, set_.scale,
                    p_.intercept, damping_, forcing(report.residual), tied_, D_, monitor);
  const double step = found ? search(monitor) : 0.0;
  if (step > Settings::kLong) {
    damping_ = damping_ > least_damping() ? damping_ / Settings::kLessDamping : 0.0;
  } else if (step < Settings::kShort) {
    damping_ = std::max(Settings::kMoreDamping * damping_, least_damping());
  }
  return step > 0.0;
}

std::pair<double, double> MultiplierNewton::size_and_step(int64_t b, const Vector& mass) const {
  double curvature = 0.0, top = 0.0;
  for (int64_t m = set_.blocks.first[b]; m < set_.blocks.first[b + 1]; ++m) {
    const int64_t e = set_.blocks.member[m], f = e / outputs_;
    const double x = rms_[set_.features[f]] * set_.scale[f];
    curvature = std::max(curvature, mass[e % outputs_] * x * x);
    top = std::max(top, std::abs(Z_[e]));
  }
  return {top, 1.0 / (1.0 / sigma_ + damping_ + curvature)};
}

double MultiplierNewton::residual() {
  point_.reset(size(coordinates()));
  double largest = 0.0;
  for (int64_t b = 0; b < set_.blocks.size(); ++b) {
    double top = 0.0;
    for (int64_t m = set_.blocks.first[b]; m < set_.blocks.first[b + 1]; ++m) {
      top = std::max(top, std::abs(Z_[set_.blocks.member[m]]));
    }
    const double t = top > 0.0 ? Settings::kNear * top : 1.0;
    manifold_.step(set_.blocks, b, Z_.data(), g_.data(), t, point_);
    for (int64_t m = set_.blocks.first[b]; m < set_.blocks.first[b + 1]; ++m) {
      const int64_t e = set_.blocks.member[m];
      largest = std::max(largest, std::abs(point_.plus[e] - Z_[e]) / t);
    }
  }
  for (int64_t e = 0; e < coordinates(); ++e) {
    if (is_free(e)) largest = std::max(largest, std::abs(g_[e]) / mass_);
  }
  return largest;
}

void MultiplierNewton::find_manifold() {
  point_.reset(size(coordinates()));
  const Vector mass = tied_.diagonal_mass();
  std::vector<std::pair<double, int64_t>> entering;
  int64_t active = 0;
  for (int64_t b = 0; b < set_.blocks.size(); ++b) {
    const auto [top, t] = size_and_step(b, mass);
    manifold_.step(set_.blocks, b, Z_.data(), g_.data(), t, point_);
    active += top > 0.0;
    if (top > 0.0) continue;
    double moved = 0.0;
    for (int64_t m = set_.blocks.first[b]; m < set_.blocks.first[b + 1]; ++m) {
      moved = std::max(moved, std::abs(point_.plus[set_.blocks.member[m]]) / t);
    }
    if (moved > 0.0) entering.emplace_back(-moved, b);
  }
  cap_entrants(entering, active);
  for (int64_t e = 0; e < coordinates(); ++e) {
    // Intercepts and unpenalised features are always active.
    if (!is_free(e)) continue;
    point_.state[e] = ManifoldPoint::single;
    point_.plus[e] = Z_[e];
  }
}

void MultiplierNewton::cap_entrants(std::vector<std::pair<double, int64_t>>& entering,
                                    int64_t active) {
  const auto cap = static_cast<std::size_t>(std::max(Settings::kEntrants, active));
  if (entering.size() <= cap) return;
  std::nth_element(entering.begin(), entering.begin() + static_cast<std::ptrdiff_t>(cap),
                   entering.end());
  std::vector<unsigned char> frozen(point_.state.size(), 0);
  for (std::size_t r = cap; r < entering.size(); ++r) {
    const int64_t b = entering[r].second;
    PenaltyManifold::freeze(set_.blocks, b, Z_.data(), point_);
    for (int64_t m = set_.blocks.first[b]; m < set_.blocks.first[b + 1]; ++m) {
      frozen[set_.blocks.member[m]] = 1;
    }
  }
  const auto gone = [&](const auto& part) { return frozen[part.member.front()] != 0; };
  std::erase_if(point_.curved, gone);
  std::erase_if(point_.ties, gone);
}

double MultiplierNewton::search(Monitor& monitor) {
  Vector end = Z_;
  for (std::size_t e = 0; e < end.size(); ++e) end[e] += D_[e];
  manifold_.project(set_.blocks, point_, end.data());
  double promise = manifold_.change(set_.blocks, Z_.data(), end.data());
  for (std::size_t e = 0; e < end.size(); ++e) {
    end[e] -= Z_[e];
    promise += g_[e] * end[e];
  }
  if (!(promise < 0.0)) return 0.0;
  scores_of(end.data(), change_, monitor);
  for (double step = 1.0; step > Settings::kShortest; step *= 0.5) {
    for (std::size_t e = 0; e < end.size(); ++e) {
      // At the full step exact zeros must stay exact.
      trial_[e] = step == 1.0 && end[e] == -Z_[e] ? 0.0 : Z_[e] + step * end[e];
    }
    for (std::size_t s = 0; s < scores_.size(); ++s) {
      trial_scores_[s] = scores_[s] + step * change_[s];
    }
    if (try_point(-Settings::kArmijo * step * promise, Settings::kRounding)) return step;
    monitor.poll();
  }
  return 0.0;
}

bool MultiplierNewton::try_point(double decrease, double slack) {
  const SizedSum found = objective(trial_.data(), trial_scores_.data(), trial_dual_.data());
  if (!(found.value < value_ - decrease + slack * found.size)) return false;
  value_ = found.value;
  Z_.swap(trial_);
  scores_.swap(trial_scores_);
  dual_.swap(trial_dual_);
  return true;
}

bool MultiplierNewton::is_free(int64_t e) const {
  const int64_t f = e / outputs_;
  return f == width() ? p_.intercept : p_.penalty.omega[set_.features[f]] == 0.0;
}

}  // namespace sparsvm
