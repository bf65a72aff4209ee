"""The rows of one block of a template, column by column: what was stated for families, taken apart."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.family_arrays import RowArrays
from dovetail.core.template import FamilyColumns, Template

Place = tuple[str, int]
"""A column of a block: its family, and where in that."""


def places_of(columns: FamilyColumns) -> list[Place]:
    """The columns of families, side by side."""
    return [(name, k) for name in columns.families for k in range(columns.template.families[name].width)]


def column_of(array: FloatArray, k: int) -> FloatArray:
    """(blocks,) or (1,): one column of an array that broadcasts to (blocks, columns)."""
    return array.reshape(1) if array.ndim == 0 else array[:, k if array.shape[1] > 1 else 0]


def entries_of(template: Template, row: RowArrays, number: int) -> dict[Place, FloatArray]:
    """Of one of the rows that were stated as one: (blocks,) or (1,) numbers by column, none all 0."""
    found: dict[Place, FloatArray] = {}
    for name, entry in row.coefficients.items():
        width = template.families[name].width
        for k in range(width) if row.summed else (number if width > 1 else 0,):
            numbers = column_of(entry, k if row.summed else number)
            if np.any(numbers):
                found[name, k] = numbers
    return found
