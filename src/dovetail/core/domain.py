"""Validity domains: the inputs at which a predictor is trusted (`within=`).

A domain becomes ordinary parts of the problem: constraints on the inputs of every sample, and at most one
more predictor of the same inputs (a score) whose output has limits. Searches, proofs, the check and pages
therefore need no knowledge of domains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import TrainingData
from dovetail.core.errors import PredictorError
from dovetail.core.table import Part, Table


@dataclass(frozen=True, eq=False)
class Region:
    """The inputs x with lower <= A x <= upper and least <= score(x) <= most.

    >>> import dovetail as dt, numpy as np
    >>> class Ball:
    ...     def region(self, data, features, samples):
    ...         rows, limits = np.empty((0, features)), np.empty(0)
    ...         return dt.Region("ball", rows, limits, limits, lambda X: (X**2).sum(axis=1), most=4.0)
    >>> problem = dt.Problem(dt.Mip([0.0, -1.0], upper=9.0))
    >>> block = problem.add_predictor(lambda X: X, [0], [1], within=Ball())
    >>> round(float(dt.solve(problem, log=False, time_limit=5).objective), 4)
    -2.0
    """

    name: str
    A: FloatArray
    """(rows, features)."""
    lower: FloatArray
    upper: FloatArray
    score: Any = None
    """Anything that `add_predictor` takes, with one output; None without a score."""
    least: float = -np.inf
    most: float = np.inf
    weights: FloatArray | None = None
    """(rows, k) entries of k more variables of each sample, which are at least 0; the rows are then those of
    lower <= A x + weights w <= upper."""
    fill: Callable[[FloatArray], FloatArray] | None = None
    """(samples, features) to (samples, k): values of these variables that satisfy the rows, if there are."""

    def region(self, data: TrainingData | None, features: int, samples: int) -> Region:
        """The region itself, which is also a domain."""
        return self


@runtime_checkable
class Domain(Protocol):
    """What `within=` takes: dovetail's Box, Hull, Near and Score, or a class of yours."""

    def region(self, data: TrainingData | None, features: int, samples: int) -> Region:
        """The inputs of one sample that belong to the domain, for a predictor of so many `features` that is
        evaluated for so many `samples`; `data` are the training inputs, if they are known."""
        ...


DOMAINS: Table[Domain] = Table(
    "domain",
    "domains",
    Part("box", "dovetail.predictors.domains:Box", "the range of every feature in the training data"),
    Part("hull", "dovetail.predictors.domains:Hull", "the convex hull of the training data"),
    Part("near", "dovetail.predictors.domains:Near", "a distance to the nearest training points"),
)
"""The domains that have a short name."""


def regions_of(
    block: str, within: Any, data: TrainingData | None, features: int, samples: int
) -> tuple[Region, ...]:
    """The regions of a domain, a short name, or a list of these."""
    if within is None:
        return ()
    given = [within] if isinstance(within, (str, Domain)) or not isinstance(within, Iterable) else [*within]
    regions = []
    for one in given:
        domain = DOMAINS.make(one) if isinstance(one, str) else one
        if not isinstance(domain, Domain):
            raise PredictorError(
                f"{block}: within has {one!r}; give {', '.join(map(repr, DOMAINS))}, or an object: dt.Box, "
                "dt.Hull, dt.Near, dt.Score(predictor)."
            )
        try:
            regions.append(domain.region(data, features, samples))
        except PredictorError as reason:
            raise PredictorError(f"{block}: within: {reason}") from reason
    return tuple(regions)
