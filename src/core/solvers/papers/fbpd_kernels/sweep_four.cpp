#include "solvers/papers/fbpd_kernels/sweeps.hpp"

#if defined(SPARSVM_FOUR)

#define SPARSVM_TARGET SPARSVM_FOUR
#include "solvers/papers/fbpd_kernels/rows_of_four.hpp"
#include "solvers/papers/fbpd_kernels/sweep.hpp"

namespace sparsvm {

namespace registers {

namespace {

/// use<Shape>() with the shape of rows of so many classes.
template <typename Use>
SPARSVM_FOUR void with_shape(std::int64_t classes, Use use) {
  switch ((classes + 3) / 4) {
    case 1: return use.template operator()<Shape<1>>();
    case 2: return use.template operator()<Shape<2>>();
    case 3: return use.template operator()<Shape<3>>();
    case 4: return use.template operator()<Shape<4>>();
    case 5: return use.template operator()<Shape<5>>();
    case 6: return use.template operator()<Shape<6>>();
    case 7: return use.template operator()<Shape<7>>();
    case 8: return use.template operator()<Shape<8>>();
    default: return use.template operator()<Shape<0>>();
  }
}

}  // namespace

}  // namespace registers

SPARSVM_FOUR void sweep_in_four(const DualRows& rows, const SweptRows& swept) {
  registers::with_shape(rows.outputs, [&]<typename Shape>() SPARSVM_FOUR {
    swept.X.singles ? registers::sweep_rows<Shape>(rows, swept, swept.X.singles)
                    : registers::sweep_rows<Shape>(rows, swept, swept.X.doubles);
  });
}

SPARSVM_FOUR void project_in_four(const DualRows& rows, const double* scores) {
  registers::with_shape(rows.outputs, [&]<typename Shape>() SPARSVM_FOUR {
    registers::project_rows<Shape>(rows, scores);
  });
}

}  // namespace sparsvm

#endif
