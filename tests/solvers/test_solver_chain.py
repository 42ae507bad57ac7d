"""Chains of solvers: who hands over to whom, and what is returned."""

from dataclasses import replace

import numpy as np
import pytest

import hinge_cases
from problems import make
from sparsvm.penalties import L1
from sparsvm.problem.solution import Control, History, Solution, Start
from sparsvm.solvers import Chain, Solver, Stage, as_solver, choose, registry
from sparsvm.solvers.registry import Link, Registry, Rule


class Scripted(Solver):
    """Return a solution of a given gap and remember what it was asked."""

    name = "scripted"

    def __init__(self, gap, status="stalled", objective=1.0, floor=0.0):
        self.gap = gap
        self.floor = floor
        self.status = status
        self.objective = objective

    def unsupported(self, problem):
        return None

    def solve(self, problem, start, control):
        self.seen = (start, control)
        history = History(
            iteration=np.array([1, 2]),
            seconds=np.array([0.0, 0.1]),
            objective=np.array([2.0, 1.0]),
            gap=np.array([1.0, self.gap]),
            nonzeros=np.array([3, 4]),
        )
        return Solution(
            coef=np.full((1, 1), self.gap),
            intercept=np.zeros(1),
            dual=np.zeros((1, 2)),
            objective=self.objective,
            dual_objective=self.objective - self.gap,
            gap=self.gap,
            relative_gap=self.gap,
            floor=self.floor,
            status="optimal" if self.gap <= max(control.tol, self.floor) else self.status,
            n_iter=2,
            seconds=0.1,
            history=history,
            solver=self.name,
        )


def run(*solvers, tol=1e-4, max_iter=None, problem=None):
    stages = tuple(s if isinstance(s, Stage) else Stage(s) for s in solvers)
    return Chain(stages).solve(problem, None, Control(tol=tol, max_iter=max_iter))


def test_a_gap_hidden_by_coefficients_that_ran_off_is_handed_over_without_them():
    X, y = hinge_cases.gaussian(0, 24, 3, 2)
    problem = hinge_cases.build(X, y, L1(), share=0.5)
    with_term = replace(problem, linear_term=np.ones((1, 3)))
    far, near = Scripted(0.05, floor=0.1), Scripted(1e-9)
    for either in (problem, with_term):
        assert run(far, near, problem=either).gap == 1e-9 and near.seen[0] is None
    idle = Scripted(1e-9)
    # Without a linear term what rounding hides may be a millionth of the margins.
    little = Scripted(5e-7, floor=9e-7, objective=1e-6)
    assert run(little, idle, problem=problem).gap == 5e-7 and not hasattr(idle, "seen")
    assert run(little, near, problem=with_term).gap == 1e-9
    # Next to a gap within the tolerance a floor, which is a worst case, may be larger.
    assert run(Scripted(1e-6, floor=5e-4), idle, problem=with_term).gap == 1e-6
    assert not hasattr(idle, "seen")
    # Where nothing better comes the first is returned.
    assert run(far, Scripted(0.5), problem=with_term).gap == 0.05


def test_the_point_of_one_stage_and_the_bound_of_another_prove_each_other():
    bound, point, idle = Scripted(1e-3, objective=1.001), Scripted(1e-3), Scripted(1e-9)
    found = run(bound, point, idle)
    assert found.status == "optimal" and found.gap <= 1e-12 and found.objective == 1.0
    assert not hasattr(idle, "seen")


def test_a_stage_stops_at_its_own_gap_and_hands_its_point_over():
    rough, fine = Scripted(5e-3), Scripted(5e-5)
    found = run(Stage(rough, until=1e-2), fine)
    assert rough.seen[1].tol == 1e-2 and fine.seen[1].tol == 1e-4
    assert fine.seen[0].coef[0, 0] == 5e-3
    assert found.status == "optimal" and found.gap == 5e-5 and found.n_iter == 4
    assert found.solver == "scripted → scripted"
    assert found.history.iteration.tolist() == [1, 2, 3, 4]
    assert found.history.gap.tolist() == [1.0, 5e-3, 1.0, 5e-5]


@pytest.mark.parametrize(("gap", "enters"), [(0.2, False), (0.05, True)])
def test_a_stage_enters_only_at_gaps_from_which_it_converges(gap, enters):
    first, second, third = Scripted(gap), Scripted(gap / 2), Scripted(1e-5)
    run(first, Stage(second, enter=0.1), third)
    assert hasattr(second, "seen") == enters
    assert third.seen[0].coef == pytest.approx(gap / 2 if enters else gap)


def test_nothing_runs_after_the_tolerance_is_met():
    first, second = Scripted(1e-5), Scripted(1e-9)
    assert run(first, second).gap == 1e-5
    assert not hasattr(second, "seen")


def test_a_stalled_stage_falls_through_and_the_best_point_is_returned():
    found = run(Scripted(1e-3), Scripted(1e-2))
    assert found.gap == 1e-3 and found.status == "stalled"


def test_a_stage_tolerance_is_not_the_tolerance_of_the_chain():
    assert run(Stage(Scripted(5e-3), until=1e-2)).status == "stalled"


def test_an_iteration_limit_of_the_caller_ends_the_chain():
    second = Scripted(1e-9)
    assert run(Scripted(1e-3, "max_iter"), second, max_iter=2).status == "max_iter"
    assert not hasattr(second, "seen")
    # A solver's own default limit is a reason to try the next one.
    assert run(Scripted(1e-3, "max_iter"), second).status == "optimal"


def test_a_limit_of_a_stage_hands_over_unless_the_caller_has_one():
    first, second = Scripted(1e-2, status="max_iter"), Scripted(1e-5)
    assert run(Stage(first, 1e-3, 7), second).gap == 1e-5
    assert first.seen[1].max_iter == 7 and second.seen[1].max_iter is None
    found = run(Stage(first, 1e-3, 7), second, max_iter=5)
    assert first.seen[1].max_iter == 5 and found.status == "max_iter" and found.gap == 1e-2


def test_auto_does_not_wait_for_sweeps_where_factorisations_are_affordable():
    for d, name, rival in (
        (5, "interior_point", False),
        (60, "sdca", True),
        (300, "sdca", True),
        (1500, "sdca", False),
    ):
        X, y = hinge_cases.gaussian(0, 600, d, 3)
        problem = hinge_cases.build(X, y, hinge_cases.PENALTIES["l1"](d))
        chain = choose(problem, Control())
        first = chain.stages[0].solver
        assert first.name == name
        assert (getattr(first, "rival_work", None) is not None) == rival
        # A last stage that may be passed over could leave nothing to return.
        assert chain.stages[-1].enter == np.inf


def test_auto_sweeps_first_where_a_few_sweeps_cost_less_than_factorisations():
    for n, d, sweeps in ((400, 300, True), (150, 4, False), (40, 3000, False)):
        X, y = hinge_cases.gaussian(0, n, d, 4)
        for kind in ("l1", "l1/l2-rows-joint"):
            problem = hinge_cases.build(X, y, hinge_cases.PENALTIES[kind](d))
            chain = choose(problem, Control())
            assert (chain.stages[0].solver.name == "sdca") == sweeps
            warm = Start(np.zeros((4, d)), np.zeros(4), np.zeros((n, 4)))
            assert chain.stages_from(warm)[0].solver.name == "interior_point"


def test_a_stage_for_cold_starts_is_passed_over_from_a_warm_one():
    first, second = Scripted(1e-2), Scripted(1e-5)
    chain = Chain((Stage(first, 1e-3, cold=True), Stage(second)))
    assert chain.stages_from(None) == chain.stages
    assert chain.stages_from(Start(np.zeros((1, 2)), np.zeros(1), None)) == chain.stages
    warm = Start(np.zeros((1, 2)), np.zeros(1), np.zeros((3, 2)))
    assert chain.stages_from(warm) == chain.stages[1:]


@pytest.mark.parametrize("kind", ["l1", "l1/l2-rows-joint"])
def test_auto_begins_with_interior_point_on_sparse_data_that_sdca_cannot_take(kind):
    d = 2000
    X, y = hinge_cases.gaussian(0, registry.MANY_SPARSE_SAMPLES_FOR_LAST_DIGITS + 1, d, 3)
    weights = np.ones(d)
    for smallest, first in ((1.0, "sdca"), (0.0, "interior_point")):
        weights[2] = smallest
        problem = hinge_cases.build(
            hinge_cases.STORAGES["csr"](X), y, hinge_cases.PENALTIES[kind](d, weights)
        )
        assert choose(problem, Control(tol=1e-6)).stages[0].solver.name == first


@pytest.mark.parametrize(
    ("kind", "first"),
    [("l1", "interior_point"), ("l1/linf-rows-joint", "interior_point"), ("l2", "sdca")],
)
def test_auto_takes_sparse_data_of_few_features_for_what_they_are(kind, first):
    X, y = hinge_cases.gaussian(0, 300, 20, 5)
    problem = hinge_cases.build(hinge_cases.STORAGES["csr"](X), y, hinge_cases.PENALTIES[kind](20))
    for tol in (1e-3, 1e-6):
        assert choose(problem, Control(tol=tol)).stages[0].solver.name == first


def test_auto_leaves_out_of_a_chain_the_solvers_that_cannot():
    class Never(Scripted):
        name = "never"

        def unsupported(self, problem):
            return "It never works."

    able = type(
        "Able", (Scripted,), {"name": "able", "__init__": lambda s: Scripted.__init__(s, 0)}
    )
    never = type("No", (Never,), {"name": "never", "__init__": lambda s: Scripted.__init__(s, 0)})
    rule = Rule(("never", Link("able", 1e-2), "able"), lambda problem, control: True, "why")
    chain = Registry({"able": able, "never": never}, (rule,)).choose(None, None)
    assert [stage.until for stage in chain.stages] == [1e-2, 0.0]
    assert all(stage.solver.name == "able" for stage in chain.stages)
    assert Chain((Stage(never()),)).unsupported(None) == "It never works."


@pytest.mark.parametrize("penalty", ["l1", "l1/l2"])
def test_real_solvers_pass_their_points_on(penalty):
    problem = make(3, penalty=penalty)
    stages = (Stage(as_solver("fbpd"), until=0.1), Stage(as_solver("interior_point")))
    found = Chain(stages).solve(problem, None, Control(tol=1e-6))
    alone = as_solver("interior_point").solve(problem, None, Control(tol=1e-6))
    assert found.converged and found.solver == "fbpd → interior_point"
    assert found.objective == pytest.approx(alone.objective, rel=2e-6)
