"""Gaussian classes; the only data set that needs no files."""

from typing import ClassVar

from benchmark_utils.cases import CASES, names_of
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "Simulated"
    parameters: ClassVar = {"case": names_of("simulated")}

    def get_data(self):
        case = CASES[self.case]
        X, y = case.arrays()
        return {"X": X, "y": y, "penalty": case.penalty, "lam": case.lam}
