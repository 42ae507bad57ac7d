"""What type checkers tell users: fit returns the estimator, names are literals."""

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import sparsvm
from sparsvm import hierarchical, solvers
from sparsvm._typing import (
    BudgetSolverName,
    HierarchicalSolverName,
    LossName,
    PenaltyName,
    RankingSolverName,
    SolverName,
)
from sparsvm.budget.registry import CONSTRAINED_SOLVERS
from sparsvm.losses import LOSSES
from sparsvm.penalties import PENALTIES
from sparsvm.solvers.ranking import RANKING

pytest.importorskip("mypy")

CODE = """
from sparsvm import (
    ConstrainedSparseSVC, MaxMarginSVC, SparseLabelRanker, SparseSVC, SparseSVCCV, certify, svm_path
)
from sparsvm.budget.search import BudgetSearch
from sparsvm.solvers import FISTA, SDCA, Observed

class Mine(SparseSVC):
    pass

X, y = [[0.0], [1.0]], [0, 1]
reveal_type(SparseSVC("hinge", "l1/l2", class_weight="balanced").fit(X, y))
reveal_type(Mine().fit(X, y))
reveal_type(SparseSVCCV(rule="1se").fit(X, y))
reveal_type(ConstrainedSparseSVC().fit(X, y))
reveal_type(MaxMarginSVC().fit(X, y).predict(X))
SparseSVC(loss="hing")
SparseSVC(penalty="l3")
SparseSVCCV(rule="2se")
certify(X, y, [[1.0]], loss="logit", penalty="l1", alpha=0.1)
SparseSVC(solver=SDCA()), ConstrainedSparseSVC(solver=BudgetSearch())
MaxMarginSVC(solver=Observed("hsdm", lambda progress: False)), SparseLabelRanker(solver=FISTA())
SparseSVC(solver="saga")
SparseSVCCV(solver=3)
svm_path(X, y, solver="liblinear")
ConstrainedSparseSVC(solver="sdca")
MaxMarginSVC(solver="sdca")
SparseLabelRanker(solver="sdca")
"""
EXPECTED = [
    'Revealed type is "sparsvm.estimators.sparse_svc.SparseSVC"',
    'Revealed type is "user.Mine"',
    'Revealed type is "sparsvm.estimators.cv.SparseSVCCV"',
    'Revealed type is "sparsvm.estimators.constrained_svc.ConstrainedSparseSVC"',
    'Revealed type is "numpy.ndarray[',
    "Literal['hing']",
    "Literal['l3']",
    "Literal['2se']",
    "Literal['logit']",
    "Literal['saga']",
    "Literal[3]",
    "Literal['liblinear']",
    *(["Literal['sdca']"] * 3),
]


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (LossName, LOSSES),
        (PenaltyName, PENALTIES),
        (SolverName, ["auto", *solvers.SOLVERS]),
        (RankingSolverName, ["auto", *RANKING.solvers]),
        (BudgetSolverName, ["auto", *CONSTRAINED_SOLVERS]),
        (HierarchicalSolverName, ["auto", *hierarchical.SOLVERS]),
    ],
)
def test_the_names_that_a_type_checker_knows_are_those_that_there_are(names, table):
    assert set(get_args(names)) == set(table)


def test_a_type_checker_knows_what_fit_returns_and_which_names_there_are(tmp_path):
    (tmp_path / "user.py").write_text(CODE)
    package = Path(sparsvm.__file__).parent
    assert (package / "py.typed").is_file()
    environment = dict(os.environ)
    if package.parent.name != "site-packages":
        environment["MYPYPATH"] = str(package.parent)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", "user.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in run.stdout.splitlines() if ": note: " in line or ": error: " in line]
    lines = [line for line in lines if line.startswith("user.py")]
    assert len(lines) == len(EXPECTED), run.stdout + run.stderr
    for line, expected in zip(lines, EXPECTED, strict=True):
        assert expected in line
