"""What an installation is."""

from __future__ import annotations

from pathlib import Path

import sparsvm


def test_an_installation_takes_less_than_6_3_megabytes_of_which_2_4_are_native():
    """Byte code included, which pip writes when it installs; dependencies are not counted.

    The solvers and estimators were 4.1 MB before the command line, reports, model files,
    partitions with their paths and cross-validation, and rankings came.
    """
    files = [path for path in Path(sparsvm.__file__).parent.rglob("*") if path.is_file()]
    native = sum(path.stat().st_size for path in files if path.suffix == ".so")
    assert native < 2.4e6
    assert sum(path.stat().st_size for path in files) < 6.3e6
