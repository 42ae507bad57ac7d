// The pieces of a fused pass over twenty-four samples, for packs of four or of eight doubles.
//
// Lane l of the eight belongs to the samples l, 8 + l and 16 + l: packs of four take the lanes in two
// turns, and every number is computed by the same operations in the same order whatever the width.
#pragma once

#include <cstdint>

#include "design/row_tiles.hpp"
#include "prox/simplex_root.hpp"
#include "support/simd.hpp"

namespace sparsvm::fused {

inline constexpr int lanes = 24, width = 8;

/// All blocks of samples and the arrays of one pass; a sample's entries are `lanes` apart.
struct Pass {
  std::int64_t features, outputs;
  std::int64_t active;        // features with weights, the only ones with a share in the scores
  const std::int64_t* where;  // active: the features times `lanes`
  const double* weights;      // active x K, times σ
  const double* intercept;    // K, times σ
  const double *X, *mass;
  const double* lift;         // σ times the margins, like Y; or null
  const double* own;          // then the true classes,
  const double* own_lift;     // and what these have instead
  double *threshold, *share;  // of the last projection, and one over the number above it
  double* dual;               // Y
  double* moved;    // (K + 1) x lanes: Y + σ(scores + margins) less the threshold, and that itself
  double* partial;  // d x K x width: XᵀY, lane by lane
  double* sums;     // K x width: column sums of Y, lane by lane
  bool adds;        // whether `partial` and `sums` are wanted
};

SPARSVM_INLINE void move_margins(Pass& a, std::int64_t by) {
  if (a.lift) {
    a.lift += by;
  } else {
    a.own += by, a.own_lift += by;
  }
}

template <typename P>
inline constexpr int size = sizeof(P) / sizeof(double);

/// Classes that are treated together: as many as the registers hold.
template <typename P>
inline constexpr int tile = size<P> == width ? 8 : 4;

/// sum += a·b, rounded once where packs of four are for machines that can.
template <typename P>
SPARSVM_INLINE void accumulate(P& sum, const P& a, const P& b) {
#if defined(SPARSVM_FOUR)
  if constexpr (size<P> == 4) {
    asm("vfmadd231pd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return;
  }
#endif
  add_product(sum, a, b);
}

/// The number at `from` in all lanes. Written out because GCC loads several neighbours at once, permutes
/// them, and has no register left for two of the sums then.
template <typename P>
SPARSVM_INLINE void load_spread(P& v, const double* from) {
#if defined(SPARSVM_FOUR)
  asm("vbroadcastsd %1, %0" : "=v"(v) : "m"(*from));
#else
  spread(v, *from);
#endif
}

/// s = Y + the margins of T classes.
template <typename P, int T, int G>
SPARSVM_INLINE void take_margins(const Pass& a, std::int64_t k, P (&s)[T][G]) {
  repeat<T>([&](auto t) SPARSVM_INLINE_LAMBDA {
    repeat<G>([&](auto g)
                  SPARSVM_INLINE_LAMBDA { load(s[t][g], a.dual + (k + t) * lanes + g * width); });
  });
  P lift;
  if (a.lift) {
    repeat<T>([&](auto t) SPARSVM_INLINE_LAMBDA {
      repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
        load(lift, a.lift + (k + t) * lanes + g * width);
        s[t][g] += lift;
      });
    });
    return;
  }
  repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
    P own;
    load(own, a.own + g * width);
    load(lift, a.own_lift + g * width);
    repeat<T>([&](auto t) SPARSVM_INLINE_LAMBDA {
      P here;
      spread(here, static_cast<double>(k + t));
      add_where_equal(s[t][g], own, here, lift);
    });
  });
}

/// Y + σ(scores + margins) − threshold of T classes.
template <typename P, int T, int G>
SPARSVM_INLINE void take_scores(const Pass& a, std::int64_t k, P (&s)[T][G]) {
  take_margins<P, T, G>(a, k, s);
  {
    const P one = P{} + 1.0;
    P last[G];
    repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
      load(last[g], a.threshold + g * width);
      last[g] = P{} - last[g];
    });
    repeat<T>([&](auto t) SPARSVM_INLINE_LAMBDA {
      P b;
      load_spread(b, a.intercept + k + t);
      repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
        add_aside(s[t][g], last[g], one);
        s[t][g] += b;
      });
    });
  }
  const double* __restrict w = a.weights + k;
  for (std::int64_t e = 0; e < a.active; ++e, w += a.outputs) {
    const double* x = a.X + a.where[e];
    P column[G];
    repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA { load(column[g], x + g * width); });
    repeat<T>([&](auto t) SPARSVM_INLINE_LAMBDA {
      P weight;
      load_spread(weight, w + t);
      repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA { accumulate(s[t][g], column[g], weight); });
    });
  }
}

/// partial += XᵀY and sums += 1ᵀY of T classes.
template <typename P, int T, int G>
SPARSVM_INLINE void add_gradient(const Pass& a, std::int64_t k, const P (&y)[T][G]) {
  repeat<T>([&](auto t) SPARSVM_INLINE_LAMBDA {
    P total, sum = y[t][0];
    for (int g = 1; g < G; ++g) sum += y[t][g];
    load(total, a.sums + (k + t) * width);
    store(a.sums + (k + t) * width, total + sum);
  });
  const double* __restrict x = a.X;
  double* __restrict to = a.partial + k * width;
  for (std::int64_t j = 0; j < a.features; ++j, x += lanes, to += a.outputs * width) {
    P column[G];
    repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA { load(column[g], x + g * width); });
    repeat<T>([&](auto t) SPARSVM_INLINE_LAMBDA {
      P total;
      load(total, to + t * width);
      repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA { accumulate(total, column[g], y[t][g]); });
      store(to + t * width, total);
    });
  }
}

/// Scores into `moved`; excess += their positive parts.
template <typename P, int T, int G>
SPARSVM_INLINE void score_tile(const Pass& a, std::int64_t k, P (&excess)[G]) {
  P s[T][G];
  take_scores<P, T, G>(a, k, s);
  repeat<T>([&](auto t) SPARSVM_INLINE_LAMBDA {
    repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
      store(a.moved + (k + t) * lanes + g * width, s[t][g]);
      keep_positive(s[t][g]);
      excess[g] += s[t][g];
    });
  });
}

template <typename P, int T, int G>
SPARSVM_INLINE void gradient_tile(const Pass& a, std::int64_t k) {
  P y[T][G];
  repeat<T>([&](auto t) SPARSVM_INLINE_LAMBDA {
    repeat<G>([&](auto g)
                  SPARSVM_INLINE_LAMBDA { load(y[t][g], a.dual + (k + t) * lanes + g * width); });
  });
  add_gradient<P, T, G>(a, k, y);
}

/// Calls use<T>(first class) for tiles of at most `most` classes that differ by one at most.
template <int most, typename Use>
SPARSVM_INLINE void for_each_tile(std::int64_t outputs, Use use) {
  const std::int64_t tiles = (outputs + most - 1) / most;
  for (std::int64_t i = 0, k = 0; i < tiles; ++i) {
    const std::int64_t size = (outputs - k) / (tiles - i);
    switch (size) {
      case 1: use.template operator()<1>(k); break;
      case 2: use.template operator()<2>(k); break;
      case 3: use.template operator()<3>(k); break;
      case 4: use.template operator()<4>(k); break;
      default:
        if constexpr (most > 4) {
          switch (size) {
            case 5: use.template operator()<5>(k); break;
            case 6: use.template operator()<6>(k); break;
            case 7: use.template operator()<7>(k); break;
            default: use.template operator()<8>(k); break;
          }
        }
    }
    k += size;
  }
}

/// The root of Σ_k (z_k − root)₊ = mass and the number of entries above it, from the set above zero.
///
/// The root of any set of entries lies left of that of all, and the entries above it are the next
/// set: from the second on they shrink, until one is its own next.
template <typename P>
SPARSVM_INLINE void find_root(const double* z, std::int64_t entries, const P& mass, P& root,
                              P& above) {
  root = P{};
  above = P{} + 1.0;
  P known = P{} - 1.0;
  for (std::int64_t round = 0; round <= entries + 1; ++round) {
    P sum = P{} - mass, count = {}, top, v;
    load(top, z);
    for (std::int64_t k = 0; k < entries; ++k) {
      load(v, z + k * lanes);
      add_above(v, root, sum, count);
      keep_larger(top, v);
    }
    const P change = count - known;
    known = count;
    above = count;
    keep_larger(above, P{} + 1.0);
    // Where nothing was above, the largest entry alone is the next set.
    root = sum / above + (above - count) * top;
    if (sum_of(change * change) == 0.0) return;
  }
}

/// Y <- the projection of eight samples from g on, wherever their thresholds have gone.
template <typename P>
SPARSVM_INLINE void project_again(const Pass& a, int g) {
  for (int h = g; h < g + width; h += size<P>) {
    double* z = a.moved + h;
    P mass, root, above, last;
    load(mass, a.mass + h);
    find_root(z, a.outputs, mass, root, above);
    load(last, z + a.outputs * lanes);
    P up = root - 16.0 * mass, down = (P{} - root) - 16.0 * mass;
    keep_positive(up);
    keep_positive(down);
    if (!(sum_of(up + down) == 0.0)) {
      // So far from the last threshold the root lacks digits, which the next one has.
      for (std::int64_t k = 0; k < a.outputs; ++k) {
        P v;
        load(v, z + k * lanes);
        store(z + k * lanes, v - root);
      }
      last += root;
      find_root(z, a.outputs, mass, root, above);
    }
    for (std::int64_t k = 0; k < a.outputs; ++k) {
      P y;
      load(y, z + k * lanes);
      y = y - root;
      keep_positive(y);
      store(a.dual + k * lanes + h, y);
    }
    store(a.threshold + h, last + root);
    store(a.share + h, (P{} + 1.0) / above);
  }
}

/// The move of the thresholds if as many entries are above them as there were in the last pass:
/// then `excess` tells it. Whether this was so the sums of the projections show.
template <typename P, int G>
SPARSVM_INLINE void move_thresholds(const Pass& a, const P (&excess)[G], P (&mass)[G],
                                    P (&theta)[G]) {
  repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
    P share;
    load(mass[g], a.mass + g * width);
    load(share, a.share + g * width);
    theta[g] = (excess[g] - mass[g]) * share;
  });
}

/// What the sums of rows, their mass taken off, miss beyond rounding.
template <typename P>
SPARSVM_INLINE void miss(const Pass& a, const P& sum, const P& mass, P& out) {
  const double allowed = simplex_slack * static_cast<double>(a.outputs);
  P above = sum - mass * allowed, below = (P{} - sum) - mass * allowed;
  keep_positive(above);
  keep_positive(below);
  out = above + below;
}

/// Whether rows are wrong, which most of the time are not.
template <typename P, int G>
SPARSVM_INLINE bool missed(const Pass& a, const P (&sum)[G], const P (&mass)[G], bool (&wrong)[G]) {
  P by[G], all = {};
  repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
    miss(a, sum[g], mass[g], by[g]);
    all += by[g];
  });
  if (sum_of(all) == 0.0) return false;
  repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA { wrong[g] |= !(sum_of(by[g]) == 0.0); });
  return true;
}

/// Y <- its projection; says which groups of rows are wrong.
template <typename P, int G>
SPARSVM_INLINE void project_tile(const Pass& a, const P (&excess)[G], bool (&wrong)[G]) {
  P mass[G], theta[G], sum[G];
  move_thresholds<P, G>(a, excess, mass, theta);
  repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
    P last;
    load(last, a.threshold + g * width);
    store(a.moved + a.outputs * lanes + g * width, last);
    store(a.threshold + g * width, last + theta[g]);
    sum[g] = P{} - mass[g];
  });
  const P one = P{} + 1.0;
  for (std::int64_t k = 0; k < a.outputs; ++k) {
    repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
      P y;
      load(y, a.moved + k * lanes + g * width);
      y = y - theta[g];
      keep_positive(y);
      store(a.dual + k * lanes + g * width, y);
      add_aside(sum[g], y, one);
    });
  }
  missed<P, G>(a, sum, mass, wrong);
}

/// Y <- clipped to [0, mass], for one output that stands for two classes.
template <typename P, int G>
SPARSVM_INLINE void clip_tile(const Pass& a) {
  repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
    P y, mass;
    load(y, a.moved + g * width);
    load(mass, a.mass + g * width);
    keep_positive(y);
    keep_smaller(y, mass);
    store(a.dual + g * width, y);
  });
}

/// A whole block of few classes without leaving the registers, unless the projection is wrong: then
/// nothing has changed.
template <typename P, int K, int G>
SPARSVM_INLINE bool block_of_few(const Pass& a) {
  P s[K][G], excess[G] = {}, mass[G], theta[G], sum[G];
  take_scores<P, K, G>(a, 0, s);
  repeat<K>([&](auto k) SPARSVM_INLINE_LAMBDA {
    repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
      P above = s[k][g];
      keep_positive(above);
      excess[g] += above;
    });
  });
  move_thresholds<P, G>(a, excess, mass, theta);
  repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA { sum[g] = P{} - mass[g]; });
  repeat<K>([&](auto k) SPARSVM_INLINE_LAMBDA {
    repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
      s[k][g] = s[k][g] - theta[g];
      keep_positive(s[k][g]);
      sum[g] += s[k][g];
    });
  });
  bool wrong[G] = {};
  if (missed<P, G>(a, sum, mass, wrong)) return false;
  repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
    P last;
    load(last, a.threshold + g * width);
    store(a.threshold + g * width, last + theta[g]);
    repeat<K>([&](auto k)
                  SPARSVM_INLINE_LAMBDA { store(a.dual + k * lanes + g * width, s[k][g]); });
  });
  if (a.adds) add_gradient<P, K, G>(a, 0, s);
  return true;
}

template <typename P, int G>
SPARSVM_INLINE bool block_if_few(const Pass& a) {
  switch (a.outputs) {
    case 3: return block_of_few<P, 3, G>(a);
    case 4: return block_of_few<P, 4, G>(a);
    case 5: return block_of_few<P, 5, G>(a);
    case 6: return block_of_few<P, 6, G>(a);
    case 7: return block_of_few<P, 7, G>(a);
    case 8: return block_of_few<P, 8, G>(a);
    default: return false;
  }
}

/// partial += XᵀY and sums += 1ᵀY of G times eight samples, if wanted.
template <typename P, int G>
SPARSVM_INLINE void add_block(const Pass& whole) {
  if (!whole.adds) return;
  for (int h = 0; h < width; h += size<P>) {
    Pass a = whole;
    a.X += h, a.dual += h, a.sums += h, a.partial += h;
    for_each_tile<tile<P>>(a.outputs, [&]<int T>(std::int64_t k)
                                          SPARSVM_INLINE_LAMBDA { gradient_tile<P, T, G>(a, k); });
  }
}

/// One block, of which G times eight samples are there; without `project` Y stays as it is.
template <typename P, int G, bool project>
SPARSVM_INLINE void block(const Pass& whole) {
  if constexpr (project && size<P> == width && G == 3) {
    if (block_if_few<P, G>(whole)) return;
  }
  bool wrong[G] = {};
  for (int h = 0; project && h < width; h += size<P>) {
    Pass a = whole;
    a.X += h, a.mass += h, a.threshold += h, a.share += h, a.dual += h, a.moved += h;
    move_margins(a, h);
    P excess[G] = {};
    for_each_tile<tile<P>>(a.outputs, [&]<int T>(std::int64_t k) SPARSVM_INLINE_LAMBDA {
      score_tile<P, T, G>(a, k, excess);
    });
    if (a.outputs == 1) {
      clip_tile<P, G>(a);
    } else {
      project_tile<P, G>(a, excess, wrong);
    }
  }
  repeat<G>([&](auto g) SPARSVM_INLINE_LAMBDA {
    if (wrong[g]) project_again<P>(whole, g * width);
  });
  add_block<P, G>(whole);
}

/// out = the sums over the eight lanes of each of `count` entries, less `base`.
SPARSVM_INLINE void add_up_lanes(const double* lane, const double* base, std::int64_t count,
                                 double* out) {
  std::int64_t e = 0;
  for (; e + 4 <= count; e += 4) {
    Pack v[4];
    for (int r = 0; r < 4; ++r) {
      const double* at = lane + (e + r) * width;
      v[r] = SPARSVM_LOAD(at) + SPARSVM_LOAD(at + 4);
    }
    transpose(v);
    SPARSVM_STORE(out + e, ((v[0] + v[1]) + (v[2] + v[3])) - SPARSVM_LOAD(base + e));
  }
  for (; e < count; ++e) {
    out[e] = sum_of(SPARSVM_LOAD(lane + e * width) + SPARSVM_LOAD(lane + e * width + 4)) - base[e];
  }
}

}  // namespace sparsvm::fused
