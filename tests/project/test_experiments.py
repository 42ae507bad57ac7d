"""The harness of the experiments: cells are measured once, pages hold what was measured."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "experiments"
sys.path.append(str(FOLDER))

import reproduce  # noqa: E402
from harness import Experiment, markdown_table, read  # noqa: E402


def _experiment(measured, stop_at=None):
    def measure(cell, quick):
        if cell["at"] == stop_at:
            raise KeyboardInterrupt
        measured.append(cell["at"])
        return [{"square": cell["at"] ** 2, "name": f"n{cell['at']}"}]

    return Experiment(
        item="000 Fig. 9",
        title="squares",
        cells=lambda quick: [{"at": at} for at in range(2 if quick else 4)],
        measure=measure,
        tell=lambda rows: markdown_table(("at", "square"), [(r["at"], r["square"]) for r in rows]),
        claims=(("Squares grow", lambda rows: ("confirmed", f"up to {rows[-1]['square']}")),),
    )


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    measured = []
    with pytest.raises(KeyboardInterrupt):
        _experiment(measured, stop_at=2).run(tmp_path)
    assert measured == [0, 1]
    rows = _experiment(measured).run(tmp_path)
    assert measured == [0, 1, 2, 3]
    assert [row["square"] for row in rows] == [0, 1, 4, 9]
    assert rows[3]["name"] == "n3"


def test_no_relative_gap_in_a_table_is_above_one():
    # Objectives and bounds are not negative: a gap above 1 was divided by the objective twice.
    for table in sorted((FOLDER / "results").glob("*.csv")):
        for row in read(table):
            gaps = [row[name] for name in ("gap", "solution_gap") if row.get(name, "") != ""]
            assert all(gap <= 1.0 for gap in gaps if gap == gap), (table.name, row)


def test_fresh_measures_everything_again(tmp_path):
    measured = []
    _experiment(measured).run(tmp_path, quick=True)
    _experiment(measured).run(tmp_path, quick=True, fresh=True)
    assert measured == [0, 1, 0, 1]


def test_draws_and_minutes_limit_what_is_measured_and_a_longer_run_goes_on(tmp_path):
    measured = []
    few = _experiment(measured)
    few = Experiment(
        item=few.item,
        title=few.title,
        cells=lambda quick: [{"at": at, "draw": at % 2} for at in range(4)],
        measure=few.measure,
        tell=few.tell,
    )
    few.run(tmp_path, draws=1)
    assert measured == [0, 2]
    few.run(tmp_path, minutes=-1.0)
    assert measured == [0, 2]
    few.run(tmp_path)
    assert measured == [0, 2, 1, 3]


def test_a_run_of_all_obeys_the_limit_of_minutes(tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(reproduce, "experiments", lambda: [("squares", _experiment(measured))])
    argv = ["reproduce.py", "--quick", "--output", str(tmp_path), "--minutes"]
    monkeypatch.setattr(sys, "argv", [*argv, "1"])
    reproduce.main()
    assert measured == [0, 1]
    (tmp_path / "000_figure_9.csv").write_text("at,square,name\n0,0,n0\n")
    monkeypatch.setattr(sys, "argv", [*argv, "-1"])
    reproduce.main()
    assert measured == [0, 1]


def test_the_page_holds_the_table_and_what_became_of_the_claims(tmp_path):
    _experiment([]).run(tmp_path)
    page = (tmp_path / "000_figure_9.md").read_text()
    assert page.startswith("# 000 Fig. 9: squares")
    assert "| 3 | 9 |" in page
    assert "| Squares grow | confirmed | up to 9 |" in page


def test_every_experiment_has_a_name_of_its_own_and_its_results_are_linked():
    found = reproduce.experiments()
    items = [experiment.item for _, experiment in found]
    assert len(set(items)) == len(items)
    readme = (FOLDER / "README.md").read_text()
    for module, experiment in found:
        assert f"| {experiment.item} | {experiment.title} | [{module}.py]({module}.py)" in readme
