"""The command line inside the process, and as a process of its own."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

typer = pytest.importorskip("typer")
pytest.importorskip("rich")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder and return its exit code, output and errors."""
    from typer.testing import CliRunner

    from sparsvm.cli.commands import app

    monkeypatch.chdir(tmp_path)

    def invoke(*arguments, stdin=None):
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return invoke


@pytest.fixture
def facts(run):
    """Run a command with --json and return what it tells."""

    def invoke(*arguments, stdin=None, code=0):
        found, out, err = run(*arguments, "--json", stdin=stdin)
        assert found == code, err
        return json.loads(out)

    return invoke


@pytest.fixture
def process(tmp_path):
    """Start the command line as users do."""

    def start(*arguments, **options):
        command = [sys.executable, "-m", "sparsvm.cli", *map(str, arguments)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(command, cwd=tmp_path, env=environment, **{**pipes, **options})

    return start


@pytest.fixture
def flowers(tmp_path):
    """A table of three classes: four measurements, the labels last."""
    from sklearn.datasets import load_iris

    iris = load_iris()
    lines = ["sepal length,sepal width,petal length,petal width,kind"]
    for row, label in zip(iris.data, iris.target_names[iris.target], strict=True):
        lines.append(",".join([*map(str, row), label]))
    path = tmp_path / "flowers.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def numbers():
    """Samples and labels as arrays."""
    from sklearn.datasets import load_iris

    iris = load_iris()
    return np.asarray(iris.data), iris.target_names[iris.target]
