"""R's glmnet: coordinate descent on quadratic approximations (r-cran-glmnet in Debian)."""

import shutil
import subprocess
from pathlib import Path
from typing import ClassVar

from benchmark_utils import child
from benchmark_utils.problems import PROBLEMS
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    R = shutil.which("Rscript")
    if R is None or subprocess.run([R, "-e", "library(glmnet)"], capture_output=True).returncode:
        raise ImportError("Rscript with glmnet is not installed")


class Solver(child.InChild):
    name = "glmnet"
    families: ClassVar = {
        PROBLEMS["multinomial logistic, l1"]: "ungrouped",
        PROBLEMS["multinomial logistic, l1/l2"]: "grouped",
        PROBLEMS["binary logistic, l1"]: "binomial",
    }
    kinds = tuple(families)

    def command(self):
        script = Path(child.__file__).with_name("glmnet.R")
        return ["Rscript", str(script), self.families[self.problem]]
