#include "dual_rows.hpp"

namespace sparsvm {

SPARSVM_CLONED void dual_rows(const DualRows& rows) {
  switch (rows.outputs) {
    case 1: return detail::dual_clip(rows);
    case 3: return detail::dual_rows_of<3>(rows);
    case 4: return detail::dual_rows_of<4>(rows);
    case 5: return detail::dual_rows_of<5>(rows);
    case 6: return detail::dual_rows_of<6>(rows);
    case 7: return detail::dual_rows_of<7>(rows);
    case 8: return detail::dual_rows_of<8>(rows);
    case 9: return detail::dual_rows_of<9>(rows);
    case 10: return detail::dual_rows_of<10>(rows);
    default: return detail::long_rows(rows);
  }
}

}  // namespace sparsvm
