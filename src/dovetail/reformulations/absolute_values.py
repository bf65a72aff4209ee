"""Absolute values of inputs, written as two rows, split into a part above and a part below.

    a >= c + s (x - w),  a >= c + t (w - x)        s, t > 0: a is at least a V over the input x

becomes

    x = w + p - q,   a = c + s p + t q + r,        p, q, r >= 0

with a and x replaced by their new parts in every other row, and a in the objective. Each point of one form is
a point of the other. An L1 ball written as `a >= |x - w|, sum a <= B` then has the same form as `x = w + p -
q, sum p + q <= B`: methods that describe a set of inputs by its moves recognise both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.names import distinct
from dovetail.core.problem import Problem
from dovetail.core.words import several
from dovetail.reformulations.reformulated import Reformulated

ROUNDED = 64.0 * UNIT
"""Relative: above the rounding of the operations that make a number of a V."""


@dataclass(frozen=True)
class AbsoluteValues:
    """Every absolute value over an input as a sum of two parts and a slack."""

    name = "absolute values"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with the parts as new columns; the rows of the absolute values stay without limits."""
        vs = _AbsoluteValues.of(given.problem)
        if vs is None:
            return None
        written = given.problem.derived(_split(given, vs), given.problem.blocks)
        note = f"{several(vs.value.size, 'absolute value')} of inputs split into parts"
        return Reformulated(written, given, (vs.parts,), note=note)


@dataclass(frozen=True, eq=False)
class _AbsoluteValues:
    """a >= corner + rising (x - at) and a >= corner + falling (at - x), one entry for each absolute value."""

    value: IntArray
    """The column a."""
    input: IntArray
    """The column x."""
    at: FloatArray
    corner: FloatArray
    rising: FloatArray
    falling: FloatArray
    give: FloatArray
    """The amount by which the check accepts a below its V."""
    rows: IntArray
    """All rows of these absolute values."""

    @classmethod
    def of(cls, problem: Problem) -> _AbsoluteValues | None:
        """The absolute values of a problem, at most one for each input and each a; None if there are none."""
        mip = problem.mip
        read = np.zeros(mip.n_columns, dtype=bool)
        read[problem.inputs] = True
        own = read.copy()
        own[problem.outputs] = True
        pairs = list(_pairs(mip))
        sides: dict[tuple[int, int], list[_Side]] = {}
        for side in _sides(mip, pairs, read, own):
            sides.setdefault((side.value, side.input), []).append(side)
        inputs_of: dict[int, set[int]] = {}
        for value, x in sides:
            inputs_of.setdefault(value, set()).add(x)
        found: list[tuple[_Side, _Side]] = []
        taken: set[int] = set()
        for (value, x), mine in sides.items():
            rising = [side for side in mine if side.slope > 0.0]
            falling = [side for side in mine if side.slope < 0.0]
            # several sides of one direction, or an a over several inputs (a maximum), are not split
            if len(rising) == len(falling) == 1 and len(inputs_of[value]) == 1 and x not in taken:
                taken.add(x)
                found.append((rising[0], falling[0]))
        if not found:
            return None
        slopes = np.array([[up.slope, down.slope] for up, down in found])
        least = np.array([[up.least, down.least] for up, down in found])
        at = (least[:, 1] - least[:, 0]) / (slopes[:, 0] - slopes[:, 1])
        return cls(
            np.array([up.value for up, _ in found]),
            np.array([up.input for up, _ in found]),
            at,
            least[:, 0] + slopes[:, 0] * at,
            slopes[:, 0],
            -slopes[:, 1],
            np.array([max(up.give, down.give) for up, down in found]),
            np.array([side.row for both in found for side in both]),
        )

    def parts(self, z: FloatArray) -> FloatArray:
        """p, q and r at a point."""
        beyond = z[self.input] - self.at
        above, below = np.maximum(beyond, 0.0), np.maximum(-beyond, 0.0)
        rest = z[self.value] - self.corner - self.rising * above - self.falling * below
        return np.concatenate([above, below, rest * self.unit])

    @property
    def unit(self) -> FloatArray:
        """The unit of r, such that the tolerance on the rows of a V is the tolerance on r."""
        return TOLERANCE / np.maximum(self.give, TOLERANCE)

    @property
    def rounding(self) -> FloatArray:
        """The rounding of the corner, in units of a."""
        slope = np.maximum(self.rising, self.falling)
        return ROUNDED * (np.abs(self.corner) + slope * (1.0 + np.abs(self.at)))


@dataclass(frozen=True)
class _Side:
    """a >= least + slope x."""

    row: int
    value: int
    input: int
    slope: float
    least: float
    give: float
    """By how much the check accepts a below that line."""


Pair = tuple[int, int, float, int, float, float, float]
"""A row with two columns: its number, columns and coefficients, its lower and its upper limit."""


def _pairs(mip: Mip) -> Iterator[Pair]:
    """The rows with two columns."""
    starts = mip.A.indptr[:-1][np.diff(mip.A.indptr) == 2]
    rows = np.flatnonzero(np.diff(mip.A.indptr) == 2)
    first, second = mip.A.indices[starts], mip.A.indices[starts + 1]
    factors = mip.A.data[starts], mip.A.data[starts + 1]
    kept = (factors[0] != 0.0) & (factors[1] != 0.0) & (first != second)
    for i, j, u, k, v in zip(
        rows[kept], first[kept], factors[0][kept], second[kept], factors[1][kept], strict=True
    ):
        yield int(i), int(j), float(u), int(k), float(v), float(mip.row_lower[i]), float(mip.row_upper[i])


def _sides(mip: Mip, pairs: list[Pair], read: BoolArray, own: BoolArray) -> Iterator[_Side]:
    """Rows that keep a column without an upper bound above a line in an input."""
    for i, j, u, k, v, low, high in pairs:
        if np.isfinite(low) == np.isfinite(high):
            continue
        sign, side = (1.0, low) if np.isfinite(low) else (-1.0, -high)
        for a, factor, x, by in ((j, sign * u, k, sign * v), (k, sign * v, j, sign * u)):
            if read[x] and not own[a] and factor > 0.0 and not mip.integer[a]:
                yield _Side(i, a, x, -by / factor, side / factor, TOLERANCE / factor)


def _with_parts(
    names: Sequence[str] | None, columns: list[str], parts: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Names of the old columns and of the new parts."""
    return None if names is None else distinct([*names, *(f"{j} {part}" for part in parts for j in columns)])


def _split(given: Reformulated, vs: _AbsoluteValues) -> Mip:
    """The program with p, q and r appended, and each a and x replaced by them."""
    mip, box, count = given.problem.mip, given.box, vs.value.size
    ones, zeros, n = np.ones(count), np.zeros(count), mip.n_columns
    split = np.concatenate([vs.value, vs.input])
    pick = sp.csr_array((np.ones(2 * count), (np.arange(2 * count), split)), shape=(2 * count, n))
    by_parts = sp.block_array(
        [
            [sp.diags_array(vs.rising), sp.diags_array(vs.falling), sp.diags_array(1.0 / vs.unit)],
            [sp.diags_array(ones), sp.diags_array(-ones), sp.csr_array((count, count))],
        ],
        format="csr",
    )
    constant = np.concatenate([vs.corner, vs.at])
    elsewhere = np.ones(n)
    elsewhere[split] = 0.0
    free = np.zeros(mip.n_rows, dtype=bool)
    free[vs.rows] = True
    shift = np.where(free, 0.0, mip.A @ (pick.T @ constant))
    kept = sp.diags_array(np.where(free, 0.0, 1.0)) @ mip.A  # rows without limits have no entries
    A = sp.block_array(
        [[kept @ sp.diags_array(elsewhere), kept @ pick.T @ by_parts], [pick, -by_parts]],
        format="csr",
    )
    A.eliminate_zeros()
    paid = np.concatenate([mip.cost[vs.value], zeros])  # the cost of x stays with x
    cost = mip.cost.copy()
    cost[vs.value] = 0.0
    room = vs.rounding
    above = np.maximum(box.upper[vs.input] - vs.at, 0.0) + room
    below = np.maximum(vs.at - box.lower[vs.input], 0.0) + room
    rest = (np.maximum(box.upper[vs.value] - vs.corner, 0.0) + room) * vs.unit
    return replace(
        mip,
        cost=np.concatenate([cost, paid @ by_parts]),
        offset=mip.offset + float(paid @ constant),
        A=A,
        row_lower=np.concatenate([np.where(free, -np.inf, mip.row_lower - shift), constant]),
        row_upper=np.concatenate([np.where(free, np.inf, mip.row_upper - shift), constant]),
        lower=np.concatenate([mip.lower, zeros, zeros, -room * vs.unit]),
        upper=np.concatenate([mip.upper, above, below, rest]),
        integer=np.concatenate([mip.integer, np.zeros(3 * count, dtype=bool)]),
        names=_with_parts(mip.names, [mip.column_name(j) for j in vs.input], ("above", "below", "beyond")),
        row_names=_with_parts(mip.row_names, [mip.column_name(j) for j in split], ("in parts",)),
    )
