// Python access to the proximal kernels, which sparsvm.prox documents. Vectors are the rows of a
// matrix, each with a parameter of its own.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/problems.hpp"
#include "penalty/penalty.hpp"
#include "prox/prox.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace sparsvm {
namespace {

// Throws unless there is one finite parameter, not negative, for each row.
void check_parameter(const char* name, const Vector& parameter, const Matrix& V) {
  check_size((std::string(name) + " has").c_str(), length(parameter), "the number of rows is",
             rows(V));
  check_values(name, parameter, kNotNegative);
}

// kernel(i, row, out, work) for every row, with the GIL released.
template <typename Kernel>
Output::Matrix by_rows(const Matrix& V, Kernel kernel) {
  const int64_t n = rows(V), size = columns(V);
  return computed(n, size, false, [&](double* out) {
    ProxScratch work;
    work.reserve(size);
    for (int64_t i = 0; i < n; ++i) kernel(i, V.data() + i * size, out + i * size, work);
  });
}

Output::Matrix simplex(const Matrix& Y, const Vector& mass) {
  check_parameter("mass", mass, Y);
  return computed(rows(Y), columns(Y), false, [&](double* out) {
    project_simplex_rows(Y.data(), mass.data(), rows(Y), columns(Y), out);
  });
}

Output::Matrix l1_ball(const Matrix& V, const Vector& radius) {
  check_parameter("radius", radius, V);
  return by_rows(V, [&](int64_t i, const double* v, double* out, ProxScratch& work) {
    project_l1_ball(v, columns(V), radius.data()[i], out, work);
  });
}

Output::Matrix group_l2(const Matrix& V, const Vector& step, const std::optional<Matrix>& omega) {
  check_parameter("step", step, V);
  if (omega) {
    check_shape("weights", *omega, rows(V), columns(V));
    check_values("weights", *omega, kNotNegative);
  }
  return by_rows(V, [&](int64_t i, const double* v, double* out, ProxScratch&) {
    const int64_t size = columns(V);
    if (omega) {
      prox_group_l2_weighted(v, omega->data() + i * size, size, step.data()[i], out);
    } else {
      prox_group_l2(v, size, step.data()[i], out);
    }
  });
}

Output::Matrix group_linf(const Matrix& V, const Vector& step, const std::optional<Matrix>& omega) {
  check_parameter("step", step, V);
  if (omega) {
    check_shape("weights", *omega, rows(V), columns(V));
    check_values("weights", *omega, kNotNegative);
  }
  return by_rows(V, [&](int64_t i, const double* v, double* out, ProxScratch& work) {
    const int64_t size = columns(V);
    if (omega) {
      prox_group_linf_weighted(v, omega->data() + i * size, size, step.data()[i], out, work);
    } else {
      prox_group_linf(v, size, step.data()[i], out, work);
    }
  });
}

Output::Matrix hinge(const Matrix& Y, const Matrix& margins, const Vector& mass) {
  check_shape("margins", margins, rows(Y), columns(Y));
  check_parameter("mass", mass, Y);
  return by_rows(Y, [&](int64_t i, const double* y, double* out, ProxScratch& work) {
    const int64_t size = columns(Y);
    prox_hinge(y, margins.data() + i * size, size, mass.data()[i], out, work);
  });
}

std::pair<Output::Matrix, Output::Vector> epigraph(const Matrix& Y, const Matrix& margins,
                                                   const Vector& zeta) {
  check_shape("margins", margins, rows(Y), columns(Y));
  check_size("zeta has", length(zeta), "the number of rows is", rows(Y));
  Output theta(rows(Y));
  std::copy(zeta.data(), zeta.data() + rows(Y), theta.data());  // which vectors of no entries keep
  Output::Matrix P = by_rows(Y, [&](int64_t i, const double* y, double* out, ProxScratch& work) {
    const int64_t size = columns(Y);
    theta.data()[i] =
        project_epigraph(y, margins.data() + i * size, size, zeta.data()[i], out, work);
  });
  return {std::move(P), theta.vector()};
}

Output::Matrix penalty(const Matrix& W, double step, const std::string& kind, double l1_ratio,
                       const Integers& groups, int64_t n_groups, bool per_class,
                       const Vector& omega) {
  const int64_t d = rows(W), outputs = columns(W);
  const PenaltyArrays arrays{kind, l1_ratio, copied(groups), n_groups, per_class, omega};
  arrays.check(d);
  check_value("step", step, kNotNegative);
  PenaltyProx prox(arrays.view(d, outputs));
  return computed(d, outputs, false, [&](double* out) {
    std::copy(W.data(), W.data() + d * outputs, out);
    prox.apply(out, step);
  });
}

}  // namespace

void bind_prox(nb::module_& m) {
  m.def("project_simplex", &simplex, "Y"_a, "mass"_a,
        "Project every row of Y on the simplex of its own mass.");
  m.def("project_l1_ball", &l1_ball, "V"_a, "radius"_a,
        "Project every row of V on the l1 ball of its own radius.");
  m.def("prox_group_l2", &group_l2, "V"_a, "step"_a, "weights"_a.none(),
        "Proximal operator of step * norm2(weights * v) for every row.");
  m.def("prox_group_linf", &group_linf, "V"_a, "step"_a, "weights"_a.none(),
        "Proximal operator of step * max(|weights * v|) for every row.");
  m.def("prox_hinge", &hinge, "Y"_a, "margins"_a, "mass"_a,
        "Proximal operator of mass * max(y + margins) for every row.");
  m.def("project_epigraph", &epigraph, "Y"_a, "margins"_a, "zeta"_a,
        "Project (y, zeta) on {(p, theta): max(p + margins) <= theta} for every row.");
  m.def("prox_penalty", &penalty, "W"_a, "step"_a, nb::kw_only(), "kind"_a, "l1_ratio"_a,
        "groups"_a, "n_groups"_a, "per_class"_a, "omega"_a,
        "Proximal operator of step * penalty at W of shape (features, outputs).");
}

}  // namespace sparsvm
