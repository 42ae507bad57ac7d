// Python access to what certificates need of the data beyond products.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/problems.hpp"
#include "penalty/penalty.hpp"
#include "support/mmap_vector.hpp"
#include "support/monitor.hpp"
#include "support/numbers.hpp"

namespace nb = nanobind;

namespace sparsvm {
namespace {

using Writable = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

GradientBound checked_bound(const Design& design, const Matrix& Y, double scale,
                            const Vector& error, const Vector& column_norms) {
  constexpr const char* features = "the design's number of features is";
  if (columns(Y) < 1) throw std::invalid_argument("Y has no columns; give one for each output.");
  check_size("Y has", rows(Y), "the design's number of samples is", design.n());
  check_size("error has", length(error), "the number of outputs is", columns(Y));
  check_size("column_norms has", length(column_norms), features, design.d());
  return {&design, Y.data(), scale, error.data(), column_norms.data()};
}

Output::Vector feature_norms(const Design& design, const Matrix& Y, double scale,
                             const Vector& error, const Vector& column_norms,
                             const std::string& kind, double l1_ratio, bool per_class,
                             const Vector& omega) {
  const GradientBound bound = checked_bound(design, Y, scale, error, column_norms);
  check_size("omega has", length(omega), "the design's number of features is", design.d());
  const Penalty penalty{penalty_term(kind, l1_ratio),
                        nullptr,
                        design.d(),
                        per_class,
                        omega.data(),
                        design.d(),
                        columns(Y)};
  load_blas();
  Output out(design.d());
  {
    nb::gil_scoped_release released;
    feature_dual_norms(penalty, bound, out.data());
  }
  return out.vector();
}

double largest_norm(const Design& design, const Matrix& Y, double scale, const Vector& error,
                    const Vector& column_norms, const std::string& kind, double l1_ratio,
                    const Integers& groups, int64_t n_groups, bool per_class, const Vector& omega) {
  const GradientBound bound = checked_bound(design, Y, scale, error, column_norms);
  const PenaltyArrays arrays{kind, l1_ratio, copied(groups), n_groups, per_class, omega};
  arrays.check(design.d());
  const Penalty penalty = arrays.view(design.d(), columns(Y));
  load_blas();
  nb::gil_scoped_release released;
  return largest_dual_norm(penalty, bound);
}

double value_of_penalty(const Matrix& W, const Integers& groups, const Vector& omega,
                        const std::string& kind, double l1_ratio, bool per_class) {
  check_size("groups has", length(groups), "the number of rows of W is", rows(W));
  check_size("omega has", length(omega), "the number of rows of W is", rows(W));
  return penalty_value({penalty_term(kind, l1_ratio), groups.data(), rows(W), per_class,
                        omega.data(), rows(W), columns(W)},
                       W.data());
}

// Entry (z, k): the sum of column k of the values over the samples of class z.
Output::Matrix class_sums(const Matrix& values, const Integers& y) {
  const int64_t n = rows(values), K = columns(values);
  const std::vector<int32_t> classes = copied(y);
  check_size("y has", std::ssize(classes), "the number of rows of the values is", n);
  check_numbers("y", classes, K);
  std::vector<ExactSum> sums(static_cast<std::size_t>(entries_of(K, K)));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < K; ++k)
      sums[static_cast<std::size_t>(classes[static_cast<std::size_t>(i)] * K + k)].add(
          values.data()[i * K + k]);
  Output out(K * K);
  std::transform(sums.begin(), sums.end(), out.data(), [](const ExactSum& s) { return s.value(); });
  return out.matrix(K, K, false);
}

Output::Matrix zeros(int64_t n, int64_t m) {
  return owned(std::make_unique<Zeros>(static_cast<std::size_t>(entries_of(n, m))), n, m);
}

}  // namespace

void bind_certificate(nb::module_& m) {
  nb::class_<PackedEntries>(m, "PackedEntries",
                            "A matrix by its non-zeros; see sparsvm.numerics.packed.")
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
  nb::exception<Stopped>(m, "Stopped");
  m.def("stop_after", &Monitor::stop_after, nb::arg("seconds"), nb::arg("softly"),
        "End native loops of this thread after so many seconds (infinite: never); softly lets "
        "Ctrl-C do so at once instead of raising. Returns what held before.");
  m.def("hold_stop", &Monitor::hold, nb::arg("held"),
        "Let a passed limit end no native loop that has no point; returns what held before.");
  m.def("stopping", &Monitor::stopping, "Whether native loops of this thread are to end.");
  m.def("give_back_memory", &give_back_memory,
        "Return to the system what the C library holds of freed blocks.");
  m.def("zeros", &zeros, nb::arg("n"), nb::arg("m"),
        "An (n, m) matrix of zeros; pages of a large one that are never written take no memory.");
  m.def("feature_norms", &feature_norms, nb::arg("design"), nb::arg("Y"), nb::kw_only(),
        nb::arg("scale"), nb::arg("error"), nb::arg("column_norms"), nb::arg("kind"),
        nb::arg("l1_ratio"), nb::arg("per_class"), nb::arg("omega"),
        "The dual norm of every feature of scale |X'Y| + column_norms error', 0 if it is "
        "unpenalised. Y has shape (n, outputs).");
  m.def("class_sums", &class_sums, nb::arg("values"), nb::arg("y"),
        "Sums of the values (n, K) over the samples of each class: entry (z, k) adds column k.");
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
