// The driver of sdca.hpp: proximal steps, looks at the whole problem, a new working set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "solvers/sdca/sdca.hpp"
#include "solvers/sdca/sdca_balance.hpp"
#include "solvers/sdca/sdca_prices.hpp"
#include "solvers/sdca/sdca_values.hpp"
#include "solvers/sdca/sdca_working_set.hpp"
#include "support/monitor.hpp"

namespace sparsvm {

class Sdca {
 public:
  Sdca(const HingeProblem& problem, const SdcaOptions& options)
      : problem_(problem), options_(options), n_(problem.design->n()), d_(problem.design->d()),
        K_(problem.classes), outputs_(problem.outputs()), features_(problem.penalty),
        samples_(problem_, features_, options), prices_(problem),
        working_set_(problem_, features_, prices_), costs_(problem_, features_, samples_, prices_),
        intercept_(static_cast<std::size_t>(outputs_)) {
    inner_ = options.sweeps;
    choose_reading();
    margin_ = typical_margin();
  }

  /// W (d x outputs, or null for 0), b and Y (n x K, in units of alpha). Without Y a spread over the
  /// classes; with l2 all mass on the true ones, whose W is 0: spread masses take long to gather.
  void start(const double* W, const double* b, const double* Y) {
    // Asked for first: then an indexed CSC prices by the rows that sweeps need, without columns.
    problem_.design->stored_rows();
    used_.clear();
    Pages<double> rows;
    for (int64_t j = 0; W && j < d_; ++j) {
      if (detail::all_zero(W + j * outputs_, outputs_)) continue;
      used_.push_back(static_cast<int32_t>(j));
      rows.insert(rows.end(), W + j * outputs_, W + (j + 1) * outputs_);
    }
    features_.take(used_, std::move(rows), problem_.tilt, 1.0);
    samples_.drop_rows();
    intercept_.assign(b, b + outputs_);
    samples_.set_anchor(intercept_);
    if (Y) {
      samples_.dual().assign(Y, Y + n_ * K_);
    } else if (features_.linear()) {
      samples_.rest_dual();
    } else {
      spread_dual();
    }
    price();
    set_first_sigma();
    rebuild();
  }

  /// Proximal steps until the estimated gap is at most target · |objective|, or enough sweeps.
  bool run(double target, int64_t sweeps, Monitor& monitor) {
    // A certificate has just left its blocks.
    if (problem_.design->sparse()) give_back_memory();
    samples_.restore_dual();
    const int64_t last = sweeps_ + sweeps;
    while (sweeps_ < last) {
      if (stale_) rebuild();
      newton_ = samples_.face().suits() && (newton_ || slow(target));
      const int64_t next = work_ + std::max<int64_t>(until_look(target), inner_);
      features_.forget(), samples_.forget();
      while (work_ < next && sweeps_ < last) {
        step(std::min(inner_, last - sweeps_), monitor);
        // Means are taken over the last eighth of all sweeps.
        if (8 * work_ >= 7 * next || sweeps_ >= last) features_.average(), samples_.average();
      }
      const double earlier = values_.gap();
      const int64_t before = last_look_;
      look();
      last_look_ = work_;
      rate_ = std::log(earlier / values_.gap()) / static_cast<double>(work_ - before);
      monitor.poll();
      monitor.record(sweeps_, values_.objective, values_.gap(), nonzeros_);
      const bool done = values_.gap() <= target * std::abs(values_.objective);
      // What was looked at early says little about the balance.
      if (work_ - adapted_ >= pause_) adapt();
      stale_ = true;
      // Without features to price a look costs half a sweep, else several sweeps of a working set.
      pause_ = prices_.selects() ? std::min<int64_t>(pause_ + 4, 50)
                                 : std::clamp<int64_t>(sweeps_ / 4, 2, 50);
      if (done || sweeps_ >= last) {
        rest();
        return done;
      }
    }
    return false;
  }

  int64_t sweeps() const { return sweeps_; }
  int64_t visits() const { return samples_.visits(); }
  double sigma() const { return sigma_; }
  double sigma_b() const { return sigma_b_; }
  int64_t inner() const { return inner_; }
  int64_t working_set() const { return at_work_; }
  /// Single entries that take part; all of the working set's features where there are none.
  int64_t entries() const { return entries_at_work_; }
  const SdcaValues& values() const { return values_; }
  const Pages<double>& dual() {
    samples_.restore_dual();
    return samples_.dual();
  }
  Pages<double> give_dual() {
    samples_.restore_dual();
    return samples_.give_dual();
  }
  const std::vector<double>& intercept() const { return intercept_; }
  /// The features that may be in use, and their rows of W, outputs each.
  const std::vector<int32_t>& used() const {
    return features_.linear() ? features_.features() : used_;
  }
  Pages<double> used_weights() const {
    if (features_.linear()) return features_.present();
    return rows_of(used(), features_.features(), features_.center(), outputs_);
  }
  /// The same, not held here any more where all features are in use.
  Pages<double> give_weights() {
    if (features_.linear() && !features_.center().empty()) return features_.give_center();
    return used_weights();
  }
  Pages<double> give_mean_dual() { return samples_.give_mean_dual(); }

 private:
  static constexpr int64_t products_per_sweep = 6;  // that take as long
  static constexpr double many_sweeps = 100.0;

  /// One proximal step: a Newton step where it pays, then so many sweeps, or fewer once its own problem is solved well enough.
  void step(int64_t inner, Monitor& monitor) {
    if (newton_) work_ += samples_.climb([&] { monitor.poll(); }) / products_per_sweep;
    for (int64_t s = 1; s <= inner; ++s, ++sweeps_, ++work_) {
      features_.refresh();
      samples_.shuffle();
      const double slack = samples_.sweep([&] { monitor.poll(); });
      if (s >= options_.sweeps && s % 4 == 0 && s < inner &&
          slack <= 0.3 * (features_.moved() + samples_.moved())) {
        ++sweeps_, ++work_;
        break;
      }
    }
    move_ = features_.advance();
    samples_.advance();
  }

  /// Whether sweeps alone would take long to the target, and Newton steps can help: the face should
  /// be near, with more free duals than coefficients they would mostly be damped, and for less than
  /// a digit they are not worth the memory.
  bool slow(double target) const {
    const double objective = std::abs(values_.objective);
    const double left = values_.gap() / (target * objective);
    return values_.gap() < 1e-2 * objective && left > 10.0 &&
           !(rate_ * many_sweeps > std::log(left)) &&
           samples_.free_duals() <= std::ssize(used_) * outputs_;
  }

  /// Sweeps to the next look: the usual pause, or less where the gap should be there earlier.
  int64_t until_look(double target) const {
    const double left = values_.gap() / (target * std::abs(values_.objective));
    if (!(left > 1.0 && std::isfinite(left) && std::isfinite(rate_) && rate_ > 0.0)) return pause_;
    const double sweeps = std::ceil(1.1 * std::log(left) / rate_);
    return sweeps < static_cast<double>(pause_)
               ? std::min(pause_, std::max<int64_t>(static_cast<int64_t>(sweeps), 8))
               : pause_;
  }

  /// Give up what rebuilding makes anew, while others need memory; reading dense data takes too long.
  void rest() {
    samples_.drop_face();
    if (!problem_.design->sparse()) return;
    if (!features_.linear()) {
      samples_.drop_rows();
      features_.rest(used_);
    }
    give_back_memory();
  }

  bool norm_penalty() const { return problem_.penalty.quad() == 0.0; }
  double omega(int64_t j) const { return problem_.penalty.omega[j]; }

  /// Dense data of which at most half is not zero are read compressed.
  void choose_reading() {
    if (problem_.design->sparse() || d_ == 0) return;
    std::vector<int32_t> all(static_cast<std::size_t>(d_));
    std::iota(all.begin(), all.end(), 0);
    std::vector<double> row(all.size());
    const int64_t step = std::max<int64_t>(1, n_ / 200);
    int64_t seen = 0, entries = 0;
    for (int64_t i = 0; i < n_; i += step, seen += d_) {
      problem_.design->sample(i, all.data(), d_, row.data());
      entries += d_ - std::count(row.begin(), row.end(), 0.0);
    }
    compress_ = 2 * entries <= seen;
  }

  /// Ỹ = λ_i(π_k − [k = y_i])ε with the class shares π and the largest feasible or best ε.
  void spread_dual() {
    std::vector<double> share(static_cast<std::size_t>(K_), 0.0);
    double total = 0.0;
    for (int64_t i = 0; i < n_; ++i)
      share[problem_.y[i]] += problem_.lambda[i], total += problem_.lambda[i];
    const auto fill = [&](double epsilon) {
      for (int64_t i = 0; i < n_; ++i)
        for (int64_t k = 0; k < K_; ++k)
          samples_.dual()[i * K_ + k] =
              problem_.lambda[i] *
              (epsilon * share[k] / total + (k == problem_.y[i] ? 1.0 - epsilon : 0.0));
    };
    fill(1.0);
    price();
    double epsilon = 1.0;
    if (norm_penalty()) {
      // A little less, lest rounding decide whether the first feature is in use.
      if (values_.norm > 1.0) epsilon = (1.0 - 1e-9) / values_.norm;
    } else {
      const double squares = prices_.squares();
      const double gain = margin_value();
      if (squares > gain) epsilon = gain / squares;
    }
    fill(epsilon);
  }

  /// The mean of the samples' largest margins, as a power of 1024: σ adapts to anything nearer. 1
  /// where there are none.
  double typical_margin() const {
    double sum = 0.0, total = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      double most = 0.0;
      for (int64_t k = 0; k < K_; ++k) most = std::max(most, problem_.margin(i, k));
      sum += problem_.lambda[i] * most, total += problem_.lambda[i];
    }
    const double mean = sum / total;
    if (!(mean > 0.0 && std::isfinite(mean))) return 1.0;
    return std::exp2(10.0 * std::round(std::log2(mean) / 10.0));
  }

  double margin_value() const {
    double sum = 0.0;
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t k = 0; k < K_; ++k) sum += samples_.dual()[i * K_ + k] * problem_.margin(i, k);
    return sum;
  }

  void price() {
    if (features_.linear()) return;
    samples_.with_signed_dual([&](const double* signed_dual) { prices_.find(signed_dual); });
    values_.norm = prices_.largest();
  }

  /// T − XᵀỸ of the listed features, m x outputs.
  Pages<double> pull_of(const std::vector<int32_t>& features) {
    Pages<double> pull;
    samples_.with_signed_dual(
        [&](const double* signed_dual) { prices_.pull_of(features, signed_dual, pull); });
    return pull;
  }

  /// The first σ: single updates move a dual by its mass per unit of score. Too small a σ is soon
  /// doubled; from too large a one the first hundred sweeps come to nothing. Weights are of the
  /// size of the margins, and so is σ.
  void set_first_sigma() {
    if (features_.linear() && !problem_.intercept) return;
    double lambda = 0.0, squares = 0.0;
    for (int64_t i = 0; i < n_; ++i) lambda += problem_.lambda[i];
    const std::vector<int32_t> features = working_set_.features(used_);
    Pages<double> norm(static_cast<std::size_t>(d_));
    problem_.design->column_norms(norm.data());
    for (const int32_t j : features) squares += norm[j] * norm[j] / (omega(j) * omega(j));
    squares /= static_cast<double>(n_);
    lambda /= static_cast<double>(n_);
    const double first = margin_ / (lambda * squares);
    // Data so small that their squares vanish have no scale of their own.
    const bool scaled = squares > 0.0 && std::isfinite(first);
    sigma_ = scaled ? first : margin_;
    sigma_b_ = scaled ? 0.1 * sigma_ * squares : margin_ / lambda;
    if (!norm_penalty()) sigma_b_ = std::min(sigma_b_, 0.1 * squares / problem_.penalty.quad());
  }

  /// Whether the state of the features is what the dual makes it, but for rounding: where all take
  /// part for good and no proximal term holds them, nothing has to be made anew after every look.
  bool current() const { return features_.linear() && features_.count() == d_ && looks_ % 16 != 0; }

  Pages<double> center_of(const std::vector<int32_t>& list) {
    if (features_.linear() && features_.count() == d_) return features_.give_center();
    return rows_of(list, features_.features(), features_.center(), outputs_);
  }

  void rebuild() {
    stale_ = false;
    if (current() && samples_.reading()) {
      if (problem_.intercept) samples_.prepare(sigma_b_);
      return;
    }
    std::vector<int32_t> list = working_set_.features(used_);
    Pages<double> center = center_of(list);
    std::vector<int64_t> needed;
    EntryList entries;
    if (features_.separates() && (problem_.design->sparse() || compress_))
      entries = working_set_.entries(list, center, pull_of(list), needed);
    if (!entries.first.empty() && working_set_.covers(needed, entries.size())) {
      list = features_.features();
      entries = features_.entries();
      center = center_of(list);
    }
    const bool same = list == features_.features() && entries == features_.entries();
    const double inverse = norm_penalty() ? 1.0 / sigma_ : 0.0;
    features_.take(std::move(list), std::move(center), problem_.tilt, inverse);
    if (!entries.first.empty()) features_.take_entries(std::move(entries));
    if (!same || !samples_.reading()) samples_.take_features(compress_);
    samples_.pull_features();
    features_.refresh();
    at_work_ = features_.count();
    entries_at_work_ = features_.entries().size();
    samples_.prepare(sigma_b_);
  }

  /// Evaluate the centre and the dual on the whole problem.
  void look() {
    store_center();
    features_.drop_state();
    SdcaValues now;
    now.objective = features_.penalty();
    if (problem_.tilt) {
      const Pages<double>& center = features_.center();
      for (int64_t e = 0; e < std::ssize(center); ++e)
        now.objective -=
            center[e] * problem_.tilt[features_.features()[e / outputs_] * outputs_ + e % outputs_];
    }
    Pages<double>& gains = costs_.gain();
    samples_.center_scores([&](int64_t i, const double* s) {
      const double* Y = samples_.dual().data() + i * K_;
      double best = -INFINITY, mean = 0.0, margin = 0.0;
      for (int64_t k = 0; k < K_; ++k) {
        const double r = problem_.margin(i, k), value = s[k] + r;
        best = std::max(best, value);
        mean += Y[k] * value;
        margin += Y[k] * r;
      }
      now.objective += problem_.lambda[i] * (best - s[problem_.y[i]]);
      const double slack = problem_.lambda[i] * best - mean;
      if (slack > 1e-9 * margin_ * problem_.lambda[i]) samples_.wake(i);
      now.samples += slack;
      gains[i] = margin;
    });
    ++looks_;
    if (!current()) price();
    now.norm = values_.norm;
    const double gain = std::accumulate(gains.begin(), gains.end(), 0.0);
    // How the dual norm answers to the intercept changes slowly, and costs a pass over the data.
    if (problem_.intercept && looks_ % 4 == 1) leverage_ = costs_.leverage();
    if (problem_.intercept) now.intercept = gain * costs_.imbalance() * leverage_;
    if (norm_penalty()) {
      costs_.find_excess();
      now.dual = gain - costs_.scaled_away(costs_.excess());
      const auto pull = [&](const std::vector<int32_t>& features) { return pull_of(features); };
      now.scaling = costs_.scaled_away(costs_.excess_inside(pull));
      now.features = std::abs(move_);
    } else {
      now.dual = gain - (features_.linear() ? features_.conjugate() : prices_.conjugate());
    }
    now.dual -= now.intercept;
    values_ = now;
    costs_.release();
  }

  void store_center() {
    intercept_ = samples_.mean();
    used_.clear();
    nonzeros_ = 0;
    const Pages<double>& center = features_.center();
    for (int64_t a = 0; a < features_.count(); ++a) {
      const double* w = center.data() + a * outputs_;
      if (detail::all_zero(w, outputs_)) continue;
      if (!features_.linear()) used_.push_back(features_.features()[a]);
      nonzeros_ += outputs_ - std::count(w, w + outputs_, 0.0);
    }
  }

  /// Sweeps lag when σ is large, proximal steps when it is small: even the two out.
  void adapt() {
    adapted_ = work_;
    const double proximal = values_.scaling + values_.features;
    // What Newton steps leave to the samples says nothing about the sweeps.
    const double damping = newton_ ? samples_.face().take_mean_damping() : 0.0;
    const auto factor = [&](SdcaBalance& balance, double steps) {
      return newton_ ? SdcaBalance::newton_factor(damping, values_.samples, steps)
                     : balance.factor(values_.samples, steps);
    };
    if (norm_penalty()) sigma_ *= factor(balance_, proximal);
    if (problem_.intercept) sigma_b_ *= factor(balance_b_, values_.intercept);
    // Steps solved too roughly may wander for ever: where the gap stands still, solve them better.
    if (values_.gap() < 0.9 * best_gap_) {
      best_gap_ = values_.gap();
      best_at_ = sweeps_;
    } else if (sweeps_ - best_at_ >= std::max<int64_t>(1000, 8 * inner_) && inner_ < 4096) {
      inner_ *= 2;
      best_at_ = sweeps_;
      samples_.be_careful();
    }
  }

  HingeProblem problem_;
  SdcaOptions options_;
  int64_t n_, d_, K_, outputs_;
  SdcaFeatures features_;
  SdcaSamples samples_;
  SdcaPrices prices_;
  SdcaWorkingSet working_set_;
  SdcaCosts costs_;
  SdcaBalance balance_, balance_b_;
  bool compress_ = false, stale_ = false, newton_ = false;
  double margin_ = 1.0, sigma_ = 1.0, sigma_b_ = 1.0, move_ = 0.0, leverage_ = 1.0;
  double best_gap_ = INFINITY, rate_ = 0.0;  // rate: of the logarithm of the gap, per sweep
  int64_t work_ = 0, sweeps_ = 0, inner_ = 2, pause_ = 6, nonzeros_ = 0, looks_ = 0;
  int64_t last_look_ = 0, best_at_ = 0, adapted_ = 0;  // work, but best_at_: sweeps
  int64_t at_work_ = 0, entries_at_work_ = 0;
  std::vector<double> intercept_;
  std::vector<int32_t> used_;  // the features that are not zero at the centre
  SdcaValues values_;
};

}  // namespace sparsvm
