"""The rows of class conditions in a trust-region subproblem, with the smallest M that the region needs.

    form'(slopes x) + miss >= margin - form'offset - M (1 - active)        each row divided by its unit

The sparsity does not change from step to step and is found once; slopes, offsets and M do.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray
from dovetail.core.mip import SMALLEST
from dovetail.linearised.networks import Linearisation, Networks
from dovetail.mip.loaded_highs import SparseRows

LOOSE = 1e-3
"""Added to M, in units of the logits: a condition that nothing calls for must not touch by rounding."""
ENDLESS = 1e8
"""Bounds beyond this count as this much: M must be a number, and a larger one drowns the row."""


class ConditionRows:
    """Builds the rows; `first_miss` is the column of the first condition's miss."""

    def __init__(self, networks: Networks, spread: FloatArray, first_miss: int) -> None:
        self._conditions = conditions = networks.conditions
        self.unit: FloatArray = np.asarray(
            (conditions.weights @ spread) / (conditions.weights @ np.ones(networks.count))
        )
        """(c,) the length a condition is measured in: the mean spread of its logits."""
        self._find_sparsity(networks, first_miss)

    def _find_sparsity(self, networks: Networks, first_miss: int) -> None:
        """Where the entries stand: slopes, the class column, the miss."""
        conditions, width = self._conditions, networks.shape[1]
        form, self._count = conditions.form.tocoo(), conditions.count
        length = np.diff(networks.first_entry)[form.col]
        product = np.repeat(np.arange(form.nnz), length)  # of one entry of the form and one slope
        first = np.repeat(networks.first_entry[form.col] - np.cumsum(length) + length, length)
        entry = first + np.arange(product.size)
        keys, key_of = np.unique(form.row[product] * width + networks.columns[entry], return_inverse=True)
        coefficient = ((1.0 / self.unit)[form.row] * form.data)[product]
        self._combine = sp.csr_array((coefficient, (key_of, entry)), shape=(keys.size, networks.columns.size))
        row, column = np.divmod(keys, width)
        pointer = np.searchsorted(row, np.arange(self._count + 1))
        self._one_sided = sp.csr_array((np.zeros(row.size), column, pointer), shape=(self._count, width))
        own = np.arange(self._count)
        rows = np.concatenate([row, own, own])
        columns = np.concatenate([column, conditions.column, first_miss + own])
        self._order = np.lexsort((columns, rows))
        self._indices, self._row_of = columns[self._order], rows[self._order]

    def rows(
        self, lower: FloatArray, upper: FloatArray, linearisation: Linearisation
    ) -> tuple[SparseRows, FloatArray]:
        """The rows and their lower limits; they have no upper ones."""
        conditions = self._conditions
        slopes = np.asarray(self._combine @ linearisation.slopes)
        constant = (conditions.form @ linearisation.offset) / self.unit
        margin = conditions.margin / self.unit
        least = self._least(slopes, np.clip(lower, -ENDLESS, ENDLESS), np.clip(upper, -ENDLESS, ENDLESS))
        big_m = np.maximum(margin - (least + constant), 0.0) + LOOSE
        # active is y, or 1 - y
        on_class = np.where(conditions.when, -big_m, big_m)
        limit = margin - constant - np.where(conditions.when, big_m, 0.0)
        return self._assembled(slopes, on_class), limit

    def _least(self, slopes: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(c,) the least that the slopes make of points between these bounds."""
        self._one_sided.data[:] = np.maximum(slopes, 0.0)
        least = self._one_sided @ lower
        self._one_sided.data[:] = np.minimum(slopes, 0.0)
        return np.asarray(least + self._one_sided @ upper)

    def _assembled(self, slopes: FloatArray, on_class: FloatArray) -> SparseRows:
        """The entries in the order of rows and columns; those that HiGHS would drop are left out."""
        data = np.concatenate([slopes, on_class, np.ones(self._count)])[self._order]
        kept = np.abs(data) >= SMALLEST
        length = np.bincount(self._row_of[kept], minlength=self._count)
        return SparseRows(data[kept], self._indices[kept], np.concatenate([[0], np.cumsum(length)]))
