"""The C++ files include each other without cycles, and only from rooms below their own."""

import re
import shutil
import subprocess
import sysconfig
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src" / "core"
# From the bottom to the top; the solvers know nothing of each other.
ROOMS = (
    "support",
    "linalg",
    "prox",
    "design",
    "penalty",
    "loss",
    "problem",
    "solvers",
    "paths",
    "bind",
)
FILES = sorted(path.relative_to(CORE).as_posix() for path in CORE.rglob("*.[hc]pp"))


def included(name):
    text = (CORE / name).read_text(encoding="utf-8")
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, flags=re.MULTILINE)


def room(name):
    first, *rest = name.split("/")
    return f"{first}/{rest[0]}" if first == "solvers" else first


def level(name):
    return ROOMS.index(name.split("/")[0])


pytestmark = pytest.mark.skipif(not FILES, reason="the C++ sources are not beside the tests")


def test_every_include_is_a_file_named_from_the_root():
    missing = {(name, other) for name in FILES for other in included(name) if other not in FILES}
    assert missing == set()


def test_no_includes_go_round_in_a_circle():
    try:
        tuple(TopologicalSorter({name: included(name) for name in FILES}).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_a_room_includes_only_rooms_below_it():
    upwards = {
        (name, other)
        for name in FILES
        for other in included(name)
        if room(other) != room(name) and level(other) >= level(name)
    }
    assert upwards == set()


def test_no_solver_asks_which_penalty_it_has():
    # It reads the factors of the terms and asks the shape of a block; see docs/architecture.md.
    asks = {
        name
        for name in FILES
        if name.split("/")[0] != "penalty"
        and re.search(r"GroupNorm|(Euclidean|Maximum)Norm", (CORE / name).read_text("utf-8"))
    }
    assert asks == set()


def test_the_core_is_written_in_one_dialect():
    # Plain comments, unqualified integers, std::abs, typename, and constants named kLikeThis.
    other = (
        r"///|std::u?int\d+_t|std::fabs|template <class |"
        r"constexpr (?:double|int|int64_t) (?!k[A-Z])[a-z]\w+ = [-\d]"
    )
    found = {
        (name, match)
        for name in FILES
        for match in re.findall(other, (CORE / name).read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler")
@pytest.mark.parametrize("name", [f for f in FILES if f.endswith(".hpp")])
def test_a_header_compiles_by_itself(name):
    nanobind = pytest.importorskip("nanobind", reason="the headers need those of nanobind")
    places = (CORE, sysconfig.get_path("include"), nanobind.include_dir())
    folders = [f"-I{place}" for place in places]
    command = ["c++", "-std=c++20", "-fsyntax-only", *folders, "-x", "c++", "-"]
    subprocess.run(command, input=f'#include "{name}"\n', text=True, check=True)
