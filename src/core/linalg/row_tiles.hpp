// Rows of K doubles as SIMD vectors of four.
//
// Each vector begins where the one before it ends, but the last ends where the row ends, and may repeat
// entries of its neighbour: nothing beyond a row is read or written, whatever K is. Work on a tile
// loads all its vectors before it stores one, so that what is repeated is the same twice.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "support/simd.hpp"

namespace sparsvm {

// use(0), ..., use(N − 1) written out, so that arrays they index need not lie in memory.
template <int N, typename Use>
SPARSVM_INLINE void repeat(Use use) {
  [&]<int... i>(std::integer_sequence<int, i...>) SPARSVM_INLINE_LAMBDA {
    (use(std::integral_constant<int, i>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}

// P vectors from `first` on, `size` entries; of fewer than four, two or three, the only vector holds N.
template <int P, int N>
struct RowTile {
  static constexpr int vectors = P;
  int64_t first, last;
  Simd once;  // 1 where the last vector has entries that the others have not, 0 elsewhere

  SPARSVM_INLINE RowTile(int64_t from, int64_t size)
      : first(from), last(from + (N < 4 ? 0 : size - 4)) {
    // Read where it lies: made here, lane by lane, it would be waited for.
    static constexpr double lanes[] = {0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0};
    once = SPARSVM_LOAD(lanes + (N < 4 ? 7 - N : size - 4 * (P - 1) - 1));
  }

  SPARSVM_INLINE int64_t at(int p) const { return p + 1 < P ? first + 4 * p : last; }

  SPARSVM_INLINE void load(const double* row, int p, Simd& v) const {
    if constexpr (N == 4) {
      v = SPARSVM_LOAD(row + at(p));
    } else if constexpr (N == 3) {
      v = Simd{row[0], row[1], row[2], 0.0};
    } else {
      v = Simd{row[0], row[1], 0.0, 0.0};
    }
  }

  SPARSVM_INLINE void store(double* row, int p, const Simd& v) const {
    if constexpr (N == 4) {
      SPARSVM_STORE(row + at(p), v);
    } else {
      for (int l = 0; l < N; ++l) row[l] = v[l];
    }
  }

  SPARSVM_INLINE void load(const double* row, Simd (&v)[P]) const {
    repeat<P>([&](auto p) SPARSVM_INLINE_LAMBDA { load(row, p, v[p]); });
  }

  SPARSVM_INLINE void store(double* row, const Simd (&v)[P]) const {
    repeat<P>([&](auto p) SPARSVM_INLINE_LAMBDA { store(row, p, v[p]); });
  }

  // sum = the entries of the tile, each once, lane by lane.
  SPARSVM_INLINE void total(const Simd (&v)[P], Simd& sum) const {
    // Two sums by turns, since each waits for its own last one.
    Simd other = v[P - 1] * once;
    if constexpr (P > 1) {
      sum = v[0];
      repeat<P - 2>([&](auto p) SPARSVM_INLINE_LAMBDA {
        if constexpr (p % 2 == 0) {
          other += v[p + 1];
        } else {
          sum += v[p + 1];
        }
      });
      sum += other;
    } else {
      sum = other;
    }
  }
};

inline constexpr int64_t kMostInTile = 32;

// The tiles of a row that is one.
template <typename Tile>
struct OneTile {
  Tile tile;
  template <typename Use>
  SPARSVM_INLINE void each(Use use) const {
    use(tile);
  }
};

// Those of a longer row, which differ by one entry at most.
struct ManyTiles {
  int64_t entries;
  template <typename Use>
  SPARSVM_INLINE void each(Use use) const {
    const int64_t tiles = (entries + kMostInTile - 1) / kMostInTile;
    for (int64_t t = 0, k = 0; t < tiles; ++t) {
      const int64_t size = (entries - k) / (tiles - t);
      switch ((size + 3) / 4) {  // of 33 entries the first tile has 16
        case 4: use(RowTile<4, 4>(k, size)); break;
        case 5: use(RowTile<5, 4>(k, size)); break;
        case 6: use(RowTile<6, 4>(k, size)); break;
        case 7: use(RowTile<7, 4>(k, size)); break;
        default: use(RowTile<8, 4>(k, size)); break;
      }
      k += size;
    }
  }
};

// use(tiles), once, with the tiles of rows of `entries` >= least.
template <int least, typename Use>
SPARSVM_INLINE void with_tiles(int64_t entries, Use use) {
  const auto one = [&]<int P, int N>() SPARSVM_INLINE_LAMBDA {
    use(OneTile<RowTile<P, N>>{RowTile<P, N>(0, entries)});
  };
  if (entries > kMostInTile) return use(ManyTiles{entries});
  if constexpr (least <= 4) {
    switch (entries) {
      case 2: return one.template operator()<1, 2>();
      case 3: return one.template operator()<1, 3>();
      case 4: return one.template operator()<1, 4>();
      default: break;
    }
  }
  switch ((entries + 3) / 4) {
    case 2: return one.template operator()<2, 4>();
    case 3: return one.template operator()<3, 4>();
    case 4: return one.template operator()<4, 4>();
    case 5: return one.template operator()<5, 4>();
    case 6: return one.template operator()<6, 4>();
    case 7: return one.template operator()<7, 4>();
    default: return one.template operator()<8, 4>();
  }
}

// v += factor · Σ_e x_e B[index_e], the rows of B being K long.
template <typename Tile, typename T, typename Index>
SPARSVM_INLINE void add_row_product(const Tile& tile, const T* x, const Index& index, int64_t count,
                                    double factor, const double* B, int64_t K,
                                    Simd (&v)[Tile::vectors]) {
  for (int64_t e = 0; e < count; ++e) {
    const double value = factor * static_cast<double>(x[e]);
    const Simd scale = SPARSVM_SPREAD(value);
    const double* b = B + index[e] * K;
    repeat<Tile::vectors>([&](auto p) SPARSVM_INLINE_LAMBDA {
      Simd w;
      tile.load(b, p, w);
      add_product(v[p], scale, w);
    });
  }
}

// G[index_e] += x_e v for all entries, the rows of G being K long.
template <typename Tile, typename T, typename Index>
SPARSVM_INLINE void add_row_transposed(const Tile& tile, const T* x, const Index& index,
                                       int64_t count, const Simd (&v)[Tile::vectors], int64_t K,
                                       double* G) {
  for (int64_t e = 0; e < count; ++e) {
    const double value = static_cast<double>(x[e]);
    const Simd scale = SPARSVM_SPREAD(value);
    double* g = G + index[e] * K;
    Simd sum[Tile::vectors];
    tile.load(g, sum);
    repeat<Tile::vectors>([&](auto p) SPARSVM_INLINE_LAMBDA { add_product(sum[p], scale, v[p]); });
    tile.store(g, sum);
  }
}

}  // namespace sparsvm
