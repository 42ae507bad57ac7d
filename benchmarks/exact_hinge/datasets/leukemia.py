"""38 patients × 7129 genes, 3 classes, columns standardised."""

from typing import ClassVar

from benchmark_utils.cases import CASES, names_of
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "Leukemia"
    parameters: ClassVar = {"case": names_of("leukemia")}

    def get_data(self):
        case = CASES[self.case]
        X, y = case.arrays()
        return {"X": X, "y": y, "penalty": case.penalty, "lam": case.lam}
