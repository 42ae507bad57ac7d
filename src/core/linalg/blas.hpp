// BLAS and LAPACK from scipy's own library.
//
// scipy exports its BLAS as function pointers in `__pyx_capi__` capsules, so nothing is linked and
// nothing vendored. They are resolved on first use and never at module initialisation: importing
// scipy there breaks stub generation under build isolation, where scipy is absent.
//
// Everything is column-major (Fortran), double or float; sizes are int, which is what cython_blas takes.
// Sizes of zero are legal: leading dimensions are raised to the one that the reference BLAS
// demands.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

namespace sparsvm {

// Pointers to the Fortran routines; every argument is passed by address.
struct Blas {
  void (*dgemm)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*,
                double*, int*);
  void (*sgemm)(char*, char*, int*, int*, int*, float*, float*, int*, float*, int*, float*, float*,
                int*);
  void (*ssyrk)(char*, char*, int*, int*, float*, float*, int*, float*, float*, int*);
  void (*dsyrk)(char*, char*, int*, int*, double*, double*, int*, double*, double*, int*);
  void (*dgemv)(char*, int*, int*, double*, double*, int*, double*, int*, double*, double*, int*);
  void (*dsymv)(char*, int*, double*, double*, int*, double*, int*, double*, double*, int*);
  void (*dtrsm)(char*, char*, char*, char*, int*, int*, double*, double*, int*, double*, int*);
  void (*dtrsv)(char*, char*, char*, int*, double*, int*, double*, int*);
  void (*dpotrf)(char*, int*, double*, int*, int*);
  void (*dpotri)(char*, int*, double*, int*, int*);
  void (*dpotrs)(char*, int*, int*, double*, int*, double*, int*, int*);
};

namespace detail {

inline std::atomic<const Blas*> resolved_blas{nullptr};

}  // namespace detail

// Resolve the pointers; takes the GIL if the caller does not hold it. Idempotent.
void load_blas();

// The resolved table. Bindings call load_blas() before they release the GIL.
inline const Blas& blas() {
  const Blas* table = detail::resolved_blas.load(std::memory_order_acquire);
  if (!table) {
    load_blas();
    table = detail::resolved_blas.load(std::memory_order_acquire);
  }
  return *table;
}

namespace detail {
// The Fortran interfaces carry no const; none of the routines below writes to these arguments.
inline double* unconst(const double* pointer) { return const_cast<double*>(pointer); }
inline float* unconst(const float* pointer) { return const_cast<float*>(pointer); }
inline int leading(int ld) { return std::max(1, ld); }
}  // namespace detail

// C = alpha op(A) op(B) + beta C, with C of size m x n and k the inner size.
inline void gemm(char ta, char tb, int m, int n, int k, double alpha, const double* A, int lda,
                 const double* B, int ldb, double beta, double* C, int ldc) {
  lda = detail::leading(lda), ldb = detail::leading(ldb), ldc = detail::leading(ldc);
  blas().dgemm(&ta, &tb, &m, &n, &k, &alpha, detail::unconst(A), &lda, detail::unconst(B), &ldb,
               &beta, C, &ldc);
}

inline void gemm(char ta, char tb, int m, int n, int k, float alpha, const float* A, int lda,
                 const float* B, int ldb, float beta, float* C, int ldc) {
  lda = detail::leading(lda), ldb = detail::leading(ldb), ldc = detail::leading(ldc);
  blas().sgemm(&ta, &tb, &m, &n, &k, &alpha, detail::unconst(A), &lda, detail::unconst(B), &ldb,
               &beta, C, &ldc);
}

// The uplo triangle of C = alpha A Aᵀ + beta C ('N', A is n x k) or alpha Aᵀ A + beta C ('T').
inline void syrk(char uplo, char trans, int n, int k, double alpha, const double* A, int lda,
                 double beta, double* C, int ldc) {
  lda = detail::leading(lda), ldc = detail::leading(ldc);
  blas().dsyrk(&uplo, &trans, &n, &k, &alpha, detail::unconst(A), &lda, &beta, C, &ldc);
}

inline void syrk(char uplo, char trans, int n, int k, float alpha, const float* A, int lda,
                 float beta, float* C, int ldc) {
  lda = detail::leading(lda), ldc = detail::leading(ldc);
  blas().ssyrk(&uplo, &trans, &n, &k, &alpha, detail::unconst(A), &lda, &beta, C, &ldc);
}

// y = alpha op(A) x + beta y, with A of size m x n.
inline void gemv(char trans, int m, int n, double alpha, const double* A, int lda, const double* x,
                 int incx, double beta, double* y, int incy) {
  lda = detail::leading(lda);
  blas().dgemv(&trans, &m, &n, &alpha, detail::unconst(A), &lda, detail::unconst(x), &incx, &beta,
               y, &incy);
}

// y = alpha A x + beta y, with A symmetric of size n.
inline void symv(char uplo, int n, double alpha, const double* A, int lda, const double* x,
                 int incx, double beta, double* y, int incy) {
  lda = detail::leading(lda);
  blas().dsymv(&uplo, &n, &alpha, detail::unconst(A), &lda, detail::unconst(x), &incx, &beta, y,
               &incy);
}

// B = alpha op(A)⁻¹ B (side 'L') or alpha B op(A)⁻¹ ('R'), A triangular, B of size m x n.
inline void trsm(char side, char uplo, char trans, char diag, int m, int n, double alpha,
                 const double* A, int lda, double* B, int ldb) {
  lda = detail::leading(lda), ldb = detail::leading(ldb);
  blas().dtrsm(&side, &uplo, &trans, &diag, &m, &n, &alpha, detail::unconst(A), &lda, B, &ldb);
}

// x = op(A)⁻¹ x, A triangular of size n.
inline void trsv(char uplo, char trans, char diag, int n, const double* A, int lda, double* x,
                 int incx) {
  lda = detail::leading(lda);
  blas().dtrsv(&uplo, &trans, &diag, &n, detail::unconst(A), &lda, x, &incx);
}

// Cholesky factor of A in its uplo triangle; info > 0: the minor of that order is not positive.
inline int potrf(char uplo, int n, double* A, int lda) {
  int info = 0;
  lda = detail::leading(lda);
  blas().dpotrf(&uplo, &n, A, &lda, &info);
  return info;
}

// The uplo triangle of A⁻¹ from its Cholesky factor.
inline int potri(char uplo, int n, double* A, int lda) {
  int info = 0;
  lda = detail::leading(lda);
  blas().dpotri(&uplo, &n, A, &lda, &info);
  return info;
}

// B = A⁻¹ B from the Cholesky factor of A.
inline int potrs(char uplo, int n, int nrhs, const double* A, int lda, double* B, int ldb) {
  int info = 0;
  lda = detail::leading(lda), ldb = detail::leading(ldb);
  blas().dpotrs(&uplo, &n, &nrhs, detail::unconst(A), &lda, B, &ldb, &info);
  return info;
}

// x = A⁻¹ x from the Cholesky factor of A in its lower triangle: for single right-hand sides, which
// potrs packs as if they were many.
inline void potrs_one(int n, const double* A, double* x) {
  trsv('L', 'N', 'N', n, A, n, x, 1);
  trsv('L', 'T', 'N', n, A, n, x, 1);
}

inline double dot(int64_t n, const double* x, const double* y) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

inline double nrm2(int64_t n, const double* x) { return std::sqrt(dot(n, x, x)); }

}  // namespace sparsvm
