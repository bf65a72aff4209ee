"""Quadratic terms of a model as blocks: the `Mip` stays linear, and each term is one more column.

    objective or row:   ... + w q            q = x'Qx, a block's output

Terms are taken apart as far as variables do not mix, so that each block reads few columns; squares of single
variables, products, and forms with the same Q are samples of one block each. The square of a binary is
the binary. A column is made once, however many rows hold its term.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip
from dovetail.core.names import distinct
from dovetail.core.problem import Problem
from dovetail.core.quadratic import QuadraticTerms, factors
from dovetail.reformulations.quadratic_form import QuadraticForm

MOST_MIXED = 1000
"""Variables of one form: to tell its directions apart takes their cube, seconds from here on. What is larger
is left as products, which is exact but proves less."""

SQUARE, PRODUCT = np.ones((1, 1)), np.array([[0.0, 0.5], [0.5, 0.0]])


def with_quadratics(problem: Problem, terms: Sequence[QuadraticTerms]) -> Problem:
    """`problem` with the terms in it. What was read is incomplete before: nothing may be derived from it."""
    found = _Forms(problem.mip)
    for part in terms:
        found.add(part)
    written = problem.derived(found.program(), problem.blocks)
    taken = {block.name for block in problem.blocks}
    for Q, samples in found.samples.values():
        name = next(name for name in _names(Q) if name not in taken)
        taken.add(name)
        inputs = np.array(list(samples))
        outputs = np.array(list(samples.values()))[:, None]
        written.add_predictor(QuadraticForm(Q), inputs, outputs, name=name)
    return written


def _names(Q: FloatArray) -> Iterator[str]:
    """How messages call the block of a form: the first that is free."""
    kind = "squares" if len(Q) == 1 else "products" if np.array_equal(Q, PRODUCT) else "quadratic form"
    yield kind
    yield from (f"{kind} {number}" for number in range(2, 10**6))


@dataclass(eq=False)
class _Forms:
    """Forms while they are collected, and where they are added to."""

    mip: Mip
    samples: dict[bytes, tuple[FloatArray, dict[tuple[int, ...], int]]] = field(default_factory=dict)
    """By what is in Q: Q, and the new column for each tuple of columns."""
    names: list[str] = field(default_factory=list)
    entries: list[tuple[int | None, int, float]] = field(default_factory=list)
    """Row (None: the objective), column, coefficient."""

    def add(self, terms: QuadraticTerms) -> None:
        """All of one row, or of the objective."""
        size = self.mip.n_columns
        low, high = np.minimum(terms.left, terms.right), np.maximum(terms.left, terms.right)
        upper = sp.coo_array((terms.coefficients, (low, high)), shape=(size, size)).tocsr()
        upper.sum_duplicates()
        upper.eliminate_zeros()
        used = np.unique(np.concatenate(upper.nonzero()))
        upper = sp.csr_array(upper[used][:, used])
        count, part = connected_components(upper, directed=False)
        order = np.argsort(part, kind="stable")
        for places in np.split(order, np.cumsum(np.bincount(part, minlength=count))[:-1]):
            self._add_mixed(terms.row, used[places], upper[places][:, places])

    def _add_mixed(self, row: int | None, columns: np.ndarray, upper: sp.csr_array) -> None:
        """Variables that mix with each other, and with no others."""
        if 1 < len(columns) <= MOST_MIXED:
            Q = 0.5 * (upper + upper.T).toarray()
            up, down = factors(Q)
            if not (len(up) and len(down)):
                sign = 1.0 if len(up) else -1.0
                unit = sign * float(np.max(np.abs(Q)))
                self._put(row, Q / unit, tuple(columns.tolist()), unit)
                return
        entries = upper.tocoo()
        for i, j, weight in zip(entries.row, entries.col, entries.data, strict=True):
            if i == j:
                self._put_square(row, int(columns[i]), float(weight))
            else:
                self._put(row, PRODUCT, (int(columns[i]), int(columns[j])), float(weight))

    def _put_square(self, row: int | None, column: int, weight: float) -> None:
        mip = self.mip
        if mip.integer[column] and mip.lower[column] >= 0.0 and mip.upper[column] <= 1.0:
            self.entries.append((row, column, weight))
        else:
            self._put(row, SQUARE, (column,), weight)

    def _put(self, row: int | None, Q: FloatArray, columns: tuple[int, ...], weight: float) -> None:
        """Weight times the form of these columns."""
        _, samples = self.samples.setdefault(Q.tobytes(), (Q, {}))
        if columns not in samples:
            samples[columns] = self.mip.n_columns + len(self.names)
            self.names.append(self._name(Q, columns))
        self.entries.append((row, samples[columns], weight))

    def _name(self, Q: FloatArray, columns: tuple[int, ...]) -> str:
        first, last = self.mip.column_name(columns[0]), self.mip.column_name(columns[-1])
        if len(Q) == 1:
            return f"{first}^2"
        return f"{first} * {last}" if np.array_equal(Q, PRODUCT) else f"form of {first} to {last}"

    def program(self) -> Mip:
        """The program with the new columns, and the terms where they belong."""
        mip, count = self.mip, len(self.names)
        endless = np.full(count, np.inf)
        wide = mip.with_columns(-endless, endless, np.zeros(count, dtype=bool), distinct(self.names) or ())
        cost = wide.cost.copy()
        rows: list[tuple[int, int, float]] = []
        for row, column, weight in self.entries:
            if row is None:
                cost[column] += weight
            else:
                rows.append((row, column, weight))
        i, j, weights = zip(*rows, strict=True) if rows else ((), (), ())
        more = sp.coo_array((np.array(weights, dtype=np.float64), (i, j)), shape=wide.A.shape).tocsr()
        return replace(wide, cost=cost, A=sp.csr_array(wide.A + more))
