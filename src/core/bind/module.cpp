// The native module: one bind_*.cpp per group of kernels, each adding its functions here.
#include <nanobind/nanobind.h>

namespace sparsvm {

void bind_certificate(nanobind::module_& m);
void bind_design(nanobind::module_& m);
void bind_hinge(nanobind::module_& m);
void bind_papers(nanobind::module_& m);
void bind_paths(nanobind::module_& m);
void bind_problems(nanobind::module_& m);
void bind_prox(nanobind::module_& m);
void bind_smooth(nanobind::module_& m);

}  // namespace sparsvm

NB_MODULE(_core, m) {
  m.doc() = "C++ kernels of sparsvm.";
  sparsvm::bind_design(m);
  sparsvm::bind_problems(m);
  sparsvm::bind_smooth(m);
  sparsvm::bind_certificate(m);
  sparsvm::bind_hinge(m);
  sparsvm::bind_prox(m);
  sparsvm::bind_papers(m);
  sparsvm::bind_paths(m);
}
