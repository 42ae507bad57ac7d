"""What the README says runs: its examples, its penalties, its files and its commands."""

import doctest
import re
import runpy
import shlex
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from sparsvm import SparseSVC
from sparsvm.cli.commands import app
from sparsvm.datasets import data_file
from sparsvm.losses import LOSSES
from sparsvm.penalties import PENALTIES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
CELLS = re.findall(r'^\| (`".*?) \|', TEXT, flags=re.MULTILINE)
ROWS = [name for cell in CELLS for name in re.findall(r'`"([^"]+)"`', cell)]
LISTED = {
    "loss": [name for name in ROWS if name in LOSSES],
    "penalty": [name for name in ROWS if name in PENALTIES],
}


def run_commands(most=None):
    """Run the commands of the README in this folder, on wine where the genes are not there."""
    commands = re.findall(r"^\$ sparsvm (.*)$", TEXT, flags=re.MULTILINE)
    try:
        data_file("golub_leukemia3/golub3.npz")
    except FileNotFoundError:
        commands = [command.replace("leukemia", "wine") for command in commands]
    for command in commands[:most]:
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, (command, done.output)
    return commands


def test_the_commands_run_and_leave_what_they_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(run_commands()) == 5
    written = {"genes.csv", "model.safetensors", "report.html", "predictions.csv", "model.onnx"}
    assert {path.name for path in tmp_path.iterdir()} == written
    table = (tmp_path / "genes.csv").read_text().splitlines()
    predictions = (tmp_path / "predictions.csv").read_text().splitlines()
    assert len(predictions) == len(table)
    right = [a.endswith("," + b) for a, b in zip(table[1:], predictions[1:], strict=True)]
    assert sum(right) >= 0.9 * len(right)


def test_the_python_blocks_run_and_print_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they write files, and read the one that the first command writes
    run_commands(1)
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


def test_the_package_index_gets_links_to_files_that_exist():
    script = runpy.run_path(str(ROOT / "packaging/absolute_links.py"))
    links = re.findall(r"\]\(([^)]+)\)", script["absolute"](TEXT))
    file = re.compile(re.escape(script["REPOSITORY"]) + "/(?:raw|blob)/main/([^#]+)")
    page = re.compile(re.escape(script["SITE"]) + "/([^#]+)[.]html")
    files = [found[1] for found in map(file.match, links) if found]
    pages = [f"docs/{found[1]}.md" for found in map(page.match, links) if found]
    assert len(files) >= 5 and len(pages) >= 10
    assert all((ROOT / path).exists() for path in (*files, *pages))
    assert all("://" in link for link in links)
