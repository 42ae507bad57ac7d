// The duals of sdca.hpp, and what one sweep over the samples does to them and to the features.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "design/row_reader.hpp"
#include "problem/problem.hpp"
#include "solvers/sdca/face.hpp"
#include "solvers/sdca/features.hpp"
#include "solvers/sdca/settings.hpp"
#include "support/mmap_vector.hpp"
#include "support/numbers.hpp"

namespace sparsvm {

// The mean of the duals at the ends of proximal steps.
//
// With A = aC − G and W = W(A) the move of the centre, a(W − C), is what keeps −G out of the
// subdifferential of the penalty at W, however well the step is solved; so is (b − c)/σ_b what the
// sums of the duals lack of zero. Over T steps both moves add up to the way from the first to the
// last centre: the mean of the duals violates the constraints of the dual by a T-th of that way,
// whereas the centres of single steps go to and fro. The dual is concave, its value loses nothing.
class SdcaDualMean {
 public:
  // Begin anew with the next step, for n rows of K.
  void begin(int64_t n, int64_t K) {
    K_ = K;
    steps_ = 0;
    sum_ = MmapVector<double>();
    sum_.resize(static_cast<std::size_t>(n * K));
    counted_.assign(static_cast<std::size_t>(n), 0);
  }

  // The row i of Y is about to change: count it for the steps since it did last.
  void leave(int64_t i, const double* row) {
    const int32_t steps = std::exchange(counted_[i], steps_);
    if (steps == steps_) return;
    const double times = static_cast<double>(steps_ - steps);
    double* sum = sum_.data() + i * K_;
    for (int64_t k = 0; k < K_; ++k) sum[k] += times * row[k];
  }

  // A proximal step ends with the present duals.
  void step() { ++steps_; }
  int64_t steps() const { return steps_; }
  // Whether steps are counted.
  bool running() const { return !sum_.empty(); }

  // The mean, of at least one step; nothing is held any more.
  MmapVector<double> take(const MmapVector<double>& dual) {
    for (int64_t i = 0; i < std::ssize(counted_); ++i) leave(i, dual.data() + i * K_);
    const double share = 1.0 / static_cast<double>(steps_);
    for (double& value : sum_) value *= share;
    steps_ = 0;
    return std::exchange(sum_, MmapVector<double>());
  }

 private:
  int64_t K_ = 0;
  int32_t steps_ = 0;
  MmapVector<double> sum_;
  std::vector<int32_t> counted_;
};

// The duals and what one sweep over the samples does to them and to the features.
class SdcaSamples {
 public:
  SdcaSamples(const HingeProblem& problem, SdcaFeatures& features, const SdcaOptions& options)
      : problem_(problem), features_(features), options_(options), n_(problem.design->n()),
        K_(problem.classes), outputs_(problem.outputs()), dual_(size(n_ * K_)),
        curvature_(size(n_)), next_visit_(size(n_)), unmoved_(size(n_)), intercept_(size(outputs_)),
        anchor_(size(outputs_)), mean_(size(outputs_)), scores_(size(outputs_)),
        moved_dual_(size(K_)), delta_(size(K_)), moved_(size(K_)), face_(problem, features) {
    scratch_.reserve(K_);
    due_.reserve(size(n_));
    order_.resize(size(n_));
    std::iota(order_.begin(), order_.end(), 0);
  }

  MmapVector<double>& dual() { return dual_; }
  const MmapVector<double>& dual() const { return dual_; }
  // The dual that was evaluated last; that of the sweeps stays here, packed until it is restored.
  MmapVector<double> give_dual() {
    packed_ = PackedEntries(dual_.data(), dual_.size());
    if (!last_mean_.empty()) {
      dual_ = MmapVector<double>();
      return std::exchange(last_mean_, MmapVector<double>());
    }
    return std::exchange(dual_, MmapVector<double>());
  }
  void restore_dual() {
    if (!dual_.empty()) return;
    dual_.resize(packed_.size());
    packed_.unpack(dual_.data());
    packed_ = PackedEntries();
  }
  const std::vector<double>& mean() const { return mean_; }
  // use() with the mean of the duals of the last proximal steps in their place, where it is kept.
  template <typename Use>
  void with_mean_dual(Use use) {
    if (step_mean_.steps() > 0) last_mean_ = step_mean_.take(dual_);
    if (!last_mean_.empty()) std::swap(last_mean_, dual_);
    use();
    if (!last_mean_.empty()) std::swap(last_mean_, dual_);
  }
  void forget() {
    averaged_ = 0;
    last_mean_ = MmapVector<double>();
    if (features_.by_entries()) step_mean_.begin(n_, K_);
    mean_dual_ = MmapVector<double>();
  }
  // The mean of the duals that makes the mean of the linear case's W; empty for dense data, and
  // where no sweep has been taken.
  MmapVector<double> give_mean_dual() { return std::exchange(mean_dual_, MmapVector<double>()); }
  void set_anchor(const std::vector<double>& intercept) { anchor_ = mean_ = intercept; }
  int64_t visits() const { return visits_; }
  int64_t products() const { return products_; }  // multiplications of all visits

  // Read the features anew; `compress` says how dense data are read.
  void take_features(bool compress) {
    const bool doubles = problem_.design->sparse() ? !problem_.design->single_precision()
                         : compress                ? !problem_.design->single_precision()
                                                   : true;
    drop_rows();
    if (features_.by_entries() && doubles) {
      double_entries_ = std::make_unique<EntryRows<double>>(*problem_.design, features_.features(),
                                                            features_.entries());
    } else if (features_.by_entries()) {
      single_entries_ = std::make_unique<EntryRows<float>>(*problem_.design, features_.features(),
                                                           features_.entries());
    } else if (doubles) {
      doubles_ =
          std::make_unique<SampleRows<double>>(*problem_.design, features_.features(), compress);
    } else {
      singles_ =
          std::make_unique<SampleRows<float>>(*problem_.design, features_.features(), compress);
    }
  }

  void drop_rows() {
    doubles_.reset();
    singles_.reset();
    double_entries_.reset();
    single_entries_.reset();
  }
  bool reading() const { return doubles_ || singles_ || double_entries_ || single_entries_; }

  // After a change of the gains or of the features: curvatures, and the pull on the intercept.
  void prepare(double sigma_b) {
    sigma_b_ = problem_.intercept ? sigma_b : 0.0;
    std::vector<double> sums(size(outputs_), 0.0);
    column_sums(sums);
    for (int64_t k = 0; k < outputs_; ++k) intercept_[k] = anchor_[k] - sigma_b_ * sums[k];
    with_rows([&](auto& rows) {
      for (int64_t i = 0; i < n_; ++i) curvature_[i] = features_.curvature(rows(i)) + sigma_b_;
    });
  }

  // Ỹ = 0: all mass on the true classes.
  void zero_dual() {
    std::fill(dual_.begin(), dual_.end(), 0.0);
    for (int64_t i = 0; i < n_; ++i) dual_[i * K_ + problem_.y[i]] = problem_.lambda[i];
  }

  // Σ_i Ỹ_i.
  void column_sums(std::vector<double>& sums) const {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t i = 0; i < n_; ++i) {
      if (outputs_ == 1) {
        sums[0] += signed_one(i);
        continue;
      }
      for (int64_t k = 0; k < K_; ++k) sums[k] += dual_[i * K_ + k];
      sums[problem_.y[i]] -= problem_.lambda[i];
    }
  }

  // use(Ỹ), n x outputs: in the place of the dual where that has as many entries.
  template <typename Use>
  void with_signed_dual(Use use) {
    if (outputs_ == 1) {
      std::vector<double> one(size(n_));
      for (int64_t i = 0; i < n_; ++i) one[i] = signed_one(i);
      return use(one.data());
    }
    std::vector<double> own(size(n_));
    for (int64_t i = 0; i < n_; ++i) {
      own[i] = dual_[i * K_ + problem_.y[i]];
      sign_row(i, dual_.data() + i * K_);
    }
    use(static_cast<const double*>(dual_.data()));
    for (int64_t i = 0; i < n_; ++i) dual_[i * K_ + problem_.y[i]] = own[i];
  }
  void sign_row(int64_t i, double* to) const {
    if (outputs_ == 1) {
      *to = signed_one(i);
      return;
    }
    const double* Y = dual_.data() + i * K_;
    double sum = 0.0;
    for (int64_t k = 0; k < K_; ++k) {
      to[k] = Y[k];
      if (k != problem_.y[i]) sum += Y[k];
    }
    to[problem_.y[i]] = -sum;
  }

  // Subtract the pull XᵀỸ from features just taken.
  void pull_features() {
    std::vector<double> y(size(outputs_));
    with_rows([&](auto& rows) {
      for (int64_t i = 0; i < n_; ++i) {
        sign_row(i, y.data());
        if (all_zero_row(y.data(), outputs_)) continue;
        features_.subtract(rows(i), y.data());
      }
    });
  }

  // Ỹ_i1 of two classes.
  double signed_one(int64_t i) const {
    return problem_.y[i] == 1 ? -dual_[2 * i] : dual_[2 * i + 1];
  }

  // Take shorter steps: features that come in while a sample moves make it overshoot.
  void be_careful() { caution_ = std::min(1.0, Settings::kMoreCaution * caution_); }

  // Let a sample be visited again.
  void bring_back(int64_t i) {
    next_visit_[i] = 0;
    unmoved_[i] = 0;
  }

  // From now on visit the samples in another order.
  void shuffle() {
    for (std::size_t i = order_.size(); i > 1; --i) {
      std::swap(order_[i - 1], order_[xorshift(state_) % i]);
    }
  }

  // Returns Σ λ_i max(s + r) − ⟨Y_i, s + r⟩ over the visited samples, each just before its
  // update: an estimate of the gap of the proximal step's own problem.
  template <typename Poll>
  double sweep(Poll poll) {
    slack_ = 0.0;
    const int64_t earlier = visits_;
    with_rows([&](auto& rows) {
      due_.clear();
      for (const int32_t i : order_)
        if (next_visit_[i] <= epoch_) due_.push_back(i);
      visits_ += std::ssize(due_);
      int64_t since = 0;
      const int64_t per_entry = features_.by_entries() ? 1 : outputs_;
      for (std::size_t a = 0; a < due_.size(); ++a) {
        // While one sample is at work what the next one needs is on its way.
        if (a + 1 < due_.size()) fetch(rows, due_[a + 1]);
        const int32_t i = due_[a];
        visited_ = static_cast<double>(a + 1);
        const auto row = rows(i);
        update(i, row);
        // Once for the scores and once for the features.
        products_ += 2 * (row.count * per_entry + K_);
        if ((since += row.count * outputs_ + 64) > Settings::kPollWork) poll(), since = 0;
      }
    });
    ++epoch_;
    mean_slack_ = slack_ / static_cast<double>(std::max<int64_t>(visits_ - earlier, 1));
    return slack_;
  }

  // A Newton step on the present face; returns its products with the second derivative.
  template <typename Poll>
  int64_t newton_step(Poll poll) {
    int64_t products = 0;
    for (int64_t i = 0; step_mean_.running() && i < n_; ++i)
      step_mean_.leave(i, dual_.data() + i * K_);
    with_rows(
        [&](auto& rows) { products = face_.newton_step(rows, dual_, intercept_, sigma_b_, poll); });
    return products;
  }
  SdcaFace& face() { return face_; }
  void drop_face() { face_.release(); }
  const SdcaFace& face() const { return face_; }
  // Dimension of the face: of every sample the classes beyond the first that have a share.
  int64_t free_duals() const {
    return std::count_if(dual_.begin(), dual_.end(), [](double y) { return y > 0.0; }) - n_;
  }

  // ‖b − c‖²/2σ_b.
  double moved() const {
    double sum = 0.0;
    for (int64_t k = 0; k < outputs_; ++k)
      sum += (intercept_[k] - anchor_[k]) * (intercept_[k] - anchor_[k]);
    return sigma_b_ > 0.0 ? 0.5 * sum / sigma_b_ : 0.0;
  }

  // The proximal step of the intercept: b' = b, pulled on by the same sums.
  void advance() {
    if (step_mean_.running()) step_mean_.step();
    for (int64_t k = 0; k < outputs_; ++k) {
      const double b = intercept_[k];
      intercept_[k] += b - anchor_[k];
      anchor_[k] = b;
    }
  }

  // The intercept that goes with the centre of the features: see SdcaFeatures::average.
  void average() {
    if (!features_.linear()) averaged_ = 0;
    const double share = 1.0 / static_cast<double>(++averaged_);
    for (int64_t k = 0; k < outputs_; ++k) mean_[k] += share * (anchor_[k] - mean_[k]);
    if (!features_.linear() || !problem_.design->sparse()) return;
    if (mean_dual_.empty()) mean_dual_.resize(dual_.size());
    for (std::size_t e = 0; e < dual_.size(); ++e)
      mean_dual_[e] += share * (dual_[e] - mean_dual_[e]);
  }

  // visit(i, scores of the K classes) at the centre of the features and of the intercept.
  template <typename Visit>
  void center_scores(Visit visit) {
    const MmapVector<double>& center = features_.center();
    std::vector<unsigned char> used(size(features_.count()), 0);
    for (int64_t j = 0; j < features_.count(); ++j)
      used[j] = !all_zero_row(center.data() + j * outputs_, outputs_);
    std::vector<double> s(size(K_), 0.0);
    double* out = outputs_ == 1 ? s.data() + 1 : s.data();
    with_rows([&](auto& rows) {
      for (int64_t i = 0; i < n_; ++i) {
        std::copy(mean_.begin(), mean_.end(), out);
        features_.add_center(rows(i), used, out);
        visit(i, s.data());
      }
    });
  }

 private:
  using Settings = SdcaSettings;
  static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }

  template <typename Use>
  void with_rows(Use use) {
    if (singles_) {
      use(*singles_);
    } else if (double_entries_) {
      use(*double_entries_);
    } else if (single_entries_) {
      use(*single_entries_);
    } else {
      use(*doubles_);
    }
  }

  // Ask for the memory of a sample, or of the rows that it reads where those are many.
  template <typename Rows>
  void fetch(Rows& rows, int64_t i) {
    if (!features_.linear()) return rows.prefetch(i);
    if (!rows.stored()) return;
    const auto next = rows.as_stored(i);
    features_.fetch(next.index, next.count);
  }

  template <typename Row>
  void update(int64_t i, const Row& row) {
    if (!(curvature_[i] > 0.0)) return settle(i);
    std::copy(intercept_.begin(), intercept_.end(), scores_.begin());
    const double own_curvature = features_.gather(row, scores_.data());
    const double step =
        options_.relaxation / (features_.linear()
                                   ? curvature_[i]
                                   : std::max(own_curvature + sigma_b_, caution_ * curvature_[i]));
    const double before = slack_;
    const bool moved = outputs_ == 1 ? move_two(i, row, step) : move(i, row, step);
    const double own = slack_ - before;
    if (moved && (features_.linear() || own >= Settings::kSmallMove * mean_slack_)) {
      unmoved_[i] = 0;
      if (features_.linear()) next_visit_[i] = epoch_ + 1 + pause(own);
      return;
    }
    // Unmoved c times running, or all but: the next 2^c − 2 sweeps pass it by.
    if (unmoved_[i] < (moved ? Settings::kShortestPause : Settings::kLongestPause)) ++unmoved_[i];
    next_visit_[i] = epoch_ + (int64_t{1} << unmoved_[i]) - 1;
  }

  // With a q-th of the mean slack of this sweep a sample is visited in every q-th sweep, so that
  // all visits are worth about as much. Not so where centres move and all slacks rise again.
  int64_t pause(double own) const {
    // In the first sweep the slacks fall as it goes.
    if (epoch_ == 0) return 0;
    const double mean = slack_ / visited_;
    return own * Settings::kMostPassed > mean ? static_cast<int64_t>(mean / own)
                                              : Settings::kMostPassed;
  }

  template <typename Row>
  bool move(int64_t i, const Row& row, double step) {
    double* Y = dual_.data() + i * K_;
    const int64_t label = problem_.y[i];
    const double* cost = problem_.cost + label * K_;
    const double scale = problem_.margin_scale ? problem_.margin_scale[i] : 1.0;
    const double lambda = problem_.lambda[i], own = scores_[label];
    double best = 0.0;
    for (int64_t k = 0; k < K_; ++k) {
      scores_[k] += scale * cost[k] - own;
      best = scores_[k] > best ? scores_[k] : best;
    }
    // All mass on the true class, which no other beats.
    if (best <= 0.0 && Y[label] >= lambda) return false;
    double mean = 0.0;
    for (int64_t k = 0; k < K_; ++k) mean += Y[k] * scores_[k];
    slack_ += lambda * best - mean;
    for (int64_t k = 0; k < K_; ++k) moved_dual_[k] = Y[k] + step * scores_[k];
    project_simplex(moved_dual_.data(), K_, lambda, moved_dual_.data(), scratch_);
    int64_t count = 0;
    double largest = 0.0;
    for (int64_t k = 0; k < K_; ++k) {
      const double delta = moved_dual_[k] - Y[k];
      if (delta == 0.0) continue;
      delta_[count] = delta;
      moved_[count++] = static_cast<int32_t>(k);
      largest = std::abs(delta) > largest ? std::abs(delta) : largest;
    }
    if (largest <= Settings::kRounding * lambda) return false;
    if (step_mean_.running()) step_mean_.leave(i, Y);
    for (int64_t c = 0; c < count; ++c) {
      const int64_t k = moved_[c];
      Y[k] = moved_dual_[k];
      intercept_[k] -= sigma_b_ * delta_[c];
    }
    features_.scatter(row, delta_.data(), moved_.data(), count);
    return true;
  }

  // Two classes: the mass t on class 1 moves on a segment.
  template <typename Row>
  bool move_two(int64_t i, const Row& row, double step) {
    double* Y = dual_.data() + 2 * i;
    const double lambda = problem_.lambda[i];
    const double slope = scores_[0] + problem_.margin(i, 1) - problem_.margin(i, 0);
    const double old = Y[1];
    const double now = std::clamp(old + step * slope, 0.0, lambda);
    double delta = now - old;
    slack_ += lambda * std::max(slope, 0.0) - old * slope;
    if (std::abs(delta) <= Settings::kRounding * lambda) return false;
    if (step_mean_.running()) step_mean_.leave(i, Y);
    Y[1] = now;
    Y[0] = lambda - now;
    intercept_[0] -= sigma_b_ * delta;
    const int32_t zero = 0;
    features_.scatter(row, &delta, &zero, 1);
    return true;
  }

  // Nothing answers to this sample: all its mass goes where the margin is largest.
  void settle(int64_t i) {
    int64_t best = problem_.y[i];
    for (int64_t k = 0; k < K_; ++k)
      if (problem_.margin(i, k) > problem_.margin(i, best)) best = k;
    if (step_mean_.running()) step_mean_.leave(i, dual_.data() + i * K_);
    std::fill(dual_.begin() + i * K_, dual_.begin() + (i + 1) * K_, 0.0);
    dual_[i * K_ + best] = problem_.lambda[i];
    next_visit_[i] = epoch_ + Settings::kSettled;
  }

  const HingeProblem& problem_;
  SdcaFeatures& features_;
  SdcaOptions options_;
  int64_t n_, K_, outputs_;
  double sigma_b_ = 0.0;
  double caution_ =
      Settings::kCaution;  // share of the curvature with all features that is always reckoned with
  double slack_ = 0.0, visited_ = 0.0, mean_slack_ = 0.0;  // of this sweep; of the one before
  MmapVector<double> dual_;                                // n x K
  PackedEntries packed_;                                   // while the dual is given away
  SdcaDualMean step_mean_;  // of the proximal steps since the last evaluation, by entries
  MmapVector<double> last_mean_;
  MmapVector<double> mean_dual_;     // n x K, of the linear case
  std::vector<double> curvature_;    // n
  std::vector<int64_t> next_visit_;  // the sweep at which a sample is visited again
  std::vector<unsigned char> unmoved_;
  std::vector<double> intercept_, anchor_, mean_;  // b of the present duals, centre, mean centre
  std::vector<double> scores_, moved_dual_, delta_;
  std::vector<int32_t> moved_, order_, due_;
  std::unique_ptr<SampleRows<float>> singles_;
  std::unique_ptr<SampleRows<double>> doubles_;
  std::unique_ptr<EntryRows<float>> single_entries_;
  std::unique_ptr<EntryRows<double>> double_entries_;
  ProxScratch scratch_;
  SdcaFace face_;
  int64_t epoch_ = 0, visits_ = 0, products_ = 0, averaged_ = 0;
  uint64_t state_ = kRandomState;  // fixed, so that equal calls give equal bits
};

}  // namespace sparsvm
