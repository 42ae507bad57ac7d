#include "solvers/papers/fbpd_kernels/sweeps.hpp"

#if defined(SPARSVM_EIGHT)

#define SPARSVM_TARGET SPARSVM_EIGHT
#include "solvers/papers/fbpd_kernels/rows_of_eight.hpp"
#include "solvers/papers/fbpd_kernels/sweep.hpp"

namespace sparsvm {

namespace registers {

namespace {

template <typename T>
SPARSVM_EIGHT void all_rows(const DualRows& a, const SweptRows& s, const T* values) {
  switch ((a.outputs + 3) / 4) {
    case 1: return sweep_rows<Shape<0, true>>(a, s, values);
    case 2: return sweep_rows<Shape<1, false>>(a, s, values);
    case 3: return sweep_rows<Shape<1, true>>(a, s, values);
    case 4: return sweep_rows<Shape<2, false>>(a, s, values);
    case 5: return sweep_rows<Shape<2, true>>(a, s, values);
    case 6: return sweep_rows<Shape<3, false>>(a, s, values);
    case 7: return sweep_rows<Shape<3, true>>(a, s, values);
    default: break;
  }
  switch ((a.outputs + 7) / 8) {
    case 4: return sweep_rows<Shape<4, false>>(a, s, values);
    case 5: return sweep_rows<Shape<5, false>>(a, s, values);
    case 6: return sweep_rows<Shape<6, false>>(a, s, values);
    case 7: return sweep_rows<Shape<7, false>>(a, s, values);
    case 8: return sweep_rows<Shape<8, false>>(a, s, values);
    case 9: return sweep_rows<Shape<9, false>>(a, s, values);
    case 10: return sweep_rows<Shape<10, false>>(a, s, values);
    case 11: return sweep_rows<Shape<11, false>>(a, s, values);
    case 12: return sweep_rows<Shape<12, false>>(a, s, values);
    case 13: return sweep_rows<Shape<13, false>>(a, s, values);
    case 14: return sweep_rows<Shape<14, false>>(a, s, values);
    case 15: return sweep_rows<Shape<15, false>>(a, s, values);
    default: return sweep_rows<Shape<16, false>>(a, s, values);
  }
}

}  // namespace

}  // namespace registers

SPARSVM_EIGHT void sweep_in_eight(const DualRows& rows, const SweptRows& swept) {
  swept.X.singles ? registers::all_rows(rows, swept, swept.X.singles)
                  : registers::all_rows(rows, swept, swept.X.doubles);
}

}  // namespace sparsvm

#endif
