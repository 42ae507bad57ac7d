"""What import-linter, which reads the order of the rooms from pyproject.toml, cannot see."""

import ast
import subprocess
import sys
from pathlib import Path

import sparsvm

PACKAGE = Path(sparsvm.__file__).parent


def test_the_root_gives_the_rooms_nothing_but_the_native_module():
    taken = {
        (path.relative_to(PACKAGE).as_posix(), name.name)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "sparsvm"
        for name in node.names
    }
    assert taken
    assert {name for path, name in taken if path != "_public.py"} == {"_core"}


def test_importing_the_root_loads_nothing_until_a_name_is_used():
    script = (
        "import sys, sparsvm; assert 'numpy' not in sys.modules; sparsvm.SparseSVC; "
        "from sparsvm import *; print(sorted(set(sparsvm.__all__) - set(dir())))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_rooms_are_not_imported_as_a_whole_package():
    plain = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import) and any(name.name == "sparsvm" for name in node.names)
    ]
    assert plain == []


def test_rooms_ask_a_penalty_for_its_traits_and_not_for_its_kind():
    branches = [
        f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and any(
            isinstance(side, ast.Attribute)
            and side.attr == "kind"
            and ast.unparse(side.value).endswith(("penalty", "terms", "self"))
            for side in (node.left, *node.comparators)
        )
    ]
    assert branches == []
