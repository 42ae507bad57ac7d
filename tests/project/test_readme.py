"""What the README says runs: its examples, its penalties, its files and its commands."""

import doctest
import re
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from sparsvm import SparseSVC
from sparsvm.losses import LOSSES
from sparsvm.penalties import PENALTIES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r'^\| `"([^"]+)"` \|', TEXT, flags=re.MULTILINE)
LISTED = {
    "loss": [name for name in ROWS if name in LOSSES],
    "penalty": [name for name in ROWS if name in PENALTIES],
}


def test_the_python_blocks_run_and_print_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they write files
    blocks = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README.md", None, 0)
    assert len(test.examples) >= 10
    report: list[str] = []
    results = doctest.DocTestRunner().run(test, out=report.append)
    assert results.failed == 0, "".join(report)


def test_every_loss_and_penalty_is_listed():
    assert sorted(ROWS) == sorted([*LOSSES, *PENALTIES])


@pytest.mark.parametrize("parameter, name", [(p, name) for p in LISTED for name in LISTED[p]])
def test_a_listed_name_is_solved_to_the_tolerance(parameter, name):
    X, y = load_iris(return_X_y=True)
    result = SparseSVC(alpha=0.01).set_params(**{parameter: name}).fit(X, y).result_
    convex = LOSSES.get(name, PENALTIES.get(name)).convex
    proven = result.relative_gap if convex else result.criticality / result.objective
    assert proven <= 1e-3


def test_files_and_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", TEXT, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    links = re.findall(r"\]\(([^):]+)\)", TEXT)
    scripts = re.findall(r"`python (\S+\.py)`", TEXT)
    assert len(links) >= 3 and scripts
    for path in links + scripts:
        assert (ROOT / path).exists(), path


def test_the_picture_is_small_enough_for_a_readme():
    assert (ROOT / "docs/images/demo.png").stat().st_size < 300_000
