// Python access to what certificates need of the data beyond products.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/module.hpp"
#include "design/design_sparse.hpp"
#include "design/packed_entries.hpp"
#include "penalty/feature_norms.hpp"
#include "penalty/largest_dual_norm.hpp"
#include "penalty/penalty_kind.hpp"
#include "penalty/penalty_layout.hpp"
#include "penalty/penalty_value.hpp"
#include "support/exact_sum.hpp"
#include "support/mmap_vector.hpp"

namespace nb = nanobind;

namespace sparsvm {
namespace {

using Vector = Input<double, 1>;
using Matrix = Input<double, 2>;
using Writable = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr const char* kFeatures = "the design's number of features is";

void check_sizes(const Design& design, const Matrix& Y, const Vector& error,
                 const Vector& column_norms, const Vector& omega) {
  check_size("Y has", rows(Y), "the design's number of samples is", design.n());
  check_size("error has", length(error), "the number of outputs is", columns(Y));
  check_size("column_norms has", length(column_norms), kFeatures, design.d());
  check_size("omega has", length(omega), kFeatures, design.d());
}

Output::Vector feature_norms(const Design& design, const Matrix& Y, double scale,
                             const Vector& error, const Vector& column_norms,
                             const std::string& kind, double l1_ratio, bool per_class,
                             const Vector& omega) {
  check_sizes(design, Y, error, column_norms, omega);
  const PenaltyKind which = penalty_kind(kind);
  const FeatureNorms norms{&design, PenaltyLayout::make_shape(which, l1_ratio),
                           which != PenaltyKind::l1 && !per_class && columns(Y) > 1, omega.data(),
                           column_norms.data()};
  Output out(design.d());
  {
    nb::gil_scoped_release released;
    norms.find(Y.data(), columns(Y), scale, error.data(), out.data());
  }
  return out.vector();
}

double largest_norm(const Design& design, const Matrix& Y, double scale, const Vector& error,
                    const Vector& column_norms, const std::string& kind, double l1_ratio,
                    const Input<int32_t, 1>& groups, int64_t n_groups, bool per_class,
                    const Vector& omega) {
  check_sizes(design, Y, error, column_norms, omega);
  check_size("groups has", length(groups), kFeatures, design.d());
  for (int64_t j = 0; j < length(groups); ++j)
    if (groups.data()[j] < 0 || groups.data()[j] >= n_groups)
      throw std::invalid_argument("groups[" + std::to_string(j) + "] is " +
                                  std::to_string(groups.data()[j]) + " but there are " +
                                  std::to_string(n_groups) + " groups.");
  load_blas();
  nb::gil_scoped_release released;
  const PenaltyLayout layout(penalty_kind(kind), l1_ratio, groups.data(), n_groups, per_class,
                             omega.data(), design.d(), columns(Y));
  return largest_dual_norm(design, layout, Y.data(), columns(Y), scale, error.data(),
                           column_norms.data());
}

double value_of_penalty(const Matrix& W, const Input<int32_t, 1>& groups, const Vector& omega,
                        const std::string& kind, double l1_ratio, bool per_class) {
  check_size("groups has", length(groups), "the number of rows of W is", rows(W));
  check_size("omega has", length(omega), "the number of rows of W is", rows(W));
  return PenaltyValue{penalty_kind(kind), l1_ratio,      per_class,   W.data(), rows(W),
                      columns(W),         groups.data(), omega.data()}
      .find();
}

// Entry (z, k): the sum of column k of the flows over the samples of class z.
Output::Matrix class_flows(const Matrix& flows, const Input<int32_t, 1>& y) {
  const int64_t n = rows(flows), K = columns(flows);
  check_size("y has", length(y), "the number of rows of the flows is", n);
  check_labels(y, K);
  std::vector<ExactSum> sums(static_cast<std::size_t>(K * K));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < K; ++k)
      sums[static_cast<std::size_t>(y.data()[i] * K + k)].add(flows.data()[i * K + k]);
  Output out(K * K);
  std::transform(sums.begin(), sums.end(), out.data(), [](const ExactSum& s) { return s.value(); });
  return out.matrix(K, K, false);
}

Output::Matrix zeros(int64_t n, int64_t m) {
  if (n < 0 || m < 0) {
    throw std::invalid_argument("A matrix cannot have the shape (" + std::to_string(n) + ", " +
                                std::to_string(m) + ").");
  }
  return owned(std::make_unique<Zeros>(static_cast<std::size_t>(n * m)), n, m);
}

}  // namespace

void bind_certificate(nb::module_& m) {
  nb::class_<PackedEntries>(m, "PackedEntries", "A matrix at rest; see sparsvm.numerics.packed.")
      .def("__init__",
           [](PackedEntries* self, const Matrix& all) {
    new (self) PackedEntries(all.data(), all.size());
  }, nb::arg("matrix"))
      .def("unpack",
           [](const PackedEntries& self, Writable out) {
    check_size("out has", static_cast<int64_t>(out.size()), "the number of entries is",
               static_cast<int64_t>(self.size()));
    self.unpack(out.data());
  }, nb::arg("out").noconvert(), "Write the matrix to an array of its size.")
      .def_prop_ro("bytes", &PackedEntries::bytes, "Memory of the entries.");
  m.def("give_back_memory", &give_back_memory,
        "Return to the system what the C library holds of freed blocks.");
  m.def("zeros", &zeros, nb::arg("n"), nb::arg("m"),
        "An (n, m) matrix of zeros; pages of a large one that are never written take no memory.");
  m.def("feature_norms", &feature_norms, nb::arg("design"), nb::arg("Y"), nb::kw_only(),
        nb::arg("scale"), nb::arg("error"), nb::arg("column_norms"), nb::arg("kind"),
        nb::arg("l1_ratio"), nb::arg("per_class"), nb::arg("omega"),
        "The dual norm of each feature of scale |X'Y| + column_norms error', features being groups "
        "by themselves; 0 for unpenalised ones. Y has shape (n, outputs).");
  m.def("class_flows", &class_flows, nb::arg("flows"), nb::arg("y"),
        "Sums of the rows of an (n, K) matrix over the samples of each class, shape (K, K).");
  m.def("penalty_value", &value_of_penalty, nb::arg("W"), nb::arg("groups"), nb::arg("omega"),
        nb::kw_only(), nb::arg("kind"), nb::arg("l1_ratio"), nb::arg("per_class"),
        "The convex penalty of weights W (m, outputs) of features with these groups and factors.");
  m.def("largest_dual_norm", &largest_norm, nb::arg("design"), nb::arg("Y"), nb::kw_only(),
        nb::arg("scale"), nb::arg("error"), nb::arg("column_norms"), nb::arg("kind"),
        nb::arg("l1_ratio"), nb::arg("groups"), nb::arg("n_groups"), nb::arg("per_class"),
        nb::arg("omega"),
        "The dual norm of scale |X'Y| + column_norms error' under a group norm, unpenalised "
        "features left out. Y has shape (n, outputs).");
}

}  // namespace sparsvm
