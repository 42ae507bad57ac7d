// Blocks of coordinates under one norm, as the solvers hand them to it. The norms are in norm_*.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace sparsvm {

// A place in the list of norms (norms.hpp). Without a norm of groups, blocks are single coordinates.
enum class GroupNorm : uint8_t { none };

// The penalty of one block, absolute ‖z‖₁ + radius N(z) + quad/2 ‖z‖², and its dual norm. Blocks of
// single coordinates have their absolute value for N, and are the only ones with a square.
struct BlockShape {
  GroupNorm norm = GroupNorm::none;
  double absolute = 0.0, radius = 1.0, quad = 0.0;

  // A block of one coordinate is an absolute value whatever the norm.
  BlockShape for_size(int64_t size) const {
    return size > 1 ? *this : BlockShape{GroupNorm::none, 0.0, absolute + radius, quad};
  }
  // Single coordinates, without a norm of groups.
  bool single() const { return norm == GroupNorm::none; }
  // Zeros inside a block may be left out of it only where its norm allows them one by one.
  bool separable() const { return absolute > 0.0; }
  // Whether N is smooth away from zero; whether the dual norm is the root of a sum of squares; whether the
  // diagonal of a block's Newton system is constant.
  bool smooth() const;
  bool sums_squares() const;
  bool shared_scaling() const;

  // Is the dual norm of g greater than theta?
  bool exceeds(const double* g, int64_t size, double theta) const;
  // The dual norm of g can exceed theta only if the sum of the dual's terms (of what is left of |g_c|
  // beyond theta * absolute) is at least this.
  double least_sum(double theta) const;
  // The dual norm of g.
  double dual_norm(const double* g, int64_t size) const;
  // That of N alone.
  double plain_dual_norm(const double* g, int64_t size) const;
  // An upper bound of the dual norm that takes no search: the norm itself without absolute values.
  double norm_bound(const double* g, int64_t size) const;
};

// One block in coordinate descent: the coordinates w[place[r]] with weights o[r]; the norm is that of
// their products.
struct GroupBlock {
  enum Mark : unsigned char { fixed, loose, tied };
  const int32_t* place;
  const double* o;
  std::size_t m;
};

// What a proximal step found; every vector has one entry per coordinate.
struct ManifoldPoint {
  enum : unsigned char { inactive, single, tied };
  struct Curved {  // δ (I - ẑẑᵀ) over the active coordinates of a block
    std::vector<int64_t> member;
    std::vector<double> direction;
    double delta;
  };
  struct Tie {  // coordinates that move together, with their signs
    std::vector<int64_t> member;
    std::vector<double> sign;
  };
  std::vector<double> plus, off, pull, delta;
  std::vector<unsigned char> state;
  std::vector<Curved> curved;
  std::vector<Tie> ties;

  void reset(std::size_t count) {
    for (auto* values : {&plus, &off, &pull, &delta}) values->assign(count, 0.0);
    state.assign(count, inactive);
    curved.clear();
    ties.clear();
  }
};

// One feature in dual coordinate ascent: its row of V, and what is known about it.
struct SdcaRow {
  const double* v;
  // size: the sum of the dual norm's terms, the largest |v| for entries; cut: where rows are clipped.
  double gain, level, size, cut;
};

// What the prox makes of such a row: a multiple of it, or its entries clipped at a level. For anything
// else there is no kernel, and the prox itself is called.
enum class RowForm { scaled, clipped, other };

// The base of a norm of which no more is known than its values, its dual norm and its prox. The proximal methods
// and `sdca` take it; the other solvers, told by PenaltyTerms.only_prox, refuse it before they come here.
struct OnlyProx {
  static constexpr bool kSmooth = false, kDualOfSquares = false;

  [[noreturn]] static void refuse() {
    throw std::logic_error("This norm has a prox and nothing else.");
  }
  template <typename Each>
  static double change(double before, double after, Each) {
    return after - before;
  }
  template <typename... Any>
  static void minimise(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static void tangent(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static void curvature(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static void kinks(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static bool cut(Any&&...) {
    refuse();
  }
  template <typename... Any>
  static void add_piece(Any&&...) {
    refuse();
  }
  struct Rows {
    static constexpr RowForm kForm = RowForm::other;
    static bool in_use(double, double) { refuse(); }
    static double factor(double, double) { refuse(); }
    static void slope(const SdcaRow&, int64_t, double*) { refuse(); }
    static double mean_slope(const SdcaRow&, int64_t) { refuse(); }
    static double squares(const SdcaRow&, int64_t) { refuse(); }
  };
  struct Cone {
    static constexpr bool kPairs = false, kCone = false, kSharedScaling = false;
    template <typename... Any>
    static void enter(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void move_to(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void scale(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void rhs(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void recover(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static double weight(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static double without_dual(Any&&...) {
      refuse();
    }
    template <typename... Any>
    static void set_zeros(Any&&...) {
      refuse();
    }
  };
};

}  // namespace sparsvm
