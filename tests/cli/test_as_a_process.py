"""The command line as users run it: its start, pipes, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest


def test_help_and_mistakes_do_not_wait_for_scikit_learn():
    script = (
        "import sys\n"
        "from sparsvm.cli.commands import app\n"
        "try:\n    app(['fit', '--help'])\n"
        "except SystemExit as leaving:\n    code = leaving.code\n"
        "print(code, sorted({'numpy', 'sklearn', 'scipy', 'pandas'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.endswith("0 []\n") and "--target" in done.stdout, done.stderr


def test_a_pipe_gets_the_result_and_nothing_else(process, flowers):
    command = process("cv", "-", "--target", "kind", "--n-alphas", "5", "--json")
    out, err = command.communicate(flowers.read_bytes(), timeout=120)
    assert command.returncode == 0 and err == b""
    assert len(json.loads(out)["classes"]) == 3


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither named pipes nor SIGINT")
def test_ctrl_c_leaves_with_130_and_no_file(process, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 400)), rng.integers(0, 5, size=500)
    os.mkfifo(tmp_path / "data.csv")
    command = process(
        *(
            "cv",
            "data.csv",
            "--target",
            "-1",
            "--n-alphas",
            "1000",
            "--tol",
            "1e-9",
            "--eps",
            "1e-6",
        ),
        *("--folds", "50", "--output", "m.safetensors", "--report", "r.html"),
    )
    with open(tmp_path / "data.csv", "w") as pipe:
        np.savetxt(pipe, np.column_stack([X, y]), delimiter=",", fmt="%.6g")
    time.sleep(2.0)  # in the middle of the cross-validation, or of loading; both must stop
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_a_terminal_shows_how_far_the_work_has_come(process, flowers):
    reader, terminal = os.openpty()
    command = process(
        *("cv", flowers, "--target", "kind", "--n-alphas", "5"),
        **dict.fromkeys(("stdin", "stdout", "stderr"), terminal),
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:  # how Linux tells that the other end is closed
            break
        if not part:
            break
        shown += part
    assert command.wait(60) == 0
    assert b"cross-validation" in shown and b"setosa" in shown
