"""Can a point follow this direction for ever? Judged on the user's own rows, in exact numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip

DIGITS = Fraction(1, 2**51)
"""A decimal number is stored to within half of this: where a row's products cancel to less than that part of
their sizes, the user's numbers cannot tell the sum from 0."""
GRID = 2.0**20
"""Directions are rounded to so many steps of their largest entry, or to multiples of their smallest one: a
solver's digits beyond that are noise."""


def improving_ray(mip: Mip, direction: FloatArray) -> bool:
    """Whether the cost falls for ever along `direction`, and no row or bound of `mip` ever stops it."""
    top = float(np.max(np.abs(direction), initial=0.0))
    if not np.isfinite(top) or top == 0.0:
        return False
    ray = np.round(direction / top * GRID) / GRID
    least = float(np.min(np.abs(ray[ray != 0.0])))
    return any(_improves_for_ever(mip, candidate) for candidate in (ray, np.round(ray / least), direction))


def _improves_for_ever(mip: Mip, ray: FloatArray) -> bool:
    backwards = (ray < 0) & np.isfinite(mip.lower)
    forwards = (ray > 0) & np.isfinite(mip.upper)
    if np.any(backwards | forwards):
        return False
    along, size = _product(mip.cost, np.arange(mip.n_columns), ray)
    if along >= -DIGITS * size:
        return False
    return all(_stays(mip, i, ray) for i in range(mip.n_rows))


def _stays(mip: Mip, i: int, ray: FloatArray) -> bool:
    entries = slice(mip.A.indptr[i], mip.A.indptr[i + 1])
    columns = mip.A.indices[entries]
    if not np.any(ray[columns]):
        return True
    along, size = _product(mip.A.data[entries], columns, ray)
    rises = along > DIGITS * size and np.isfinite(mip.row_upper[i])
    falls = along < -DIGITS * size and np.isfinite(mip.row_lower[i])
    return not (rises or falls)


def _product(values: FloatArray, columns: np.ndarray, ray: FloatArray) -> tuple[Fraction, Fraction]:
    """The exact sum of values times ray, and the sum of the products' sizes."""
    total = size = Fraction(0)
    for a, j in zip(values.tolist(), columns.tolist(), strict=True):
        if a and ray[j]:
            product = Fraction(a) * Fraction(float(ray[j]))
            total += product
            size += abs(product)
    return total, size
