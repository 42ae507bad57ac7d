r"""Bounds on the expected number of features that stability selection selects by mistake.

A base procedure selects on average q of p features from half of the samples. A feature is stable
if it is selected in a share of at least :math:`\pi > 1/2` of the half-samples.

*Meinshausen and Bühlmann* (2010, Theorem 1): if the selection of the features without signal is
exchangeable, and the procedure is not worse than guessing, the expected number of such features
among the stable ones is

.. math:: E[V] \le \frac{1}{2 \pi - 1} \frac{q^2}{p} .

*Shah and Samworth* (2013) assume neither. With B complementary pairs of half-samples they bound the
expected number of stable features whose probability of being selected from a half-sample is at most
:math:`\theta = q/p`, by the same value without any assumption (Theorem 1), and by

.. math::

    C(\pi, B) \frac{q^2}{p}, \qquad
    C(\pi, B) = \begin{cases}
        \dfrac{1}{2 (2 \pi - 1 - 1/(2B))} & \pi \le 3/4 , \\
        \dfrac{4 (1 - \pi + 1/(2B))}{1 + 1/B} & \pi > 3/4 ,
    \end{cases}

if the distribution of the share of pairs that select a feature in both halves is unimodal
(Theorem 2, for :math:`\theta \le 1/\sqrt 3` and
:math:`\pi > 1/2 + \min(\theta^2, 1/(2B) + 3 \theta^2 / 4)`).
"""

from __future__ import annotations

import numpy as np


def worst_case_bound(threshold: float, q: float, p: int) -> float:
    """Return q² / ((2 threshold − 1) p); NaN for a threshold of 1/2 or less."""
    if threshold <= 0.5:
        return float("nan")
    return q * q / ((2.0 * threshold - 1.0) * p)


def unimodal_bound(threshold: float, q: float, p: int, n_pairs: int) -> float:
    """Return Shah and Samworth's bound for unimodal distributions; NaN where there is none."""
    theta, half = q / p, 0.5 / n_pairs
    if theta > 1.0 / np.sqrt(3.0):
        return float("nan")
    if threshold > 0.75:
        factor = 4.0 * (1.0 - threshold + half) / (1.0 + 2.0 * half)
    elif threshold > 0.5 + min(theta**2, half + 0.75 * theta**2) and threshold > 0.5 + half / 2.0:
        factor = 1.0 / (2.0 * (2.0 * threshold - 1.0 - half))
    else:
        return float("nan")
    return float(factor * q * theta)
