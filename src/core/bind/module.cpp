// The native module: one bind_*.cpp per group of kernels, each adding its functions here.
#include "bind/module.hpp"

#include <nanobind/nanobind.h>

NB_MODULE(_core, m) {
  m.doc() = "C++ kernels of sparsvm.";
  sparsvm::bind_design(m);
  sparsvm::bind_problems(m);
  sparsvm::bind_ranking(m);
  sparsvm::bind_certificate(m);
  sparsvm::bind_hinge(m);
  sparsvm::bind_prox(m);
  sparsvm::bind_papers(m);
  sparsvm::bind_block_newton(m);
}
