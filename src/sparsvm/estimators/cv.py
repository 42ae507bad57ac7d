"""The sparse classifier with alpha chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed

from sparsvm._typing import Array, ClassWeight, Floats, LossName, PenaltyName, SolverName
from sparsvm.data.inputs import PARAMETER_CONSTRAINTS, SEARCH, fit_context, without
from sparsvm.data.training_set import Samples, read_all, unchanged_on_error
from sparsvm.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from sparsvm.estimators.cv_folds import (
    FoldResult,
    Shared,
    Whole,
    run_fold,
    takes_weights,
    whole_path,
)
from sparsvm.estimators.cv_progress import Report, reporting
from sparsvm.estimators.cv_proof import Proof, fit_as
from sparsvm.estimators.cv_relaxed import relaxed
from sparsvm.estimators.cv_results import Searched, warn_of_last
from sparsvm.estimators.cv_splits import checked_splits, default_folds
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.estimators.row_dual import RowDual
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.estimators.svm_path import SVMPath
from sparsvm.losses import Loss, as_loss
from sparsvm.path.grid import checked_grid
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.solvers import Solver, thread_count

if TYPE_CHECKING:
    from typing_extensions import Self

# sklearn.model_selection and sklearn.metrics are imported where they are used: loading them takes
# as long as loading this whole package.


class SparseSVCCV(Searched, CallbackSupportMixin, RowDual, SparseLinearClassifier):
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
        Strengths of the penalty to try. By default those of :func:`~sparsvm.svm_path` on all
        (weighted) samples: ``n_alphas`` values from :func:`~sparsvm.alpha_max` down to ``eps``
        times it, without those where nothing changes any more.
    n_alphas : int, default=100
    eps : float, default=1e-3
    max_features : int or None, default=None
        Only alphas whose model on all samples, and those at all larger alphas, use at most so
        many features are tried.
    param_grid : None, dict or list of dicts, default=None
        Other parameters to try, as in :class:`~sklearn.model_selection.GridSearchCV`: "loss",
        "penalty" and their own parameters, for example
        ``{"penalty__l1_ratio": [0.2, 0.5, 0.8]}`` or ``{"loss__mu": [0.5, 1.0]}`` of a ramp loss.
        Every combination has its own alphas.
    cv : None, int, splitter or iterable, default=None
        As in scikit-learn; None means five stratified folds, or as many as the largest class has
        samples.
    scoring : None, str or callable, default=None
        A scikit-learn scorer; None means accuracy.
    rule : {"best", "1se"}, default="best"
        "best" takes the highest mean score, and of equals the sparsest. "1se" takes the largest
        alpha whose mean score is within one standard error of the best.
    refit : bool or "relaxed", default=True
        Whether to fit on all samples at the end; without it there is no model to predict with.
        "relaxed" fits the features selected at the chosen alpha once more, with the penalty l2
        (scaled as the penalty is), whose strength is chosen in the same folds, each refitting the
        features that it selected itself: sparse models shrink their weights for the sake of
        selection, which costs accuracy where features are few.
    n_jobs : int or None, default=None
        Number of processes that share the folds, each with one BLAS thread; X is mapped into
        their memory, not copied. The path on all samples comes before and is followed by one
        process, and a process takes about a second to start.
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
    path_ : SVMPath
        The path on all samples, with the other parameters at their best.
    cv_results_ : dict
        All that was tried, as columns for ``pandas.DataFrame``, one row for each combination of
        ``param_grid`` and alpha, named as in :class:`~sklearn.model_selection.GridSearchCV`:
        "params", "param_alpha", "split0_test_score" and so on, "mean_test_score",
        "std_test_score", "rank_test_score", "mean_fit_time"; and "mean_n_selected", the number
        of features used, with "split0_n_selected" and so on.
    best_index_ : int
        The row of what was chosen.
    n_splits_ : int
        Number of folds.
    ridge_alpha_, relaxed_score_ : float
        With ``refit="relaxed"``, the strength of the l2 penalty and the mean score of the refitted
        models over the folds; ``dual_gap_`` belongs to that refit.
    coef_, intercept_, classes_, objective_, dual_gap_, dual_, n_iter_, result_, class_prior_
        And ``selected_features_``: of the model fitted on all samples, as in
        :class:`~sparsvm.SparseSVC`.

    Notes
    -----
    Sample weights enter the fits, the scores of the folds and the alphas. A class that the
    training part of a fold lacks is never predicted in that fold.

    Callbacks of scikit-learn 1.9 or later (``set_callbacks``) are told of every path on all samples
    and of every fold, in the process that called `fit`; the number of both is known beforehand, so
    that a progress bar has an end. As in :class:`~sklearn.model_selection.GridSearchCV`, their
    answers do not end the search, and no model is given to them before the last.

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
        **without(PARAMETER_CONSTRAINTS, "time_limit", "on_interrupt", "warm_start"),
        **SEARCH,
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "param_grid": [dict, list, None],
        "refit": ["boolean", StrOptions({"relaxed"})],
    }

    def __init__(
        self,
        loss: LossName | Loss = "hinge",
        penalty: PenaltyName | Penalty = "l1",
        *,
        alphas: Any = None,
        n_alphas: int = 100,
        eps: float = 1e-3,
        max_features: int | None = None,
        param_grid: Any = None,
        cv: Any = None,
        scoring: Any = None,
        rule: Literal["best", "1se"] = "best",
        refit: bool | str = True,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: SolverName | Solver = "auto",
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
        self.max_features = max_features
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

    @fit_context(prefer_skip_nested_validation=False)
    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sample_margin: Any = None, **params: Any
    ) -> Self:
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
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        task = FitTask(self, X=X, y=y, metadata=metadata)
        with unchanged_on_error(self):
            samples = read_all(self, X, y, sample_weight=sample_weight, sample_margin=sample_margin)
            given, models = models, self._aligned(models)
            weights = None if sample_weight is None else samples.weight_of_row
            routed = self._routed(weights, params)
            scored = routed["score"].get("sample_weight")
            splits = self._splits(samples, routed["split"], scored)
            shared = self._shared(samples, routed["score"])
            task.begin(parts=len(models) * (1 + len(splits)))
            with reporting(bool(self.verbose)) as report:
                wholes = self._paths(shared, [model for _, model in models], report, task)
                paths = [whole.path for whole in wholes]
                results = self._scored(shared, models, wholes, splits, report, task)
            candidate, point = self._choose(given, paths, results)
            for name in ("ridge_alpha_", "relaxed_score_"):
                self.__dict__.pop(name, None)  # of an earlier fit
            selected = np.unique(self.path_.coefs[point].indices).astype(np.intp)
            if isinstance(self.refit, str) and selected.size:
                folds, model = results[candidate], models[candidate][1]
                fitted, self.relaxed_score_ = relaxed(model, shared, selected, splits, folds, point)
                self.ridge_alpha_ = fitted.alpha_
                self._take_over(fitted)
            elif self.refit:
                proof = wholes[candidate].proofs[point]
                self._refit(models[candidate][1], self.path_[point], proof, shared.samples)
        task.end()
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
                        "param_grid may vary 'loss', 'penalty' and their parameters, such as "
                        "'loss__mu' or 'penalty__cap', but it has "
                        f"{name!r}; alphas are tried in any case."
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

    def _splits(
        self, samples: Samples, params: dict[str, Any], weight: Floats | None
    ) -> list[tuple[Array, Array]]:
        from sklearn.model_selection import check_cv

        y = samples.y
        cv = default_folds(y) if self.cv is None else self.cv
        splits = check_cv(cv, y, classifier=True).split(samples.X, y, **params)
        return checked_splits(splits, y.size, weight)

    def _shared(self, samples: Samples, score_params: dict[str, Any]) -> Shared:
        data = samples.training_set(self.class_weight)
        if np.any((data.sample_of_row < 0) & (samples.weight_of_row > 0.0)):
            # What has no weight among all samples has none in a fold, where its share is larger.
            kept = np.where(data.sample_of_row >= 0, samples.weight_of_row, 0.0)
            samples = samples.with_weights(kept)
        scorer = None if self.scoring in (None, "accuracy") else self._scorer()
        return Shared(samples, data.classes, scorer, score_params)

    def _paths(
        self, shared: Shared, models: list[SparseSVC], report: Report, task: FitTask
    ) -> list[Whole]:
        """Follow the path of every candidate on all samples; folds share its alphas."""
        alphas = None if self.alphas is None else checked_grid(self.alphas)
        n_alphas = self.n_alphas if alphas is None else alphas.size
        report.total = n_alphas * len(models)
        tasks = [
            delayed(whole_path)(
                shared, model, alphas, n_alphas, self.eps, self.max_features, report.tick(f"{c}")
            )
            for c, model in enumerate(models)
        ]
        return list(self._run(tasks, task, "path on all samples"))

    def _run(self, tasks: list[Any], task: FitTask, name: str) -> Iterator[Any]:
        """Yield the results of all tasks in turn; callbacks are told when each is there."""
        # More workers than tasks would be started in vain.
        workers = None if self.n_jobs is None else min(self.n_jobs, len(tasks))
        results = iter(Parallel(n_jobs=workers, return_as="generator")(tasks))
        for _ in tasks:
            with task.part(name):
                result = next(results)
            yield result

    def _scored(
        self,
        shared: Shared,
        models: list[tuple[dict[str, Any], SparseSVC]],
        wholes: list[Whole],
        splits: list[tuple[Array, Array]],
        report: Report,
        task: FitTask,
    ) -> list[list[FoldResult]]:
        """Run every fold of every candidate, in parallel; one list of folds per candidate."""
        report.total = (1 + len(splits)) * sum(len(whole.path) for whole in wholes)
        tasks = [
            delayed(run_fold)(
                shared, model, whole.path.alphas, train, test, report.tick(f"{c}-{f}"), whole.zeros
            )
            for c, ((_, model), whole) in enumerate(zip(models, wholes, strict=True))
            for f, (train, test) in enumerate(splits)
        ]
        done: list[FoldResult] = []
        for result in self._run(tasks, task, "fold"):
            done.append(result)
            params = models[(len(done) - 1) // len(splits)][0]
            told = ", ".join(f"{name}={value!r}" for name, value in params.items())
            best = f"fold {len(done)}/{len(tasks)}: best score {np.max(result.scores):.4g}"
            report.done(best + (f"  {told}" if told else ""))
        short = sum(result.n_short for result in done)
        count = sum(result.scores.size for result in done)
        self._warn_of_short(short, count, "cross-validation")
        return [done[first : first + len(splits)] for first in range(0, len(done), len(splits))]

    # ------------------------------------------------------------------ what is chosen

    def _choose(
        self,
        models: list[tuple[dict[str, Any], SparseSVC]],
        paths: list[SVMPath],
        results: list[list[FoldResult]],
    ) -> tuple[int, int]:
        """Set what was chosen, and return which of the candidates and of its alphas it is."""
        candidate, t = self._choose_among(
            [params for params, _ in models],
            [path.alphas for path in paths],
            results,
            "The scorer returned NaN in some fold for every alpha.",
        )
        self.path_ = paths[candidate]
        if self.alphas is None and self.alphas_.size == self.n_alphas:
            warn_of_last(t, self.alphas_)
        self.loss_, self.penalty_ = models[candidate][1].loss, models[candidate][1].penalty
        return candidate, t

    def _refit(self, model: SparseSVC, near: SparseSVC, proof: Proof, samples: Samples) -> None:
        """Take the path's model on all samples, and all that is known of a fitted one."""
        model = clone(model).set_params(alpha=self.alpha_)
        fit_as(model, near, proof, samples.training_set(self.class_weight))
        self._take_over(model)

    def _take_over(self, model: SparseSVC) -> None:
        super()._take_over(model)
        self._row_shares = model._row_shares

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
