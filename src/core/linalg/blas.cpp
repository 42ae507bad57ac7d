// The one place where the numerical rooms meet Python: scipy's BLAS is found through its modules.
#include "linalg/blas.hpp"

#include <nanobind/nanobind.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

namespace sparsvm {

namespace nb = nanobind;

namespace {

template <typename Function>
void take_pointer(nb::handle table, const char* module, const char* name, Function*& target) {
  nb::object capsule = nb::borrow(table[name]);
  // Cython names the capsule after the C signature and demands the same name back. A build of scipy
  // with 64-bit sizes spells another integer type there and must not be called through int*.
  const char* signature = PyCapsule_GetName(capsule.ptr());
  if (!signature) throw nb::python_error();
  if (!std::strstr(signature, ", int *")) {
    throw std::runtime_error("scipy's " + std::string(module) + "." + name + " takes (" +
                             signature +
                             ") but sparsvm calls it with 32-bit int sizes; install a "
                             "scipy built with the usual (LP64) BLAS interface.");
  }
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), signature);
  if (!pointer) throw nb::python_error();
  target = reinterpret_cast<Function*>(pointer);
}

}  // namespace

void load_blas() {
  if (detail::resolved_blas.load(std::memory_order_acquire)) return;
  nb::gil_scoped_acquire gil;
  auto found = std::make_unique<Blas>();
  const char* blas_module = "scipy.linalg.cython_blas";
  nb::object table = nb::module_::import_(blas_module).attr("__pyx_capi__");
  take_pointer(table, blas_module, "dgemm", found->dgemm);
  take_pointer(table, blas_module, "sgemm", found->sgemm);
  take_pointer(table, blas_module, "dsyrk", found->dsyrk);
  take_pointer(table, blas_module, "ssyrk", found->ssyrk);
  take_pointer(table, blas_module, "dgemv", found->dgemv);
  take_pointer(table, blas_module, "dsymv", found->dsymv);
  take_pointer(table, blas_module, "dtrsm", found->dtrsm);
  take_pointer(table, blas_module, "dtrsv", found->dtrsv);
  const char* lapack_module = "scipy.linalg.cython_lapack";
  table = nb::module_::import_(lapack_module).attr("__pyx_capi__");
  take_pointer(table, lapack_module, "dpotrf", found->dpotrf);
  take_pointer(table, lapack_module, "dpotri", found->dpotri);
  take_pointer(table, lapack_module, "dpotrs", found->dpotrs);
  // An import may let another thread run and resolve first; the loser's copy is dropped. The
  // winner's lives as long as the process, like the library it points into.
  const Blas* none = nullptr;
  if (detail::resolved_blas.compare_exchange_strong(none, found.get())) (void)found.release();
}

}  // namespace sparsvm
