"""What an installation is."""

from __future__ import annotations

from pathlib import Path

import sparsvm


def test_an_installation_takes_less_than_4_3_megabytes():
    """Byte code included, which pip writes when it installs; dependencies are not counted."""
    files = [path for path in Path(sparsvm.__file__).parent.rglob("*") if path.is_file()]
    sizes = {path.name: path.stat().st_size for path in files if path.suffix == ".so"}
    assert sum(path.stat().st_size for path in files) < 4.3e6, sizes
