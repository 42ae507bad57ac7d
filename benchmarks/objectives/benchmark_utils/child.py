"""Packages that need a process of their own: R, or another version of the numerical libraries.

The data are written to a folder once. Then each line on standard input, "alpha tolerance", is
answered by a line with the processor seconds of the fit, and weights.bin holds the weights.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmark_utils.peer import Peer


class InChild(Peer):
    """Subclasses have ``command()``, to which the folder of the data is added."""

    child = None

    def prepare(self):
        self.end()
        self.folder = tempfile.TemporaryDirectory()
        here = Path(self.folder.name)
        (here / "size.txt").write_text("{} {}".format(*self.X.shape))
        self.y.astype(np.int32).tofile(here / "y.bin")
        if sp.issparse(self.X):
            columns = sp.csc_matrix(self.X)
            columns.indices.astype(np.int32).tofile(here / "i.bin")
            columns.indptr.astype(np.int32).tofile(here / "p.bin")
            columns.data.tofile(here / "v.bin")
        else:
            np.ascontiguousarray(self.X.T).tofile(here / "x.bin")
        self.child = subprocess.Popen(
            [*self.command(), str(here)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.run(1.0)  # R compiles at the first call

    def run(self, tol):
        self.child.stdin.write(f"{self.alpha!r} {max(min(tol, 0.1), 1e-12)!r}\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} ended with exit code {self.child.wait()}.")
        self.seconds = float(answer)
        weights = np.fromfile(Path(self.folder.name) / "weights.bin")
        self.coef = weights.reshape(-1, self.X.shape[1])

    def end(self):
        """End the process; it ends by itself when nothing more can come."""
        if self.child is not None:
            self.child.stdin.close()
            self.child.wait()
            self.child = None

    def __del__(self):
        self.end()
