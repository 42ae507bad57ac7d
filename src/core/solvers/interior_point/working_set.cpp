#include "solvers/interior_point/working_set.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "linalg/blas.hpp"
#include "linalg/dense.hpp"
#include "solvers/interior_point/settings.hpp"

namespace sparsvm {

using namespace interior_point_settings;

WorkingSet::WorkingSet(ScaledProblem& problem)
    : p_(problem), layout_(problem.layout),
      status_(static_cast<std::size_t>(problem.layout.n_blocks()), 0),
      column_of_(static_cast<std::size_t>(problem.d), -1) {}

// ---- which blocks ----

void WorkingSet::open(const std::vector<double>& Y, double mu, const double* start_weights) {
  const int64_t width =
      std::max<int64_t>(1, layout_.largest_block() / (layout_.joint ? p_.outputs : 1));
  const int64_t copies = layout_.joint ? 1 : p_.outputs;
  int64_t opening = std::max<int64_t>(kLeastOpening, p_.n / width) * copies;
  if (start_weights) {
    int64_t used = 0;
    for (int64_t b = 0; b < layout_.n_blocks(); ++b) used += nonzero(b, start_weights);
    opening = std::min(opening, kLeastOpening * copies + kOpeningPerUsed * used);
  }
  // The best so far, cut back to as many as are wanted whenever they are some times that.
  std::vector<std::pair<double, int64_t>> ranked;
  double least = -1.0;
  const auto cut = [&] {
    const auto wanted = std::min<int64_t>(static_cast<int64_t>(ranked.size()), opening);
    std::nth_element(ranked.begin(), ranked.begin() + wanted, ranked.end(),
                     [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    if (wanted < static_cast<int64_t>(ranked.size())) least = ranked[wanted].first;
    ranked.resize(static_cast<std::size_t>(wanted));
  };
  std::vector<int64_t> forced;
  layout_.norms(G.data(), [&](int64_t b, double norm) {
    if (norm >= kOpeningNorm || (start_weights && nonzero(b, start_weights))) {
      if (layout_.block_size(b) > 0) forced.push_back(b);
    } else if (norm > least && layout_.block_size(b) > 0) {
      ranked.emplace_back(norm, b);
      if (static_cast<int64_t>(ranked.size()) >= 4 * opening) cut();
    }
  });
  cut();
  for (const auto& entry : ranked) forced.push_back(entry.second);
  std::sort(forced.begin(), forced.end());
  add(forced, Y, mu, true, start_weights);
}

bool WorkingSet::nonzero(int64_t b, const double* weights) const {
  bool any = false;
  layout_.coordinates(b, [&](int32_t j, int32_t o) {
    any = any || weights[static_cast<std::size_t>(j) * p_.outputs + o] != 0.0;
  });
  return any;
}

void WorkingSet::gather_columns(const std::vector<int64_t>& list) {
  const int n = p_.n;
  std::vector<int32_t> fresh;
  for (int64_t b : list)
    layout_.coordinates(b, [&](int32_t j, int32_t) {
      if (column_of_[j] >= 0) return;
      column_of_[j] = static_cast<int32_t>(features_.size());
      features_.push_back(j);
      fresh.push_back(j);
    });
  const std::size_t old = X.size();
  X.resize(old + fresh.size() * n);
  p_.gather(fresh, X.data() + old);
  for (std::size_t c = 0; c < fresh.size(); ++c) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += X[old + c * n + i] * X[old + c * n + i];
    column_scale.push_back(std::sqrt(sum / n) / p_.margin_unit);
  }
}

void WorkingSet::add(const std::vector<int64_t>& list, const std::vector<double>& Y, double mu) {
  add(list, Y, mu, false, nullptr);
}

void WorkingSet::add(const std::vector<int64_t>& list, const std::vector<double>& Y, double mu,
                     bool opening, const double* start_weights) {
  gather_columns(list);
  std::vector<double> g(layout_.largest_block()), shift(layout_.largest_block()), weights;
  std::vector<int32_t> cols, classes;
  int64_t coordinates = blocks.n_coordinates();
  for (int64_t b : list) coordinates += layout_.block_size(b);
  blocks.grow(coordinates);
  const std::vector<double> imbalance = list.empty() ? std::vector<double>() : imbalances(Y);
  for (int64_t b : list) {
    cols.clear();
    classes.clear();
    weights.clear();
    layout_.coordinates(b, [&](int32_t j, int32_t o) {
      cols.push_back(column_of_[j]);
      classes.push_back(o + p_.first_class);
      // Opening blocks start at zero: their own centre depends on the scale of the columns.
      if (opening)
        weights.push_back(start_weights
                              ? start_weights[static_cast<std::size_t>(j) * p_.outputs + o] *
                                    p_.penalty.omega[j]
                              : 0.0);
    });
    const int64_t size = layout_.values(b, G.data(), nullptr, 0.0, g.data());
    for (int64_t c = 0; c < size; ++c) {
      const int32_t j = features_[cols[c]];
      g[c] -= p_.mean[j] * layout_.inv_omega[j] * imbalance[classes[c] - p_.first_class];
    }
    std::fill(shift.begin(), shift.end(), 0.0);
    if (layout_.shape.exceeds(g.data(), size, kStrictlyInside)) {
      const double pull = kEnteringScale / layout_.shape.dual_norm(g.data(), size) - 1.0;
      for (int64_t c = 0; c < size; ++c) shift[c] = pull * g[c];
    }
    blocks.add(layout_.shape, size, cols.data(), classes.data(), g.data(), shift.data(), mu,
               weights.empty() ? nullptr : weights.data(), start_weights != nullptr);
    status_[b] |= kMember;
    block_of_.push_back(b);
  }
}

// Sums of Y~ over the samples, per output. They are zero at the end but not where a warm start
// begins, and there X'Y~ of centred columns differs from that of the columns as they are: the
// blocks follow the one, pricing the other. The intercept of a class without samples has no finite
// optimum and diverges faster from a start that is right in this; such problems are left to the
// certificate and a second start.
std::vector<double> WorkingSet::imbalances(const std::vector<double>& Y) {
  if (p_.empty_class) return std::vector<double>(p_.outputs, 0.0);
  std::vector<double> sums;
  for (int k = p_.first_class; k < p_.classes; ++k) {
    p_.signed_column(Y, k, column_);
    sums.push_back(std::accumulate(column_.begin(), column_.end(), 0.0));
  }
  return sums;
}

// A long step may leave the ball of a hundred blocks, most of which never come near it again once the
// first ones are in the set: only those enter that limit this step or the next.
double WorkingSet::limit_step(const std::vector<double>& dY, double most,
                              std::vector<int64_t>& entering) {
  const double* direction = dY.data() + p_.at(p_.first_class);
  sample_major_.resize(static_cast<std::size_t>(p_.n) * p_.outputs);
  for (int o = 0; o < p_.outputs; ++o)
    for (int i = 0; i < p_.n; ++i)
      sample_major_[static_cast<std::size_t>(i) * p_.outputs + o] = *direction++;
  p_.design.transposed(sample_major_.data(), p_.outputs, dG.data());
  std::vector<double> g(layout_.largest_block());
  const auto outside = [&](int64_t b, double step) {
    const int64_t size = layout_.values(b, G.data(), dG.data(), step, g.data());
    return layout_.shape.exceeds(g.data(), size, 1.0);
  };
  double limit = most;
  near_.clear();
  layout_.scan(G.data(), dG.data(), most, kNear, [&](int64_t b) {
    if (holds(b)) return;
    near_.push_back(b);
    if (!outside(b, most)) return;
    entering.push_back(b);
    if (!outside(b, limit)) return;
    double lo = 0.0, hi = limit;
    for (int bisection = 0; bisection < kStepBisections; ++bisection) {
      const double mid = 0.5 * (lo + hi);
      (outside(b, mid) ? hi : lo) = mid;
    }
    limit = kOutsideFractionOfStep * lo;
  });
  const double next = std::min(most, kNextStep * limit);
  std::erase_if(entering, [&](int64_t b) { return !outside(b, next); });
  return limit;
}

// Up to a fifth of the set. Those that limit the step are few, and behind them are others: one after
// the other they would shorten six steps in a row. Where steps are not blocked there is nothing to
// gain. (A group of all classes costs more: it couples them.)
void WorkingSet::list_next(double rest, double lost, std::vector<int64_t>& entering) const {
  const auto most =
      static_cast<std::size_t>(kNextShare * lost * static_cast<double>(blocks.size()));
  if (entering.size() >= most) return;
  std::vector<double> g(layout_.largest_block());
  std::vector<std::pair<double, int64_t>> ranked;
  for (const int64_t b : near_) {
    if (std::binary_search(entering.begin(), entering.end(), b)) continue;
    const int64_t size = layout_.values(b, G.data(), dG.data(), rest, g.data());
    ranked.emplace_back(-layout_.shape.dual_norm(g.data(), size), b);
  }
  const std::size_t room = std::min(most - entering.size(), ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(room),
                    ranked.end());
  for (std::size_t e = 0; e < room; ++e) entering.push_back(ranked[e].second);
  std::sort(entering.begin(), entering.end());
}

// Others that exceed the threshold after a shortened step are on their way back inside.
void WorkingSet::list_near(double threshold, std::vector<int64_t>& entering) const {
  std::vector<double> g(layout_.largest_block());
  for (const int64_t b : near_) {
    const int64_t size = layout_.values(b, G.data(), nullptr, 0.0, g.data());
    if (layout_.shape.exceeds(g.data(), size, threshold)) entering.push_back(b);
  }
  std::sort(entering.begin(), entering.end());
  entering.erase(std::unique(entering.begin(), entering.end()), entering.end());
  // A poor direction may drive very many blocks to the boundary at once.
  keep_farthest(static_cast<std::size_t>(kEnteringPerSample * p_.n + kEnteringMore), entering);
}

void WorkingSet::keep_farthest(std::size_t most, std::vector<int64_t>& entering) const {
  if (entering.size() <= most) return;
  std::vector<double> g(layout_.largest_block());
  std::vector<std::pair<double, int64_t>> ranked;
  for (int64_t b : entering) {
    const int64_t size = layout_.values(b, G.data(), nullptr, 0.0, g.data());
    ranked.emplace_back(-layout_.shape.dual_norm(g.data(), size), b);
  }
  std::sort(ranked.begin(), ranked.end());
  entering.clear();
  for (std::size_t e = 0; e < most; ++e) entering.push_back(ranked[e].second);
  std::sort(entering.begin(), entering.end());
}

// Such blocks take as much time as others and no part in the solution. One that enters again stays.
std::vector<char> WorkingSet::remove_idle(bool by_features) {
  // Few blocks cost nothing beside a factorisation of the size of the samples.
  if (blocks.n_coordinates() <= (by_features ? p_.n / 2 : 2 * p_.n)) return {};
  std::vector<double> g(layout_.largest_block()), sparse;
  const auto norm = [&](int64_t b, const std::vector<double>& values) {
    const int64_t size = layout_.values(b, values.data(), nullptr, 0.0, g.data());
    return layout_.shape.norm_bound(g.data(), size);
  };
  blocks.sparse_weights(column_scale.data(), sparse);
  std::vector<char> idle(block_of_.size());
  for (std::size_t i = 0; i < idle.size(); ++i) {
    const int64_t b = block_of_[i], first = blocks.begin(i), last = blocks.end(i);
    idle[i] = !(status_[b] & kLeft) &&
              std::count(sparse.begin() + first, sparse.begin() + last, 0.0) == last - first &&
              norm(b, G) + kIdleSteps * norm(b, dG) < kIdleNorm;
  }
  const auto leaving = static_cast<std::size_t>(std::count(idle.begin(), idle.end(), 1));
  int64_t rest = 0;
  for (std::size_t i = 0; i < idle.size(); ++i)
    if (!idle[i]) rest += blocks.end(i) - blocks.begin(i);
  // Unpenalised features are eliminated by the matrices of the classes, which lose their condition
  // in the end where they have fewer coordinates than rows.
  const int64_t least = p_.free_features.empty() ? 0 : int64_t{p_.n} * p_.outputs;
  if (leaving == 0 || kFewIdle * leaving < idle.size() || rest < least) return {};
  std::size_t kept = 0;
  for (std::size_t i = 0; i < idle.size(); ++i) {
    if (idle[i])
      status_[block_of_[i]] = kLeft;
    else
      block_of_[kept++] = block_of_[i];
  }
  block_of_.resize(kept);
  blocks.remove(idle);
  remove_unused_columns();
  return idle;
}

// Closes the gaps that blocks have left in the gathered columns.
void WorkingSet::remove_unused_columns() {
  const std::ptrdiff_t n = p_.n;
  std::vector<int32_t> place(features_.size(), -1);
  for (const int32_t c : blocks.col) place[c] = 0;
  int32_t kept = 0;
  for (std::size_t c = 0; c < place.size(); ++c) {
    if (place[c] < 0) {
      column_of_[features_[c]] = -1;
      continue;
    }
    place[c] = kept++;
    column_of_[features_[c]] = place[c];
    features_[place[c]] = features_[c];
    column_scale[place[c]] = column_scale[c];
    std::copy_n(X.begin() + static_cast<std::ptrdiff_t>(c) * n, n, X.begin() + place[c] * n);
  }
  features_.resize(kept);
  column_scale.resize(kept);
  X.resize(static_cast<std::size_t>(kept) * n);
  for (int32_t& c : blocks.col) c = place[c];
}

// ---- products ----

bool WorkingSet::few_coordinates() const {
  return kFewCoordinates * static_cast<double>(blocks.n_coordinates()) <
         static_cast<double>(features_.size()) * p_.outputs;
}

std::vector<double>& WorkingSet::transposed(const double* A) {
  const int m = static_cast<int>(features_.size()), n = p_.n;
  products_.resize(blocks.n_coordinates());
  if (few_coordinates()) {
    coordinate_products(X.data(), n, blocks.col.data(), blocks.cls.data(), blocks.n_coordinates(),
                        A, products_.data());
    return products_;
  }
  dense_.resize(static_cast<std::size_t>(m) * p_.outputs);
  if (m > 0)
    gemm('T', 'N', m, p_.outputs, n, 1.0, X.data(), n, A + p_.at(p_.first_class), n, 0.0,
         dense_.data(), m);
  for (int64_t c = 0; c < blocks.n_coordinates(); ++c)
    products_[c] =
        dense_[static_cast<std::size_t>(blocks.cls[c] - p_.first_class) * m + blocks.col[c]];
  return products_;
}

const std::vector<double>& WorkingSet::transposed(const double* A,
                                                  const std::vector<std::vector<int64_t>>& listed) {
  if (!few_coordinates()) return transposed(A);
  products_.resize(blocks.n_coordinates());
  for (const auto& list : listed)
    for (const int64_t b : list) {
      const int64_t first = blocks.begin(b);
      coordinate_products(X.data(), p_.n, blocks.col.data() + first, blocks.cls.data() + first,
                          blocks.end(b) - first, A, products_.data() + first);
    }
  return products_;
}

std::vector<double>& WorkingSet::prices(const std::vector<double>& Y) {
  std::vector<double> all(Y.size());
  for (int k = 0; k < p_.classes; ++k) {
    p_.signed_column(Y, k, column_);
    std::copy(column_.begin(), column_.end(), all.begin() + p_.at(k));
  }
  transposed(all.data());
  if (p_.linear_term)
    for (int64_t c = 0; c < blocks.n_coordinates(); ++c) products_[c] -= linear_of(c);
  return products_;
}

void WorkingSet::scores(const std::vector<double>& values, double* out) {
  const int m = static_cast<int>(features_.size()), n = p_.n;
  if (few_coordinates()) {
    by_class_.resize(p_.classes);
    for (auto& list : by_class_) list.clear();
    for (int64_t c = 0; c < blocks.n_coordinates(); ++c)
      if (values[c] != 0.0) by_class_[blocks.cls[c]].push_back(c);
    sums_.clear();
    for (int k = p_.first_class; k < p_.classes; ++k) {
      for (const int64_t c : by_class_[k]) sums_.add(blocks.col[c], values[c]);
      sums_.close();
    }
    form_column_sums(sums_, X.data(), n, out);
    return;
  }
  weights_.assign(static_cast<std::size_t>(m) * p_.outputs, 0.0);
  for (int64_t c = 0; c < blocks.n_coordinates(); ++c)
    weights_[static_cast<std::size_t>(blocks.cls[c] - p_.first_class) * m + blocks.col[c]] =
        values[c];
  gemm('N', 'N', n, p_.outputs, m, 1.0, X.data(), n, weights_.data(), m, 0.0, out, n);
}

void WorkingSet::scores(const std::vector<double>& values, const std::vector<double>& b,
                        const std::vector<double>& Y, std::vector<double>& S) {
  S.assign(static_cast<std::size_t>(p_.n) * p_.classes, 0.0);
  if (!empty()) scores(values, S.data() + p_.at(p_.first_class));
  if (p_.quadratic) p_.add_quadratic_scores(Y, S);
  p_.add_free_scores(b, S);
}

double WorkingSet::linear_of(int64_t c) const {
  return p_.linear_term[position(c)] * layout_.inv_omega[features_[blocks.col[c]]];
}

double WorkingSet::linear_value(const std::vector<double>& values) const {
  if (!p_.linear_term || p_.quadratic) return 0.0;
  double total = 0.0;
  for (int64_t c = 0; c < blocks.n_coordinates(); ++c) total += linear_of(c) * values[c];
  return total;
}

}  // namespace sparsvm
