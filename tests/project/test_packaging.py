"""What an installation is, and what its packages say of it."""

from __future__ import annotations

import re
from pathlib import Path

import sparsvm

ROOT = Path(__file__).parents[2]


def test_an_installation_takes_less_than_6_4_megabytes_of_which_2_4_are_native():
    """Byte code included, which pip writes when it installs; dependencies are not counted.

    The solvers and estimators were 4.1 MB before the command line, reports, model files,
    partitions with their paths and cross-validation, rankings, and native paths of the hinge came.
    """
    files = [path for path in Path(sparsvm.__file__).parent.rglob("*") if path.is_file()]
    native = sum(path.stat().st_size for path in files if path.suffix == ".so")
    assert native < 2.4e6
    assert sum(path.stat().st_size for path in files) < 6.4e6


def test_the_citation_and_the_conda_recipe_have_the_version_and_needs_of_the_package():
    text = {
        name: (ROOT / name).read_text("utf-8")
        for name in ("pyproject.toml", "CITATION.cff", "packaging/conda/recipe.yaml")
    }
    assert f'version = "{sparsvm.__version__}"' in text["pyproject.toml"]
    assert f"version: {sparsvm.__version__}\n" in text["CITATION.cff"]
    recipe = text["packaging/conda/recipe.yaml"]
    assert f'version: "{sparsvm.__version__}"' in recipe
    listed = re.search(r"^dependencies = \[(.*?)^\]", text["pyproject.toml"], re.M | re.S)[1]
    needs = {line.strip('", ').replace(">=", " >=") for line in listed.split("\n") if line}
    run = recipe.split("  run:\n")[1].split("\n\n")[0].split("\n")
    assert {line.strip(" -") for line in run} == needs | {"python"}
