#include "dual_rows.hpp"

namespace sparsvm {

SPARSVM_WIDER void dual_rows(std::int64_t outputs, const DualRows& rows) {
  switch (outputs) {
    case 1: return detail::dual_clip(rows);
    case 3: return detail::dual_rows_of<3>(rows);
    case 4: return detail::dual_rows_of<4>(rows);
    case 5: return detail::dual_rows_of<5>(rows);
    case 6: return detail::dual_rows_of<6>(rows);
    case 7: return detail::dual_rows_of<7>(rows);
    case 8: return detail::dual_rows_of<8>(rows);
    case 9: return detail::dual_rows_of<9>(rows);
    case 10: return detail::dual_rows_of<10>(rows);
    case 11: return detail::dual_rows_of<11>(rows);
    case 12: return detail::dual_rows_of<12>(rows);
    case 13: return detail::dual_rows_of<13>(rows);
    case 14: return detail::dual_rows_of<14>(rows);
    case 15: return detail::dual_rows_of<15>(rows);
    case 16: return detail::dual_rows_of<16>(rows);
    default: return;
  }
}

}  // namespace sparsvm
