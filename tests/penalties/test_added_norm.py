"""A norm of groups is added as docs/architecture.md says: a file for the core and one in NumPy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT, ADDED = Path(__file__).parents[2], Path(__file__).parent / "added_norm"


def inserted(path, before, text):
    source = path.read_text(encoding="utf-8")
    assert source.count(before) == 1
    path.write_text(source.replace(before, text), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "src" / "core").exists(), reason="the sources are not there")
def test_a_norm_with_a_prox_takes_two_files_and_their_lines_in_the_lists(tmp_path):
    pytest.importorskip("scikit_build_core")
    for name in ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src")
    core, package = tmp_path / "src/core/penalty", tmp_path / "src/sparsvm/penalties"
    shutil.copy(ADDED / "norm_l4.hpp", core)
    shutil.copy(ADDED / "group_l4.py", package)
    include = '#include "penalty/norm_linf.hpp"'
    inserted(core / "norms.hpp", include, f'#include "penalty/norm_l4.hpp"\n{include}')
    inserted(core / "norms.hpp", "MaximumNorm>;", "MaximumNorm, FourNorm>;")
    first = "from sparsvm.penalties.l0 import L0"
    line = "from sparsvm.penalties.group_l4 import GroupL4 as GroupL4"
    inserted(package / "__init__.py", first, f"{line}\n{first}")
    inserted(package / "__init__.py", "for cls in (L1,", "for cls in (GroupL4, L1,")
    site = tmp_path / "site"
    install = ["-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--target"]
    subprocess.run([sys.executable, *install, site, tmp_path], check=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    fits = [sys.executable, ADDED / "fit_it.py"]
    subprocess.run(fits, check=True, env=environment, cwd=tmp_path)
