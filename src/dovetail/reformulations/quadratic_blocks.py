"""Quadratic terms of a model as blocks: the `Mip` stays linear, and each term is one more column.

    objective or row:   ... + w q            q = x'Qx, a block's output

Terms are separated as far as variables do not mix, so that each block reads few columns; squares of single
variables, products, and forms with the same Q are samples of one block each. The square of a binary is the
binary. A column is made once, however many rows hold its term.

The objective's squares are completed: w x^2 + c x becomes w (x - s)^2. A distance that is multiplied out is a
small difference of large numbers; as a single square it is as exact as x.

A quadratic form as a predictor: x'Qx in float64, with exact gradients, known operation by operation.

A form with curvature of one sign is a sum of squares in its principal directions: planes below a square are
tangents, which are exact for convex functions. Any other form is the sum of its products and squares, whose
envelopes over a box (McCormick) are the best for each of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.mip import Mip
from dovetail.core.names import distinct
from dovetail.core.problem import Problem
from dovetail.core.quadratic import QuadraticFunction, QuadraticTerms, factors
from dovetail.networks.arithmetic import FLOAT64
from dovetail.networks.program import Program, Recording

MOST_MIXED = 1000
"""Variables of one form: separating its directions takes their cube, seconds from here on. Larger forms
remain products, which is exact but proves less."""

FARTHEST = 1e6
"""The centre of a completed square: beyond this, its own square has too few digits."""
MOST_CENTRES = 64
"""Squares with different centres are blocks of their own, each evaluated separately: more squares than that
stay multiplied out, in one block."""
IN_RANGE = 1e-12
"""A centre has to reproduce the linear part of a form up to this relative error."""

SQUARE, PRODUCT = np.ones((1, 1)), np.array([[0.0, 0.5], [0.5, 0.0]])


def with_quadratics(problem: Problem, terms: Sequence[QuadraticTerms]) -> Problem:
    """`problem` with the terms in it. Reading is incomplete before this: no bound may be derived from it."""
    found = _QuadraticForms(problem.mip)
    for part in terms:
        found.add(part)
    written = problem.derived(found.program(), problem.blocks)
    taken = {block.name for block in problem.blocks}
    for form, samples in found.samples.values():
        name = next(name for name in _names(form.Q) if name not in taken)
        taken.add(name)
        inputs = np.array(list(samples))
        outputs = np.array(list(samples.values()))[:, None]
        written.add_predictor(QuadraticForm(form.Q, form.centre), inputs, outputs, name=name)
    return written


def _names(Q: FloatArray) -> Iterator[str]:
    """How messages call the block of a form: the first that is free."""
    known = {SQUARE.tobytes(): "squares", PRODUCT.tobytes(): "products"}
    kind = known.get(Q.tobytes(), "quadratic form")
    yield kind
    yield from (f"{kind} {number}" for number in range(2, 10**6))


@dataclass(eq=False)
class _QuadraticForms:
    """Collected forms, and the rows or objective to which they belong."""

    mip: Mip
    samples: dict[bytes, tuple[QuadraticFunction, dict[tuple[int, ...], int]]] = field(default_factory=dict)
    """By content: a form, and the new column for each tuple of columns."""
    names: list[str] = field(default_factory=list)
    centres: set[float] = field(default_factory=set)
    offset: float = 0.0
    entries: list[tuple[int | None, int, float]] = field(default_factory=list)
    """Row (None: the objective), column, coefficient."""

    def add(self, terms: QuadraticTerms) -> None:
        """Add all quadratic terms of one row, or of the objective."""
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
                unit = (1.0 if len(up) else -1.0) * float(np.max(np.abs(Q)))
                self._add_form(row, Q / unit, columns.tolist(), unit)
                return
        entries = upper.tocoo()
        for i, j, weight in zip(entries.row, entries.col, entries.data, strict=True):
            if i == j:
                self._put_square(row, int(columns[i]), float(weight))
            else:
                self._add_form(row, PRODUCT, columns[[i, j]].tolist(), float(weight))

    def _put_square(self, row: int | None, column: int, weight: float) -> None:
        mip = self.mip
        if mip.integer[column] and mip.lower[column] >= 0.0 and mip.upper[column] <= 1.0:
            self.entries.append((row, column, weight))
        else:
            self._add_form(row, SQUARE, [column], weight)

    def _add_form(self, row: int | None, Q: FloatArray, columns: list[int], weight: float) -> None:
        """Weight times the form of these columns; in the objective, including the linear terms in them."""
        centre = np.zeros(len(Q))
        if row is None and Q is not PRODUCT:
            centre = self._completed(Q, columns, weight)
        form = QuadraticFunction.form(Q, centre)
        _, samples = self.samples.setdefault(Q.tobytes() + centre.tobytes(), (form, {}))
        place = tuple(columns)
        if place not in samples:
            samples[place] = self.mip.n_columns + len(self.names)
            self.names.append(self._name(form, columns))
        self.entries.append((row, samples[place], weight))

    def _completed(self, Q: FloatArray, columns: list[int], weight: float) -> FloatArray:
        """The centre that absorbs the linear costs of these columns; 0 if there is none, and the costs
        stay."""
        cost, nothing = self.mip.cost[columns], np.zeros(len(Q))
        if not np.any(cost):
            return nothing
        centre = np.linalg.lstsq(Q, -0.5 * cost / weight)[0] if len(Q) > 1 else -0.5 * cost / weight
        left = np.abs(2.0 * weight * (Q @ centre) + cost)
        if np.max(np.abs(centre)) > FARTHEST or np.max(left) > IN_RANGE * np.max(np.abs(cost)):
            return nothing
        if len(Q) == 1:
            self.centres.add(float(centre[0]))
            if len(self.centres) > MOST_CENTRES:
                return nothing
        self.entries += [(None, column, -float(c)) for column, c in zip(columns, cost, strict=True)]
        self.offset -= weight * float(centre @ Q @ centre)
        return np.asarray(centre)

    def _name(self, form: QuadraticFunction, columns: list[int]) -> str:
        first, last = self.mip.column_name(columns[0]), self.mip.column_name(columns[-1])
        if len(columns) == 1:
            return f"({first} - {form.centre[0]:g})^2" if form.centre[0] else f"{first}^2"
        return f"{first} * {last}" if np.array_equal(form.Q, PRODUCT) else f"form of {first} to {last}"

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
        return replace(wide, cost=cost, A=sp.csr_array(wide.A + more), offset=mip.offset + self.offset)


class QuadraticForm:
    """x -> (x - centre)'Q(x - centre), one output."""

    def __init__(self, Q: FloatArray, centre: FloatArray) -> None:
        self.function = QuadraticFunction.form(Q, centre)
        F, G = self.function.factors
        self._definite = not (len(F) and len(G))
        self._sign, self._rows = (1.0, F) if not len(G) else (-1.0, G)
        self._left, self._right = np.nonzero(np.triu(Q))
        self._weights = np.where(self._left == self._right, 1.0, 2.0) * Q[self._left, self._right]

    def predict(self, X: FloatArray) -> FloatArray:
        """Each row's value."""
        X = X - self.function.centre
        if self._definite:
            return np.asarray(self._sign * np.square(X @ self._rows.T).sum(axis=1, keepdims=True))
        return np.asarray((X[:, self._left] * X[:, self._right]) @ self._weights[:, None])

    def snapshot(self, device: str) -> Callable[[Any], Any]:
        """The same for gradients."""
        import torch

        centre, rows, weights, left, right = (
            torch.tensor(part, device=device)
            for part in (
                self.function.centre, self._rows.T, self._weights[:, None], self._left, self._right
            )
        )  # fmt: skip
        if self._definite:
            return lambda U: self._sign * (((U - centre) @ rows) ** 2).sum(dim=1, keepdim=True)
        return lambda U: ((U - centre)[:, left] * (U - centre)[:, right]) @ weights

    def describe(self, X: FloatArray) -> Description:
        """The function never changes."""
        return Description(
            "quadratic form",
            features=len(self.function.centre),
            smooth=True,
            program=self._program,
            quadratic=self._functions,
        )

    def _functions(self, features: int) -> tuple[QuadraticFunction, ...]:
        return (self.function,)

    def _program(self, features: int) -> Program:
        recording = Recording(features, formats={"float64"})
        moved = every = np.arange(features)
        if np.any(self.function.centre):
            moved = recording.sums(every, every, np.ones(features), -self.function.centre)
        if self._definite:
            count = len(self._rows)
            row, read = np.nonzero(self._rows)
            made = recording.sums(row, moved[read], self._rows[row, read], np.zeros(count))
            made, weights = recording.functions("square", made), np.full(count, self._sign)
        else:
            made, weights = recording.products(moved[self._left], moved[self._right]), self._weights
        total = recording.sums(np.zeros(made.size, dtype=np.int64), made, weights, np.zeros(1))
        program = recording.program(total)
        return Program(features, program.operations, total, program.formats, False, FLOAT64)
