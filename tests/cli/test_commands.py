"""What each command does, and with which exit code it leaves."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sparsvm import SparseSVC, SparseSVCCV, StabilitySelection
from sparsvm.io import load_model
from sparsvm.io.whole_files import replacing
from sparsvm.penalties import L1, GroupL2

FIT = ("--target", "kind", "--alpha", "0.05")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_fit_writes_the_model_that_python_fits(facts, flowers, numbers):
    found = facts("fit", flowers, *FIT, "--output", "m.safetensors")
    model = SparseSVC(penalty=L1(weights="scale"), alpha=0.05).fit(*numbers)
    loaded = load_model("m.safetensors")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.feature_names_in_.tolist()[0] == "sepal length"
    assert found["selected"] == [str(loaded.feature_names_in_[j]) for j in model.selected_features_]
    assert found["dual_gap"] <= 1e-3 and found["converged"] and found["files"] == ["m.safetensors"]


def test_options_reach_the_estimator(facts, flowers, numbers, tmp_path):
    (tmp_path / "groups.csv").write_text("feature,group\nsepal length,s\nsepal width,s\n")
    facts(
        *("fit", flowers, *FIT, "--loss", "squared_hinge", "--penalty", "l1/l2", "--tol", "1e-5"),
        *("--groups", "groups.csv", "--unpenalised", "petal width", "--no-scale", "--balanced"),
        *("--output", "m.safetensors"),
    )
    penalty = GroupL2(groups=["s", "s", "a", "b"], weights=[1, 1, 1, 0])
    model = SparseSVC("squared_hinge", penalty, alpha=0.05, class_weight="balanced", tol=1e-5)
    np.testing.assert_allclose(load_model("m.safetensors").coef_, model.fit(*numbers).coef_)
    (tmp_path / "groups.json").write_text(json.dumps({"s": ["sepal length", "sepal width"]}))
    again = facts("fit", flowers, *FIT, "--penalty", "l1/l2", "--groups", "groups.json")
    assert again["converged"]


def test_cv_chooses_as_python_does_and_writes_a_report(facts, flowers, numbers):
    pytest.importorskip("plotly")
    found = facts(
        *("cv", flowers, "--target", "kind", "--n-alphas", "10", "--folds", "3", "--rule", "1se"),
        *("--output", "m.safetensors", "--report", "r.html", "--stability"),
    )
    model = SparseSVCCV(penalty=L1(weights="scale"), n_alphas=10, cv=3, rule="1se").fit(*numbers)
    assert found["alpha"] == pytest.approx(model.alpha_)
    assert found["cv_score"] == pytest.approx(model.best_score_)
    with open("r.html", encoding="utf-8") as page:
        text = page.read()
    assert "petal width" in text and "of the training samples" in text


def test_a_share_is_put_aside_or_a_file_taken_for_the_test(facts, flowers):
    found = facts("fit", flowers, *FIT, "--test", "0.2")
    assert (found["samples"], found["test_samples"]) == (120, 30) and found["test_accuracy"] > 0.8
    assert facts("fit", flowers, *FIT, "--test", flowers)["test_samples"] == 150


def test_predictions_are_those_of_the_model_whatever_the_order_of_columns(run, flowers, numbers):
    run("fit", flowers, *FIT, "--output", "m.safetensors")
    rows = list(csv.reader(flowers.open()))
    with open("other.csv", "w", newline="") as file:
        csv.writer(file).writerows(["note", *row[:4][::-1]] for row in rows)
    code, _, err = run("predict", "m.safetensors", "other.csv", "--output", "p.csv", "--scores")
    assert code == 0, err
    found = rows_of("p.csv")
    model = load_model("m.safetensors")
    expected = SparseSVC(penalty=L1(weights="scale"), alpha=0.05).fit(*numbers)
    assert [row["prediction"] for row in found] == expected.predict(numbers[0]).tolist()
    scores = [[float(row[f"score {label}"]) for label in model.classes_] for row in found]
    np.testing.assert_allclose(scores, expected.decision_function(numbers[0]))


def test_without_an_output_predictions_go_to_the_standard_output(run, flowers):
    run("fit", flowers, *FIT, "--loss", "logistic", "--output", "m.safetensors")
    code, out, err = run("predict", "m.safetensors", flowers, "--target", "kind", "--scores")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 151 and lines[1].startswith("setosa,")
    assert lines[0] == "prediction,probability setosa,probability versicolor,probability virginica"
    assert "% of 150 samples are classified correctly" in err


def test_the_path_is_told_and_written_weight_by_weight(facts, flowers):
    found = facts("path", flowers, "--target", "kind", "--n-alphas", "5", "--output", "path.csv")
    assert len(found["alphas"]) == len(found["gaps"]) and max(found["gaps"]) <= 1e-3
    assert len(rows_of("path.csv")) == sum(found["nonzeros"])


def test_select_keeps_exactly_the_columns_in_use(facts, flowers):
    found = facts("select", flowers, "--target", "kind", "--alpha", "0.3", "--output", "few.csv")
    header = list(rows_of("few.csv")[0])
    assert sorted(header) == sorted([*found["selected"], "kind"]) and 0 < len(header) - 1 < 4
    assert facts("fit", "few.csv", *FIT)["features"] == len(header) - 1


def test_select_gives_at_most_so_many(facts, flowers):
    found = facts("select", flowers, "--target", "kind", "--max-features", "2")
    assert 1 <= len(found["selected"]) <= 2


def test_select_keeps_what_is_stable_over_resamples(facts, flowers, numbers):
    found = facts("select", flowers, "--target", "kind", "--stability", "--max-features", "2")
    model = SparseSVC(penalty=GroupL2(weights="scale"))
    stable = StabilitySelection(model, max_features=2, random_state=0).fit(*numbers)
    assert (
        found["sizes"] == sorted(stable.selection_probabilities_[stable.selected_features_])[::-1]
    )
    assert found["bounds"]["shah_samworth"] == pytest.approx(stable.error_bounds()["shah_samworth"])


def test_inspect_shows_the_file_and_report_makes_a_page_of_it(run, facts, flowers):
    pytest.importorskip("plotly")
    run("fit", flowers, *FIT, "--output", "m.safetensors")
    _, out, _ = run("inspect", "m.safetensors")
    assert "petal width" in out and "within" in out and "setosa" in out
    found = facts("inspect", "m.safetensors")
    model = load_model("m.safetensors")
    j = list(model.feature_names_in_).index("petal width")
    weights = [found["weights"]["petal width"][label] for label in model.classes_]
    np.testing.assert_allclose(weights, model.coef_[:, j])
    facts("report", "m.safetensors", flowers, "--target", "kind", "--output", "r.html")
    with open("r.html", encoding="utf-8") as page:
        assert "test samples are classified correctly" in page.read()


def test_export_gives_what_onnxruntime_predicts_alike(run, flowers, numbers):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    run("fit", flowers, *FIT, "--output", "m.safetensors")
    code, _, err = run("export", "m.safetensors", "m.onnx")
    assert code == 0, err
    labels = runtime.InferenceSession("m.onnx").run(["label"], {"X": numbers[0]})[0]
    predicted = SparseSVC(penalty=L1(weights="scale"), alpha=0.05).fit(*numbers).predict(numbers[0])
    np.testing.assert_array_equal(labels, predicted)


@pytest.mark.parametrize("file", ["iris.csv", "iris.tsv", "iris.tab", "iris.npz"])
def test_data_are_listed_and_exported(run, facts, file):
    names = {row["name"]: row["where"] for row in facts("data", "list")["data"]}
    assert names["iris"] == "with scikit-learn" and "leukemia" in names
    code, _, err = run("data", "export", "iris", file)
    assert code == 0, err
    assert facts("fit", file, "--target", "class", "--alpha", "0.1")["features"] == 4


def test_what_is_not_there_is_told_in_one_line(run, flowers, monkeypatch):
    monkeypatch.setenv("SPARSVM_DATA", "/nowhere")
    for code, words, arguments in [
        (2, "did you mean 'leukemia'?", ("data", "export", "leukaemia", "g.csv")),
        (1, "There is no file", ("data", "export", "leukemia", "g.csv")),
        (2, "did you mean 'kind'?", ("fit", flowers, "--target", "knd")),
        (2, "no such file", ("fit", "nowhere.csv", "--target", "y")),
        (2, "no such file", ("inspect", "nowhere.safetensors")),
        (2, "written as CSV or TSV", ("data", "export", "iris", "iris.parquet")),
        (2, "written as CSV or TSV", ("select", flowers, *FIT, "--output", "few.csv.gz")),
        (2, "written as CSV or TSV", ("path", flowers, *FIT[:2], "--output", "path.svm")),
        (1, "cannot be loaded as a model", ("inspect", flowers)),
        (2, "there is no folder", ("fit", flowers, *FIT, "--output", "no/where")),
        (2, "is none of", ("fit", flowers, *FIT, "--penalty", "l3")),
        (2, "does not go with --penalty l1", ("fit", flowers, *FIT, "--l1-ratio", "0.5")),
        (2, "is no feature", ("fit", flowers, *FIT, "--unpenalised", "petal")),
        (2, "--report FILE", ("cv", flowers, "--target", "kind", "--stability")),
        (2, "between 0 and 1", ("fit", flowers, *FIT, "--test", "7")),
        (2, "No such option", ("fit", flowers, "--nonsense")),
        (2, "Missing argument", ("fit",)),
        (2, "--alpha", ("fit", flowers, "--target", "kind", "--alpha", "much")),
    ]:
        found, out, err = run(*arguments)
        assert (found, out) == (code, ""), (arguments, err)
        assert words in err and err.startswith("sparsvm: ") and err.count("\n") == 1


def test_a_model_that_lacks_columns_says_which(run, flowers):
    run("fit", flowers, *FIT, "--output", "m.safetensors")
    with open("lacking.csv", "w") as file:
        file.write("sepal length,sepal width,petal_width\n1,2,3\n")
    code, _, err = run("predict", "m.safetensors", "lacking.csv")
    assert code == 2 and "lacks the column 'petal length' and 1 more" in err


def test_a_fit_that_does_not_converge_leaves_with_1_and_keeps_the_model(run, flowers):
    code, out, err = run(
        "fit",
        flowers,
        "--target",
        "kind",
        "--alpha",
        "1e-6",
        "--max-iter",
        "1",
        "--tol",
        "1e-9",
        "--output",
        "m.safetensors",
    )
    assert code == 1 and "duality gap" in err and "NOT reached" in out
    assert load_model("m.safetensors").n_features_in_ == 4


def test_an_interrupted_file_leaves_the_old_one(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(str(path)) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"] and path.read_text() == "old"
    with replacing(str(path)) as temporary:
        temporary.write_text("new")
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"] and path.read_text() == "new"


def test_the_page_of_the_command_line_has_every_command_and_option_it_names():
    from sparsvm.cli.commands import app

    text = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| .*", text, flags=re.MULTILINE))
    commands = {command.callback.__name__ for command in app.registered_commands}
    named = {name for row in listed for name in re.findall(r"`sparsvm (\w+)", row)}
    assert named == {*commands, "data"}
    help_pages = "".join(CliRunner().invoke(app, [name, "--help"]).output for name in commands)
    for option in set(re.findall(r"--[a-z][a-z0-9-]+", text)) - {"--help"}:
        assert option in help_pages, option


def test_the_experiments_are_found_in_a_clone_only(run, monkeypatch):
    from sparsvm.cli import around

    monkeypatch.setattr(around, "__file__", "/a/b/c/d/around.py")
    code, _, err = run("reproduce", "--list")
    assert code == 1 and "inside a clone" in err
