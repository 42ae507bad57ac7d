"""What the documentation points to is there."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

from sparsvm import SparseSVC
from sparsvm.losses import LOSSES
from sparsvm.penalties import PENALTIES
from sparsvm.solvers.auto import SOLVERS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")
]
PAGES += sorted(
    path
    for room in ("docs", "benchmarks/results", "experiments/results")
    for path in ROOT.glob(f"{room}/**/*.md")
    if "measured" not in path.parts
)
# Every page of docs with code in it, but for one that tests/penalties runs.
WITH_CODE = [
    page
    for page in PAGES
    if ROOT / "docs" in page.parents
    and "```python" in page.read_text("utf-8")
    and page.stem != "add_a_penalty"
]
# Pages that the build of the site makes.
GENERATED = {"gallery/index", "measured/benchmarks/README", "measured/experiments/README"}
TOP = ("src", "tests", "docs", "benchmarks", "experiments", ".github", ".ci")
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED = re.compile(r"`([\w.*/-]+)`")
SCRIPT = re.compile(r"gallery/(?:images/sphx_glr_)?(plot_[a-z_]+?)(?:_\d+\.png)?[>\s]")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def named(path):
    return str(path.relative_to(ROOT))


def anchors(page):
    """The names under which Markdown renderers know the headings of a page."""
    headings = HEADING.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"\s+", "-", heading) for heading in plain}


def missing_links(page):
    found = []
    for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            found.append(target)
    return found


def missing_paths(page):
    """File names in backticks, from the root of the repository or relative to the page."""
    found = []
    for name in QUOTED.findall(page.read_text(encoding="utf-8")):
        if name.split("/")[0] in TOP and "/" in name and not list(ROOT.glob(name)):
            found.append(name)
    return found


def missing_entries(page):
    """Entries of tables of contents without a page."""
    found = []
    for block in re.findall(r"^```\{toctree\}(.*?)^```", page.read_text("utf-8"), re.M | re.S):
        entries = [
            line for line in block.splitlines() if line and line[0] != ":" and "*" not in line
        ]
        found += [
            entry
            for entry in entries
            if entry not in GENERATED and not (page.parent / f"{entry}.md").exists()
        ]
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_and_paths_of_the_documentation_exist(page):
    assert missing_links(page) == []
    assert missing_paths(page) == []
    assert missing_entries(page) == []


def test_every_page_of_docs_is_in_a_table_of_contents():
    listed = {ROOT / "docs" / "index.md"}
    for page in ROOT.glob("docs/**/*.md"):
        for block in re.findall(r"^```\{toctree\}(.*?)^```", page.read_text("utf-8"), re.M | re.S):
            for line in filter(None, block.splitlines()):
                listed |= set(page.parent.glob(f"{line}.md"))
    assert {page for page in PAGES if ROOT / "docs" in page.parents} - listed == set()


def test_every_loss_penalty_and_solver_has_its_place_in_docs():
    problem = (ROOT / "docs/problem.md").read_text("utf-8")
    solvers = (ROOT / "docs/solvers/index.md").read_text("utf-8")
    assert [name for name in (*LOSSES, *PENALTIES) if f"`{name}`" not in problem] == []
    assert [name for name in SOLVERS if not re.search(rf"[`\[]{name}[`\]]", solvers)] == []


def test_every_page_of_a_solver_says_what_it_solves_how_when_and_at_what_cost():
    for page in ROOT.glob("docs/solvers/*.md"):
        if page.stem != "index":
            text = page.read_text("utf-8")
            for part in ("## Problem", "Cost", "\n## When ", "taken|takes", "## References"):
                assert re.search(part, text), (page.name, part)
            assert "```text" in text, f"{page.name} has no pseudocode"


def test_pages_of_the_gallery_that_are_linked_have_a_script():
    for page in ROOT.glob("docs/**/*.md"):
        for name in re.findall(
            r"gallery/(?:images/sphx_glr_)?(plot_[a-z_]+?)(?:_\d+\.png)?[>\s]",
            page.read_text("utf-8"),
        ):
            assert (ROOT / "examples" / f"{name}.py").exists(), (page.name, name)


@pytest.mark.parametrize("page", WITH_CODE, ids=named)
def test_the_python_blocks_of_the_documentation_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
    assert all(block.startswith(">>> ") for block in blocks)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_every_guide_has_code_and_a_picture():
    for page in ROOT.glob("docs/guides/*.md"):
        if page.stem != "index":
            text = page.read_text("utf-8")
            assert page in WITH_CODE, page.name
            assert "```{image}" in text, page.name


@pytest.mark.parametrize(
    "room", ["", "losses", "penalties", "solvers", "prox", "datasets", "plots", "partitioned"]
)
def test_every_public_name_is_in_the_api(room):
    module = importlib.import_module(f"sparsvm.{room}".rstrip("."))
    text = (ROOT / "docs/api.md").read_text("utf-8")
    listed = " ".join(
        block.split("\n```")[0]
        for block in text.split(".. currentmodule:: ")
        if block.startswith(module.__name__ + "\n")
    ).split()
    objects = {name: getattr(module, name) for name in module.__all__}
    documented = {name for name, each in objects.items() if callable(each)}
    assert documented - set(listed) == set()


@pytest.mark.parametrize("room", ["", "partitioned", "dask"])
def test_the_html_of_an_estimator_links_to_its_page(room):
    """The page that the API's list of names makes for it, where the site is published."""
    module = importlib.import_module(f"sparsvm.{room}".rstrip("."))
    names = re.findall(r"^   (\w+)$", (ROOT / "docs/api.md").read_text("utf-8"), re.MULTILINE)
    estimators = [each for each in map(module.__dict__.get, module.__all__) if hasattr(each, "fit")]
    assert estimators
    for kind in estimators:
        first = [SparseSVC()] if "estimator" in inspect.signature(kind).parameters else []
        html = kind(*first)._repr_html_()
        assert kind.__name__ in names
        assert (
            f"https://sparsvm.github.io/sparsvm/api/{module.__name__}.{kind.__name__}.html" in html
        )


# What solvers are made of, which an example would not explain.
PARTS = {"SmoothLoss", "Solver", "Progress", "as_solver", "choose", "resolve", "solved_within"}
PARTS |= {"blas_threads", "thread_count"}


@pytest.mark.parametrize(
    "room", ["", "losses", "penalties", "solvers", "prox", "plots", "partitioned", "dask"]
)
def test_every_public_name_has_an_example(room):
    module = importlib.import_module(f"sparsvm.{room}".rstrip("."))
    objects = {name: getattr(module, name) for name in module.__all__ if name not in PARTS}
    without = [
        name for name, one in objects.items() if callable(one) and ">>> " not in (one.__doc__ or "")
    ]
    assert without == []


@pytest.mark.parametrize("script", sorted(ROOT.glob("examples/plot_*.py")), ids=named)
def test_every_figure_of_the_gallery_is_described(script):
    text = script.read_text("utf-8")
    assert text.count("plt.show()") == text.count("figure.set_label(") > 0


def test_what_is_missing_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A head\n[a](#a-head) [b](no.md) [c](#none) `src/sparsvm/none.py`\n")
    assert missing_links(page) == ["no.md", "#none"]
    assert missing_paths(page) == ["src/sparsvm/none.py"]
