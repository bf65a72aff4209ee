"""What float64 may be off by, for sums computed in any order."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray

UNIT = 2.0**-53
MORE = 8
"""Operations beside a sum itself."""


def gamma(terms: int) -> float:
    """Relative to the sizes that are added up: so many operations in a row; twice that, for its own use."""
    return 2.0 * (terms + MORE) * UNIT / (1.0 - (terms + MORE) * UNIT)


def down(values: FloatArray) -> FloatArray:
    """The next float below."""
    return np.nextafter(values, -np.inf)


def up(values: FloatArray) -> FloatArray:
    """The next float above."""
    return np.nextafter(values, np.inf)
