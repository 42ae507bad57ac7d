"""lightning: block coordinate descent, in the interpreter that LIGHTNING_PYTHON names.

Its newest version, 0.6.2.post0, needs older numerical libraries: `make build/lightning/.installed`.
"""

import os
from pathlib import Path
from typing import ClassVar

from benchmark_utils import child
from benchmark_utils.problems import PROBLEMS
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    if not Path(os.environ.get("LIGHTNING_PYTHON", "")).is_file():
        raise ImportError("LIGHTNING_PYTHON does not name an interpreter")


class Solver(child.InChild):
    name = "lightning"
    losses: ClassVar = {
        PROBLEMS["multiclass squared hinge, l1/l2"]: "squared_hinge",
        PROBLEMS["multinomial logistic, l1/l2"]: "log",
    }
    kinds = tuple(losses)

    def command(self):
        script = Path(child.__file__).with_name("lightning_fits.py")
        return [os.environ["LIGHTNING_PYTHON"], str(script), self.losses[self.problem]]
