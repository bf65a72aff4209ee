"""The same problem written in other ways: the rules by which modellers differ.

A rule takes a `Draft` (the problem as arrays, free to be changed) and writes the draft another way. Each rule
keeps the feasible decisions and their objective, up to the sign of the objective where the rule is `negated`.
A rule returns False if it changes nothing in the draft.

The rules share no code with the solvers: they define "the same problem", and solvers are tested with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

import dovetail as dt
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.problem import Problem

Rng = np.random.Generator
MOST_LEVELS = 12
"""Integers with more values are not written as binaries, one for each value."""


@dataclass
class Tie:
    """A predictor with the columns that it reads and writes, one row for each sample."""

    predictor: Any
    inputs: IntArray
    outputs: IntArray
    classifies: bool
    threshold: float | None
    epsilon: float

    @classmethod
    def of(cls, block: Block) -> Tie:
        """The connection that a block stands for, with the owner's torch module if there is one."""
        own = getattr(block.predictor, "module", block.predictor)
        threshold = block.threshold if block.classifies and block.outputs.shape[1] == 1 else None
        return cls(own, block.inputs.copy(), block.outputs.copy(), block.classifies, threshold, block.epsilon)

    def add_to(self, problem: Problem, inputs: Any, outputs: Any) -> None:
        """Connect these columns of a problem by the predictor."""
        problem.add_predictor(
            self.predictor,
            inputs,
            outputs,
            output_type="classification" if self.classifies else "regression",
            threshold=self.threshold,
            epsilon=self.epsilon,
        )


@dataclass
class Draft:
    """A problem as arrays that may be changed."""

    cost: FloatArray
    A: sp.csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    maximises: bool
    offset: float
    ties: list[Tie]
    template: bool = False
    """Whether the samples of the last tie are stated as blocks of a template."""

    @classmethod
    def of(cls, problem: Problem) -> Draft:
        """A copy of a problem."""
        mip = problem.mip
        return cls(
            mip.cost.copy(), mip.A.copy(), mip.row_lower.copy(), mip.row_upper.copy(),
            mip.lower.copy(), mip.upper.copy(), mip.integer.copy(), mip.sense == "max", mip.offset,
            [Tie.of(block) for block in problem.blocks],
        )  # fmt: skip

    def problem(self) -> Problem:
        """The draft as a problem of the library."""
        if self.template and len(self.ties) == 1 and _members(self) is not None:
            return _as_template(self)
        mip = dt.Mip(
            self.cost, self.A, self.row_lower, self.row_upper, self.lower, self.upper, self.integer,
            "max" if self.maximises else "min", self.offset,
        )  # fmt: skip
        made = dt.Problem(mip)
        for tie in self.ties:
            tie.add_to(made, tie.inputs, tie.outputs)
        return made

    def add_columns(
        self, lower: FloatArray, upper: FloatArray, cost: FloatArray | float = 0.0, integer: bool = False
    ) -> IntArray:
        """Append columns; returns their places."""
        more, first = len(lower), self.cost.size
        self.cost = np.append(self.cost, np.broadcast_to(cost, more))
        self.lower, self.upper = np.append(self.lower, lower), np.append(self.upper, upper)
        self.integer = np.append(self.integer, np.full(more, integer))
        self.A = sp.csr_array(sp.hstack([self.A, sp.csr_array((self.A.shape[0], more))]))
        return np.arange(first, first + more)

    def add_rows(self, A: sp.sparray, lower: FloatArray, upper: FloatArray) -> None:
        """Append rows."""
        self.A = sp.csr_array(sp.vstack([self.A, A]))
        self.row_lower, self.row_upper = np.append(self.row_lower, lower), np.append(self.row_upper, upper)

    def entries(self, columns: IntArray, values: FloatArray | float = 1.0) -> sp.csr_array:
        """One row for each of these columns, with one entry."""
        count = len(columns)
        data = np.broadcast_to(np.asarray(values, dtype=float), count)
        return sp.csr_array((data, (np.arange(count), columns)), shape=(count, self.cost.size))

    def use_instead(self, old: IntArray, new: IntArray) -> None:
        """Let rows and costs use other columns in the place of these."""
        place, moved = np.arange(self.cost.size), sp.coo_array(self.A)
        place[old] = new
        self.A = sp.csr_array((moved.data, (moved.coords[0], place[moved.coords[1]])), shape=self.A.shape)
        self.cost[new], self.cost[old] = self.cost[old], 0.0

    def equate(
        self, columns: IntArray, others: IntArray, units: FloatArray | float, sides: FloatArray
    ) -> None:
        """Add the rows column = unit other + side."""
        row = sp.csr_array(self.entries(columns) - self.entries(others, units))
        self.add_rows(row, sides, sides)

    def drop_rows(self, dropped: BoolArray) -> None:
        """Remove rows."""
        self.A = sp.csr_array(self.A[~dropped])
        self.row_lower, self.row_upper = self.row_lower[~dropped], self.row_upper[~dropped]

    @property
    def read(self) -> BoolArray:
        """(columns,) whether some predictor reads it."""
        return self._marked([tie.inputs for tie in self.ties])

    @property
    def written(self) -> BoolArray:
        """(columns,) whether some predictor writes it."""
        return self._marked([tie.outputs for tie in self.ties])

    def _marked(self, columns: list[IntArray]) -> BoolArray:
        found = np.zeros(self.cost.size, dtype=bool)
        for some in columns:
            found[some] = True
        return found


Rule = Callable[[Draft, Rng], bool]

# ---- the host


def negated(draft: Draft, rng: Rng) -> bool:
    """Maximise the negative instead of minimising, or the other way round."""
    draft.cost, draft.offset, draft.maximises = -draft.cost, -draft.offset, not draft.maximises
    return True


def permuted(draft: Draft, rng: Rng) -> bool:
    """Columns and rows in another order."""
    columns, rows = rng.permutation(draft.cost.size), rng.permutation(draft.A.shape[0])
    place = np.argsort(columns)
    draft.A = sp.csr_array(sp.csr_array(draft.A[rows])[:, columns])
    draft.row_lower, draft.row_upper = draft.row_lower[rows], draft.row_upper[rows]
    draft.cost, draft.integer = draft.cost[columns], draft.integer[columns]
    draft.lower, draft.upper = draft.lower[columns], draft.upper[columns]
    for tie in draft.ties:
        tie.inputs, tie.outputs = place[tie.inputs], place[tie.outputs]
    return True


def bounds_as_rows(draft: Draft, rng: Rng) -> bool:
    """Bounds of some columns as rows with one entry, in other units; the columns themselves are free."""
    binary = draft.integer & (draft.lower >= 0.0) & (draft.upper <= 1.0)
    chosen = np.flatnonzero(
        (rng.random(draft.cost.size) < 0.6) & ~binary & (np.isfinite(draft.lower) | np.isfinite(draft.upper))
    )
    if not chosen.size:
        return False
    units = rng.choice([-2.5, -1.0, 0.4, 1.0, 3.0], chosen.size)
    sides = np.sort([draft.lower[chosen] * units, draft.upper[chosen] * units], axis=0)
    draft.add_rows(draft.entries(chosen, units), sides[0], sides[1])
    draft.lower[chosen], draft.upper[chosen] = -np.inf, np.inf
    return True


def equations_as_inequalities(draft: Draft, rng: Rng) -> bool:
    """Each equation, and each row with two sides, as two rows; the second in other units and turned."""
    both = np.isfinite(draft.row_lower) & np.isfinite(draft.row_upper)
    if not both.any():
        return False
    units = sp.diags_array(rng.choice([-3.0, -0.5, -1.0], int(both.sum())))
    upper = draft.row_upper[both]
    draft.add_rows(sp.csr_array(units @ draft.A[both]), units @ upper, np.full(upper.size, np.inf))
    draft.row_upper[: both.size][both] = np.inf
    return True


def rows_in_other_units(draft: Draft, rng: Rng) -> bool:
    """Rows multiplied by factors, some of them negative."""
    if not draft.A.shape[0]:
        return False
    units = rng.choice([-4.0, -0.25, 0.1, 2.0, 7.0], draft.A.shape[0])
    draft.A = sp.csr_array(sp.diags_array(units) @ draft.A)
    sides = np.sort([draft.row_lower * units, draft.row_upper * units], axis=0)
    draft.row_lower, draft.row_upper = sides
    return True


def columns_in_other_units(draft: Draft, rng: Rng) -> bool:
    """Continuous columns that no predictor reads or writes, in other units."""
    own = ~(draft.integer | draft.read | draft.written)
    if not own.any():
        return False
    units = np.where(own, rng.choice([0.1, 0.5, 4.0, 10.0], draft.cost.size), 1.0)
    draft.A = sp.csr_array(draft.A @ sp.diags_array(units))
    draft.cost = draft.cost * units
    draft.lower, draft.upper = draft.lower / units, draft.upper / units
    return True


def integers_as_binaries(draft: Draft, rng: Rng) -> bool:
    """Integers with few values as one binary for each value: x = sum k b_k, sum b_k = 1."""
    wide = draft.upper - draft.lower
    chosen = np.flatnonzero(draft.integer & ~draft.written & (wide >= 2.0) & (wide < MOST_LEVELS))
    for x in chosen:
        levels = np.arange(draft.lower[x], draft.upper[x] + 1.0)
        binaries = draft.add_columns(np.zeros(levels.size), np.ones(levels.size), integer=True)
        one = sp.csr_array(np.ones((1, levels.size)) @ draft.entries(binaries))
        value = sp.csr_array(draft.entries(np.array([x])) - levels[None] @ draft.entries(binaries))
        draft.add_rows(sp.vstack([one, value]), np.array([1.0, 0.0]), np.array([1.0, 0.0]))
        draft.integer[x] = False
    return bool(chosen.size)


def integers_by_steps(draft: Draft, rng: Rng) -> bool:
    """Integers with few values as a chain of binaries: x = least + sum y_k, y_k >= y_(k+1)."""
    return _by_binaries(draft, lambda wide: np.ones(wide), chained=True)


def integers_by_digits(draft: Draft, rng: Rng) -> bool:
    """Integers with few values by binaries that count 1, 2, 4 and the rest."""
    return _by_binaries(draft, _digits, chained=False)


def _digits(wide: int) -> FloatArray:
    """What binaries count that together give every whole number up to the width, and none beyond."""
    powers = [2.0**k for k in range(int(np.log2(wide + 1)))]
    rest = wide - sum(powers)
    return np.array([*powers, rest] if rest else powers)


def _by_binaries(draft: Draft, counts: Callable[[int], FloatArray], *, chained: bool) -> bool:
    """Integers with few values as the least value plus weighted binaries, which with `chained` are 1 in
    order."""
    wide = draft.upper - draft.lower
    chosen = np.flatnonzero(draft.integer & ~draft.written & (wide >= 2.0) & (wide < MOST_LEVELS))
    for x in chosen:
        count = counts(int(wide[x]))
        binaries = draft.add_columns(np.zeros(count.size), np.ones(count.size), integer=True)
        value = sp.csr_array(draft.entries(np.array([x])) - count[None] @ draft.entries(binaries))
        draft.add_rows(value, draft.lower[[x]], draft.lower[[x]])
        if chained:
            order = sp.csr_array(draft.entries(binaries[:-1]) - draft.entries(binaries[1:]))
            draft.add_rows(order, np.zeros(count.size - 1), np.full(count.size - 1, np.inf))
        draft.integer[x] = False
    return bool(chosen.size)


def columns_in_halves(draft: Draft, rng: Rng) -> bool:
    """Columns as the sum of two, the second in other units; inputs as the sum of two columns of their own."""
    half = (rng.random(draft.cost.size) < 0.6) & ~draft.written & (draft.upper - draft.lower >= 1.0)
    chosen = np.flatnonzero(half & ~draft.read)
    inputs = np.flatnonzero(half & draft.read)
    if inputs.size:  # rows use the halves, and one row defines the predictor's input
        first = draft.add_columns(draft.lower[inputs], draft.upper[inputs])
        draft.integer[first] = draft.integer[inputs]
        draft.use_instead(inputs, first)
        draft.equate(inputs, first, 1.0, np.zeros(inputs.size))
        chosen = np.append(chosen, first)
    for x in chosen:
        whole, low, high = bool(draft.integer[x]), draft.lower[x], draft.upper[x]
        unit = 1.0 if whole else float(rng.choice([-2.0, 0.5, 1.0]))
        middle = low + np.floor((high - low) / 2.0) if np.isfinite(high - low) else high
        ends = np.sort(np.array([0.0, high - middle if np.isfinite(high - low) else np.inf]) / unit)
        (other,) = draft.add_columns(ends[[0]], ends[[1]], unit * draft.cost[x], whole)
        draft.upper[x] = middle
        at = draft.A.indices == x
        rows = np.repeat(np.arange(draft.A.shape[0]), np.diff(draft.A.indptr))[at]
        more = (unit * draft.A.data[at], (rows, np.full(rows.size, other)))
        draft.A = sp.csr_array(draft.A + sp.csr_array(more, shape=draft.A.shape))
    return bool(chosen.size)


def columns_turned(draft: Draft, rng: Rng) -> bool:
    """Columns counted from their other end, x = c - x'; inputs by a row."""
    turned = ~draft.written & (rng.random(draft.cost.size) < 0.6)
    inputs, own = np.flatnonzero(turned & draft.read), np.flatnonzero(turned & ~draft.read)
    copies = draft.add_columns(draft.lower[inputs], draft.upper[inputs])
    draft.integer[copies], draft.integer[inputs] = draft.integer[inputs], False
    draft.use_instead(inputs, copies)
    draft.equate(inputs, copies, 1.0, np.zeros(inputs.size))
    own = np.append(own, copies)
    low, high = draft.lower[own], draft.upper[own]
    sign, end = np.ones(draft.cost.size), np.zeros(draft.cost.size)
    sign[own] = -1.0
    end[own] = np.where(np.isfinite(low), low, 0.0) + np.where(np.isfinite(high), high, 5.0)
    shift = draft.A @ end
    draft.row_lower, draft.row_upper = draft.row_lower - shift, draft.row_upper - shift
    draft.offset += float(draft.cost @ end)
    draft.cost, draft.A = draft.cost * sign, sp.csr_array(draft.A @ sp.diags_array(sign))
    draft.lower[own], draft.upper[own] = end[own] - high, end[own] - low
    return bool(own.size)


def running_sums(draft: Draft, rng: Rng) -> bool:
    """Rows of four or more entries over a chain of sums, as an inventory."""
    long = np.flatnonzero(np.diff(draft.A.indptr) >= 4)
    for i in long:
        entries = slice(draft.A.indptr[i], draft.A.indptr[i + 1])
        columns, a = draft.A.indices[entries].copy(), draft.A.data[entries].copy()
        sums = draft.add_columns(np.full(a.size, -np.inf), np.full(a.size, np.inf))
        before = sp.diags_array(np.ones(a.size - 1), offsets=-1, shape=(a.size, a.size)) @ draft.entries(sums)
        rows = sp.csr_array(draft.entries(sums) - before - draft.entries(columns, a))
        keep = sp.diags_array(np.where(np.arange(draft.A.shape[0]) == i, 0.0, 1.0))
        last = sp.csr_array(([1.0], ([i], [sums[-1]])), shape=draft.A.shape)
        draft.A = sp.csr_array(keep @ draft.A + last)
        draft.A.eliminate_zeros()
        draft.add_rows(rows, np.zeros(a.size), np.zeros(a.size))
    return bool(long.size)


def equations_combined(draft: Draft, rng: Rng) -> bool:
    """Multiples of equations added to other rows."""
    equal = np.flatnonzero(draft.row_lower == draft.row_upper)
    others = np.flatnonzero(draft.row_lower != draft.row_upper)
    if not equal.size:
        return False
    added = sp.lil_array((draft.A.shape[0], draft.A.shape[0]))
    rows, used = np.append(equal[1:], others), np.append(equal[:-1], rng.choice(equal, others.size))
    for i, e in zip(rows, used, strict=True):
        added[i, e] = float(rng.choice([-2.0, 0.5, 1.0]))
    shift = added @ np.where(np.isfinite(draft.row_lower), draft.row_lower, 0.0)
    draft.A = sp.csr_array(draft.A + sp.csr_array(added) @ draft.A)
    draft.A.eliminate_zeros()
    draft.row_lower, draft.row_upper = draft.row_lower + shift, draft.row_upper + shift
    return True


def redundant_rows(draft: Draft, rng: Rng) -> bool:
    """Every row again, turned and in other units, with room; and the sum of two neighbours."""
    count = draft.A.shape[0]
    if not count:
        return False
    units = rng.choice([-3.0, -0.5, 2.0], count)
    sides = np.sort([(draft.row_lower - 0.5) * units, (draft.row_upper + 0.5) * units], axis=0)
    again = sp.csr_array(sp.diags_array(units) @ draft.A)
    pairs = sp.csr_array(draft.A[:-1] + draft.A[1:])
    low, high = draft.row_lower[:-1] + draft.row_lower[1:], draft.row_upper[:-1] + draft.row_upper[1:]
    draft.add_rows(again, sides[0], sides[1])
    kept = (np.isfinite(low) | np.isfinite(high)) & (np.diff(pairs.indptr) > 0)
    draft.add_rows(sp.csr_array(pairs[kept]), low[kept], high[kept])
    return True


def constants_in_a_column(draft: Draft, rng: Rng) -> bool:
    """A column that is 1, with the sides of rows and the constant of the objective as its entries."""
    sides = np.where(np.isfinite(draft.row_lower), draft.row_lower, draft.row_upper)
    sides = np.where(np.isfinite(sides), sides, 0.0)
    if not sides.any() and draft.offset == 0.0:
        return False
    (one,) = draft.add_columns(np.ones(1), np.ones(1), draft.offset)
    rows = np.flatnonzero(sides)
    entries = (-sides[rows], (rows, np.full(rows.size, one)))
    draft.A = sp.csr_array(draft.A + sp.csr_array(entries, shape=draft.A.shape))
    draft.row_lower, draft.row_upper, draft.offset = draft.row_lower - sides, draft.row_upper - sides, 0.0
    return True


def outputs_through_columns(draft: Draft, rng: Rng) -> bool:
    """Outputs copied into columns of their own, which rows, costs and bounds then use."""
    outputs = np.unique(np.concatenate([tie.outputs.ravel() for tie in draft.ties]))
    outputs = outputs[~draft.integer[outputs] & ~draft.read[outputs]]
    classes = np.zeros(draft.cost.size, dtype=bool)
    for tie in draft.ties:
        classes[tie.outputs] = tie.classifies
    return _through(draft, outputs[~classes[outputs]], rng)


def inputs_through_columns(draft: Draft, rng: Rng) -> bool:
    """Inputs copied into columns of their own, which the predictors then read; bounds on either."""
    inputs = np.unique(np.concatenate([tie.inputs.ravel() for tie in draft.ties]))
    inputs = inputs[~draft.written[inputs]]
    lower, upper = draft.lower[inputs], draft.upper[inputs]
    copies = draft.add_columns(lower, upper)
    draft.equate(inputs, copies, 1.0, np.zeros(inputs.size))
    place = np.arange(draft.cost.size)
    place[inputs] = copies
    for tie in draft.ties:
        tie.inputs = place[tie.inputs]
    bare = inputs if rng.random() < 0.5 else copies
    bare = bare[~draft.integer[bare]]  # the bounds of an integer are part of its definition
    draft.lower[bare], draft.upper[bare] = -np.inf, np.inf
    return bool(inputs.size)


def _through(draft: Draft, columns: IntArray, rng: Rng) -> bool:
    """Give columns copies that take their places in rows and costs."""
    if not columns.size:
        return False
    at_copy = rng.random(columns.size) < 0.5
    copies = draft.add_columns(
        np.where(at_copy, draft.lower[columns], -np.inf),
        np.where(at_copy, draft.upper[columns], np.inf),
    )
    draft.use_instead(columns, copies)
    draft.equate(columns, copies, 1.0, np.zeros(columns.size))
    bare = columns[at_copy]
    draft.lower[bare], draft.upper[bare] = -np.inf, np.inf
    return True


def absolute_values_split(draft: Draft, rng: Rng) -> bool:
    """a >= x - w and a >= w - x as x = w + p - q and a >= p + q, for every such pair of rows."""
    found = _epigraphs(draft)
    if not found:
        return False
    dropped = np.zeros(draft.A.shape[0], dtype=bool)
    for a, x, w, rows in found:
        dropped[list(rows)] = True
        p, q = draft.add_columns(np.zeros(2), np.full(2, np.inf))
        n = draft.cost.size
        split = sp.csr_array(([1.0, -1.0, 1.0], ([0, 0, 0], [x, p, q])), shape=(1, n))
        size = sp.csr_array(([1.0, -1.0, -1.0], ([0, 0, 0], [a, p, q])), shape=(1, n))
        draft.add_rows(sp.vstack([split, size]), np.array([w, 0.0]), np.array([w, np.inf]))
        dropped = np.append(dropped, [False, False])
    draft.drop_rows(dropped)
    return True


def _epigraphs(draft: Draft) -> list[tuple[int, int, float, tuple[int, int]]]:
    """a, x, w and the two rows of every a >= |x - w| with unit entries, where no predictor reads or writes
    a."""
    sides: dict[tuple[int, int], dict[float, tuple[int, float]]] = {}
    known = draft.read | draft.written | draft.integer
    for i in range(draft.A.shape[0]):
        row = slice(draft.A.indptr[i], draft.A.indptr[i + 1])
        columns, values = draft.A.indices[row], draft.A.data[row]
        low, high = draft.row_lower[i], draft.row_upper[i]
        if len(columns) != 2 or np.isfinite(low) == np.isfinite(high):
            continue
        sign, least = (1.0, low) if np.isfinite(low) else (-1.0, -high)
        for k in (0, 1):
            a, x = int(columns[k]), int(columns[1 - k])
            if sign * values[k] == 1.0 and abs(values[1 - k]) == 1.0 and not known[a]:
                sides.setdefault((a, x), {})[float(sign * values[1 - k])] = i, float(least)
    found, taken = [], set[int]()
    for (a, x), both in sides.items():
        if len(both) == 2 and np.isclose(both[1.0][1], -both[-1.0][1]) and a not in taken and x not in taken:
            found.append((a, x, both[1.0][1], (both[1.0][0], both[-1.0][0])))
            taken |= {a, x}
    return found


def absolute_values_joined(draft: Draft, rng: Rng) -> bool:
    """x = w + p - q with p and q alike in all other rows as a >= x - w and a >= w - x."""
    found = False
    columns = draft.A.tocsc()
    for i in np.flatnonzero((draft.row_lower == draft.row_upper) & (np.diff(draft.A.indptr) == 3)):
        split = _split_of(draft, columns, int(i))
        if split is None:
            continue
        x, p, q, w = split
        found = True
        # p takes the part of a = p + q; the row of the split becomes one of the two sides
        n = draft.cost.size
        above = sp.csr_array(([1.0, -1.0], ([0, 0], [p, x])), shape=(1, n))
        below = sp.csr_array(([1.0, 1.0], ([0, 0], [p, x])), shape=(1, n))
        keep = sp.diags_array(np.where(np.arange(draft.A.shape[0]) == i, 0.0, 1.0))
        without = sp.diags_array(np.where(np.arange(n) == q, 0.0, 1.0))
        draft.A = sp.csr_array(keep @ draft.A @ without)
        draft.A.eliminate_zeros()
        draft.row_lower[i], draft.row_upper[i] = -np.inf, np.inf
        draft.add_rows(sp.vstack([above, below]), np.array([-w, w]), np.full(2, np.inf))
        draft.cost[q], draft.lower[q], draft.upper[q], draft.upper[p] = 0.0, 0.0, 0.0, np.inf
        columns = draft.A.tocsc()
    if found:
        draft.drop_rows(np.isneginf(draft.row_lower) & np.isposinf(draft.row_upper))
    return found


def _split_of(draft: Draft, columns: sp.csc_array, i: int) -> tuple[int, int, int, float] | None:
    """x, p, q, w of a row x = w + p - q in some unit, where the size of p + q is limited from above only."""
    entries = slice(draft.A.indptr[i], draft.A.indptr[i + 1])
    three, a = draft.A.indices[entries], draft.A.data[entries]
    known = draft.read | draft.written | draft.integer
    reads = [k for k in range(3) if draft.read[three[k]] and not draft.written[three[k]]]
    if len(reads) != 1 or np.abs(a).max() != np.abs(a).min():
        return None
    x, unit = int(three[reads[0]]), float(a[reads[0]])
    rest = [k for k in range(3) if k != reads[0]]
    if a[rest[0]] + a[rest[1]] != 0.0 or known[three[rest]].any() or draft.lower[three[rest]].any():
        return None
    p, q = (int(three[k]) for k in sorted(rest, key=lambda k: a[k] * unit))
    w = float(draft.row_lower[i]) / unit
    others = []
    for column in (p, q):
        mine = slice(columns.indptr[column], columns.indptr[column + 1])
        others.append(
            {r: v for r, v in zip(columns.indices[mine], columns.data[mine], strict=True) if r != i}
        )
    sign = -1.0 if draft.maximises else 1.0
    paid = sign * draft.cost[p] >= 0.0 and draft.cost[p] == draft.cost[q]
    limited = all(
        (v > 0.0 and np.isneginf(draft.row_lower[r])) or (v < 0.0 and np.isposinf(draft.row_upper[r]))
        for r, v in others[0].items()
    )
    wide = draft.upper[p] >= draft.upper[x] - w and draft.upper[q] >= w - draft.lower[x]
    return (x, p, q, w) if others[0] == others[1] and paid and limited and wide else None


def objective_through_a_column(draft: Draft, rng: Rng) -> bool:
    """Minimise z with z = the objective."""
    if not draft.cost.any():
        return False
    row = sp.csr_array(np.append(-draft.cost, 1.0)[None])
    draft.add_columns(np.array([-np.inf]), np.array([np.inf]))
    draft.add_rows(row, np.zeros(1), np.zeros(1))
    draft.cost = np.append(np.zeros(draft.cost.size - 1), 1.0)
    return True


def objective_bounded(draft: Draft, rng: Rng) -> bool:
    """Minimise z with z >= the objective."""
    if not objective_through_a_column(draft, rng):
        return False
    (draft.row_lower if draft.maximises else draft.row_upper)[-1] = -np.inf if draft.maximises else np.inf
    return True


def slacks(draft: Draft, rng: Rng) -> bool:
    """Inequalities as equations with a slack."""
    unequal = np.flatnonzero(draft.row_lower != draft.row_upper)
    if not unequal.size:
        return False
    columns = draft.add_columns(draft.row_lower[unequal], draft.row_upper[unequal])
    shape = (draft.A.shape[0], draft.cost.size)
    draft.A = sp.csr_array(draft.A - sp.csr_array((np.ones(unequal.size), (unequal, columns)), shape=shape))
    draft.row_lower[unequal] = draft.row_upper[unequal] = 0.0
    return True


# ---- the predictors


def as_template(draft: Draft, rng: Rng) -> bool:
    """The samples of one predictor, with their own columns and rows, as a template."""
    if len(draft.ties) != 1 or len(draft.ties[0].inputs) < 2 or _members(draft) is None:
        return False
    draft.template = True
    return True


def _members(draft: Draft) -> tuple[IntArray, list[list[int]]] | None:
    """(n, k) the columns of each sample, and for each kind of private row its row in every sample.

    None where samples share a column, or differ in their rows.
    """
    tie, columns = draft.ties[0], draft.A.tocsc()
    owner = np.full(draft.cost.size, -1)
    for i, own in enumerate(np.hstack([tie.inputs, tie.outputs])):
        if (owner[own] >= 0).any():
            return None
        owner[own] = i
    rows = [draft.A.indices[draft.A.indptr[r] : draft.A.indptr[r + 1]] for r in range(draft.A.shape[0])]
    changed = True
    while changed:  # a column whose rows all touch one sample alone is that sample's
        changed = False
        for j in np.flatnonzero(owner < 0):
            touching = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
            owners = [{int(o) for o in owner[rows[r]] if o >= 0} for r in touching]
            alone = set().union(*(some for some in owners if len(some) == 1))
            if len(alone) == 1:
                owner[j] = alone.pop()
                changed = True
    count = len(tie.inputs)
    known = np.hstack([tie.inputs, tie.outputs])
    extra = [[j for j in np.flatnonzero(owner == i) if j not in set(known[i])] for i in range(count)]
    if len({len(some) for some in extra}) != 1:
        return None
    members = np.hstack([known, np.array(extra, dtype=int).reshape(count, -1)])
    private = [[r for r in range(len(rows)) if set(owner[rows[r]]) == {i}] for i in range(count)]
    if len({len(some) for some in private}) != 1:
        return None
    local = np.full(draft.cost.size, -1)
    for own in members:
        local[own] = np.arange(own.size)
    kinds = [list(kind) for kind in zip(*private, strict=True)]
    same = all(len({tuple(sorted(local[rows[r]])) for r in kind}) == 1 for kind in kinds)
    whole = all(np.all(draft.integer[column] == draft.integer[column[0]]) for column in members.T)
    return (members, kinds) if same and whole else None


def _as_template(draft: Draft) -> Problem:
    """The draft with its samples stated as a template; columns and rows that belong to no sample stay in
    the host."""
    found, tie = _members(draft), draft.ties[0]
    assert found is not None
    members, kinds = found
    inside = np.zeros(draft.cost.size, dtype=bool)
    inside[members] = True
    outside = np.flatnonzero(~inside)
    place = {int(j): k for k, j in enumerate(outside)}
    family = {int(j): f"c{k}" for own in members for k, j in enumerate(own)}
    sample = {int(j): i for i, own in enumerate(members) for j in own}
    taken = {r for kind in kinds for r in kind}
    A = draft.A.toarray()
    touches = (A[:, inside] != 0.0).any(axis=1)
    own_rows = [r for r in range(len(A)) if r not in taken and not touches[r]]
    sense: Literal["min", "max"] = "max" if draft.maximises else "min"
    host = np.array(own_rows, dtype=np.intp)
    if outside.size:
        made = dt.Problem(
            dt.Mip(
                draft.cost[outside], A[np.ix_(host, outside)], draft.row_lower[host],
                draft.row_upper[host], draft.lower[outside], draft.upper[outside],
                draft.integer[outside], sense, draft.offset,
            )
        )  # fmt: skip
    else:
        made = dt.Problem(sense=sense)
    families = {
        f"c{k}": dt.Family(draft.lower[own], draft.upper[own], draft.cost[own], bool(draft.integer[own[0]]))
        for k, own in enumerate(members.T)
    }
    rows = [
        dt.FamilyRow(
            {f"c{k}": A[kind, own] for k, own in enumerate(members.T) if A[kind[0], own[0]] != 0.0},
            draft.row_lower[kind],
            draft.row_upper[kind],
        )
        for kind in kinds
    ]
    shared = [r for r in range(len(A)) if r not in taken and touches[r]]
    coupling = []
    for r in shared:
        used: dict[Any, Any] = {}
        for j in np.flatnonzero(A[r]):
            if int(j) in family:
                used.setdefault(family[int(j)], np.zeros(len(members)))[sample[int(j)]] = A[r, j]
            else:
                used[place[int(j)]] = A[r, j]
        coupling.append(dt.FamilyRow(used, float(draft.row_lower[r]), float(draft.row_upper[r])))
    template = made.add_template(len(members), families, rows=rows, coupling=coupling)
    width = tie.inputs.shape[1]
    names = [f"c{k}" for k in range(width + tie.outputs.shape[1])]
    tie.add_to(made, template[tuple(names[:width])], template[tuple(names[width:])])
    return made


def samples_apart(draft: Draft, rng: Rng) -> bool:
    """A predictor of n samples as n predictors."""
    if all(len(tie.inputs) == 1 for tie in draft.ties):
        return False
    draft.ties = [
        replace(tie, inputs=tie.inputs[[i]], outputs=tie.outputs[[i]])
        for tie in draft.ties
        for i in range(len(tie.inputs))
    ]
    return True


def samples_together(draft: Draft, rng: Rng) -> bool:
    """The same predictor added several times as one predictor of several samples."""
    groups: dict[int, list[Tie]] = {}
    for tie in draft.ties:
        groups.setdefault(id(tie.predictor), []).append(tie)
    if len(groups) == len(draft.ties) or draft.read[np.flatnonzero(draft.written)].any():
        return False
    draft.ties = [
        replace(
            some[0],
            inputs=np.concatenate([tie.inputs for tie in some]),
            outputs=np.concatenate([tie.outputs for tie in some]),
        )
        for some in groups.values()
    ]
    return True


def layers_of(tie: Tie) -> list[tuple[FloatArray, FloatArray]] | None:
    """Weights and biases of a plain ReLU network, last layer included; None for any other predictor."""
    net = tie.predictor
    if not isinstance(net, nn.Sequential):
        return None
    parts = list(net)
    plain = all(isinstance(part, nn.Linear) for part in parts[::2]) and len(parts) % 2 == 1
    if not plain or not all(isinstance(part, nn.ReLU) for part in parts[1::2]):
        return None
    return [
        (part.weight.detach().double().numpy().copy(), part.bias.detach().double().numpy().copy())
        for part in parts[::2]
        if isinstance(part, nn.Linear) and part.bias is not None
    ]


def sequential(layers: list[tuple[FloatArray, FloatArray]], *, last_relu: bool = False) -> nn.Sequential:
    """The float64 torch network with these weights."""
    parts: list[nn.Module] = []
    for weight, bias in layers:
        linear = nn.Linear(weight.shape[1], weight.shape[0]).double()
        with torch.no_grad():
            linear.weight.copy_(torch.as_tensor(weight))
            linear.bias.copy_(torch.as_tensor(bias))
        parts += [linear, nn.ReLU()]
    return nn.Sequential(*(parts if last_relu else parts[:-1]))


def _in_double(tie: Tie) -> bool:
    return isinstance(tie.predictor, nn.Module) and all(
        part.dtype == torch.float64 for part in tie.predictor.parameters()
    )


def _rewritten(draft: Draft, change: Callable[[list[tuple[FloatArray, FloatArray]]], Any]) -> bool:
    """Replace every plain ReLU network in double precision; each network once."""
    made: dict[int, Any] = {}
    for tie in draft.ties:
        layers = layers_of(tie) if _in_double(tie) else None
        if layers is not None and id(tie.predictor) not in made:
            made[id(tie.predictor)] = change(layers)
    for tie in draft.ties:
        tie.predictor = made.get(id(tie.predictor), tie.predictor)
    return bool(made)


def inputs_in_other_units(draft: Draft, rng: Rng) -> bool:
    """Continuous inputs of plain ReLU networks in other units, which the first layer takes back."""
    plain = [tie for tie in draft.ties if _in_double(tie) and layers_of(tie) is not None]
    other = [tie for tie in draft.ties if not any(tie is one for one in plain)]
    free = ~(draft.integer | draft.written)
    for tie in other:
        free[tie.inputs] = False
    for tie in plain:  # samples of one network have the same units
        if len(tie.inputs) > 1:
            free[tie.inputs] = False
    shared = [tie for tie in plain if sum(one.predictor is tie.predictor for one in plain) > 1]
    for tie in shared:
        free[tie.inputs] = False
    if not (free & draft.read).any():
        return False
    units = np.where(free & draft.read, rng.choice([0.1, 0.5, 4.0], draft.cost.size), 1.0)
    draft.A = sp.csr_array(draft.A @ sp.diags_array(units))
    draft.cost = draft.cost * units
    draft.lower, draft.upper = draft.lower / units, draft.upper / units
    for tie in plain:
        layers = layers_of(tie)
        if layers is not None and len(tie.inputs) == 1 and not any(tie is one for one in shared):
            layers[0] = layers[0][0] * units[tie.inputs[0]], layers[0][1]
            tie.predictor = sequential(layers)
    return True


def _of_each_network(draft: Draft) -> list[tuple[list[Tie], list[tuple[FloatArray, FloatArray]]]]:
    """Plain ReLU networks in double precision: all their samples, and their layers."""
    groups: dict[int, list[Tie]] = {}
    for tie in draft.ties:
        if _in_double(tie) and layers_of(tie) is not None:
            groups.setdefault(id(tie.predictor), []).append(tie)
    return [(ties, layers) for ties in groups.values() if (layers := layers_of(ties[0])) is not None]


def _layer_of_rows(draft: Draft, into: IntArray, out: IntArray, layer: tuple[FloatArray, FloatArray]) -> None:
    """out = weight into + bias as rows, sample by sample."""
    weight, bias = layer
    for read, write in zip(into, out, strict=True):
        rows = sp.csr_array(draft.entries(write) - sp.csr_array(weight) @ draft.entries(read))
        draft.add_rows(rows, bias, bias)


def inputs_standardised(draft: Draft, rng: Rng) -> bool:
    """The networks read u = (x - m) / s."""
    networks = _of_each_network(draft)
    for ties, layers in networks:
        (weight, bias), d = layers[0], layers[0][0].shape[1]
        middle, unit = np.asarray(rng.normal(size=d)), rng.choice([0.3, 2.0, 7.0], d)
        net = sequential([(weight * unit, bias + weight @ middle), *layers[1:]])
        for tie in ties:
            free = np.full(tie.inputs.size, np.inf)
            columns, tie.predictor = draft.add_columns(-free, free).reshape(tie.inputs.shape), net
            for x, u in zip(tie.inputs, columns, strict=True):
                draft.equate(x, u, unit, middle)
            tie.inputs = columns
    return bool(networks)


def first_layer_in_rows(draft: Draft, rng: Rng) -> bool:
    """The first linear layer is rows, and the network begins with a ReLU."""
    networks = [one for one in _of_each_network(draft) if len(one[1]) > 1]
    for ties, layers in networks:
        net = nn.Sequential(nn.ReLU(), *sequential(layers[1:]))
        for tie in ties:
            free = np.full((len(tie.inputs), len(layers[0][1])), np.inf)
            columns = draft.add_columns(-free.ravel(), free.ravel()).reshape(free.shape)
            _layer_of_rows(draft, tie.inputs, columns, layers[0])
            tie.inputs, tie.predictor = columns, net
    return bool(networks)


def last_layer_in_rows(draft: Draft, rng: Rng) -> bool:
    """The last linear layer is rows, and the network ends with a ReLU."""
    networks = [one for one in _of_each_network(draft) if len(one[1]) > 1 and not one[0][0].classifies]
    for ties, layers in networks:
        net = sequential(layers[:-1], last_relu=True)
        for tie in ties:
            free = np.full((len(tie.inputs), layers[-1][0].shape[1]), np.inf)
            columns = draft.add_columns(-free.ravel(), free.ravel()).reshape(free.shape)
            _layer_of_rows(draft, columns, tie.outputs, layers[-1])
            tie.outputs, tie.predictor = columns, net
    return bool(networks)


def unused_inputs_and_outputs(draft: Draft, rng: Rng) -> bool:
    """One more input without a weight, one more output that nothing reads."""
    networks = [one for one in _of_each_network(draft) if not one[0][0].classifies]
    for ties, layers in networks:
        weight, bias = layers[0]
        layers[0] = np.hstack([weight, np.zeros((len(bias), 1))]), bias
        weight, bias = layers[-1]
        layers[-1] = np.vstack([weight, rng.normal(size=(1, weight.shape[1]))]), np.append(bias, 0.5)
        net = sequential(layers)
        for tie in ties:
            ones = np.ones(len(tie.inputs))
            tie.inputs = np.column_stack([tie.inputs, draft.add_columns(0.0 * ones, ones)])
            tie.outputs = np.column_stack([tie.outputs, draft.add_columns(-np.inf * ones, np.inf * ones)])
            tie.predictor = net
    return bool(networks)


def predictors_twice(draft: Draft, rng: Rng) -> bool:
    """The objective has outputs of its own, by a second call with the same inputs."""
    again = [tie for tie in draft.ties if not tie.classifies and draft.cost[tie.outputs].any()]
    for tie in again:
        outputs, free = tie.outputs.ravel(), np.full(tie.outputs.size, np.inf)
        copies = draft.add_columns(-free, free, draft.cost[outputs])
        draft.cost[outputs] = 0.0
        draft.ties.append(replace(tie, outputs=copies.reshape(tie.outputs.shape)))
    return bool(again)


def networks_cut(draft: Draft, rng: Rng) -> bool:
    """A network of several layers as two networks, one behind the other, with columns between them."""
    ties: list[Tie] = []
    halves: dict[int, tuple[nn.Sequential, nn.Sequential]] = {}
    for tie in draft.ties:
        layers = layers_of(tie) if _in_double(tie) else None
        if layers is None or len(layers) < 3:
            ties.append(tie)
            continue
        if id(tie.predictor) not in halves:
            middle = len(layers) // 2
            halves[id(tie.predictor)] = (
                sequential(layers[:middle], last_relu=True),
                sequential(layers[middle:]),
            )
        first, second = halves[id(tie.predictor)]
        last = first[-2]
        assert isinstance(last, nn.Linear)
        width, samples = last.out_features, len(tie.inputs)
        between = draft.add_columns(np.zeros(samples * width), np.full(samples * width, np.inf))
        between = between.reshape(samples, width)
        ties.append(Tie(first, tie.inputs, between, False, None, tie.epsilon))
        ties.append(replace(tie, predictor=second, inputs=between))
    draft.ties = ties
    return bool(halves)


def networks_joined(draft: Draft, rng: Rng) -> bool:
    """Two networks of the same depth, side by side, as one network with both inputs and both outputs."""
    plain = []
    for place, tie in enumerate(draft.ties):
        layers = layers_of(tie) if _in_double(tie) else None
        if layers is not None and len(tie.inputs) == 1 and not tie.classifies:
            plain.append((place, layers))
    for k, (one, mine) in enumerate(plain):
        for two, others in plain[k + 1 :]:
            first, second = draft.ties[one], draft.ties[two]
            ends = np.concatenate([first.outputs.ravel(), second.outputs.ravel()])
            starts = np.concatenate([first.inputs[0], second.inputs[0]])
            if len(mine) != len(others) or np.isin(ends, starts).any():
                continue
            reads = np.unique(starts)
            layers = [
                (sp.block_diag([w, v]).toarray(), np.concatenate([b, c]))
                for (w, b), (v, c) in zip(mine, others, strict=True)
            ]
            onto = (starts[:, None] == reads[None, :]).astype(float)
            layers[0] = layers[0][0] @ onto, layers[0][1]
            joined = Tie(sequential(layers), reads[None], ends[None], False, None, first.epsilon)
            # at the place of the later one, which may read outputs of the other
            draft.ties = [tie for place, tie in enumerate(draft.ties) if place not in (one, two)]
            draft.ties.append(joined)
            return True
    return False


def as_onnx(draft: Draft, rng: Rng) -> bool:
    """Plain ReLU networks as models of ONNX, in double precision."""
    return _rewritten(draft, _onnx)


def _onnx(layers: list[tuple[FloatArray, FloatArray]]) -> Any:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, numbers, at = [], [], "x"
    for k, (weight, bias) in enumerate(layers):
        numbers += [numpy_helper.from_array(weight, f"w{k}"), numpy_helper.from_array(bias, f"b{k}")]
        nodes.append(helper.make_node("Gemm", [at, f"w{k}", f"b{k}"], [f"z{k}"], transB=1))
        at = f"z{k}"
        if k + 1 < len(layers):
            nodes.append(helper.make_node("Relu", [at], [f"a{k}"]))
            at = f"a{k}"
    widths = layers[0][0].shape[1], layers[-1][0].shape[0]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["n", widths[0]])],
        [helper.make_tensor_value_info(at, TensorProto.DOUBLE, ["n", widths[1]])],
        numbers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def as_scikit_learn(draft: Draft, rng: Rng) -> bool:
    """Plain ReLU networks as scikit-learn's multi-layer perceptrons."""
    if any(tie.classifies for tie in draft.ties):
        return False
    return _rewritten(draft, _scikit_learn)


def _scikit_learn(layers: list[tuple[FloatArray, FloatArray]]) -> Any:
    from sklearn.neural_network import MLPRegressor

    sizes = tuple(len(bias) for _, bias in layers[:-1])
    width, outputs = layers[0][0].shape[1], len(layers[-1][1])
    net = MLPRegressor(hidden_layer_sizes=sizes, max_iter=1)
    rng = np.random.default_rng(0)
    target = rng.normal(size=(8, outputs)) if outputs > 1 else rng.normal(size=8)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.fit(rng.normal(size=(8, width)), target)
    net.coefs_ = [weight.T.copy() for weight, _ in layers]
    net.intercepts_ = [bias.copy() for _, bias in layers]
    return net


def as_keras(draft: Draft, rng: Rng) -> bool:
    """Plain ReLU networks as models of Keras, in double precision."""
    return _rewritten(draft, _keras)


def _keras(layers: list[tuple[FloatArray, FloatArray]]) -> Any:
    import os

    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    parts = [keras.Input((layers[0][0].shape[1],), dtype="float64")]
    for k, (_, bias) in enumerate(layers):
        kind = "relu" if k + 1 < len(layers) else "linear"
        parts.append(keras.layers.Dense(len(bias), activation=kind, dtype="float64"))
    model = keras.Sequential(parts)
    model.set_weights([part for weight, bias in layers for part in (weight.T, bias)])
    return model


RULES: dict[str, Rule] = {
    rule.__name__.replace("_", " "): rule
    for rule in (
        negated, permuted, bounds_as_rows, equations_as_inequalities, rows_in_other_units,
        columns_in_other_units, integers_as_binaries, integers_by_steps, integers_by_digits,
        columns_in_halves, columns_turned, running_sums, equations_combined, redundant_rows,
        constants_in_a_column, outputs_through_columns, inputs_through_columns, absolute_values_split,
        absolute_values_joined, objective_through_a_column, objective_bounded, slacks, as_template,
        samples_apart, samples_together, inputs_in_other_units, inputs_standardised, first_layer_in_rows,
        last_layer_in_rows, unused_inputs_and_outputs, predictors_twice, networks_cut, networks_joined,
        as_onnx, as_scikit_learn, as_keras,
    )
}  # fmt: skip
"""All rules by name."""


def rewritten(problem: Problem, names: list[str], seed: int = 0) -> Problem | None:
    """The problem after these rules, one after the other; None where one of them changes nothing."""
    draft, rng = Draft.of(problem), np.random.default_rng(seed)
    for name in names:
        if not RULES[name](draft, rng):
            return None
    return draft.problem()
