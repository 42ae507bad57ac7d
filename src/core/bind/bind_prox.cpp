// Python access to the proximal kernels, one call per vector (or row by row for the simplex).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "penalty/penalty_prox.hpp"
#include "prox/prox.hpp"
#include "prox/simplex_batch.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace sparsvm {
namespace {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;

void check_nonnegative(const char* name, double value) {
  if (!(value >= 0.0)) {
    throw std::invalid_argument(std::string(name) + " must be >= 0, but is " +
                                std::to_string(value) + ".");
  }
}

ProxScratch scratch(int64_t n) {
  ProxScratch work;
  work.reserve(n);
  return work;
}

Output::Vector simplex(const Vector& y, double mass) {
  check_nonnegative("mass", mass);
  Output out(length(y));
  ProxScratch work = scratch(length(y));
  project_simplex(y.data(), length(y), mass, out.data(), work);
  return out.vector();
}

void project_rows(const double* y, const double* mass, int64_t n, int64_t size, double* out) {
  constexpr int lanes = SimplexBatch::lanes;
  SimplexBatch batch(size);
  ProxScratch work = scratch(size);
  int64_t i = 0;
  for (; size <= SimplexBatch::longest && i + lanes <= n; i += lanes) {
    std::copy(mass + i, mass + i + lanes, batch.mass());
    for (int64_t e = 0; e < lanes * size; ++e) {
      batch.block()[e % size * lanes + e / size] = y[i * size + e];
    }
    batch.project();
    for (int64_t e = 0; e < lanes * size; ++e) {
      out[i * size + e] = batch.block()[e % size * lanes + e / size];
    }
  }
  for (; i < n; ++i) project_simplex(y + i * size, size, mass[i], out + i * size, work);
}

Output::Matrix simplex_rows(const Matrix& y, const Vector& mass) {
  const int64_t n = rows(y), size = columns(y);
  check_size("mass has", length(mass), "the number of rows of y is", n);
  for (int64_t i = 0; i < n; ++i) check_nonnegative("mass", mass.data()[i]);
  Output out(n * size);
  project_rows(y.data(), mass.data(), n, size, out.data());
  return out.matrix(n, size, false);
}

Output::Vector l1_ball(const Vector& v, double radius) {
  check_nonnegative("radius", radius);
  Output out(length(v));
  ProxScratch work = scratch(length(v));
  project_l1_ball(v.data(), length(v), radius, out.data(), work);
  return out.vector();
}

/// prox of step·‖ω∘·‖₂ or, with `linf`, of step·‖ω∘·‖_∞.
template <bool linf>
Output::Vector group_norm(const Vector& v, double step, const std::optional<Vector>& omega) {
  const int64_t n = length(v);
  check_nonnegative("step", step);
  if (omega) check_size("omega has", length(*omega), "v has", n);
  Output out(n);
  ProxScratch work = scratch(n);
  if constexpr (linf) {
    if (omega) {
      prox_group_linf_weighted(v.data(), omega->data(), n, step, out.data(), work);
    } else {
      prox_group_linf(v.data(), n, step, out.data(), work);
    }
  } else {
    if (omega) {
      prox_group_l2_weighted(v.data(), omega->data(), n, step, out.data());
    } else {
      prox_group_l2(v.data(), n, step, out.data());
    }
  }
  return out.vector();
}

Output::Vector hinge(const Vector& y, const Vector& margins, double mass) {
  check_size("margins has", length(margins), "y has", length(y));
  check_nonnegative("mass", mass);
  Output out(length(y));
  ProxScratch work = scratch(length(y));
  prox_hinge(y.data(), margins.data(), length(y), mass, out.data(), work);
  return out.vector();
}

std::pair<Output::Vector, double> epigraph(const Vector& y, const Vector& margins, double zeta) {
  check_size("margins has", length(margins), "y has", length(y));
  Output out(length(y));
  ProxScratch work = scratch(length(y));
  const double theta =
      project_epigraph(y.data(), margins.data(), length(y), zeta, out.data(), work);
  return {out.vector(), theta};
}

Output::Matrix penalty(const Matrix& W, double step, const std::string& kind, double l1_ratio,
                       const Input<std::int32_t, 1>& groups, int64_t n_groups, bool per_class,
                       const Vector& omega) {
  const int64_t d = rows(W), outputs = columns(W);
  check_size("groups has", length(groups), "the number of rows of W is", d);
  check_size("omega has", length(omega), "the number of rows of W is", d);
  check_nonnegative("step", step);
  Output out(d * outputs);
  std::copy(W.data(), W.data() + d * outputs, out.data());
  PenaltyProx prox(penalty_kind(kind), l1_ratio, d, outputs, groups.data(), n_groups, per_class,
                   omega.data());
  prox.apply(out.data(), step);
  return out.matrix(d, outputs, false);
}

}  // namespace

void bind_prox(nb::module_& m) {
  m.def("project_simplex", &simplex, "y"_a, "mass"_a,
        "Project y on the simplex {u >= 0, sum(u) = mass}.");
  m.def("project_simplex_rows", &simplex_rows, "y"_a, "mass"_a,
        "Project every row of y on the simplex of its own mass.");
  m.def("project_l1_ball", &l1_ball, "v"_a, "radius"_a, "Project v on {u: sum(|u|) <= radius}.");
  m.def("prox_group_l2", &group_norm<false>, "v"_a, "step"_a, "omega"_a = nb::none(),
        "Proximity operator of step * norm2(omega * w).");
  m.def("prox_group_linf", &group_norm<true>, "v"_a, "step"_a, "omega"_a = nb::none(),
        "Proximity operator of step * max(|omega * w|).");
  m.def("prox_hinge", &hinge, "y"_a, "margins"_a, "mass"_a,
        "Proximity operator of mass * max(y + margins).");
  m.def("project_epigraph", &epigraph, "y"_a, "margins"_a, "zeta"_a,
        "Project (y, zeta) on {(p, theta): max(p + margins) <= theta}; returns (p, theta).");
  m.def("prox_penalty", &penalty, "W"_a, "step"_a, "kind"_a, "l1_ratio"_a, "groups"_a, "n_groups"_a,
        "per_class"_a, "omega"_a,
        "Proximity operator of step * penalty at W of shape (features, outputs).");
}

}  // namespace sparsvm
