"""The best model without features, from the shares of the classes alone."""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Floats
from sparsvm.partitioned.survey import Population
from sparsvm.path.zero_model import zero_model
from sparsvm.penalties import L1
from sparsvm.problem.build import problem_on
from sparsvm.problem.problem import Problem


def class_intercepts(population: Population, first: Problem) -> Floats:
    """Return the best intercepts where all weights are zero.

    The samples of a class are alike there, so that one stands for all of them: exactly, unless they
    have margins of their own.
    """
    K = first.n_classes
    alike = problem_on(
        np.zeros((K, 1)),
        np.arange(K, dtype=np.int32),
        population.priors,
        None,
        loss=first.loss,
        cost=first.cost,
        penalty=L1().resolve(1, first.n_outputs, None),
        alpha=1.0,
        fit_intercept=first.fit_intercept,
    )
    return zero_model(alike).intercept
