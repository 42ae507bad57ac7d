// The dual step of fbpd row by row, each in registers from its scores to its share of the next gradient;
// compiled for registers of four and of eight doubles, see registers.hpp.
//
// The threshold of a projection comes from the entries above the last one: if those above it are the
// same, it is right, which masks tell exactly; if not, they are the next set, until one is its own.
//
// A Shape (rows_of_four.hpp, rows_of_eight.hpp) holds a row, knows sets of classes, and loads and stores
// rows of K numbers. A Source adds what the entries of a sample contribute to its scores, and its share
// to the gradient.
#pragma once

#include <cstdint>

#include "solvers/papers/fbpd_kernels/dual_rows.hpp"
#include "solvers/papers/fbpd_kernels/registers.hpp"

namespace sparsvm::registers {

namespace {

/// What Row::at(p) is.
template <typename Row, typename P>
using PackOf = typename Row::template Pack<P>;

/// Scores that are there already; the gradient is somebody else's.
template <typename Shape>
struct GivenScores {
  using Row = typename Shape::Row;
  static constexpr bool rests = false;  // whether samples at rest are left out
  struct Sample {
    const double* scores;
  };

  Shape shape;
  const double* scores;
  double sigma;

  SPARSVM_TARGET_INLINE void begin() const {}
  SPARSVM_TARGET_INLINE void end() const {}
  SPARSVM_TARGET_INLINE Sample sample(std::int64_t i) const { return {scores + i * shape.K}; }

  /// v = start(p) + σ times the scores.
  template <typename Start>
  SPARSVM_TARGET_INLINE void take_scores(const Sample& sample, Row& v, Start start) const {
    shape.each([&](auto p) SPARSVM_TARGET_LAMBDA {
      using V = PackOf<Row, decltype(p)>;
      v.at(p) = add_product(spread<V>(sigma), shape.load_pack(sample.scores, p), start(p));
    });
  }

  SPARSVM_TARGET_INLINE void add_gradient(const Sample&, Row&) const {}
  template <typename P>
  SPARSVM_TARGET_INLINE void add_gradient(const Sample&, P, Row&) const {}
};

/// Compressed rows of entries of type T.
///
/// The fields that are read row by row are copies: the compiler takes it that a store of a pack may
/// change whatever lies in memory that is known elsewhere.
template <typename Shape, typename T>
struct CompressedRows {
  using Row = typename Shape::Row;
  using Padded = typename Shape::Padded;
  static constexpr bool rests = true;
  struct Sample {
    std::int64_t from, end;
  };

  Shape shape;
  SweptRows s;
  double sigma;
  Padded weights, gradient;
  const T* values;
  const std::int32_t *index, *place;

  SPARSVM_TARGET_INLINE CompressedRows(const Shape& of, const SweptRows& swept, double factor,
                                       const T* entries)
      : shape(of), s(swept), sigma(factor), weights(shape.padded(s.room, s.features)),
        gradient(shape.padded(s.room + shape.room() * s.features, s.features)), values(entries),
        index(s.X.indices), place(s.place) {}

  /// The weights times σ and a gradient of zero.
  SPARSVM_TARGET_INLINE void begin() const {
    for (std::int64_t j = 0, rows = s.rows; j < rows; ++j) {
      const double* from = s.weights + j * shape.K;
      shape.each([&](auto p) SPARSVM_TARGET_LAMBDA {
        using V = PackOf<Row, decltype(p)>;
        store(weights.at(p, j), spread<V>(sigma) * shape.load_pack(from, p));
      });
    }
    for (std::int64_t e = 0, count = s.features * shape.room(); e < count; e += 4) {
      store(gradient.from + e, Four{});
    }
  }

  SPARSVM_TARGET_INLINE void end() const {
    for (std::int64_t j = 0, rows = s.features; j < rows; ++j) {
      Row v;
      shape.each([&](auto p) SPARSVM_TARGET_LAMBDA {
        v.at(p) = load<PackOf<Row, decltype(p)>>(gradient.at(p, j));
      });
      shape.store_row(s.gradient + j * shape.K, v);
    }
  }

  SPARSVM_TARGET_INLINE Sample sample(std::int64_t i) const {
    const std::int64_t at = s.X.rows(i);
    return {s.X.indptr[at], s.X.indptr[at + 1]};
  }

  /// v = start(p) + σ times the scores of the entries.
  template <typename Start>
  SPARSVM_TARGET_INLINE void take_scores(const Sample& sample, Row& v, Start start) const {
    if constexpr (Shape::in_memory) {
      take_by_fours(sample, v, start);
    } else {
      shape.each([&](auto p) SPARSVM_TARGET_LAMBDA { v.at(p) = start(p); });
      add_scores(sample, v);
    }
  }

  /// v += x_e times the weights at a row.
  SPARSVM_TARGET_INLINE void add_weights(std::int64_t e, std::int64_t row, Row& v) const {
    const double x = static_cast<double>(values[e]);
    shape.each([&](auto p) SPARSVM_TARGET_LAMBDA {
      using V = PackOf<Row, decltype(p)>;
      v.at(p) = add_product(spread<V>(x), load<V>(weights.at(p, row)), v.at(p));
    });
  }

  /// v = start(p), or v itself if not `first`, and N entries times their weights.
  template <int N, typename Start>
  SPARSVM_TARGET_INLINE void add_entries(const double* x, const double* const* w, bool first,
                                         Row& v, Start start) const {
    const auto pass = [&](auto from) SPARSVM_TARGET_LAMBDA {
      shape.each([&](auto p) SPARSVM_TARGET_LAMBDA {
        using V = PackOf<Row, decltype(p)>;
        V sum = from(p);
        repeat<N>([&](auto t) SPARSVM_TARGET_LAMBDA {
          sum = add_product(spread<V>(x[t]), load<V>(w[t] + Shape::width * p), sum);
        });
        v.at(p) = sum;
      });
    };
    if (first) return pass(start);
    pass([&](auto p) SPARSVM_TARGET_LAMBDA { return v.at(p); });
  }

  /// A row that the registers do not hold is passed over once for two or four entries, the first time while
  /// it is made; what is missing of the last ones counts for nothing.
  template <typename Start>
  SPARSVM_TARGET_INLINE void take_by_fours(const Sample& sample, Row& v, Start start) const {
    double x[4] = {};
    const double* w[4] = {weights.from, weights.from, weights.from, weights.from};
    int held = 0;
    bool first = true;
    for (std::int64_t e = sample.from; e < sample.end; ++e) {
      const std::int64_t row = place ? place[index[e]] : index[e];
      if (row < 0) continue;
      x[held] = static_cast<double>(values[e]);
      w[held++] = weights.at(0, row);
      if (held < 4) continue;
      add_entries<4>(x, w, first, v, start);
      first = false;
      held = x[0] = x[1] = x[2] = x[3] = 0;
    }
    if (held > 2) {
      add_entries<4>(x, w, first, v, start);
    } else if (held > 0) {
      add_entries<2>(x, w, first, v, start);
    } else if (first) {  // and perhaps there are no weights at all
      add_entries<0>(x, w, first, v, start);
    }
  }

  SPARSVM_TARGET_INLINE void add_scores(const Sample& sample, Row& v) const {
    std::int64_t e = sample.from;
    const std::int64_t end = sample.end;
    if (place) {
      for (; e < end; ++e) {
        const std::int64_t row = place[index[e]];
        if (row >= 0) add_weights(e, row, v);
      }
      return;
    }
    constexpr int packs = Row::packs;
    constexpr int turns =
        packs < 4 ? 4 / packs : 1;  // a sum waits four cycles for its last addition
    if constexpr (turns > 1) {
      if (end - e >= 2 * turns) {
        Row sum[turns] = {};
        for (; e + turns <= end; e += turns) {
          for (int t = 0; t < turns; ++t) add_weights(e + t, index[e + t], sum[t]);
        }
        repeat<packs>([&](auto p) SPARSVM_TARGET_LAMBDA {
          for (int t = 0; t < turns; ++t) v.at(p) += sum[t].at(p);
        });
      }
    }
    for (; e < end; ++e) add_weights(e, index[e], v);
  }

  /// gradient += pack p of v, or v, times the entries.
  template <typename P>
  SPARSVM_TARGET_INLINE void add_gradient(const Sample& sample, P p, Row& v) const {
    for (std::int64_t e = sample.from, end = sample.end; e < end; ++e) {
      add_pack(static_cast<double>(values[e]), index[e], p, v);
    }
  }
  SPARSVM_TARGET_INLINE void add_gradient(const Sample& sample, Row& v) const {
    for (std::int64_t e = sample.from, end = sample.end; e < end; ++e) {
      const double x = static_cast<double>(values[e]);
      const std::int64_t row = index[e];
      shape.each([&](auto p) SPARSVM_TARGET_LAMBDA { add_pack(x, row, p, v); });
    }
  }

  template <typename P>
  SPARSVM_TARGET_INLINE void add_pack(double x, std::int64_t row, P p, Row& v) const {
    using V = PackOf<Row, P>;
    double* g = gradient.at(p, row);
    store(g, add_product(spread<V>(x), v.at(p), load<V>(g)));
  }
};

template <typename Shape, typename Source>
struct Sweep {
  using Row = typename Shape::Row;
  using Set = typename Shape::Set;
  static constexpr int width = Shape::width, most = width * Shape::most_packs;

  Shape shape;
  Source source;

  /// How far from `bound` the root of the entries above it is, and which they are. What they exceed it
  /// by does not wait for the comparisons.
  SPARSVM_TARGET_INLINE Set next_root(Row& v, double mass, double bound, double& move) const {
    double excess;
    const Set above = shape.measure(v, bound, excess);
    move = (excess - mass) * shares[above.count()];
    return above;
  }

  /// theta with Σ_k (v_k − theta)₊ = mass and the entries above it, from those above zero, which mostly
  /// they are; none if that leads nowhere.
  SPARSVM_TARGET_INLINE Set find_root(Row& v, double mass, double& theta) const {
    double move;
    Set above = next_root(v, mass, 0.0, theta);
    if (shape.find_above(v, theta) == above) return above;
#pragma GCC unroll 1
    for (std::int64_t round = 0; round <= shape.K; ++round) {
      above = next_root(v, mass, theta, move);
      theta += move;
      if (shape.find_above(v, theta) == above) return above;
    }
    return {};
  }

  /// So far from the last threshold the root lacks digits: it is found from nothing.
  SPARSVM_TARGET_INLINE double start_again(const DualRows& rows, double last, std::int64_t i,
                                           Row& v) const {
    double work[most + 4];
    shape.store_row(work, v);
    for (std::int64_t k = shape.K; k < most + 4; ++k) work[k] = below_all;
    const double theta = find_move(rows, work, last, i);
    shape.each([&](auto p) SPARSVM_TARGET_LAMBDA {
      v.at(p) = load<PackOf<Row, decltype(p)>>(work + width * p);
    });
    return theta;
  }

  SPARSVM_TARGET_INLINE void run(const DualRows& rows) const {
    const DualRows a = rows;
    source.begin();
    alignas(64) double shift[most], sums[most];
    for (std::int64_t k = 0; k < most; ++k) {
      shift[k] = k < shape.K ? a.sigma * a.intercept[k] : below_all;
      sums[k] = 0.0;
    }
    std::int64_t looked = 0;
    Row v = Shape::blank(), total = {};
    for (std::int64_t i = 0, n = a.n; i < n; ++i) {
      if constexpr (Source::rests) {
        if (a.rest.distance <= a.rest.allowed[i]) continue;
      }
      const std::int64_t y = a.y[i];
      const auto sample = source.sample(i);
      const double mass = a.mass[i], last = a.threshold[i];
      const double scale = a.margin_scale ? a.sigma * a.margin_scale[i] : a.sigma;
      const double own_margin = a.even ? -scale * a.even_margin : 0.0;
      double* row = a.tilde + i * shape.K;
      const typename Shape::Own own = Shape::own(y);
      const double* margins = a.cost + y * shape.K;
      source.take_scores(sample, v, [&](auto p) SPARSVM_TARGET_LAMBDA {
        using V = PackOf<Row, decltype(p)>;
        V part = (shape.load_pack(row, p) - spread<V>(last)) + load<V>(shift + width * p);
        part = Shape::add_own(part, p, own, mass + own_margin);
        if (!a.even) part = add_product(spread<V>(scale), shape.load_pack(margins, p), part);
        return part;
      });
      if (row[y] == 0.0) {
        const double slack = shape.slack_of(v, own) - mass;
        if constexpr (Source::rests) {
          a.rest.allowed[i] = slack >= 0.0 ? slack * a.rest.tolerance[i] - a.rest.distance : -1.0;
        }
        if (slack >= 0.0) {
          ++looked;
          continue;
        }
      }
      double theta;
      Set above = find_root(v, mass, theta);
      a.threshold[i] = last + theta;
      if (above == Set{} || theta > 16.0 * mass || theta < -16.0 * mass) {
        theta = start_again(rows, last, i, v);
        above = shape.find_above(v, theta);
      }
      if (above == own.set) {  // its class has all the mass but for rounding
        shape.clear_row(row);
        continue;
      }
      shape.store_made(row, v, [&](auto p) SPARSVM_TARGET_LAMBDA {
        using V = PackOf<Row, decltype(p)>;
        return Shape::add_own(larger(v.at(p) - spread<V>(theta), V{}), p, own, -mass);
      });
      double* along = a.along ? a.along + i * shape.K : nullptr;
      if constexpr (Shape::is_long) {  // then most packs of Ỹ are zero
        Shape::each_used(above, own.set, [&](auto p) SPARSVM_TARGET_LAMBDA {
          using V = PackOf<Row, decltype(p)>;
          store(sums + width * p, load<V>(sums + width * p) + v.at(p));
          if (along) shape.add_pack(along, p, v.at(p));
          source.add_gradient(sample, p, v);
        });
      } else {
        shape.each([&](auto p) SPARSVM_TARGET_LAMBDA { total.at(p) += v.at(p); });
        if (along) shape.add_row(along, v);
        source.add_gradient(sample, v);
      }
    }
    source.end();
    shape.each([&](auto p) SPARSVM_TARGET_LAMBDA {
      if constexpr (Shape::is_long) total.at(p) = load<PackOf<Row, decltype(p)>>(sums + width * p);
    });
    shape.store_row(a.sums, total);
    if constexpr (Source::rests) *a.rest.looked = looked;
  }
};

template <typename Shape, typename T>
SPARSVM_TARGET void sweep_rows(const DualRows& rows, const SweptRows& swept, const T* values) {
  const Shape shape(rows.outputs);
  using Source = CompressedRows<Shape, T>;
  Sweep<Shape, Source>{shape, Source(shape, swept, rows.sigma, values)}.run(rows);
}

template <typename Shape>
SPARSVM_TARGET void project_rows(const DualRows& rows, const double* scores) {
  const Shape shape(rows.outputs);
  using Source = GivenScores<Shape>;
  Sweep<Shape, Source>{shape, Source{shape, scores, rows.sigma}}.run(rows);
}

}  // namespace

}  // namespace sparsvm::registers
