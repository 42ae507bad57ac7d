#include "solvers/sdca/sdca.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sparsvm {

Sdca::Sdca(const HingeProblem& problem, const SdcaOptions& options)
    : problem_(problem), options_(options), n_(problem.design->n()), d_(problem.design->d()),
      K_(problem.classes), outputs_(problem.outputs()), features_(problem.penalty),
      samples_(problem_, features_, options), prices_(problem),
      working_set_(problem_, features_, prices_), costs_(problem_, features_, samples_, prices_),
      intercept_(static_cast<std::size_t>(outputs_)) {
  inner_ = options.sweeps;
  choose_reading();
  margin_ = typical_margin();
}

void Sdca::start(const double* W, const double* b, const double* Y) {
  // Asked for first: then an indexed CSC prices by the rows that sweeps need, without columns.
  problem_.design->stored_rows();
  samples_.restore_dual();
  samples_.forget();
  progress_.clear();
  spent_before_.reset();
  used_.clear();
  MmapVector<double> rows;
  for (int64_t j = 0; W && j < d_; ++j) {
    if (all_zero_row(W + j * outputs_, outputs_)) continue;
    used_.push_back(static_cast<int32_t>(j));
    rows.insert(rows.end(), W + j * outputs_, W + (j + 1) * outputs_);
  }
  features_.take(used_, std::move(rows), problem_.linear_term, 1.0);
  samples_.drop_rows();
  intercept_.assign(b, b + outputs_);
  samples_.set_anchor(intercept_);
  best_ = {};
  if (!features_.linear()) best_.used = used_, best_.rows = features_.center();
  best_.intercept = intercept_;
  if (Y) {
    samples_.dual().assign(Y, Y + n_ * K_);
  } else if (features_.linear()) {
    samples_.zero_dual();
  } else {
    spread_dual();
  }
  price();
  set_first_sigma();
  rebuild();
}

bool Sdca::run(double target, int64_t sweeps, Monitor& monitor) {
  // A certificate has just left its blocks.
  if (problem_.design->sparse()) give_back_memory();
  samples_.restore_dual();
  const int64_t last = sweeps_ + sweeps;
  if (!spent_before_) spent_before_ = monitor.spent();
  while (sweeps_ < last) {
    if (stale_) rebuild();
    newton_ = samples_.face().suits() && (newton_ || slow(target));
    const int64_t next = work_ + std::max<int64_t>(until_evaluation(target), inner_);
    features_.forget(), samples_.forget();
    while (work_ < next && sweeps_ < last && !Monitor::stopping()) {
      step(std::min(inner_, last - sweeps_), monitor);
      if (Settings::kAveraged * (next - work_) <= next || sweeps_ >= last)
        features_.average(), samples_.average();
    }
    const double earlier = values_.gap();
    const int64_t before = evaluated_;
    samples_.with_mean_dual([&] { evaluate(); });
    evaluated_ = work_;
    rate_ = std::log(earlier / values_.gap()) / static_cast<double>(work_ - before);
    monitor.poll();
    monitor.record(sweeps_, values_.objective, values_.gap(),
                   features_.linear() ? nonzeros_ : best_.nonzeros);
    if (Monitor::stopping()) return false;
    const bool done = values_.gap() <= target * std::abs(values_.objective);
    outlasted_ = outlasted(target, monitor.spent() - *spent_before_);
    const bool over = sweeps_ >= last || outlasted_;
    // What was evaluated early says little about the balance.
    if (work_ - adapted_ >= pause_) adapt();
    stale_ = true;
    // Without features to price an evaluation costs half a sweep, else several of a working set.
    pause_ = prices_.selects()
                 ? std::min(pause_ + Settings::kPauseGrowth, Settings::kMostSweeps)
                 : std::clamp(sweeps_ / 4, Settings::kLeastSweeps, Settings::kMostSweeps);
    if (done || over) {
      release();
      return done;
    }
  }
  return false;
}

const MmapVector<double>& Sdca::dual() {
  samples_.restore_dual();
  return samples_.dual();
}

MmapVector<double> Sdca::give_dual() {
  samples_.restore_dual();
  return samples_.give_dual();
}

const std::vector<int32_t>& Sdca::used() const {
  return features_.linear() ? features_.features() : best_.used;
}

MmapVector<double> Sdca::used_weights() const {
  return features_.linear() ? features_.present() : best_.rows;
}

MmapVector<double> Sdca::give_weights() {
  if (features_.linear() && !features_.center().empty()) return features_.give_center();
  return used_weights();
}

void Sdca::step(int64_t inner, Monitor& monitor) {
  if (newton_) {
    const int64_t products = samples_.newton_step([&] { monitor.poll(); });
    const int64_t in_sweeps = products / (features_.by_entries() ? Settings::kEntryProductsPerSweep
                                                                 : Settings::kProductsPerSweep);
    work_ += in_sweeps;
    monitor.spend(Settings::kSlowMultiplication * static_cast<double>(in_sweeps) * whole_sweep());
  }
  const int64_t earlier = samples_.products();
  for (int64_t s = 1; s <= inner; ++s, ++sweeps_, ++work_) {
    features_.refresh();
    samples_.shuffle();
    const double slack = samples_.sweep([&] { monitor.poll(); });
    monitor.poll();  // a sweep over few samples has no other
    if (s >= options_.sweeps && s % 4 == 0 && s < inner &&
        slack <= Settings::kInexact * (features_.moved() + samples_.moved())) {
      ++sweeps_, ++work_;
      break;
    }
  }
  monitor.spend(Settings::kSlowMultiplication *
                static_cast<double>(samples_.products() - earlier));
  move_ = features_.advance();
  samples_.advance();
}

bool Sdca::outlasted(double target, double spent) {
  const double objective = std::abs(values_.objective);
  const double gap = progress_.empty() ? values_.gap() : std::min(values_.gap(), progress_.back().gap);
  progress_.push_back({spent, gap});
  if (!(rival_work_ < INFINITY)) return false;
  if (spent > rival_work_) return true;
  if (sweeps_ < Settings::kFewestSweeps || gap <= target * objective) return false;
  // The rate of the later half, as single evaluations are noisy.
  const auto half = std::find_if(progress_.rbegin(), progress_.rend(),
                                 [&](const Progress& then) { return then.spent <= 0.5 * spent; });
  if (half == progress_.rend()) return false;
  const double rate = std::log(half->gap / gap) / (spent - half->spent);
  if (!(rate > 0.0)) return true;
  // Newton steps converge from a small gap on; farther away it takes many more of them.
  const double step = newton_work(), near = Settings::kNewtonSteps * step;
  const double to_end = std::log(gap / (target * objective)) / rate;
  const double digits = std::max(std::log10(gap / (Settings::kNewtonEntry * objective)), 0.0);
  const double to_newton = digits * std::log(10.0) / rate;
  const double now = near + digits * Settings::kStepsPerDigit * step;
  return std::min(to_end, digits > 0.0 ? to_newton + near : INFINITY) > std::min(now, rival_work_);
}

double Sdca::newton_work() const {
  const double q = static_cast<double>(features_.linear() ? nonzeros_ : best_.nonzeros);
  const double K = static_cast<double>(outputs_);
  const double tied = 3.0 * static_cast<double>(samples_.free_duals()) * (q / K) * (q / K);
  return tied + q * q * q / 6.0 +
         Settings::kNewtonProducts * static_cast<double>(n_) * static_cast<double>(used_.size()) * K;
}

double Sdca::whole_sweep() const {
  return static_cast<double>(n_) * static_cast<double>(samples_.products()) /
         static_cast<double>(std::max<int64_t>(samples_.visits(), 1));
}

bool Sdca::slow(double target) const {
  const double objective = std::abs(values_.objective);
  const double left = values_.gap() / (target * objective);
  // Dense rows of a Euclidean norm lose by it: COIL-20, 808 sweeps 3.2 s, 434 with steps 5.2 s.
  const bool helped = problem_.design->sparse() || features_.map().form() != RowForm::scaled;
  const bool patient = features_.by_entries() || (helped && sweeps_ >= Settings::kPatience);
  return values_.gap() < Settings::kNewtonGap * objective &&
         left > (patient ? 1.0 : Settings::kDigit) &&
         !(rate_ * Settings::kManySweeps > std::log(left)) &&
         samples_.free_duals() <= std::ssize(used_) * outputs_;
}

int64_t Sdca::until_evaluation(double target) const {
  const double left = values_.gap() / (target * std::abs(values_.objective));
  if (!(left > 1.0 && std::isfinite(left) && std::isfinite(rate_) && rate_ > 0.0)) return pause_;
  const double sweeps = std::ceil(Settings::kLate * std::log(left) / rate_);
  return sweeps < static_cast<double>(pause_)
             ? std::min(pause_, std::max(static_cast<int64_t>(sweeps), Settings::kSoonest))
             : pause_;
}

void Sdca::release() {
  samples_.drop_face();
  if (!problem_.design->sparse()) return;
  if (!features_.linear()) {
    samples_.drop_rows();
    features_.hold(used_);
  }
  give_back_memory();
}

void Sdca::choose_reading() {
  if (problem_.design->sparse() || d_ == 0) return;
  std::vector<int32_t> all(static_cast<std::size_t>(d_));
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> row(all.size());
  const int64_t step = std::max<int64_t>(1, n_ / Settings::kCounted);
  int64_t seen = 0, entries = 0;
  for (int64_t i = 0; i < n_; i += step, seen += d_) {
    problem_.design->sample(i, all.data(), d_, row.data());
    entries += d_ - std::count(row.begin(), row.end(), 0.0);
  }
  compress_ = 2 * entries <= seen;
}

void Sdca::spread_dual() {
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
    if (values_.norm > 1.0) epsilon = Settings::kJustInside / values_.norm;
  } else {
    const double squares = prices_.squares();
    const double gain = margin_value();
    if (squares > gain) epsilon = gain / squares;
  }
  fill(epsilon);
}

double Sdca::typical_margin() const {
  double sum = 0.0, total = 0.0;
  for (int64_t i = 0; i < n_; ++i) {
    double most = 0.0;
    for (int64_t k = 0; k < K_; ++k) most = std::max(most, problem_.margin(i, k));
    sum += problem_.lambda[i] * most, total += problem_.lambda[i];
  }
  const double mean = sum / total;
  if (!(mean > 0.0 && std::isfinite(mean))) return 1.0;
  return std::exp2(Settings::kScalePowers * std::round(std::log2(mean) / Settings::kScalePowers));
}

double Sdca::margin_value() const {
  double sum = 0.0;
  for (int64_t i = 0; i < n_; ++i)
    for (int64_t k = 0; k < K_; ++k) sum += samples_.dual()[i * K_ + k] * problem_.margin(i, k);
  return sum;
}

void Sdca::price() {
  if (features_.linear()) return;
  samples_.with_signed_dual([&](const double* signed_dual) { prices_.find(signed_dual); });
  values_.norm = prices_.largest();
}

MmapVector<double> Sdca::pull_of(const std::vector<int32_t>& features) {
  MmapVector<double> pull;
  samples_.with_signed_dual(
      [&](const double* signed_dual) { prices_.pull_of(features, signed_dual, pull); });
  return pull;
}

void Sdca::set_first_sigma() {
  if (features_.linear() && !problem_.intercept) return;
  double lambda = 0.0, squares = 0.0;
  for (int64_t i = 0; i < n_; ++i) lambda += problem_.lambda[i];
  const std::vector<int32_t> features = working_set_.features(used_);
  MmapVector<double> norm(static_cast<std::size_t>(d_));
  problem_.design->column_norms(norm.data());
  for (const int32_t j : features) squares += norm[j] * norm[j] / (omega(j) * omega(j));
  squares /= static_cast<double>(n_);
  lambda /= static_cast<double>(n_);
  const double first = margin_ / (lambda * squares);
  // Data so small that their squares vanish have no scale of their own.
  const bool scaled = squares > 0.0 && std::isfinite(first);
  sigma_ = scaled ? first : margin_;
  sigma_b_ = scaled ? Settings::kInterceptShare * sigma_ * squares : margin_ / lambda;
  if (!norm_penalty())
    sigma_b_ = std::min(sigma_b_, Settings::kInterceptShare * squares / problem_.penalty.square);
}

MmapVector<double> Sdca::center_of(const std::vector<int32_t>& list) {
  if (features_.linear() && features_.count() == d_) return features_.give_center();
  return rows_of(list, features_.features(), features_.center(), outputs_);
}

bool Sdca::affordable(int64_t entries) const {
  const int64_t bytes = n_ * entries * static_cast<int64_t>(sizeof(double) + sizeof(int32_t));
  return bytes <= std::max(Settings::kSmallRows, 2 * problem_.design->data_bytes());
}

void Sdca::rebuild() {
  stale_ = false;
  if (current() && samples_.reading()) {
    if (problem_.intercept) samples_.prepare(sigma_b_);
    return;
  }
  std::vector<int32_t> list = working_set_.features(used_);
  MmapVector<double> center = center_of(list);
  std::vector<int64_t> needed;
  EntryList entries;
  if (features_.separates()) entries = working_set_.entries(list, center, pull_of(list), needed);
  if (!problem_.design->sparse() && !compress_ && !affordable(entries.size())) entries = {};
  if (!entries.first.empty() && working_set_.covers(needed, entries.size())) {
    list = features_.features();
    entries = features_.entries();
    center = center_of(list);
  }
  const bool same = list == features_.features() && entries == features_.entries();
  const double inverse = norm_penalty() ? 1.0 / sigma_ : 0.0;
  features_.take(std::move(list), std::move(center), problem_.linear_term, inverse);
  if (!entries.first.empty()) features_.take_entries(std::move(entries));
  if (!same || !samples_.reading()) samples_.take_features(compress_);
  samples_.pull_features();
  features_.refresh();
  at_work_ = features_.count();
  entries_at_work_ = features_.entries().size();
  samples_.prepare(sigma_b_);
}

void Sdca::evaluate() {
  store_center();
  features_.drop_state();
  SdcaValues now;
  now.objective = features_.penalty();
  if (problem_.linear_term) {
    const MmapVector<double>& center = features_.center();
    for (int64_t e = 0; e < std::ssize(center); ++e)
      now.objective -=
          center[e] *
          problem_.linear_term[features_.features()[e / outputs_] * outputs_ + e % outputs_];
  }
  MmapVector<double>& gains = costs_.gain();
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
    if (slack > Settings::kBack * margin_ * problem_.lambda[i]) samples_.bring_back(i);
    now.samples += slack;
    gains[i] = margin;
  });
  ++evaluations_;
  if (!current()) price();
  now.norm = values_.norm;
  const double gain = std::accumulate(gains.begin(), gains.end(), 0.0);
  // How the dual norm answers to the intercept changes slowly, and costs a pass over the data.
  if (problem_.intercept && evaluations_ % Settings::kLeverageEvery == 1)
    leverage_ = costs_.leverage();
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
  if (!features_.linear()) keep_best(now);
  values_ = now;
  costs_.release();
}

void Sdca::store_center() {
  intercept_ = samples_.mean();
  used_.clear();
  nonzeros_ = 0;
  const MmapVector<double>& center = features_.center();
  for (int64_t a = 0; a < features_.count(); ++a) {
    const double* w = center.data() + a * outputs_;
    if (all_zero_row(w, outputs_)) continue;
    if (!features_.linear()) used_.push_back(features_.features()[a]);
    nonzeros_ += outputs_ - std::count(w, w + outputs_, 0.0);
  }
}

void Sdca::keep_best(SdcaValues& now) {
  if (now.objective < best_.objective)
    best_ = {now.objective, nonzeros_, used_,
             rows_of(used_, features_.features(), features_.center(), outputs_), intercept_};
  now.objective = best_.objective;
}

void Sdca::adapt() {
  adapted_ = work_;
  const double proximal = values_.scaling + values_.features;
  // What Newton steps of rows leave to the samples says nothing about the sweeps; those of entries
  // are cut short.
  const double damping = newton_ ? samples_.face().take_mean_damping() : 0.0;
  const auto factor = [&](SdcaBalance& balance, double steps) {
    return newton_ && !features_.by_entries()
               ? SdcaBalance::newton_factor(damping, values_.samples, steps)
               : balance.factor(values_.samples, steps);
  };
  if (norm_penalty()) sigma_ *= factor(balance_, proximal);
  if (problem_.intercept) sigma_b_ *= factor(balance_b_, values_.intercept);
  // Steps solved too roughly need not converge: where the gap does not fall, solve them better.
  if (values_.gap() < Settings::kFallen * best_gap_) {
    best_gap_ = values_.gap();
    best_at_ = sweeps_;
  } else if (sweeps_ - best_at_ >=
                 std::max(Settings::kStandstill, Settings::kStandstillSteps * inner_) &&
             inner_ < Settings::kMostInner) {
    inner_ *= 2;
    best_at_ = sweeps_;
    samples_.be_careful();
  }
}

}  // namespace sparsvm
