"""Tables that are read and fitted by chunks of rows."""

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest

from sparsvm import SparseSVC
from sparsvm.io import load_model
from sparsvm.penalties import L1

FIT = ("--target", "kind", "--alpha", "0.05")


def test_chunks_give_the_model_of_all_rows_and_leave_no_file(facts, flowers, numbers, tmp_path):
    before = set(Path(tempfile.gettempdir()).glob("sparsvm-*"))
    found = facts("fit", flowers, *FIT, "--chunks", 40, "--tol", "1e-5", "-o", "m.safetensors")
    assert set(Path(tempfile.gettempdir()).glob("sparsvm-*")) <= before
    whole = SparseSVC(penalty=L1(weights="scale"), alpha=0.05, tol=1e-6).fit(*numbers)
    assert found["objective"] == pytest.approx(whole.objective_, rel=1.1e-5)
    assert found["samples"] == len(numbers[1])
    loaded = load_model("m.safetensors")
    assert np.mean(loaded.predict(numbers[0]) == whole.predict(numbers[0])) > 0.98
    assert loaded.feature_names_in_.tolist()[0] == "sepal length"


def test_chunks_come_from_pipes_and_packed_files_and_are_tested_on_a_file(facts, flowers):
    text = Path(flowers).read_text(encoding="utf-8")
    with gzip.open("flowers.csv.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    packed = facts("fit", "flowers.csv.gz", *FIT, "--chunks", 64, "--test", flowers)
    piped = facts("fit", "-", *FIT, "--chunks", 64, stdin=text)
    assert packed["objective"] == piped["objective"]
    assert packed["test_accuracy"] > 0.9


def test_cv_by_chunks_chooses_an_alpha(facts, flowers):
    found = facts(
        *("cv", flowers, "--target", "kind", "--n-alphas", 4, "--folds", 2, "--chunks", 60),
        *("--output", "m.safetensors"),
    )
    assert found["converged"] and found["cv_score"] > 0.8
    assert load_model("m.safetensors").alpha_ == pytest.approx(found["alpha"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--test", "0.25"), "takes a file with --chunks"),
        (("--format", "svmlight"), "reads CSV and TSV"),
    ],
)
def test_what_chunks_cannot_do_is_said(run, flowers, arguments, words):
    code, _, err = run("fit", flowers, *FIT, "--chunks", 50, *arguments)
    assert code == 2
    assert words in " ".join(err.split())


def test_a_bad_cell_in_a_later_chunk_has_its_own_line(run):
    rows = [f"{i % 7},{'a' if i % 2 else 'b'}" for i in range(30)]
    rows[22] = "oops,a"
    Path("t.csv").write_text("\n".join(["x,kind", *rows]) + "\n", encoding="utf-8")
    code, _, err = run("fit", "t.csv", *FIT, "--chunks", 10)
    assert code == 2
    assert "line 24" in err and "oops" in err
