"""Reading what users pass to ``fit`` and ``predict``: a sentence for everything wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from sparsvm._typing import Array, Features, Floats
from sparsvm.numerics.sparse_format import checked_sparse
from sparsvm.parameters import LARGEST_NUMBER, SMALLEST_NUMBER, quoted

# Weights of float32 data are float32: 1 / LARGEST_FLOAT32 leaves its digits to what is a millionth.
LARGEST_FLOAT32 = 1e30
# Indices of features are int32 in native code.
MOST_FEATURES = 2**31 - 1
# Labels that an error lists.
LIST_LENGTH = 10

# What comparisons of labels say; the last is what scikit-learn 1.6 makes of pandas' NA.
_UNSORTABLE = ("not supported between", "NA is ambiguous", "'bool' object has no attribute 'any'")
_READ: dict[str, Any] = {
    "accept_sparse": ("csr", "csc"),
    "accept_large_sparse": True,
    "dtype": (np.float64, np.float32),
}


# What polars and pandas (its own type, NumPy's and Arrow's) call float32.
_NARROW = ("Float32", "float32", "float[pyarrow]")


class Within(Interval):
    """An interval whose ends a number of the user's type, such as float32, need not hold."""

    def __contains__(self, val: Any) -> bool:
        try:
            return bool(super().__contains__(float(val)))
        except OverflowError:
            return False


# What scikit-learn checks of the parameters that estimators and functions share.
PARAMETER_CONSTRAINTS: dict[str, list[Any] | str] = {
    # Names and objects are checked by as_loss, as_penalty and so on, which list the names.
    "loss": "no_validation",
    "penalty": "no_validation",
    "solver": "no_validation",
    "fit_intercept": ["boolean"],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "tol": [Within(Real, 0, np.inf, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    "time_limit": [Within(Real, 0, np.inf, closed="neither"), None],
    "on_interrupt": [StrOptions({"raise", "return"})],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
STRENGTH: dict[str, list[Any] | str] = {
    "alpha": [Within(Real, SMALLEST_NUMBER, LARGEST_NUMBER, closed="both"), None]
}
# Those of a search over alphas by cross-validation.
SEARCH: dict[str, list[Any] | str] = {
    "alphas": ["array-like", None],
    "n_alphas": [Interval(Integral, 1, None, closed="left")],
    "eps": [Within(Real, 0, 1, closed="neither")],
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "rule": [StrOptions({"best", "1se"})],
}


def without(constraints: Mapping[str, list[Any] | str], *names: str) -> dict[str, list[Any] | str]:
    """Return the constraints of other parameters than those named."""
    return {name: each for name, each in constraints.items() if name not in names}


Method = TypeVar("Method", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Return scikit-learn's decorator of ``fit``, which leaves the types of the method as they are.

    Parameters
    ----------
    prefer_skip_nested_validation : bool
        Whether parameters of estimators inside are known to be valid.
    """
    decorator = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
    return cast(Callable[[Method], Method], decorator)


class Caller(ClassifierMixin, BaseEstimator):
    """A function, as an estimator that scikit-learn's validation can ask for its tags.

    Messages name the class, so that each function has a subclass of its own name.
    """

    @staticmethod
    def named(name: str) -> Caller:
        """Return one whose name in messages is ``name``."""
        caller: Caller = type(name, (Caller,), {})()
        return caller


def read_samples_and_labels(estimator: Any, X: Any, y: Any) -> tuple[Any, Array]:
    """Validate the arguments of ``fit``; X comes back as it was unless it had to be converted."""
    try:
        X, y = _validated(estimator, X, y=_plain_labels(y))
        check_classification_targets(y)
    except (TypeError, AttributeError) as error:
        if not any(sign in str(error) for sign in _UNSORTABLE):
            raise
        raise ValueError(
            f"The labels in y cannot be sorted ({error}). Use labels of one type, and none that "
            "is missing."
        ) from error
    if X.shape[1] > MOST_FEATURES:
        raise ValueError(
            f"X has {X.shape[1]} features, but at most {MOST_FEATURES} are supported. Remove "
            "columns without entries, or hash the features into fewer."
        )
    _require_moderate(X)
    return X, y


def _plain_labels(y: Any) -> Any:
    """Return labels of pandas' nullable types in NumPy's, which scikit-learn makes floats of."""
    kind = getattr(y, "dtype", None)
    if kind is None or isinstance(kind, np.dtype) or not hasattr(y, "isna"):
        return y
    missing = int(np.sum(y.isna()))
    if missing:
        raise ValueError(
            f"Input y contains NaN: {missing} of its {len(y)} labels are missing. Leave those "
            "samples out."
        )
    plain = getattr(kind, "numpy_dtype", None)
    return y if plain is None else y.to_numpy(dtype=plain)


def read_samples(estimator: Any, X: Any) -> Any:
    """Validate the argument of ``predict`` against the features seen in ``fit``."""
    return _validated(estimator, X, reset=False)


def _validated(estimator: Any, X: Any, **options: Any) -> Any:
    read = {**_READ, "dtype": np.float32} if _is_narrow_frame(X) else _READ
    if sp.issparse(X) and X.ndim == 2:
        # First of all: a conversion to CSR would trust the indices.
        X = checked_sparse(
            X,
            "X",
            "Build it again from its entries, for example through scipy.sparse.coo_array.",
        )
    try:
        out = validate_data(estimator, X, **options, **read)
    except (ValueError, TypeError) as error:
        if "could not convert string" in str(error):
            raise ValueError(
                f"X must hold numbers, but it holds text ({error}). Encode text columns as numbers "
                "first, for example with sklearn.preprocessing.OneHotEncoder."
            ) from error
        if "could not be promoted" in str(error):
            raise ValueError(
                f"X must hold numbers, but its columns have types, such as dates, that are none "
                f"({error}). Leave those columns out or encode them as numbers."
            ) from error
        raise
    if "y" in options:
        return _tidy(out[0]), out[1]
    return _tidy(out)


def _is_narrow_frame(X: Any) -> bool:
    """Whether X is a frame of float32, by types that need not be NumPy's.

    polars has a list of its own types, pandas a series in which those that know missing values
    are not NumPy's either.
    """
    types: Any = getattr(X, "dtypes", None)
    if hasattr(types, "tolist"):
        types = types.tolist()
    return isinstance(types, list) and bool(types) and all(str(t) in _NARROW for t in types)


def _tidy(X: Any) -> Any:
    """Sum duplicate entries of a sparse matrix, on a copy."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _require_moderate(X: Any) -> None:
    """Refuse values so large that what solvers compute from them may overflow or vanish."""
    values = X.data if sp.issparse(X) else X
    if values.size == 0:
        return
    largest = max(-float(values.min()), float(values.max()))
    if values.dtype == np.float32 and largest > LARGEST_FLOAT32:
        raise ValueError(
            f"X has a value of size {largest:.3g}, but beyond {LARGEST_FLOAT32:g} weights may be "
            "smaller than any float32. Scale the features, for example with "
            "sklearn.preprocessing.StandardScaler, or pass float64."
        )
    if largest > LARGEST_NUMBER:
        raise ValueError(
            f"X has a value of size {largest:.3g}, but beyond {LARGEST_NUMBER:g} its products may "
            "overflow. Scale the features, for example with sklearn.preprocessing.StandardScaler."
        )


def read_per_sample(values: Any, n_samples: int, name: str) -> Floats | None:
    """Validate one finite, non-negative number per sample; a single number stands for all.

    Parameters
    ----------
    values : None, float or array-like of shape (n_samples,)
        What the user passed.
    n_samples : int
        Number of rows of X.
    name : str
        The argument's name, for messages.
    """
    if values is None:
        return None
    if isinstance(values, Real):
        values = np.full(n_samples, values, dtype=np.float64)
    try:
        out: Floats = check_array(
            values,
            accept_sparse=False,
            ensure_2d=False,
            ensure_min_samples=0,
            allow_nd=True,
            dtype=np.float64,
            input_name=name,
        )
    except (ValueError, TypeError) as error:
        if "could not convert" not in str(error) and "float() argument" not in str(error):
            raise
        raise ValueError(
            f"{name} must hold one number for each row of X, but it is {_shortened(values)}."
        ) from error
    if out.shape != (n_samples,):
        raise ValueError(
            f"{name} must hold one number for each of the {n_samples} rows of X, but it has "
            f"shape {out.shape}."
        )
    if out.size and out.min() < 0:
        raise ValueError(
            f"{name} must not be negative, but its smallest value is {out.min():g}. Remove "
            "those samples or set their value to zero."
        )
    if out.size and out.max() > LARGEST_NUMBER:
        raise ValueError(
            f"{name} must not exceed {LARGEST_NUMBER:g}, but its largest value is {out.max():g}. "
            "Divide all its values by a constant."
        )
    return out


def read_weights(sample_weight: Any, n_samples: int) -> Floats:
    """Validate sample weights; None stands for ones."""
    weight = read_per_sample(sample_weight, n_samples, "sample_weight")
    if weight is None:
        return np.ones(n_samples)
    if not weight.any():
        raise ValueError(
            "Sample weights must contain at least one non-zero number, but all "
            f"{n_samples} are zero."
        )
    return weight


def class_factors(class_weight: Any, labels: Array, totals: Floats) -> tuple[Floats, Features]:
    """Return f and e: the samples of each class are weighted by f times two to the power e.

    Numbers by themselves may overflow: "balanced" divides by totals that may be as small as any.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        "balanced" weighs class k by Σs / (K Σ_{i in k} s_i), so all classes count the same;
        a dictionary maps labels to factors, and labels it leaves out have factor 1.
    labels : ndarray of shape (K,)
        The labels.
    totals : ndarray of shape (K,)
        Sum of the sample weights of each class, positive.
    """
    if class_weight is None:
        return np.frexp(np.ones(labels.size))
    if isinstance(class_weight, str):
        digits, power = np.frexp(totals)
        return np.asarray(totals.sum() / (labels.size * digits)), -power
    known = labels.tolist()
    unknown = [label for label in class_weight if label not in known]
    missing = [label for label in known if label not in class_weight]
    # A label more than y has is common (a fold without a rare class); together with one less
    # it is a misspelt label.
    if unknown and missing:
        known_labels = quoted(labels.tolist(), most=LIST_LENGTH)
        raise ValueError(
            f"class_weight has the label {unknown[0]!r}, which y has not, and lacks "
            f"{missing[0]!r}, which y has. The labels of y are {known_labels}."
        )
    given = [class_weight.get(label, 1.0) for label in known]
    if not all(isinstance(factor, Real) for factor in given):
        raise ValueError(f"class_weight must hold numbers, but it is {class_weight!r}.")
    factors = np.array(given, dtype=np.float64)
    if not ((factors >= 0) & (factors <= LARGEST_NUMBER)).all():
        raise ValueError(
            f"class_weight must hold numbers from 0 to {LARGEST_NUMBER:g}, but it is "
            f"{class_weight!r}."
        )
    return np.frexp(factors)


class TooFewClasses(ValueError):
    """Fewer than two classes have samples of positive weight: those of ``labels``."""

    labels: Array


def require_two_classes(labels: Array) -> None:
    """Refuse a training set with fewer than two classes of positive weight."""
    if labels.size >= 2:
        return
    found = (
        f"only one class, {quoted(labels.tolist(), most=LIST_LENGTH)},"
        if labels.size
        else "no class at all"
    )
    error = TooFewClasses(
        f"A classifier needs samples of at least two classes, but y has {found} among the "
        "samples of positive weight."
    )
    error.labels = labels
    raise error


def _shortened(values: Any, limit: int = 60) -> str:
    shown = repr(values)
    return shown if len(shown) <= limit else f"{shown[:limit]}…"
