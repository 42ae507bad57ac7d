// The choice of the working set by the prices of all features, and the driver of sdca.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "monitor.hpp"
#include "sdca.hpp"
#include "sdca_prices.hpp"

namespace sparsvm {

/// What a look at the whole problem found, in units of alpha.
struct SdcaValues {
  double objective = INFINITY, dual = -INFINITY;
  double samples = 0.0;    // λ max(S + r) − ⟨Y, S + r⟩: what the sweeps have left
  double scaling = 0.0;    // what making the dual feasible costs, within the working set
  double features = 0.0;   // ⟨centre's last move, W⟩: what the proximal steps have left
  double intercept = 0.0;  // the same of the intercept
  double norm = 0.0;       // the largest dual norm of all groups
  double gap() const { return objective - dual; }
};

/// Doubles or halves a proximal parameter where sweeps and proximal steps are unequally far from
/// done. Every change of direction makes the next one harder: the estimates are noisy, and every
/// change costs some sweeps.
class SdcaBalance {
 public:
  double factor(double sweeps, double steps) {
    const int direction = sweeps > threshold_ * steps ? -1 : steps > threshold_ * sweeps ? 1 : 0;
    if (direction == 0) return 1.0;
    if (direction == -last_) threshold_ = std::min(1.5 * threshold_, 16.0);
    last_ = direction;
    return direction > 0 ? 2.0 : 0.5;
  }

 private:
  double threshold_ = 2.0;
  int last_ = 0;
};

class Sdca {
 public:
  Sdca(const SdcaProblem& problem, const SdcaOptions& options)
      : problem_(problem), options_(options), n_(problem.design->n()), d_(problem.design->d()),
        K_(problem.classes), outputs_(problem.outputs()), features_(problem.penalty),
        samples_(problem_, features_, options), prices_(problem),
        intercept_(static_cast<std::size_t>(outputs_)) {
    inner_ = options.sweeps;
    choose_reading();
  }

  /// W (d x outputs, or null for 0), b and Y (n x K, in units of alpha). Without Y a spread over the
  /// classes; with l2 all mass on the true ones, whose W is 0: spread masses take long to gather.
  void start(const double* W, const double* b, const double* Y) {
    used_.clear();
    used_weights_.clear();
    for (int64_t j = 0; W && j < d_; ++j)
      if (!detail::all_zero(W + j * outputs_, outputs_)) remember(j, W + j * outputs_);
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
    const int64_t last = sweeps_ + sweeps;
    while (sweeps_ < last) {
      if (stale_) rebuild();
      const int64_t next = sweeps_ + std::max<int64_t>(until_look(target), inner_);
      features_.forget(), samples_.forget();
      while (sweeps_ < std::min(next, last)) {
        step(std::min(inner_, last - sweeps_), monitor);
        // Means are taken over the last eighth of all sweeps.
        if (8 * sweeps_ >= 7 * next || sweeps_ >= last) features_.average(), samples_.average();
      }
      const double earlier = values_.gap();
      const int64_t before = last_look_;
      look();
      last_look_ = sweeps_;
      rate_ = std::log(earlier / values_.gap()) / static_cast<double>(sweeps_ - before);
      monitor.poll();
      monitor.record(sweeps_, values_.objective, values_.gap(), nonzeros_);
      const bool done = values_.gap() <= target * std::abs(values_.objective);
      // What was looked at early says little about the balance.
      if (sweeps_ - adapted_ >= pause_) adapt();
      stale_ = true;
      // Without features to price a look costs half a sweep, else several sweeps of a working set.
      pause_ = prices_.selects() ? std::min<int64_t>(pause_ + 4, 50)
                                 : std::clamp<int64_t>(sweeps_ / 4, 2, 50);
      if (done || sweeps_ >= last) {
        samples_.release();
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
  int64_t working_set() const { return features_.count(); }
  /// Single entries that take part; all of the working set's features where there are none.
  int64_t entries() const { return features_.entries().size(); }
  const SdcaValues& values() const { return values_; }
  const std::vector<double>& dual() const { return samples_.dual(); }
  const std::vector<double>& intercept() const { return intercept_; }
  /// W by outputs, d of each: as Python has coefficients.
  void weights(double* W) const {
    std::fill(W, W + d_ * outputs_, 0.0);
    const auto put = [&](const std::vector<int32_t>& features, const std::vector<double>& rows) {
      for (std::size_t a = 0; a < features.size(); ++a)
        for (int64_t k = 0; k < outputs_; ++k)
          W[k * d_ + features[a]] =
              rows[a * static_cast<std::size_t>(outputs_) + static_cast<std::size_t>(k)];
    };
    if (features_.linear()) return put(features_.features(), features_.center());
    put(used_, used_weights_);
  }

 private:
  /// One proximal step: so many sweeps, or fewer once its own problem is solved well enough.
  void step(int64_t inner, Monitor& monitor) {
    for (int64_t s = 1; s <= inner; ++s, ++sweeps_) {
      features_.refresh();
      samples_.shuffle();
      const double slack = samples_.sweep([&] { monitor.poll(); });
      if (s >= options_.sweeps && s % 4 == 0 && s < inner &&
          slack <= 0.3 * (features_.moved() + samples_.moved())) {
        ++sweeps_;
        break;
      }
    }
    move_ = features_.advance();
    samples_.advance();
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

  bool norm_penalty() const { return problem_.penalty.quad() == 0.0; }
  double omega(int64_t j) const { return problem_.penalty.omega[j]; }

  void remember(int64_t j, const double* w) {
    used_.push_back(static_cast<int32_t>(j));
    used_weights_.insert(used_weights_.end(), w, w + outputs_);
  }
  const double* weights_of(std::size_t a) const {
    return used_weights_.data() + static_cast<int64_t>(a) * outputs_;
  }

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
  std::vector<double> pull_of(const std::vector<int32_t>& features) {
    std::vector<double> pull;
    samples_.with_signed_dual(
        [&](const double* signed_dual) { prices_.pull_of(features, signed_dual, pull); });
    return pull;
  }

  /// Used ∪ tight ∪ the best of the rest: at least 200, n/20 and twice the used features.
  std::vector<int32_t> working_features() const {
    std::vector<int32_t> out;
    if (!prices_.selects()) {
      out.resize(static_cast<std::size_t>(d_));
      std::iota(out.begin(), out.end(), 0);
      return out;
    }
    const std::vector<double>& norms = prices_.norms();
    std::vector<unsigned char> take(norms.size(), 0);
    std::vector<int64_t> width(norms.size(), 0);
    for (int64_t j = 0; j < d_; ++j) ++width[prices_.unit_of(j)];
    for (const int32_t j : used_) take[prices_.unit_of(j)] = 1;
    for (std::size_t u = 0; u < take.size(); ++u)
      if (norms[u] >= 0.999 && norms[u] <= 1.001) take[u] = 1;
    std::vector<int32_t> rest;
    for (std::size_t u = 0; u < take.size(); ++u)
      if (!take[u] && width[u] > 0) rest.push_back(static_cast<int32_t>(u));
    std::stable_sort(rest.begin(), rest.end(),
                     [&](int32_t a, int32_t b) { return norms[a] > norms[b]; });
    int64_t room = std::max({int64_t{200}, n_ / 20, 2 * std::ssize(used_)});
    for (const int32_t u : rest) {
      if (room <= 0) break;
      take[u] = 1;
      room -= width[u];
    }
    for (int64_t j = 0; j < d_; ++j)
      if (take[prices_.unit_of(j)]) out.push_back(static_cast<int32_t>(j));
    return out;
  }

  /// Of the listed features with centre C the entries that are used or tight (`needed`, numbered
  /// among all) and the best of the rest; nothing where that would not save two thirds of them.
  EntryList working_entries(const std::vector<int32_t>& features, const std::vector<double>& center,
                            std::vector<int64_t>& needed) {
    if (!features_.separates() || !(problem_.design->sparse() || compress_)) return {};
    const std::vector<double> pull = pull_of(features);
    std::vector<std::pair<double, int32_t>> rest;
    std::vector<unsigned char> take(pull.size(), 0);
    int64_t used = 0, room = std::max<int64_t>(200, n_ / 20);
    for (int64_t e = 0; e < std::ssize(pull); ++e) {
      const double price = std::abs(pull[e]) / omega(features[e / outputs_]);
      used += center[e] != 0.0;
      take[e] = center[e] != 0.0 || price >= 0.999 * problem_.penalty.ratio();
      if (!take[e]) {
        rest.emplace_back(-price, static_cast<int32_t>(e));
      } else {
        needed.push_back(features[e / outputs_] * outputs_ + e % outputs_);
      }
    }
    room = std::min(std::max(room, used / 2), std::ssize(rest));
    std::nth_element(rest.begin(), rest.begin() + room, rest.end());
    for (int64_t r = 0; r < room; ++r) take[rest[r].second] = 1;
    const int64_t count = std::count(take.begin(), take.end(), 1);
    if (3 * count > std::ssize(take)) return {};
    return listed(take);
  }

  /// Flags of m x outputs entries as a list by outputs.
  EntryList listed(const std::vector<unsigned char>& take) const {
    EntryList list;
    list.first.assign(1, 0);
    for (int64_t k = 0; k < outputs_; ++k) {
      for (int64_t e = k; e < std::ssize(take); e += outputs_)
        if (take[e]) list.feature.push_back(static_cast<int32_t>(e / outputs_));
      list.first.push_back(list.size());
    }
    return list;
  }

  /// The first σ: single updates move a dual by its mass per unit of score. Too small a σ is soon
  /// doubled; from too large a one the first hundred sweeps come to nothing.
  void set_first_sigma() {
    if (features_.linear() && !problem_.intercept) return;
    double lambda = 0.0, squares = 0.0;
    for (int64_t i = 0; i < n_; ++i) lambda += problem_.lambda[i];
    const std::vector<int32_t> features = working_features();
    std::vector<double> norm(static_cast<std::size_t>(d_));
    problem_.design->column_norms(norm.data());
    for (const int32_t j : features) squares += norm[j] * norm[j] / (omega(j) * omega(j));
    squares /= static_cast<double>(n_);
    lambda /= static_cast<double>(n_);
    sigma_ = squares > 0.0 ? 1.0 / (lambda * squares) : 1.0;
    sigma_b_ = squares > 0.0 ? 0.1 * sigma_ * squares : 1.0 / lambda;
    if (!norm_penalty()) sigma_b_ = std::min(sigma_b_, 0.1 * squares / problem_.penalty.quad());
  }

  /// Whether the state of the features is what the dual makes it, but for rounding: where all take
  /// part for good and no proximal term holds them, nothing has to be made anew after every look.
  bool current() const { return features_.linear() && features_.count() == d_ && looks_ % 16 != 0; }

  /// The centre on the listed features, m x outputs.
  std::vector<double> center_of(const std::vector<int32_t>& list) const {
    if (features_.linear() && features_.count() == d_) return features_.center();
    std::vector<double> center(list.size() * static_cast<std::size_t>(outputs_), 0.0);
    std::vector<int32_t> place(static_cast<std::size_t>(d_), -1);
    for (std::size_t a = 0; a < list.size(); ++a) place[list[a]] = static_cast<int32_t>(a);
    for (std::size_t a = 0; a < used_.size(); ++a)
      if (place[used_[a]] >= 0)
        std::copy_n(weights_of(a), outputs_, center.data() + place[used_[a]] * outputs_);
    return center;
  }

  /// Whether the present entries include the needed ones and are not far more than `wanted`: reading
  /// the data for others takes as long as ten sweeps.
  bool covers(const std::vector<int64_t>& needed, int64_t wanted) const {
    const EntryList& list = features_.entries();
    if (!features_.by_entries() || list.size() > 2 * wanted) return false;
    std::vector<unsigned char> there(static_cast<std::size_t>(d_ * outputs_), 0);
    for (int64_t k = 0; k < outputs_; ++k)
      for (int64_t e = list.first[k]; e < list.first[k + 1]; ++e)
        there[features_.features()[list.feature[e]] * outputs_ + k] = 1;
    return std::all_of(needed.begin(), needed.end(), [&](int64_t e) { return there[e] != 0; });
  }

  void rebuild() {
    stale_ = false;
    if (current() && samples_.reading()) {
      if (problem_.intercept) samples_.prepare(sigma_b_);
      return;
    }
    std::vector<int32_t> list = working_features();
    std::vector<double> center = center_of(list);
    std::vector<int64_t> needed;
    EntryList entries = working_entries(list, center, needed);
    if (!entries.first.empty() && covers(needed, entries.size())) {
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
    samples_.prepare(sigma_b_);
  }

  /// Evaluate the centre and the dual on the whole problem.
  void look() {
    store_center();
    SdcaValues now;
    now.objective = features_.penalty();
    if (problem_.tilt) {
      const std::vector<double>& center = features_.center();
      for (int64_t e = 0; e < std::ssize(center); ++e)
        now.objective -=
            center[e] * problem_.tilt[features_.features()[e / outputs_] * outputs_ + e % outputs_];
    }
    gain_.resize(static_cast<std::size_t>(n_));
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
      if (slack > 1e-9 * problem_.lambda[i]) samples_.wake(i);
      now.samples += slack;
      gain_[i] = margin;
    });
    ++looks_;
    if (!current()) price();
    now.norm = values_.norm;
    const double gain = std::accumulate(gain_.begin(), gain_.end(), 0.0);
    // How the dual norm answers to the intercept changes slowly, and costs a pass over the data.
    if (problem_.intercept && looks_ % 4 == 1) leverage_ = leverage();
    if (problem_.intercept) now.intercept = gain * imbalance() * leverage_;
    if (norm_penalty()) {
      find_excess();
      now.dual = gain - scaled_away(excess_);
      now.scaling = scaled_away(excess_inside());
      now.features = std::abs(move_);
    } else {
      now.dual = gain - (features_.linear() ? features_.conjugate() : prices_.conjugate());
    }
    now.dual -= now.intercept;
    values_ = now;
  }

  /// By how much the dual norm of each feature exceeds 1.
  void find_excess() {
    excess_.resize(static_cast<std::size_t>(d_));
    for (int64_t j = 0; j < d_; ++j)
      excess_[j] = std::max(prices_.norms()[prices_.unit_of(j)] - 1.0, 0.0);
  }

  /// The same within the working set.
  std::vector<double> excess_inside() {
    std::vector<double> inside(excess_.size(), 0.0);
    const std::vector<int32_t>& features = features_.features();
    if (!features_.by_entries()) {
      for (const int32_t j : features) inside[j] = excess_[j];
      return inside;
    }
    const std::vector<double> pull = pull_of(features);
    const EntryList& list = features_.entries();
    for (int64_t k = 0; k < outputs_; ++k) {
      for (int64_t e = list.first[k]; e < list.first[k + 1]; ++e) {
        const int32_t j = features[list.feature[e]];
        const double price = std::abs(pull[list.feature[e] * outputs_ + k]) / omega(j);
        inside[j] = std::max(inside[j], price - 1.0);
      }
    }
    return inside;
  }

  /// What the dual loses when every sample is scaled by the worst of its features, as certificates
  /// do it: of sparse samples a rare feature concerns few.
  double scaled_away(const std::vector<double>& excess) const {
    std::vector<double> beyond(static_cast<std::size_t>(n_));
    problem_.design->largest_weights(excess.data(), beyond.data());
    double lost = 0.0;
    for (int64_t i = 0; i < n_; ++i) lost += gain_[i] * beyond[i] / (1.0 + beyond[i]);
    return lost;
  }

  /// The largest relative difference between what flows into a class and out of it: balancing the
  /// two scales the dual down by about as much.
  double imbalance() const {
    std::vector<double> into(static_cast<std::size_t>(K_), 0.0), out(into);
    double total = 0.0, worst = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t k = 0; k < K_; ++k) {
        if (k == problem_.y[i]) continue;
        const double flow = samples_.dual()[i * K_ + k];
        into[k] += flow;
        out[problem_.y[i]] += flow;
        total += flow;
      }
    }
    for (int64_t k = 0; k < K_; ++k) {
      const double flow = std::max(into[k] + out[k], 1e-3 * total);
      if (flow > 0.0) worst = std::max(worst, std::abs(into[k] - out[k]) / flow);
    }
    return worst;
  }

  /// How much the dual norm may answer to a relative change of the flows of one class. The parts of
  /// G that classes contribute cancel where a feature has a mean; balancing disturbs that.
  double leverage() const {
    if (!norm_penalty()) return 1.0;
    std::vector<double> flow(static_cast<std::size_t>(n_)), G(static_cast<std::size_t>(d_));
    for (int64_t i = 0; i < n_; ++i)
      flow[i] = problem_.lambda[i] - samples_.dual()[i * K_ + problem_.y[i]];
    problem_.design->transposed(flow.data(), 1, G.data());
    double most = 0.0;
    for (int64_t j = 0; j < d_; ++j) most = std::max(most, std::abs(G[j]) / omega(j));
    return std::max(1.0, 2.0 * most / static_cast<double>(K_));
  }

  void store_center() {
    intercept_ = samples_.mean();
    used_.clear();
    used_weights_.clear();
    nonzeros_ = 0;
    const std::vector<double>& center = features_.center();
    for (int64_t a = 0; a < features_.count(); ++a) {
      const double* w = center.data() + a * outputs_;
      if (detail::all_zero(w, outputs_)) continue;
      if (!features_.linear()) remember(features_.features()[a], w);
      nonzeros_ += outputs_ - std::count(w, w + outputs_, 0.0);
    }
  }

  /// Sweeps lag when σ is large, proximal steps when it is small: even the two out.
  void adapt() {
    adapted_ = sweeps_;
    const double proximal = values_.scaling + values_.features;
    if (norm_penalty()) sigma_ *= balance_.factor(values_.samples, proximal);
    if (problem_.intercept) sigma_b_ *= balance_b_.factor(values_.samples, values_.intercept);
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
  SdcaProblem problem_;
  SdcaOptions options_;
  int64_t n_, d_, K_, outputs_;
  SdcaFeatures features_;
  SdcaSamples samples_;
  SdcaPrices prices_;
  SdcaBalance balance_, balance_b_;
  bool compress_ = false, stale_ = false;
  double sigma_ = 1.0, sigma_b_ = 1.0, move_ = 0.0, leverage_ = 1.0;
  double best_gap_ = INFINITY, rate_ = 0.0;  // rate: of the logarithm of the gap, per sweep
  int64_t sweeps_ = 0, inner_ = 2, pause_ = 6, nonzeros_ = 0, looks_ = 0;
  int64_t last_look_ = 0, best_at_ = 0, adapted_ = 0;
  std::vector<double> intercept_;
  std::vector<double> gain_, excess_;  // of the last look: Σ_k Y_ik r_ik; of features
  std::vector<int32_t> used_;          // the features that are not zero at the centre,
  std::vector<double> used_weights_;   // and their weights, outputs each
  SdcaValues values_;
};

}  // namespace sparsvm
