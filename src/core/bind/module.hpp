// Declarations of the binding functions that module.cpp calls, one per bind_*.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace sparsvm {

void bind_certificate(nanobind::module_& m);
void bind_design(nanobind::module_& m);
void bind_interior_point(nanobind::module_& m);
void bind_multiplier_newton(nanobind::module_& m);
void bind_block_newton(nanobind::module_& m);
void bind_fbpd(nanobind::module_& m);
void bind_hsdm(nanobind::module_& m);
void bind_problems(nanobind::module_& m);
void bind_prox(nanobind::module_& m);
void bind_sdca(nanobind::module_& m);
void bind_smooth(nanobind::module_& m);

}  // namespace sparsvm
