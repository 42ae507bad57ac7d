"""100 or 200 documents of 20 newsgroups × 56436 words, tf-idf."""

from typing import ClassVar

from benchmark_utils.cases import CASES, names_of
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "News20"
    parameters: ClassVar = {"case": names_of("news20")}

    def get_data(self):
        case = CASES[self.case]
        X, y = case.arrays()
        return {"X": X, "y": y, "penalty": case.penalty, "lam": case.lam}
