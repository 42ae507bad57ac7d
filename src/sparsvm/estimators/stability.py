"""How often each feature is selected over resamples of the data."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from sparsvm._typing import Array, Bools, Counts, Floats, Ints
from sparsvm.certificate.finalise import tolerance
from sparsvm.data.inputs import TooFewClasses, Within, fit_context
from sparsvm.data.training_set import Samples, read_all, unchanged_on_error
from sparsvm.estimators.documented import Documented
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.estimators.stability_bounds import unimodal_bound, worst_case_bound
from sparsvm.path.grid import grid_below
from sparsvm.path.svm_path import NoPath, first_steps, follow
from sparsvm.solvers import thread_count

if TYPE_CHECKING:
    from typing_extensions import Self

PAIRS, HALVES, BOOTSTRAP = "complementary_pairs", "half_samples", "bootstrap"


class StabilitySelection(SelectorMixin, Documented):
    r"""Keep the features that are selected from most resamples, with a bound on the mistakes.

    Each resample has its own path of certified models, from large to small alphas; a feature is
    selected from the resample if any model on the path uses it. Features that are selected from a
    share of at least ``threshold`` of the resamples are stable, and kept by ``transform``.

    With q features selected from a resample on average, of p in all, the expected number of stable
    features without signal is at most :math:`q^2 / ((2 \pi - 1) p)` at the threshold
    :math:`\pi`: see ``error_bounds`` for the bounds and what they assume.

    Parameters
    ----------
    estimator : SparseSVC or None, default=None
        Loss, penalty, solver and tolerance of the models, which must be convex; None means
        ``SparseSVC()``. Its ``alpha`` does not count.
    threshold : float, default=0.75
        The least share of the resamples; above 1/2 for the bounds to hold. It may be changed
        after ``fit``.
    resampling : str, default="complementary_pairs"
        "complementary_pairs", "half_samples" or "bootstrap": random halves of the samples of each
        class together with their complements, halves by themselves, or as many samples as there
        are, drawn with replacement. There are no bounds for "bootstrap".
    n_resamples : int, default=50
        How many; of pairs, each has two halves.
    alphas : array-like or None, default=None
        The alphas of the paths. By default ``n_alphas`` values from :func:`~sparsvm.alpha_max` of
        all samples down to ``eps`` times it.
    n_alphas : int, default=30
    eps : float, default=0.05
    max_features : "auto", int or None, default="auto"
        The path of a resample ends before a model that uses more features, unless it is the first
        to use any. "auto" is
        :math:`\sqrt{(2 \pi - 1) p}`, with which the bound on the mistakes is about 1 (a path may
        use more features in all than any one of its models); None is no limit.
    n_jobs : int or None, default=None
        Resamples computed at the same time.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples.

    Attributes
    ----------
    selection_probabilities_ : ndarray of shape (n_features,)
        Share of the resamples that each feature is selected from.
    class_selection_probabilities_ : ndarray of shape (n_classes, n_features), or (1, n_features)
        The same for each class's weights.
    path_probabilities_ : ndarray of shape (n_alphas, n_features)
        Share of the resamples that select the feature at this alpha or a larger one.
    alphas_ : ndarray of shape (n_alphas,)
        Decreasing.
    n_selected_ : ndarray
        Number of features selected from each resample; its mean is q.
    classes_ : ndarray of shape (n_classes,)
    selected_features_, selected_feature_names_ : ndarray
        Indices and names of the stable features.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    References
    ----------
    N. Meinshausen and P. Bühlmann. Stability selection. JRSS B 72:417-473, 2010.
    R. D. Shah and R. J. Samworth. Variable selection with error control: another look at stability
    selection. JRSS B 75:55-80, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sparsvm import SparseSVC, StabilitySelection
    >>> wine = load_wine(as_frame=True)
    >>> X = StandardScaler().set_output(transform="pandas").fit_transform(wine.data)
    >>> stable = StabilitySelection(
    ...     SparseSVC(penalty="l1/l2"), n_resamples=10, max_features=5, random_state=0
    ... ).fit(X, wine.target)
    >>> stable.selected_feature_names_.tolist()
    ['alcohol', 'flavanoids', 'color_intensity', 'proline']
    >>> sorted(stable.error_bounds())
    ['meinshausen_buhlmann', 'shah_samworth', 'shah_samworth_unimodal']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "estimator": [SparseSVC, None],
        "threshold": [Within(Real, 0, 1, closed="right")],
        "resampling": [StrOptions({PAIRS, HALVES, BOOTSTRAP})],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "alphas": ["array-like", None],
        "n_alphas": [Interval(Integral, 1, None, closed="left")],
        "eps": [Within(Real, 0, 1, closed="neither")],
        "max_features": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: SparseSVC | None = None,
        *,
        threshold: float = 0.75,
        resampling: str = PAIRS,
        n_resamples: int = 50,
        alphas: Any = None,
        n_alphas: int = 30,
        eps: float = 0.05,
        max_features: str | int | None = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.resampling = resampling
        self.n_resamples = n_resamples
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Follow the path of every resample and count what is selected.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples, as for :class:`~sparsvm.SparseSVC`.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self
            The fitted transformer.
        """
        thread_count(self.n_jobs)  # refuses what is no number of them
        model = SparseSVC() if self.estimator is None else clone(self.estimator)
        with unchanged_on_error(self):
            samples = read_all(self, X, y)
            data = samples.training_set(model.class_weight)
            problem = model._convex_problem(data)
            control = model._control(data.dtype)
            try:
                _, grid = first_steps(
                    problem, model.solver, control, self.alphas, self.n_alphas, self.eps
                )
            except NoPath:  # no feature lowers the loss of all samples
                grid = grid_below(1.0, self.n_alphas, self.eps)
            resamples = self._resamples(samples.y)
            tasks = [
                delayed(_entries)(samples, model, grid, counts, self._limit())
                for counts in resamples
            ]
            workers = None if self.n_jobs is None else min(self.n_jobs, len(tasks))
            found = list(Parallel(n_jobs=workers)(tasks))
            self.alphas_, self.classes_ = grid, data.classes
            self._count(found, data.classes.size)
        return self

    def error_bounds(self, threshold: float | None = None) -> dict[str, float]:
        r"""Return bounds on the expected number of features that are stable by mistake.

        Parameters
        ----------
        threshold : float or None, default=None
            None means the parameter ``threshold``.

        Returns
        -------
        dict of str to float
            NaN where a bound does not hold (a threshold of 1/2 or less, other resamples).

            "meinshausen_buhlmann"
                :math:`q^2 / ((2\pi - 1) p)` features without signal, if their selection is
                exchangeable and the models are better than guessing; for random halves.
            "shah_samworth"
                The same number of features of which the probability of being selected from a half
                is at most q / p, without assumptions; for complementary pairs.
            "shah_samworth_unimodal"
                A smaller number of those, if the share of pairs that select such a feature in
                both halves has a unimodal distribution.
        """
        check_is_fitted(self, "selection_probabilities_")
        level = float(self.threshold if threshold is None else threshold)
        q, p = float(self.n_selected_.mean()), self.n_features_in_
        worst, none = worst_case_bound(level, q, p), float("nan")
        paired = self.resampling == PAIRS
        return {
            "meinshausen_buhlmann": none if self.resampling == BOOTSTRAP else worst,
            "shah_samworth": worst if paired else none,
            "shah_samworth_unimodal": (
                unimodal_bound(level, q, p, self.n_selected_.size // 2) if paired else none
            ),
        }

    @property
    def selected_features_(self) -> Ints:
        """Indices of the stable features."""
        return np.flatnonzero(self._get_support_mask())

    @property
    def selected_feature_names_(self) -> Array:
        """Names of the stable features; ``x0``, ``x1``, … where X had none."""
        check_is_fitted(self, "selection_probabilities_")
        return np.asarray(self.get_feature_names_out())

    def _get_support_mask(self) -> Bools:
        check_is_fitted(self, "selection_probabilities_")
        return np.asarray(self.selection_probabilities_ >= self.threshold)

    def _limit(self) -> int | None:
        """Return the largest number of features of a model."""
        if self.max_features != "auto":
            return None if self.max_features is None else int(self.max_features)
        if self.threshold <= 0.5:
            return None
        return max(1, int(np.sqrt((2.0 * self.threshold - 1.0) * self.n_features_in_)))

    def _resamples(self, y: Array) -> list[Counts]:
        """Return how often each row counts in each resample, drawn within every class."""
        rng = check_random_state(self.random_state)
        classes = [np.flatnonzero(y == label) for label in np.unique(y)]
        made = []
        for _ in range(self.n_resamples):
            first, second = np.zeros((2, y.size), dtype=np.int64)
            for rows in classes:
                if self.resampling == BOOTSTRAP:
                    first += np.bincount(rng.choice(rows, rows.size), minlength=y.size)
                    continue
                rows = rng.permutation(rows)
                half = max(rows.size // 2, 1)
                first[rows[:half]] = 1
                second[rows[half : 2 * half]] = 1
            made += [first, second] if self.resampling == PAIRS else [first]
        return made

    def _count(self, found: list[_Entries], n_classes: int) -> None:
        n, d = len(found), self.n_features_in_
        at_alpha = np.zeros((self.alphas_.size, d), dtype=np.int64)
        per_class = np.zeros((1 if n_classes == 2 else n_classes, d), dtype=np.int64)
        for entries in found:
            at_alpha[entries.first, entries.features] += 1
            rows = np.searchsorted(self.classes_, entries.classes)
            if n_classes == 2:
                rows = rows[:1] * 0
            elif entries.used.shape[0] == 1 < rows.size:
                rows = rows[:, None]  # one row of weights stands for the two classes there are
            per_class[rows] += entries.used
        self.path_probabilities_ = np.cumsum(at_alpha, axis=0) / n
        self.selection_probabilities_ = self.path_probabilities_[-1].copy()
        self.class_selection_probabilities_ = per_class / n
        self.n_selected_ = np.array([entries.features.size for entries in found], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Entries:
    """What one resample selects: features, the alphas where they enter, and single weights."""

    features: Ints
    first: Ints
    used: Bools
    classes: Array


def _entries(
    samples: Samples, model: SparseSVC, grid: Floats, counts: Counts, max_features: int | None
) -> _Entries:
    """Follow the path of a resample and tell where each feature enters."""
    d = samples.X.shape[1]
    none = np.zeros(0, dtype=np.intp)
    try:
        weights = samples.weight_of_row * counts
        data = samples.with_weights(weights).training_set(model.class_weight)
    except TooFewClasses as error:
        return _Entries(none, none, np.zeros((0, d), dtype=bool), error.labels[:0])
    problem = model._convex_problem(data)
    steps, grid = first_steps(problem, model.solver, model._control(data.dtype), grid, 1, 0.5)
    tol = tolerance(model.tol, data.dtype)
    coefs = follow(data, steps, grid, tol, max_features=max_features).coefs
    n = len(coefs)
    if n < grid.size and not any(coef.nnz for coef in coefs):
        # More features than the limit enter at once: these are the first.
        coefs = coefs + follow(data, steps, grid[n : n + 1], tol).coefs
    first = np.full(d, grid.size, dtype=np.intp)
    used = np.zeros((problem.n_outputs, d), dtype=bool)
    for t, coef in enumerate(coefs):
        entries = coef.tocoo()
        used[entries.row, entries.col] = True
        np.minimum.at(first, entries.col, t)
    features = np.flatnonzero(first < grid.size)
    return _Entries(features, first[features], used, data.classes)
