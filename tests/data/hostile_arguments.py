"""Arguments of native entries, of which some are hostile."""

from __future__ import annotations

import numpy as np

NUMBERS = [0.0, -1.0, 1e-320, 1e-160, 1e160, 1e308, np.nan, np.inf, -np.inf, 0.5, 2.0]
COUNTS = [0, 1, -1, 3, 2**31 - 1, 2**31, 2**62, -(2**63)]


class Hostile:
    """Arguments, each of which is hostile with a small probability, of arrays and of numbers."""

    def __init__(self, seed, array_rate, number_rate):
        self.rng = np.random.default_rng(seed)
        self.array_rate, self.number_rate = array_rate, number_rate

    def strikes(self):
        return self.rng.random() < self.number_rate

    def pick(self, values):
        return values[self.rng.integers(len(values))]

    def number(self, value):
        return float(self.pick(NUMBERS)) if self.strikes() else value

    def count(self, value):
        return int(self.pick(COUNTS)) if self.strikes() else value

    def name(self, names):
        return self.pick(["", "nonsense", names[0].upper()]) if self.strikes() else self.pick(names)

    def flag(self):
        return bool(self.rng.random() < 0.5)

    def maybe(self, value):
        return None if self.rng.random() < 0.4 else value

    def array(self, values):
        values = np.asarray(values)
        if self.rng.random() >= self.array_rate:
            return values
        change = self.pick(
            [
                lambda a: a[:-1],
                lambda a: a[:0],
                lambda a: np.concatenate([a, a]),
                lambda a: a[None],
                lambda a: a.ravel(),
                lambda a: np.full(a.shape, self.pick(NUMBERS)),
                lambda a: self.spoilt(a),
                lambda a: self.spoilt(a),
                lambda a: a.astype(object),
                lambda a: a.astype(np.float32),
                lambda a: a.astype(np.int64),
                lambda a: a.astype(complex),
                lambda a: np.asfortranarray(a),
                lambda a: np.repeat(a, 2, axis=0)[::2],
                lambda a: a[::-1],
                lambda a: a.tolist(),
                lambda a: None,
                lambda a: np.empty((0, 2**40)),
                lambda a: np.broadcast_to(np.zeros(1), a.shape),
            ]
        )
        return change(values)

    def spoilt(self, values):
        if values.size == 0:
            return values
        values = values.copy()
        bad = NUMBERS if values.dtype.kind == "f" else [-1, 2**31 - 1, -(2**31), 10**6]
        values.flat[self.rng.integers(values.size)] = self.pick(bad)
        return values
