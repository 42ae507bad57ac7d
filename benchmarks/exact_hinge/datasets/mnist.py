"""100, 5000 or 60000 images of digits, 784 pixels divided by 255."""

from typing import ClassVar

from benchmark_utils.cases import CASES, names_of
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "MNIST"
    parameters: ClassVar = {"case": names_of("mnist")}

    def get_data(self):
        case = CASES[self.case]
        X, y = case.arrays()
        return {"X": X, "y": y, "penalty": case.penalty, "lam": case.lam}
