#include "dual_rows.hpp"

#include <type_traits>

#include "row_tiles.hpp"
#include "simplex_root.hpp"
#include "wide_rows.hpp"

namespace sparsvm {

namespace {

/// Rows of scores that are there already; the products are somebody else's.
struct GivenScores {
  const double* scores;

  template <typename Tile>
  SPARSVM_INLINE void add_scores(const DualRows& a, const Tile& tile, std::int64_t i,
                                 Pack (&v)[Tile::packs]) const {
    repeat<Tile::packs>([&](auto p) SPARSVM_INLINE_LAMBDA {
      Pack s;
      tile.load(scores + i * a.outputs, p, s);
      add_product(v[p], s, SPARSVM_SPREAD(a.sigma));
    });
  }

  template <typename Tile>
  SPARSVM_INLINE void add_gradient(const DualRows&, const Tile&, std::int64_t,
                                   const Pack (&)[Tile::packs]) const {}
};

/// Compressed rows, whose scores and share of the gradient are computed on the way.
template <typename T>
struct CompressedRows {
  const T* values;
  const SweptRows& swept;

  template <typename Tile>
  SPARSVM_INLINE void add_scores(const DualRows& a, const Tile& tile, std::int64_t i,
                                 Pack (&v)[Tile::packs]) const {
    const std::int64_t r = swept.X.rows(i);
    const std::int64_t from = swept.X.indptr[r], count = swept.X.indptr[r + 1] - from;
    const std::int32_t* index = swept.X.indices + from;
    if (!swept.place) {
      add_row_product(tile, values + from, index, count, a.sigma, swept.weights, a.outputs, v);
      return;
    }
    for (std::int64_t e = 0; e < count; ++e) {
      const std::int32_t at = swept.place[index[e]];
      if (at < 0) continue;
      add_row_product(tile, values + from + e, &at, 1, a.sigma, swept.weights, a.outputs, v);
    }
  }

  template <typename Tile>
  SPARSVM_INLINE void add_gradient(const DualRows& a, const Tile& tile, std::int64_t i,
                                   const Pack (&v)[Tile::packs]) const {
    const std::int64_t r = swept.X.rows(i);
    const std::int64_t from = swept.X.indptr[r], count = swept.X.indptr[r + 1] - from;
    add_row_transposed(tile, values + from, swept.X.indices + from, count, v, a.outputs,
                       swept.gradient);
  }
};

/// A sample of the step.
struct Row {
  double* tilde;
  const double *lift, *own;  // σ(margins + intercept); 1 at the true class, 0 elsewhere
  double mass, last, share;  // `last` is the threshold of the last projection
};

/// What the rows share: room for one, filled up to whole packs, and for its margins, a one in the
/// middle of 2K entries, and σ(cost + intercept) (K x K).
struct Work {
  double *moved, *margins, *ones, *table;
  double slack;

  SPARSVM_INLINE explicit Work(const DualRows& a)
      : moved(a.work), margins(moved + a.outputs + 4), ones(margins + a.outputs),
        table(ones + 2 * a.outputs), slack(simplex_slack * static_cast<double>(a.outputs)) {
    const std::int64_t K = a.outputs;
    for (std::int64_t k = 0; k < 4; ++k) moved[K + k] = -1e300;  // above no threshold
    for (std::int64_t k = 0; k < 2 * K; ++k) ones[k] = k == K ? 1.0 : 0.0;
    for (std::int64_t c = 0; c < K; ++c) {
      for (std::int64_t k = 0; k < K; ++k) {
        table[c * K + k] = a.sigma * (a.cost[c * K + k] + a.intercept[k]);
      }
    }
  }

  SPARSVM_INLINE Row row(const DualRows& a, std::int64_t i) const {
    const std::int64_t K = a.outputs, y = a.y[i];
    const double* lift = table + y * K;
    if (a.margin_scale) {
      for (std::int64_t k = 0; k < K; ++k) {
        margins[k] = a.sigma * (a.margin_scale[i] * a.cost[y * K + k] + a.intercept[k]);
      }
      lift = margins;
    }
    return {a.tilde + i * K, lift, ones + K - y, a.mass[i], a.threshold[i], a.share[i]};
  }
};

/// v = σ(scores + margins), by which the row is to move.
template <typename Tile, typename Source>
SPARSVM_INLINE void find_steps(const DualRows& a, const Source& source, const Tile& tile,
                               const Row& row, std::int64_t i, Pack (&v)[Tile::packs]) {
  tile.load(row.lift, v);
  source.add_scores(a, tile, i, v);
}

/// v = Y + v − the last threshold.
template <typename Tile>
SPARSVM_INLINE void move_tile(const Tile& tile, const Row& row, Pack (&v)[Tile::packs]) {
  const Pack mass = SPARSVM_SPREAD(row.mass), last = SPARSVM_SPREAD(row.last);
  repeat<Tile::packs>([&](auto p) SPARSVM_INLINE_LAMBDA {
    Pack tilde, own;
    tile.load(row.tilde, p, tilde);
    tile.load(row.own, p, own);
    v[p] = v[p] + ((tilde + own * mass) - last);
  });
}

/// What tells whether a row at rest stays there: it does if no step is larger than that of its class.
template <typename Tile>
SPARSVM_INLINE void compare_steps(const Tile& tile, const Row& row, const Pack (&v)[Tile::packs],
                                  Pack& largest, Pack& of_own) {
  Pack owned[Tile::packs], part;
  repeat<Tile::packs>([&](auto p) SPARSVM_INLINE_LAMBDA {
    Pack own;
    tile.load(row.own, p, own);
    owned[p] = own * v[p];
    keep_larger(largest, v[p]);
  });
  tile.total(owned, part);
  of_own += part;
}

/// y = the positive parts of v − theta.
template <typename Tile>
SPARSVM_INLINE void cut_tile(const Tile&, const Pack (&v)[Tile::packs], double theta,
                             Pack (&y)[Tile::packs]) {
  const Pack bound = SPARSVM_SPREAD(theta);
  repeat<Tile::packs>([&](auto p) SPARSVM_INLINE_LAMBDA {
    y[p] = v[p] - bound;
    keep_positive(y[p]);
  });
}

template <typename Tile>
SPARSVM_INLINE void cut_tile(const Tile&, const Pack (&v)[Tile::packs], Pack (&y)[Tile::packs]) {
  repeat<Tile::packs>([&](auto p) SPARSVM_INLINE_LAMBDA {
    y[p] = v[p];
    keep_positive(y[p]);
  });
}

/// Ỹ from Y, left in both.
template <typename Tile>
SPARSVM_INLINE void leave_tile(const Tile& tile, const Row& row, Pack (&y)[Tile::packs]) {
  const Pack mass = SPARSVM_SPREAD(row.mass);
  repeat<Tile::packs>([&](auto p) SPARSVM_INLINE_LAMBDA {
    Pack own;
    tile.load(row.own, p, own);
    y[p] = y[p] - own * mass;
  });
  tile.store(row.tilde, y);
}

/// The root of Σ_k (z_k − root)₊ = mass, one over the number of entries above it being left in
/// `share`; z is filled up to a whole pack. See fused::find_root, which does the same for rows side
/// by side.
SPARSVM_INLINE double find_root(const double* z, std::int64_t entries, double mass, double& share) {
  double root = 0.0, known = -1.0;
  for (std::int64_t round = 0; round <= entries + 1; ++round) {
    Pack sum = {}, count = {}, top = SPARSVM_LOAD(z);
    const Pack bound = SPARSVM_SPREAD(root);
    for (std::int64_t k = 0; k < entries; k += 4) {
      const Pack v = SPARSVM_LOAD(z + k);
      add_above(v, bound, sum, count);
      keep_larger(top, v);
    }
    const double number = sum_of(count);
    share = number > 1.0 ? 1.0 / number : 1.0;
    // Where nothing was above, the largest entry alone is the next set.
    root = (number > 0.0 ? sum_of(sum) - mass : largest_of(top) - mass) * share;
    if (number == known) break;
    known = number;
  }
  return root;
}

SPARSVM_INLINE bool missed(const Work& work, double sum, double mass) {
  return !(sum - mass <= work.slack * mass && mass - sum <= work.slack * mass);
}

/// Whether the true class has all the mass, as that of a sample beyond its margins does. The
/// projection has it but for rounding; Ỹ is made zero, and nobody need multiply it.
SPARSVM_INLINE bool at_rest(const DualRows& a, const Row& row, std::int64_t i) {
  if (a.share[i] != 1.0 || !(row.tilde[a.y[i]] > -row.mass)) return false;
  for (std::int64_t k = 0; k < a.outputs; ++k) row.tilde[k] = 0.0;
  return true;
}

SPARSVM_INLINE bool rests(const DualRows& a, const Row& row, std::int64_t i) {
  return row.tilde[a.y[i]] == 0.0;
}

/// Rows that stay in registers.
template <typename Tile, typename Source>
SPARSVM_INLINE void each_row(const DualRows& a, const Work& work, const Source& source,
                             const OneTile<Tile>& tiles) {
  constexpr int P = Tile::packs;
  const Tile& tile = tiles.tile;
  Pack totals[P] = {};
  for (std::int64_t i = 0; i < a.n; ++i) {
    const Row row = work.row(a, i);
    Pack v[P], y[P], sum;
    find_steps(a, source, tile, row, i, v);
    if (rests(a, row, i)) {
      Pack largest = v[0], of_own = {};
      compare_steps(tile, row, v, largest, of_own);
      if (largest_of(largest) <= sum_of(of_own)) continue;
    }
    move_tile(tile, row, v);
    cut_tile(tile, v, y);
    tile.total(y, sum);
    const double theta = (sum_of(sum) - row.mass) * row.share;
    cut_tile(tile, v, theta, y);
    a.threshold[i] = row.last + theta;
    tile.total(y, sum);
    if (missed(work, sum_of(sum), row.mass)) {
      tile.store(work.moved, v);
      const double root = find_move(a, work.moved, row.last, i);
      tile.load(work.moved, v);
      cut_tile(tile, v, root, y);
    }
    leave_tile(tile, row, y);
    if (at_rest(a, row, i)) continue;
    repeat<P>([&](auto p) SPARSVM_INLINE_LAMBDA { totals[p] += y[p]; });
    source.add_gradient(a, tile, i, y);
  }
  tile.store(a.sums, totals);
}

/// Rows that do not.
template <typename Source>
SPARSVM_INLINE void each_row(const DualRows& a, const Work& work, const Source& source,
                             const ManyTiles& tiles) {
  for (std::int64_t k = 0; k < a.outputs; ++k) a.sums[k] = 0.0;
  for (std::int64_t i = 0; i < a.n; ++i) {
    const Row row = work.row(a, i);
    const bool resting = rests(a, row, i);
    Pack largest = {}, of_own = {}, excess = {};
    tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA {
      constexpr int P = std::decay_t<decltype(tile)>::packs;
      Pack v[P];
      find_steps(a, source, tile, row, i, v);
      tile.store(work.moved, v);
      if (!resting) return;
      if (tile.first == 0) largest = v[0];
      compare_steps(tile, row, v, largest, of_own);
    });
    if (resting && largest_of(largest) <= sum_of(of_own)) continue;
    tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA {
      constexpr int P = std::decay_t<decltype(tile)>::packs;
      Pack v[P], y[P], part;
      tile.load(work.moved, v);
      move_tile(tile, row, v);
      tile.store(work.moved, v);
      cut_tile(tile, v, y);
      tile.total(y, part);
      excess += part;
    });
    double theta = (sum_of(excess) - row.mass) * row.share;
    a.threshold[i] = row.last + theta;
    for (bool guessed = true;; guessed = false) {
      Pack sum = {};
      tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA {
        constexpr int P = std::decay_t<decltype(tile)>::packs;
        Pack v[P], y[P], part;
        tile.load(work.moved, v);
        cut_tile(tile, v, theta, y);
        tile.total(y, part);
        sum += part;
        leave_tile(tile, row, y);
      });
      if (!guessed || !missed(work, sum_of(sum), row.mass)) break;
      theta = find_move(a, work.moved, row.last, i);
    }
    if (at_rest(a, row, i)) continue;
    tiles.each([&](const auto& tile) SPARSVM_INLINE_LAMBDA {
      constexpr int P = std::decay_t<decltype(tile)>::packs;
      Pack y[P], total[P];
      tile.load(row.tilde, y);
      tile.load(a.sums, total);
      repeat<P>([&](auto p) SPARSVM_INLINE_LAMBDA { total[p] += y[p]; });
      tile.store(a.sums, total);
      source.add_gradient(a, tile, i, y);
    });
  }
}

template <typename Source>
SPARSVM_INLINE void all_rows(const DualRows& a, const Source& source) {
  const Work work(a);
  with_tiles<5>(a.outputs,
                [&](const auto& tiles) SPARSVM_INLINE_LAMBDA { each_row(a, work, source, tiles); });
}

template <typename T>
SPARSVM_INLINE void sweep(const DualRows& a, const SweptRows& s, const T* values) {
  for (std::int64_t e = 0; e < s.features * a.outputs; ++e) s.gradient[e] = 0.0;
  all_rows(a, CompressedRows<T>{values, s});
}

SPARSVM_CLONED void sweep_singles(const DualRows& a, const SweptRows& s) {
  sweep(a, s, s.X.singles);
}

SPARSVM_CLONED void sweep_doubles(const DualRows& a, const SweptRows& s) {
  sweep(a, s, s.X.doubles);
}

/// Rows that are treated together: several packs hide each other's waiting.
constexpr int few_lanes = 24;

template <int K>
SPARSVM_INLINE void few_block(const FewRows& rows, std::int64_t first, int count,
                              const double* shift, double* totals) {
  constexpr int L = few_lanes;
  double moved[L * K], lanes[K][L], top[L], theta[L], mass[L];
  const double* __restrict s = rows.scores + first * K;
  const double* __restrict margins = rows.margins + first * K;
  const double* __restrict own = rows.own + first * K;
  double* __restrict tilde = rows.tilde + first * K;
  const double sigma = rows.sigma;
  const int entries = count * K;
  if (count < L) {
    for (int e = 0; e < L * K; ++e) moved[e] = 0.0;
    for (int l = 0; l < L; ++l) mass[l] = 1.0;
  }
  for (int e = 0; e < entries; ++e) {
    moved[e] = (tilde[e] + own[e]) + (margins[e] + sigma * (s[e] + shift[e]));
  }
  for (int l = 0; l < count; ++l) mass[l] = rows.mass[first + l];
  for (int l = 0; l < L; ++l) {
    for (int k = 0; k < K; ++k) lanes[k][l] = moved[l * K + k];
  }
  for (int l = 0; l < L; l += 4) {
    Pack v[K], root;
    for (int k = 0; k < K; ++k) v[k] = SPARSVM_LOAD(&lanes[k][l]);
    simplex_root<K>(v, SPARSVM_LOAD(mass + l), root);
    SPARSVM_STORE(theta + l, root);
    SPARSVM_STORE(top + l, v[0]);
  }
  // top + theta would lose the digits of theta, so top is taken off first.
  for (int l = 0; l < L; ++l) {
    for (int k = 0; k < K; ++k) moved[l * K + k] = (moved[l * K + k] - top[l]) - theta[l];
  }
  for (int e = 0; e < entries; ++e) {
    const double now = (moved[e] > 0.0 ? moved[e] : 0.0) - own[e];
    tilde[e] = now;
    totals[e] += now;
  }
}

template <int K>
SPARSVM_INLINE void few_rows_of(const FewRows& rows) {
  constexpr int L = few_lanes;
  double shift[L * K], totals[L * K] = {};
  for (int e = 0; e < L * K; ++e) shift[e] = rows.intercept[e % K];
  std::int64_t i = 0;
  for (; i + L <= rows.n; i += L) few_block<K>(rows, i, L, shift, totals);
  if (i < rows.n) few_block<K>(rows, i, static_cast<int>(rows.n - i), shift, totals);
  for (int k = 0; k < K; ++k) rows.sums[k] = 0.0;
  for (int l = 0; l < L; ++l) {
    for (int k = 0; k < K; ++k) rows.sums[k] += totals[l * K + k];
  }
}

/// The projection on the simplex {u_0 + u_1 = p} is a clipping of u_1, the only output.
SPARSVM_INLINE void clip_rows(const FewRows& rows) {
  const double* __restrict s = rows.scores;
  const double* __restrict margins = rows.margins;
  const double* __restrict own = rows.own;
  const double* __restrict mass = rows.mass;
  double* __restrict tilde = rows.tilde;
  const double half = 0.5 * rows.sigma, b = rows.intercept[0];
  for (std::int64_t i = 0; i < rows.n; ++i) {
    const double moved = (tilde[i] + own[i]) + (margins[i] + half * (s[i] + b)), p = mass[i];
    const double low = moved < 0.0 ? 0.0 : moved;
    tilde[i] = (p < low ? p : low) - own[i];
  }
  double totals[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= rows.n; i += 8) {
    for (int l = 0; l < 8; ++l) totals[l] += tilde[i + l];
  }
  for (; i < rows.n; ++i) totals[i % 8] += tilde[i];
  rows.sums[0] = 0.0;
  for (const double total : totals) rows.sums[0] += total;
}

}  // namespace

SPARSVM_CLONED double find_move(const DualRows& a, double* moved, double last, std::int64_t i) {
  const double mass = a.mass[i];
  double root = find_root(moved, a.outputs, mass, a.share[i]);
  if (root > 16.0 * mass || root < -16.0 * mass) {
    // So far from the last threshold the root lacks digits, which the next one has.
    for (std::int64_t k = 0; k < a.outputs; ++k) moved[k] -= root;
    last += root;
    root = find_root(moved, a.outputs, mass, a.share[i]);
  }
  a.threshold[i] = last + root;
  return root;
}

SPARSVM_CLONED void dual_rows(const DualRows& rows, const double* scores) {
  all_rows(rows, GivenScores{scores});
}

bool sweeps_wide(std::int64_t outputs) {
#if defined(SPARSVM_WIDE)
  static const bool wide = has_wide();
  return wide && outputs >= least_wide_outputs && outputs <= most_wide_outputs;
#else
  return outputs < 0;
#endif
}

void swept_rows(const DualRows& rows, const SweptRows& swept) {
#if defined(SPARSVM_WIDE)
  if (sweeps_wide(rows.outputs)) return wide_rows(rows, swept);
#endif
  swept.X.singles ? sweep_singles(rows, swept) : sweep_doubles(rows, swept);
}

SPARSVM_CLONED void few_rows(const FewRows& rows) {
  switch (rows.outputs) {
    case 1: return clip_rows(rows);
    case 3: return few_rows_of<3>(rows);
    default: return few_rows_of<4>(rows);
  }
}

}  // namespace sparsvm
