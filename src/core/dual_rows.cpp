#include "dual_rows.hpp"

namespace sparsvm {

SPARSVM_WIDER void dual_rows(std::int64_t K, const DualRows& rows) {
  switch (K) {
    case 3: return detail::dual_rows_of<3>(rows);
    case 4: return detail::dual_rows_of<4>(rows);
    case 5: return detail::dual_rows_of<5>(rows);
    case 6: return detail::dual_rows_of<6>(rows);
    case 7: return detail::dual_rows_of<7>(rows);
    case 8: return detail::dual_rows_of<8>(rows);
    default: return;
  }
}

}  // namespace sparsvm
