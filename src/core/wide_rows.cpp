#include "wide_rows.hpp"

#if defined(SPARSVM_WIDE)

#include <array>

#include "wide_packs.hpp"

namespace sparsvm {

namespace wide {

namespace {

constexpr auto make_shares() {
  std::array<double, most_wide_outputs + 1> shares{};
  for (std::size_t count = 1; count < shares.size(); ++count) {
    shares[count] = 1.0 / static_cast<double>(count);
  }
  return shares;
}

constexpr auto shares = make_shares();  // one over a number of entries

constexpr double below_all = -1e300;  // what lanes without a class have

/// A set of classes, a bit each, for P packs.
template <int P>
struct Classes {
  static constexpr int words = (P + 7) / 8;
  std::uint64_t word[words] = {};

  SPARSVM_WIDE_INLINE static Classes only(std::int64_t k) {
    Classes out;
    for (int w = 0; w < words; ++w) {
      out.word[w] = words == 1 || k / 64 == w ? std::uint64_t{1} << (k % 64) : 0;
    }
    return out;
  }
  SPARSVM_WIDE_INLINE void add(int p, __mmask8 lanes) {
    word[p / 8] |= std::uint64_t{lanes} << (p % 8 * 8);
  }
  SPARSVM_WIDE_INLINE __mmask8 lanes(int p) const {
    return static_cast<__mmask8>(word[p / 8] >> (p % 8 * 8));
  }
  SPARSVM_WIDE_INLINE std::size_t count() const {
    int sum = 0;
    for (const std::uint64_t part : word) sum += __builtin_popcountll(part);
    return static_cast<std::size_t>(sum);
  }
  SPARSVM_WIDE_INLINE bool operator==(const Classes& other) const {
    std::uint64_t apart = 0;
    for (int w = 0; w < words; ++w) apart |= word[w] ^ other.word[w];
    return apart == 0;
  }
};

/// A sweep over rows of 8F + 4H classes or a few less, and entries of type T.
///
/// The fields that are read row by row are copies: the compiler takes it that a store of a pack may
/// change whatever lies in memory that is known elsewhere.
template <int F, bool H, typename T>
struct Sweep {
  using Row = wide::Row<F, H>;
  static constexpr int packs = Row::packs, room = Row::room;
  static constexpr bool is_long = packs > 4;  // then most packs of Ỹ are zero
  using Set = Classes<packs>;
  template <int p>
  using Pack = typename Row::template Pack<p>;

  PlainRows<F, H> plain;
  PaddedRows<F, H> weights, gradient;
  const T* values;
  const std::int32_t *index, *place;

  SPARSVM_WIDE_INLINE Sweep(const DualRows& a, const SweptRows& s, const T* entries)
      : plain(a.outputs), weights(s.room, s.features),
        gradient(s.room + room * s.features, s.features), values(entries), index(s.X.indices),
        place(s.place) {}

  /// The weights times σ and a gradient of zero.
  SPARSVM_WIDE_INLINE void lay_out(const DualRows& a, const SweptRows& s) const {
    for (std::int64_t j = 0, rows = s.rows; j < rows; ++j) {
      const double* from = s.weights + j * plain.K;
      repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
        store(weights.template at<p>(j),
              spread<Pack<p>>(a.sigma) * plain.template load_pack<p>(from));
      });
    }
    for (std::int64_t e = 0, count = s.features * room; e < count; e += 4) {
      store(gradient.full + e, Four{});
    }
  }

  SPARSVM_WIDE_INLINE void leave_gradient(const SweptRows& s) const {
    for (std::int64_t j = 0, rows = s.features; j < rows; ++j) {
      Row v;
      repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
        v.template at<p>() = load<Pack<p>>(gradient.template at<p>(j));
      });
      plain.store_row(s.gradient + j * plain.K, v);
    }
  }

  /// v += x_e times the weights at a row.
  SPARSVM_WIDE_INLINE void add_weights(std::int64_t e, std::int64_t row, Row& v) const {
    const double x = static_cast<double>(values[e]);
    repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
      using V = Pack<p>;
      v.template at<p>() =
          add_product(spread<V>(x), load<V>(weights.template at<p>(row)), v.template at<p>());
    });
  }

  /// v += σ times the scores of the entries.
  SPARSVM_WIDE_INLINE void add_scores(std::int64_t from, std::int64_t end, Row& v) const {
    if (place) {
      for (; from < end; ++from) {
        const std::int64_t row = place[index[from]];
        if (row >= 0) add_weights(from, row, v);
      }
      return;
    }
    constexpr int turns =
        packs < 4 ? 4 / packs : 1;  // a sum waits four cycles for its last addition
    if constexpr (turns > 1) {
      if (end - from >= 2 * turns) {
        Row sum[turns] = {};
        for (; from + turns <= end; from += turns) {
          for (int t = 0; t < turns; ++t) add_weights(from + t, index[from + t], sum[t]);
        }
        repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
          for (int t = 0; t < turns; ++t) v.template at<p>() += sum[t].template at<p>();
        });
      }
    }
    for (; from < end; ++from) add_weights(from, index[from], v);
  }

  /// gradient += x_e times pack p of v.
  template <int p>
  SPARSVM_WIDE_INLINE void add_gradient(std::int64_t e, Row& v) const {
    using V = Pack<p>;
    double* g = gradient.template at<p>(index[e]);
    store(g,
          add_product(spread<V>(static_cast<double>(values[e])), v.template at<p>(), load<V>(g)));
  }

  /// The step of the true class less the largest of the others.
  SPARSVM_WIDE_INLINE static double slack_of(const Set& own, Row& v) {
    Eight others = spread<Eight>(below_all), its = others;
    repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
      const auto rest = static_cast<__mmask8>((p < F ? 0xFF : 0x0F) & ~own.lanes(p));
      const Eight part = widened(v.template at<p>());
      others = _mm512_mask_max_pd(others, rest, others, part);
      its = _mm512_mask_max_pd(its, own.lanes(p), its, part);
    });
    return largest_of(its) - largest_of(others);
  }

  SPARSVM_WIDE_INLINE static Set find_above(Row& v, double theta) {
    Set above;
    repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
      above.add(p, lanes_above(v.template at<p>(), spread<Pack<p>>(theta)));
    });
    return above;
  }

  /// How far from `bound` the root of the entries above it is, and which they are. What they exceed it
  /// by does not wait for the comparisons.
  SPARSVM_WIDE_INLINE static Set next_root(Row& v, double mass, double bound, double& move) {
    Pack<0> excess = {};
    repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
      using V = Pack<p>;
      const V part = larger(v.template at<p>() - spread<V>(bound), V{});
      if constexpr (F == 0) {
        excess = part;
      } else {
        excess += widened(part);
      }
    });
    const Set above = find_above(v, bound);
    move = (sum_of(excess) - mass) * shares[above.count()];
    return above;
  }

  /// theta with Σ_k (v_k − theta)₊ = mass and the entries above it, from those above zero, which mostly
  /// they are; none if that leads nowhere.
  SPARSVM_WIDE_INLINE static Set find_root(Row& v, double mass, double& theta) {
    double move;
    Set above = next_root(v, mass, 0.0, theta);
    if (find_above(v, theta) == above) return above;
#pragma GCC unroll 1
    for (int round = 0; round <= room; ++round) {
      above = next_root(v, mass, theta, move);
      theta += move;
      if (find_above(v, theta) == above) return above;
    }
    return {};
  }

  /// So far from the last threshold the root lacks digits: it is found from nothing.
  SPARSVM_WIDE_INLINE double start_again(const DualRows& rows, double last, std::int64_t i,
                                         Row& v) const {
    double* work = rows.work;
    plain.store_row(work, v);
    for (std::int64_t k = plain.K; k < 8 * packs + 4; ++k) work[k] = below_all;
    const double theta = find_move(rows, work, last, i);
    repeat<packs>([&](auto p)
                      SPARSVM_WIDE_LAMBDA { v.template at<p>() = load<Pack<p>>(work + 8 * p); });
    return theta;
  }

  SPARSVM_WIDE_INLINE void run(const DualRows& rows, const SweptRows& swept) const {
    const DualRows a = rows;
    const SweptRows s = swept;
    lay_out(a, s);
    alignas(64) double shift[8 * packs], sums[8 * packs];
    for (std::int64_t k = 0; k < 8 * packs; ++k) {
      shift[k] = k < plain.K ? a.sigma * a.intercept[k] : below_all;
      sums[k] = 0.0;
    }
    std::int64_t looked = 0;
    Row total = {};
    for (std::int64_t i = 0, n = a.n; i < n; ++i) {
      if (a.rest.distance <= a.rest.allowed[i]) continue;
      const std::int64_t y = a.y[i], at = s.X.rows(i);
      const std::int64_t from = s.X.indptr[at], end = s.X.indptr[at + 1];
      const double mass = a.mass[i], last = a.threshold[i];
      const double scale = a.margin_scale ? a.sigma * a.margin_scale[i] : a.sigma;
      const double own_margin = a.even ? -scale * a.even_margin : 0.0;
      double* row = a.tilde + i * plain.K;
      const Set own = Set::only(y);
      Row v;
      repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
        using V = Pack<p>;
        const V part =
            (plain.template load_pack<p>(row) - spread<V>(last)) + load<V>(shift + 8 * p);
        v.template at<p>() = add_some(part, own.lanes(p), spread<V>(mass + own_margin));
      });
      if (!a.even) {
        const double* margins = a.cost + y * plain.K;
        repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
          v.template at<p>() = add_product(
              spread<Pack<p>>(scale), plain.template load_pack<p>(margins), v.template at<p>());
        });
      }
      add_scores(from, end, v);
      if (row[y] == 0.0) {
        const double slack = slack_of(own, v) - mass;
        if (slack >= 0.0) {
          a.rest.allowed[i] = slack * a.rest.tolerance[i] - a.rest.distance;
          ++looked;
          continue;
        }
        a.rest.allowed[i] = -1.0;
      }
      double theta;
      Set above = find_root(v, mass, theta);
      a.threshold[i] = last + theta;
      if (above == Set{} || theta > 16.0 * mass || theta < -16.0 * mass) {
        theta = start_again(rows, last, i, v);
        above = find_above(v, theta);
      }
      if (above == own) {  // its class has all the mass but for rounding
        v = Row{};
        plain.store_row(row, v);
        continue;
      }
      repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
        using V = Pack<p>;
        const V part = larger(v.template at<p>() - spread<V>(theta), V{});
        v.template at<p>() = add_some(part, own.lanes(p), spread<V>(-mass));
      });
      plain.store_row(row, v);
      double* along = a.along ? a.along + i * plain.K : nullptr;
      if constexpr (is_long) {
        repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
          if ((above.lanes(p) | own.lanes(p)) == 0) return;
          using V = Pack<p>;
          store(sums + 8 * p, load<V>(sums + 8 * p) + v.template at<p>());
          if (along) plain.template add_pack<p>(along, v.template at<p>());
          for (std::int64_t e = from; e < end; ++e) add_gradient<p>(e, v);
        });
      } else {
        repeat<packs>([&](auto p)
                          SPARSVM_WIDE_LAMBDA { total.template at<p>() += v.template at<p>(); });
        if (along) plain.add_row(along, v);
        for (std::int64_t e = from; e < end; ++e) {
          repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA { add_gradient<p>(e, v); });
        }
      }
    }
    leave_gradient(s);
    repeat<packs>([&](auto p) SPARSVM_WIDE_LAMBDA {
      if constexpr (is_long) total.template at<p>() = load<Pack<p>>(sums + 8 * p);
    });
    plain.store_row(a.sums, total);
    *a.rest.looked = looked;
  }
};

template <int F, bool H, typename T>
SPARSVM_WIDE void sweep(const DualRows& rows, const SweptRows& swept, const T* values) {
  Sweep<F, H, T>(rows, swept, values).run(rows, swept);
}

template <typename T>
SPARSVM_WIDE void all_rows(const DualRows& a, const SweptRows& s, const T* values) {
  switch ((a.outputs + 3) / 4) {
    case 1: return sweep<0, true>(a, s, values);
    case 2: return sweep<1, false>(a, s, values);
    case 3: return sweep<1, true>(a, s, values);
    case 4: return sweep<2, false>(a, s, values);
    case 5: return sweep<2, true>(a, s, values);
    case 6: return sweep<3, false>(a, s, values);
    case 7: return sweep<3, true>(a, s, values);
    default: break;
  }
  switch ((a.outputs + 7) / 8) {
    case 4: return sweep<4, false>(a, s, values);
    case 5: return sweep<5, false>(a, s, values);
    case 6: return sweep<6, false>(a, s, values);
    case 7: return sweep<7, false>(a, s, values);
    case 8: return sweep<8, false>(a, s, values);
    case 9: return sweep<9, false>(a, s, values);
    case 10: return sweep<10, false>(a, s, values);
    case 11: return sweep<11, false>(a, s, values);
    case 12: return sweep<12, false>(a, s, values);
    case 13: return sweep<13, false>(a, s, values);
    case 14: return sweep<14, false>(a, s, values);
    case 15: return sweep<15, false>(a, s, values);
    default: return sweep<16, false>(a, s, values);
  }
}

}  // namespace

}  // namespace wide

SPARSVM_WIDE void wide_rows(const DualRows& rows, const SweptRows& swept) {
  swept.X.singles ? wide::all_rows(rows, swept, swept.X.singles)
                  : wide::all_rows(rows, swept, swept.X.doubles);
}

}  // namespace sparsvm

#endif
