"""The peers of the smooth benchmark are judged by the objective that ours minimises."""

import sys
from pathlib import Path

import numpy as np
import pytest

import hinge_cases

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from smooth import peer, ratios


@pytest.mark.parametrize("name", ["news20_s_1e-3", "news20_lg_1e-4", "news20_ovr_l1_1e-3"])
def test_the_objective_of_the_peers_is_that_of_the_problem(name, monkeypatch):
    X, y = hinge_cases.gaussian(0, 40, 6, 4)
    monkeypatch.setattr(ratios, "load", lambda data: (X, y.astype(np.int32)))
    case = ratios.CASES[name]
    problem = ratios.make_problem(case)
    W = np.random.default_rng(0).standard_normal((problem.n_outputs, problem.d))
    _, loss, penalty = peer.PEERS[case.peer]
    value = peer.objective(loss, penalty, X, y, case.alpha, W)
    assert value == pytest.approx(problem.objective(W, np.zeros(problem.n_outputs)), rel=1e-12)
