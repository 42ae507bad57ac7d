"""Choosing a solver: by name, by object, or by the table behind "auto"."""

import os
import threading

import pytest
import threadpoolctl
from sklearn.base import clone

import hinge_cases as cases
from sparsvm.problem.solution import Control
from sparsvm.solvers import Solver, blas_threads
from sparsvm.solvers.registry import CONVEX, Registry, Rule


class Able(Solver):
    name = "able"

    def __init__(self, speed=1.0, shape=None):
        self.speed = speed
        self.shape = shape

    def unsupported(self, problem):
        return None


class Picky(Solver):
    name = "picky"

    def unsupported(self, problem):
        return None if problem == "easy" else "It takes easy problems only."


TWO = Registry(
    {"able": Able, "picky": Picky},
    (
        Rule(("picky",), lambda problem, control: True, "fast"),
        Rule(("able",), lambda problem, control: control != "never", "general"),
    ),
)


def test_auto_takes_the_first_rule_whose_solver_can():
    assert TWO.choose("easy", None) == Picky()
    assert TWO.choose("hard", None) == Able()
    assert TWO.resolve("auto", "hard", None) == Able()


def test_auto_says_why_nobody_can():
    with pytest.raises(ValueError, match="picky: It takes easy problems only"):
        Registry(TWO.solvers, TWO.rules[:1]).choose("hard", None)


def test_newton_before_interior_point_works_no_further_than_that_would():
    X, y = cases.gaussian(0, 600, 20, 3)
    problem = cases.build(X, y, cases.PENALTIES["l1"](20), share=0.05)
    chain = CONVEX.choose(problem, Control(tol=1e-3))
    names = [stage.solver.name for stage in chain.stages]
    assert names == ["sdca", "newton", "interior_point", "newton"]
    first, last = chain.stages[1].solver, chain.stages[3].solver
    assert 0.0 < first.max_work < float("inf") and last.max_work is None


def test_an_object_keeps_its_options():
    assert TWO.resolve(Able(speed=3.0), "hard", None).speed == 3.0


@pytest.mark.parametrize("name", ["abel", 3, None])
def test_unknown_names_list_the_valid_ones(name):
    with pytest.raises(ValueError, match="'auto', 'able', 'picky'"):
        TWO.as_solver(name)


def test_a_solver_that_cannot_names_those_that_can():
    with pytest.raises(ValueError, match=r"easy problems only\. Solvers that can: 'able'"):
        TWO.resolve("picky", "hard", None)


def test_solvers_clone_compare_and_print_by_their_parameters():
    one = Able(speed=2.0, shape=[1, 2])
    assert clone(one) == one and hash(clone(one)) == hash(one)
    assert one != Able() and one != Picky()
    assert repr(one) == "Able(speed=2.0, shape=[1, 2])" and repr(Able()) == "Able()"
    assert one.set_params(speed=1.0).get_params() == {"speed": 1.0, "shape": [1, 2]}
    with pytest.raises(ValueError, match="no parameter 'sped'; it takes speed, shape"):
        one.set_params(sped=1)


def blas_now():
    found = threadpoolctl.threadpool_info()
    return [pool["num_threads"] for pool in found if pool["user_api"] == "blas"]


def test_overlapping_blas_limits_restore_the_original_setting():
    with blas_threads(1):  # loads every BLAS, so that the lists below compare
        pass
    before = blas_now()
    inside, leave = threading.Event(), threading.Event()

    def worker():
        with blas_threads(1):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=worker)
    with blas_threads(1):
        thread.start()
        assert inside.wait(10)
    assert set(blas_now()) == {1}  # the worker is still inside
    leave.set()
    thread.join()
    assert blas_now() == before


def test_blas_threads_none_leaves_blas_alone_and_zero_is_refused():
    before = blas_now()
    with blas_threads(None):
        assert blas_now() == before
    with pytest.raises(ValueError, match="at least 1"), blas_threads(0):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_inside_the_limit_starts_unlimited():
    with blas_threads(1):
        pass
    before = blas_now()
    with blas_threads(1):
        child = os.fork()
        if child == 0:
            os._exit(0 if blas_now() == before else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0
    assert blas_now() == before
