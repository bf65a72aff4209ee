"""Floating-point formats as far as errors are concerned: the rounding of one operation, a sum or a library
function.

A bound is a statement about the network as it is deployed, in its own dtype, in any batch, on any processor.
Proofs compute with exact numbers; the difference is rounding, and each operation states its largest rounding
before anything is computed (Higham, Accuracy and Stability, chapter 3):

    z = W v + b,  summed in any order, with or without fused operations:
    |computed z - z|  <=  |W| e  +  gamma (|W| (|v| + e) + |b|)        gamma = m r / (1 - m r)

where v is known up to e, r is the largest relative error of one operation and m the number of operations a
term passes through at most. Functions pass errors on by their slope and add a few units of their own
rounding.

These are worst cases, for all inputs between two bounds at once. Observed errors are smaller, by a factor of
five to fifty, but an observation is no proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray

MORE = 3
"""Number of operations besides the sum itself: a bias, the factors of a Gemm, a division where our code
multiplies."""
OURS = 2.0**-52
"""Relative rounding of our own float64 computations: two roundings."""
ULPS = 8.0
"""Units of roundoff that an implementation of exp, tanh or a sigmoid may be off; libraries in use promise 1
to 4."""


@dataclass(frozen=True)
class Arithmetic:
    """The rounding errors of a floating-point format."""

    roundoff: float
    """Largest relative error of one operation."""
    smallest: float
    """The smallest normal number: smaller results may become 0."""
    largest: float

    @property
    def unit(self) -> float:
        """The relative error of one operation, and of our computation of it."""
        return self.roundoff + OURS

    def cast(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """The error of converting numbers between two bounds into the format."""
        size = np.maximum(np.abs(lower), np.abs(upper))
        return np.where(size <= self.largest, self.roundoff * size + self.smallest, np.inf)

    def gamma(self, operations: np.ndarray | int) -> FloatArray:
        """The largest relative error of this number of operations in sequence; infinity if it is not
        small."""
        total = np.asarray(operations * self.unit)
        with np.errstate(divide="ignore"):
            return np.where(total < 0.5, total / (1.0 - total), np.inf)

    def of_sum(self, operations: np.ndarray | int, total: FloatArray) -> FloatArray:
        """The rounding error of a sum with this total of absolute terms; infinity if the sum may overflow."""
        own = self.gamma(operations) * total + operations * self.smallest
        return np.where(total <= 0.5 * self.largest, own, np.inf)


FLOAT64 = Arithmetic(2.0**-53, 2.0**-1022, float(np.finfo(np.float64).max))
FLOAT32 = Arithmetic(2.0**-24, 2.0**-126, float(np.finfo(np.float32).max))
FORMATS: dict[str, Arithmetic] = {
    "float64": FLOAT64,
    "float32": FLOAT32,
    "float16": Arithmetic(2.0**-11, 2.0**-14, 65504.0),
    "bfloat16": Arithmetic(2.0**-8, 2.0**-126, 3.38e38),
}
"""Formats by the names that torch and numpy use."""
