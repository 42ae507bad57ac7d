"""The callbacks of scikit-learn 1.9: told of every report, they may score and end a fit."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.model_selection import GridSearchCV

from sparsvm import (
    ConstrainedSparseSVC,
    MaxMarginSVC,
    SparseLabelRanker,
    SparseSVC,
    SparseSVCCV,
)
from sparsvm.solvers import FISTA

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")


class Recorder:
    """Keeps what it is told, and ends a fit after ``most`` reports."""

    def __init__(self, most=10**9):
        self.most = most
        self.events, self.scores = [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.events.append(("end", context.task_name))
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
        return len(self.scores) >= self.most


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def model(**options):
    return SparseSVC("squared_hinge", alpha=0.01, solver=FISTA(), tol=1e-2, **options)


def test_callbacks_are_told_of_every_report_and_of_beginning_and_end(iris):
    recorder = Recorder()
    fitted = model().set_callbacks(recorder).fit(*iris)
    events = recorder.events
    assert events[0] == "setup" and events[-1] == "teardown"
    assert events[1] == ("begin", "fit") and events[-2] == ("end", "fit")
    reports = [event for event in events if event == ("end", "fista report")]
    assert len(reports) == fitted.result_.history.iteration.size
    # The model given to the last report, and the one at the end of the fit, are the fitted one.
    assert recorder.scores[-1] == recorder.scores[-2] == fitted.score(*iris)
    np.testing.assert_array_equal(fitted.coef_, model().fit(*iris).coef_)


def test_a_callback_ends_a_fit_with_a_certified_model(iris):
    with pytest.warns(UserWarning, match="stopped"):
        fitted = model().set_callbacks(Recorder(most=2)).fit(*iris)
    assert fitted.result_.status == "stopped"
    optimum = model().fit(*iris).objective_
    assert fitted.objective_ - fitted.result_.gap <= optimum <= fitted.objective_


@pytest.mark.parametrize("solver", ["auto", "interior_point"])
def test_solvers_without_a_point_on_the_way_fit_with_callbacks(iris, solver):
    recorder = Recorder()
    SparseSVC(solver=solver, alpha=0.05).set_callbacks(recorder).fit(*iris)
    assert recorder.events[-2:] == [("end", "fit"), "teardown"]


def test_a_failed_fit_tears_its_callbacks_down(iris):
    recorder = Recorder()
    X, y = iris
    with pytest.raises(ValueError):
        model().set_callbacks(recorder).fit(np.full_like(X, np.nan), y)
    assert recorder.events[-1] == "teardown"


def test_the_callbacks_of_scikit_learn_work_also_within_a_search(iris):
    monitor = callback.ScoringMonitor(scoring="accuracy")
    clone(model()).set_callbacks(monitor).fit(*iris)
    search = GridSearchCV(model(), {"alpha": [0.1, 0.01]}, cv=3)
    recorder = Recorder()
    search.estimator.set_callbacks(recorder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(*iris)
    assert recorder.events.count("teardown") == recorder.events.count("setup") > 0


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_cross_validation_tells_of_every_path_and_every_fold(iris, n_jobs):
    recorder = Recorder()
    grid = {"penalty": ["l1", "l1/l2"]}
    cv = SparseSVCCV(param_grid=grid, n_alphas=4, cv=3, n_jobs=n_jobs)
    fitted = clone(cv).set_callbacks(recorder).fit(*iris)
    ends = [event[1] for event in recorder.events if event[0] == "end"]
    assert ends == ["path on all samples"] * 2 + ["fold"] * 6 + ["fit"]
    begins = [event[1] for event in recorder.events if event[0] == "begin"]
    assert begins == ["fit", *ends[:-1]]
    assert recorder.events[0] == "setup" and recorder.events[-1] == "teardown"
    assert recorder.scores == [fitted.score(*iris)]  # of the model at the end, the only one
    np.testing.assert_array_equal(fitted.coef_, cv.fit(*iris).coef_)


def test_a_progress_bar_knows_the_length_of_a_cross_validation(iris):
    parts = []

    class Length(Recorder):
        def on_fit_task_begin(self, estimator, context):
            parts.append(context.max_subtasks)

    SparseSVCCV(n_alphas=4, cv=3).set_callbacks(Length()).fit(*iris)
    assert parts == [1 + 3, 0, 0, 0, 0]
    pytest.importorskip("rich")
    SparseSVCCV(n_alphas=4, cv=3).set_callbacks(callback.ProgressBar()).fit(*iris)


def test_a_failed_cross_validation_tears_its_callbacks_down(iris):
    recorder = Recorder()
    X, y = iris
    with pytest.raises(ValueError):
        SparseSVCCV(cv=3).set_callbacks(recorder).fit(np.full_like(X, np.nan), y)
    assert recorder.events == ["setup", "teardown"]


def test_a_label_ranker_tells_of_every_report_with_a_model_that_predicts_label_sets():
    X, Y = make_multilabel_classification(60, n_features=10, random_state=0)
    recorder = Recorder()
    ranker = SparseLabelRanker(alpha=0.5, solver=FISTA(), tol=1e-2)
    fitted = clone(ranker).set_callbacks(recorder).fit(X, Y)
    reports = [event for event in recorder.events if event == ("end", "fista report")]
    assert len(reports) == fitted.result_.history.iteration.size
    assert recorder.scores[-1] == recorder.scores[-2] == fitted.score(X, Y)
    with pytest.warns(UserWarning, match="stopped"):
        stopped = clone(ranker).set_callbacks(Recorder(most=2)).fit(X, Y)
    assert stopped.result_.status == "stopped"
    np.testing.assert_array_equal(fitted.coef_, ranker.fit(X, Y).coef_)


@pytest.mark.parametrize(
    "estimator", [ConstrainedSparseSVC(0.3), ConstrainedSparseSVC(), MaxMarginSVC()]
)
def test_a_budget_and_the_largest_margin_tell_of_every_report_and_end_early(iris, estimator):
    recorder = Recorder()
    fitted = clone(estimator).set_callbacks(recorder).fit(*iris)
    assert recorder.events[0] == "setup" and recorder.events[-1] == "teardown"
    assert len([event for event in recorder.events if event[0] == "end"]) > 2
    assert recorder.scores[-1] == fitted.score(*iris)
    np.testing.assert_array_equal(fitted.coef_, clone(estimator).fit(*iris).coef_)
    with pytest.warns(UserWarning, match="stopped"):
        ended = clone(estimator).set_callbacks(Recorder(most=1)).fit(*iris)
    assert ended.result_.status == "stopped"
    assert ended.predict(iris[0]).shape == iris[1].shape
