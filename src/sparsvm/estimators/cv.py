"""The sparse classifier with alpha chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed

from sparsvm._typing import Array, Floats
from sparsvm.data.inputs import (
    Within,
    read_per_sample,
    read_samples_and_labels,
    read_weights,
)
from sparsvm.data.training_set import unchanged_on_error
from sparsvm.estimators.cv_folds import (
    Fold,
    FoldResult,
    checked_splits,
    default_folds,
    one_error_rule,
    run_fold,
    takes_weights,
)
from sparsvm.estimators.cv_progress import reporting
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.estimators.row_dual import RowDual
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.losses import Loss, as_loss
from sparsvm.path.alpha_max import largest_alpha
from sparsvm.path.svm_path import checked_grid, grid_below
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.solvers import thread_count

# sklearn.model_selection and sklearn.metrics are imported where they are used: loading them takes
# as long as loading this whole package.


class SparseSVCCV(RowDual, SparseLinearClassifier):
    r"""Sparse classifier whose alpha is chosen by cross-validation along warm-started paths.

    In every fold the whole path of alphas is followed (see :func:`~sparsvm.svm_path`) and each of
    its models, all of them certified, is scored on the samples left out. The model is then fitted
    on all samples with the alpha, and with the parameters of the penalty and loss, that scored
    best.

    Parameters
    ----------
    loss, penalty, fit_intercept, class_weight, solver, tol, max_iter, random_state
        As for :class:`~sparsvm.SparseSVC`.
    alphas : array-like or None, default=None
        Strengths of the penalty to try. By default ``n_alphas`` values from
        :func:`~sparsvm.alpha_max` of all (weighted) samples down to ``eps`` times it.
    n_alphas : int, default=100
    eps : float, default=1e-3
    param_grid : None, dict or list of dicts, default=None
        Other parameters to try, as in :class:`~sklearn.model_selection.GridSearchCV`: "loss",
        "penalty" and their own parameters, for example
        ``{"penalty__l1_ratio": [0.2, 0.5, 0.8]}``. Every combination has its own alphas.
    cv : None, int, splitter or iterable, default=None
        As in scikit-learn; None means five stratified folds, or as many as the largest class has
        samples.
    scoring : None, str or callable, default=None
        A scikit-learn scorer; None means accuracy.
    rule : {"best", "1se"}, default="best"
        "best" takes the highest mean score, and of equals the sparsest. "1se" takes the largest
        alpha whose mean score is within one standard error of the best.
    refit : bool, default=True
        Whether to fit on all samples at the end; without it there is no model to predict with.
    n_jobs : int or None, default=None
        Folds computed at the same time.
    verbose : bool or int, default=False
        Whether to show the progress, with rich where it is installed.

    Attributes
    ----------
    alpha_ : float
        The alpha chosen.
    best_params_ : dict
        The alpha chosen, and the values of ``param_grid`` that go with it.
    loss_, penalty_ : Loss, Penalty
        The loss and the penalty chosen.
    best_score_ : float
        Mean score over the folds of what was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The alphas that were tried, decreasing, with the other parameters at their best.
    scores_ : ndarray of shape (n_alphas, n_folds)
        Their scores.
    n_selected_ : ndarray of shape (n_alphas, n_folds)
        Number of features their models use.
    cv_results_ : dict
        "params" (the combinations of ``param_grid``), "alphas", "scores" and "n_selected" of
        all of them, stacked along the first axis.
    n_splits_ : int
        Number of folds.
    coef_, intercept_, classes_, objective_, dual_gap_, dual_, n_iter_, result_, class_prior_
        And ``selected_features_``: of the model fitted on all samples, as in
        :class:`~sparsvm.SparseSVC`.

    Notes
    -----
    Sample weights enter the fits, the scores of the folds and the alphas. A class that the
    training part of a fold lacks is never predicted in that fold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVCCV(penalty="l1/l2", n_alphas=20, rule="1se").fit(X, y)
    >>> model.selected_features_
    array([0, 2, 3])
    >>> model.scores_.shape
    (20, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **{
            name: SparseSVC._parameter_constraints[name]
            for name in (
                "loss",
                "penalty",
                "fit_intercept",
                "class_weight",
                "solver",
                "tol",
                "max_iter",
                "n_jobs",
                "random_state",
                "verbose",
            )
        },
        "alphas": ["array-like", None],
        "n_alphas": [Interval(Integral, 1, None, closed="left")],
        "eps": [Within(Real, 0, 1, closed="neither")],
        "param_grid": [dict, list, None],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "rule": [StrOptions({"best", "1se"})],
        "refit": ["boolean"],
    }

    def __init__(
        self,
        loss: str | Loss = "hinge",
        penalty: str | Penalty = "l1",
        *,
        alphas: Any = None,
        n_alphas: int = 100,
        eps: float = 1e-3,
        param_grid: Any = None,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "best",
        refit: bool = True,
        fit_intercept: bool = True,
        class_weight: str | dict[Any, float] | None = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.refit = refit
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sample_margin: Any = None, **params: Any
    ) -> SparseSVCCV:
        """Choose alpha by cross-validation and fit on all samples.

        Parameters
        ----------
        X, y, sample_weight, sample_margin
            As for :meth:`SparseSVC.fit <sparsvm.SparseSVC.fit>`.
        **params
            ``groups`` for the splitter; with metadata routing enabled, whatever the splitter and
            the scorer request.

        Returns
        -------
        self
            The fitted estimator.
        """
        thread_count(self.n_jobs)  # refuses what is no number of them
        models = list(self._models())
        from sklearn.model_selection import check_cv

        with unchanged_on_error(self):
            X, y = read_samples_and_labels(self, X, y)
            weight = read_weights(sample_weight, X.shape[0])
            margin = read_per_sample(sample_margin, X.shape[0], "sample_margin")
            routed = self._routed(None if sample_weight is None else weight, params)
            splitter = check_cv(
                default_folds(y) if self.cv is None else self.cv, y, classifier=True
            )
            splits = checked_splits(splitter.split(X, y, **routed["split"]), y.size)
            given, models = models, self._aligned(models)
            data, _ = models[0][1]._convex_problem(X, y, weight, margin)
            # What has no weight among all samples has none in a fold, where its share is larger.
            weight = np.where(data.sample_of_row >= 0, weight, 0.0)
            scorer = None if self.scoring in (None, "accuracy") else self._scorer()
            shared = Fold(X, y, weight, margin, data.classes, scorer, routed["score"])
            grids = [self._grid(model, shared) for _, model in models]
            results = self._run(shared, models, grids, splits)
            self._choose(given, grids, results)
            if self.refit:
                self._refit(models[self.best_index_[0]][1], shared)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the predictions for X by ``scoring`` (accuracy by default).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self._scorer()(self, X, y, **weights))

    # As in SparseSVC: the descriptors themselves, which hide them unless the loss is logistic.
    predict_proba = vars(SparseSVC)["predict_proba"]
    predict_log_proba = vars(SparseSVC)["predict_log_proba"]

    # ------------------------------------------------------------------ what is tried

    def _models(self) -> Iterator[tuple[dict[str, Any], SparseSVC]]:
        """Yield every combination of ``param_grid`` with the model it stands for."""
        base = SparseSVC(
            as_loss(self.loss),
            as_penalty(self.penalty),
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
        )
        from sklearn.model_selection import ParameterGrid

        for params in ParameterGrid({} if self.param_grid is None else self.param_grid):
            for name in params:
                if name.split("__")[0] not in ("loss", "penalty"):
                    raise ValueError(
                        f"param_grid may vary the loss, the penalty and their parameters, but it "
                        f"has {name!r}; alphas are tried in any case."
                    )
            model = clone(base)
            # Objects first, so that their own parameters are set on the new ones.
            for name in ("loss", "penalty"):
                if name in params:
                    made = as_loss(params[name]) if name == "loss" else as_penalty(params[name])
                    model.set_params(**{name: clone(made, safe=False)})
            model.set_params(**{name: value for name, value in params.items() if "__" in name})
            yield params, model

    def _aligned(
        self, models: list[tuple[dict[str, Any], SparseSVC]]
    ) -> list[tuple[dict[str, Any], SparseSVC]]:
        """Put what penalties name in the order of columns: what is read here has no names left."""
        names = getattr(self, "feature_names_in_", None)
        return [
            (params, clone(model).set_params(penalty=penalty))
            for params, model in models
            for penalty in [as_penalty(model.penalty).aligned(self.n_features_in_, names)]
        ]

    def _grid(self, model: SparseSVC, shared: Fold) -> Floats:
        if self.alphas is not None:
            return checked_grid(self.alphas)
        _, problem = model._convex_problem(shared.X, shared.y, shared.weight, shared.margin)
        # Where no feature lowers the loss every alpha gives zero weights, and any will do.
        largest = largest_alpha(problem).value or 1.0
        return grid_below(largest, problem, self.n_alphas, self.eps)

    def _run(
        self,
        shared: Fold,
        models: list[tuple[dict[str, Any], SparseSVC]],
        grids: list[Floats],
        splits: list[tuple[Array, Array]],
    ) -> list[list[FoldResult]]:
        """Run every fold of every candidate, in parallel; one list of folds per candidate."""
        tasks = [
            delayed(run_fold)(shared, model, grid, train, test)
            for (_, model), grid in zip(models, grids, strict=True)
            for train, test in splits
        ]
        # More workers than tasks would be started in vain.
        workers = None if self.n_jobs is None else min(self.n_jobs, len(tasks))
        done: list[FoldResult] = []
        with reporting(len(tasks), bool(self.verbose)) as report:
            for result in Parallel(n_jobs=workers, return_as="generator")(tasks):
                done.append(result)
                params = models[(len(done) - 1) // len(splits)][0]
                told = ", ".join(f"{name}={value!r}" for name, value in params.items())
                report(f"best score {np.max(result.scores):.4g}" + (f"  {told}" if told else ""))
        self.n_splits_ = len(splits)
        short = sum(result.n_short for result in done)
        if short:
            warnings.warn(
                f"{short} of the {len(done) * len(grids[0])} models of the cross-validation did "
                f"not reach the tolerance tol={self.tol:g}. Raise tol or max_iter, scale the "
                "features, or use another solver.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return [done[first : first + len(splits)] for first in range(0, len(done), len(splits))]

    # ------------------------------------------------------------------ what is chosen

    def _choose(
        self,
        models: list[tuple[dict[str, Any], SparseSVC]],
        grids: list[Floats],
        results: list[list[FoldResult]],
    ) -> None:
        scores = np.array([[fold.scores for fold in folds] for folds in results])
        selected = np.array([[fold.n_selected for fold in folds] for folds in results])
        scores, selected = scores.transpose(0, 2, 1), selected.transpose(0, 2, 1)
        means = scores.mean(axis=2)
        if np.all(np.isnan(means)):
            raise ValueError("The scorer returned NaN in some fold for every alpha.")
        # The first of equals has the largest alpha.
        candidate, t = divmod(int(np.nanargmax(means)), means.shape[1])
        if self.rule == "1se":
            t = one_error_rule(scores[candidate], t)
        self.best_index_ = (candidate, t)
        self.alphas_ = grids[candidate]
        self.scores_ = scores[candidate]
        self.n_selected_ = selected[candidate]
        self.alpha_ = float(self.alphas_[t])
        self.best_score_ = float(means[candidate, t])
        self.best_params_ = {"alpha": self.alpha_, **models[candidate][0]}
        self.loss_, self.penalty_ = models[candidate][1].loss, models[candidate][1].penalty
        self.cv_results_ = {
            "params": [params for params, _ in models],
            "alphas": np.array(grids),
            "scores": scores,
            "n_selected": selected,
        }

    def _refit(self, model: SparseSVC, shared: Fold) -> None:
        """Fit on all samples and take over what the fitted model knows."""
        model = clone(model).set_params(alpha=self.alpha_)
        model.fit(shared.X, shared.y, shared.weight, shared.margin)
        self._row_shares = model._row_shares
        kept = ("n_features_in_", "feature_names_in_")
        for name, value in vars(model).items():
            if name.endswith("_") and not name.startswith("_") and name not in kept:
                setattr(self, name, value)

    # ------------------------------------------------------------------ metadata

    def _scorer(self) -> Any:
        from sklearn.metrics import get_scorer

        scorer = get_scorer("accuracy" if self.scoring is None else self.scoring)
        if _routing_enabled() and not callable(self.scoring):
            # Weights count in the scores as they do in the fits.
            scorer = scorer.set_score_request(sample_weight=True)
        return scorer

    def _routed(self, weight: Floats | None, params: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the arguments of the splitter ("split") and of the scorer ("score")."""
        weights = {} if weight is None else {"sample_weight": weight}
        if _routing_enabled():
            routed = process_routing(self, "fit", **weights, **params)
            return {"split": dict(routed.splitter.split), "score": dict(routed.scorer.score)}
        unknown = sorted(set(params) - {"groups"})
        if unknown:
            raise TypeError(
                f"fit got the argument {unknown[0]!r}, which only metadata routing can pass on; "
                "enable it with sklearn.set_config(enable_metadata_routing=True)."
            )
        if weights and not takes_weights(self._scorer()):
            weights = {}
        return {"split": params, "score": weights}

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata go to the splitter and to the scorer.

        Returns
        -------
        MetadataRouter
        """
        from sklearn.model_selection import check_cv

        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                splitter=check_cv(self.cv, classifier=True),
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
            .add(
                scorer=self._scorer(),
                method_mapping=MethodMapping()
                .add(caller="fit", callee="score")
                .add(caller="score", callee="score"),
            )
        )
