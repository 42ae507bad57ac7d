// Python's view of the design matrix: every size and index is checked here, none further down.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bind/arrays.hpp"
#include "design/design.hpp"
#include "design/products.hpp"
#include "linalg/blas.hpp"

namespace sparsvm {

namespace {

using Features = Input<int32_t, 1>;
using Samples = Input<int64_t, 1>;

// A copy of the indices, each of which lies in 0 .. limit - 1.
template <typename Index>
std::vector<Index> checked(const Input<Index, 1>& indices, int64_t limit, const char* what,
                           const char* of) {
  std::vector<Index> list = copied(indices);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0 || list[i] >= limit) {
      throw std::out_of_range(std::string(what) + " " + std::to_string(list[i]) + " at position " +
                              std::to_string(i) + " is outside the " + std::to_string(limit) + " " +
                              of + " of the design.");
    }
  }
  return list;
}

std::vector<int32_t> checked_features(const Design& X, const Features& features) {
  return checked(features, X.d(), "Feature index", "features");
}

void check_increasing(const std::vector<int32_t>& features) {
  for (std::size_t k = 1; k < features.size(); ++k) {
    const int32_t before = features[k - 1], here = features[k];
    if (here > before) continue;
    throw std::invalid_argument("Feature " + std::to_string(here) + " is listed after " +
                                std::to_string(before) + "; the features must increase.");
  }
}

void check_interval(int64_t first, int64_t last, int64_t count, const char* what) {
  if (first >= 0 && last >= first && last <= count) return;
  throw std::invalid_argument("The range " + std::to_string(first) + " ... " +
                              std::to_string(last) + " does not lie within the " +
                              std::to_string(count) + " " + what + " of the design.");
}

RowIndex take_rows(const std::optional<Samples>& rows, int64_t stored) {
  if (!rows) return std::nullopt;
  std::vector<int64_t> list = checked(*rows, stored, "Row index", "stored rows");
  bool identity = std::ssize(list) == stored;
  for (int64_t i = 0; identity && i < stored; ++i)
    identity = list[static_cast<std::size_t>(i)] == i;
  if (identity) return std::nullopt;
  return list;
}

template <typename T, typename Order>
using Values = nb::ndarray<const T, nb::ndim<2>, Order, nb::device::cpu>;

template <typename T, bool ColumnMajor, typename Order>
std::unique_ptr<Design> make_dense(const Values<T, Order>& X, const std::optional<Samples>& rows) {
  const auto n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
  check_countable(d, "features");
  return dense_design(X.data(), ColumnMajor, n, d, take_rows(rows, n));
}

// True if each major's indices strictly increase; throws where they would be read out of bounds.
bool increasing_within(const Input<int32_t, 1>& indices, const std::vector<int64_t>& indptr,
                       int64_t minors) {
  const int64_t majors = std::ssize(indptr) - 1, stored = length(indices);
  if (majors < 0) throw std::invalid_argument("indptr is empty; it needs at least one entry.");
  const int64_t* start = indptr.data();
  const int32_t* minor = indices.data();
  if (start[0] != 0 || start[majors] > stored) {
    throw std::invalid_argument("indptr runs from " + std::to_string(start[0]) + " to " +
                                std::to_string(start[majors]) + " but there are " +
                                std::to_string(stored) +
                                " stored entries; it must start at 0 and "
                                "not run past them.");
  }
  for (int64_t i = 0; i < majors; ++i) {
    if (start[i + 1] < start[i]) {
      throw std::invalid_argument("indptr decreases from " + std::to_string(start[i]) + " to " +
                                  std::to_string(start[i + 1]) + " at position " +
                                  std::to_string(i) + "; the sparse matrix is malformed.");
    }
  }
  bool increasing = true;
  for (int64_t i = 0; i < majors; ++i) {
    int32_t last = -1;
    for (int64_t e = start[i]; e < start[i + 1]; ++e) {
      if (minor[e] < 0 || minor[e] >= minors) {
        throw std::invalid_argument("The sparse index " + std::to_string(minor[e]) +
                                    " lies outside the " + std::to_string(minors) +
                                    " positions of its axis; the sparse matrix is malformed.");
      }
      increasing = increasing && minor[e] > last;
      last = minor[e];
    }
  }
  return increasing;
}

bool is_canonical(const Input<int32_t, 1>& indices, const Input<int64_t, 1>& indptr,
                  int64_t minors) {
  return increasing_within(indices, copied(indptr), minors);
}

template <typename T>
std::unique_ptr<Design> make_sparse(const Input<T, 1>& data, const Input<int32_t, 1>& indices,
                                    const Input<int64_t, 1>& indptr, int64_t n, int64_t d,
                                    bool by_columns, const std::optional<Samples>& rows) {
  check_countable(d, "features");
  check_countable(n, "samples");
  std::vector<int64_t> starts = copied(indptr);
  check_size("indptr has", std::ssize(starts), by_columns ? "features + 1 is" : "rows + 1 is",
             (by_columns ? d : n) + 1);
  check_size("data has", length(data), "indices has", length(indices));
  if (!increasing_within(indices, starts, by_columns ? n : d)) {
    throw std::invalid_argument(
        "The sparse entries are not sorted or not distinct; call sum_duplicates() first.");
  }
  if (rows) check_countable(length(*rows), "samples");
  return sparse_design(data.data(), indices.data(), std::move(starts), by_columns, n, d,
                       take_rows(rows, n));
}

const char* layout_name(const Design& X) {
  switch (X.layout()) {
    case Layout::dense_rows: return "dense_rows";
    case Layout::dense_cols: return "dense_cols";
    case Layout::csr: return "csr";
    case Layout::csc: return "csc";
  }
  throw std::logic_error("A design of unknown layout.");
}

void bind_factories(nb::class_<Design>& design) {
  const char* doc =
      "View a 2-D array in C or Fortran order, float32 or float64, through a row index.";
  const auto dense = [&](auto factory) {
    design.def_static("dense", factory, nb::arg("X").noconvert(), nb::arg("rows") = nb::none(),
                      nb::keep_alive<0, 1>(), doc);
  };
  dense(&make_dense<double, false, nb::c_contig>);
  dense(&make_dense<float, false, nb::c_contig>);
  dense(&make_dense<double, true, nb::f_contig>);
  dense(&make_dense<float, true, nb::f_contig>);
  const auto sparse = [&](auto factory) {
    design.def_static("sparse", factory, nb::arg("data").noconvert(),
                      nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(), nb::arg("n"),
                      nb::arg("d"), nb::arg("by_columns"), nb::arg("rows") = nb::none(),
                      nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
                      "View CSR (or CSC, by_columns) arrays: int32 indices, int64 indptr.");
  };
  sparse(&make_sparse<double>);
  sparse(&make_sparse<float>);
}

void bind_products(nb::class_<Design>& design) {
  design.def("gather_columns", [](const Design& X, const Features& features) {
    const std::vector<int32_t> listed = checked_features(X, features);
    return computed(X.n(), std::ssize(listed), true,
                    [&](double* out) { X.gather_columns(listed.data(), std::ssize(listed), out); });
  }, nb::arg("features"), "X[:, features] as an (n, m) array in Fortran order.");

  design.def("scores", [](const Design& X, const Matrix& W) {
    check_size("W has", rows(W), "the design's number of features is", X.d());
    return computed(X.n(), columns(W), false,
                    [&](double* out) { X.scores(W.data(), columns(W), out); });
  }, nb::arg("W"), "X @ W, W of shape (d, K).");

  design.def("scores_subset", [](const Design& X, const Features& features, const Matrix& W) {
    const std::vector<int32_t> listed = checked_features(X, features);
    check_size("W has", rows(W), "the number of listed features is", std::ssize(listed));
    return computed(X.n(), columns(W), false, [&](double* out) {
      X.scores_subset(listed.data(), std::ssize(listed), W.data(), columns(W), out);
    });
  }, nb::arg("features"), nb::arg("W"), "X[:, features] @ W, W of shape (m, K).");

  design.def(
      "scores_range",
      [](const Design& X, int64_t first, int64_t last, const Features& features, const Matrix& W) {
    check_interval(first, last, X.n(), "samples");
    const std::vector<int32_t> listed = checked_features(X, features);
    check_increasing(listed);
    check_size("W has", rows(W), "the number of listed features is", std::ssize(listed));
    return computed(last - first, columns(W), false, [&](double* out) {
      X.scores_range(first, last, listed.data(), std::ssize(listed), W.data(), columns(W), out);
    });
  }, nb::arg("first"), nb::arg("last"), nb::arg("features"), nb::arg("W"),
      "X[first:last, features] @ W, the features increasing, W of shape (m, K).");

  design.def("transposed", [](const Design& X, const Matrix& Y) {
    check_size("Y has", rows(Y), "the design's number of samples is", X.n());
    return computed(X.d(), columns(Y), false,
                    [&](double* out) { X.transposed(Y.data(), columns(Y), out); });
  }, nb::arg("Y"), "X.T @ Y, Y of shape (n, K).");
}

void bind_summaries(nb::class_<Design>& design) {
  design.def("column_stats",
             [](const Design& X, const std::optional<Vector>& mass) {
    if (mass) check_size("mass has", length(*mass), "the design's number of samples is", X.n());
    Output mean(X.d()), variance(X.d()), norm2(X.d()), maxabs(X.d());
    {
      nb::gil_scoped_release released;
      X.column_stats(mass ? mass->data() : nullptr, mean.data(), variance.data(), norm2.data(),
                     maxabs.data());
    }
    return std::make_tuple(mean.vector(), variance.vector(), norm2.vector(), maxabs.vector());
  }, nb::arg("mass") = nb::none(),
             "Per feature: mean and variance weighted by mass, Euclidean norm, largest magnitude.");

  design.def("column_norms", [](const Design& X) {
    Output norm2(X.d());
    {
      nb::gil_scoped_release released;
      X.column_norms(norm2.data());
    }
    return norm2.vector();
  }, "The Euclidean norm of every feature.");

  design.def("abs_scores", [](const Design& X, const Vector& w) {
    check_size("w has", length(w), "the design's number of features is", X.d());
    Output out(X.n());
    {
      nb::gil_scoped_release released;
      X.abs_scores(w.data(), out.data());
    }
    return out.vector();
  }, nb::arg("w"), "|X| @ w.");

  design.def("largest_weights",
             [](const Design& X, const Vector& w) {
    check_size("w has", length(w), "the design's number of features is", X.d());
    Output out(X.n());
    {
      nb::gil_scoped_release released;
      X.largest_weights(w.data(), out.data());
    }
    return out.vector();
  }, nb::arg("w"),
             "For every sample the largest w >= 0 of the features it has; dense ones have all.");
}

}  // namespace

void bind_design(nb::module_& m) {
  nb::class_<Design> design(m, "Design",
                            "A read-only view of a design matrix through a row index; see "
                            "sparsvm.data.design.make_design.");
  bind_factories(design);
  bind_products(design);
  bind_summaries(design);
  design.def_prop_ro("n", &Design::n, "Number of samples, after the row index.");
  design.def_prop_ro("d", &Design::d, "Number of features.");
  design.def_prop_ro("layout", &layout_name, "dense_rows, dense_cols, csr or csc.");
  design.def_prop_ro("is_sparse", &Design::sparse);
  m.def("is_canonical", &is_canonical, nb::arg("indices").noconvert(),
        nb::arg("indptr").noconvert(), nb::arg("minors"),
        "Whether compressed indices strictly increase; a ValueError if they are out of bounds.");
}

}  // namespace sparsvm
