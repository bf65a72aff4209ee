"""The problem as one convex quadratic program, if its quadratic functions are costs only: solved by PIQP.

The square of a sum becomes the square of a column equal to the sum. Integers are relaxed, or fixed at a
point. The solution serves for tangents and as a candidate; it proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import SMALLEST, Mip
from dovetail.methods.quadratic_mip.curve import QuadCurve
from dovetail.mip import engine_for
from dovetail.run.budget import Budget
from dovetail.run.engine import Quadratic
from dovetail.run.failures import expendable


class ConvexProgram:
    """`mip`, in minimisation form, without integers, with quadratic functions as weights."""

    def __init__(self, mip: Mip, curves: Sequence[QuadCurve]) -> None:
        self._own, self._curves = mip, curves
        outputs = np.array([curve.output for curve in curves], dtype=np.int64)
        rows = [curve.F for curve in curves]
        self._sums = sum(map(len, rows))
        count = np.array([len(F) for F in rows], dtype=np.int64)
        shift = np.concatenate([np.empty(0), *(curve.e for curve in curves)])
        first, weight = mip.n_columns, np.repeat(mip.cost[outputs], count)
        parts = [
            sp.coo_array(np.where(np.abs(F) < SMALLEST, 0.0, F)) for F in rows
        ]  # engines drop such entries: this is no proof
        starts = np.cumsum(count) - count
        row = np.concatenate([part.row + start for part, start in zip(parts, starts, strict=True)])
        column = np.concatenate([curve.inputs[part.col] for curve, part in zip(curves, parts, strict=True)])
        data = np.concatenate([part.data for part in parts])
        sums = sp.coo_array((data, (row, column)), shape=(self._sums, first))
        cost = mip.cost.copy()
        offset = mip.offset
        for curve in curves:
            cost[curve.inputs] += mip.cost[curve.output] * curve.linear
            offset += float(mip.cost[curve.output]) * curve.constant
        cost[outputs] = 0.0
        lower, upper = mip.lower.copy(), mip.upper.copy()
        lower[outputs] = upper[outputs] = 0.0
        endless = np.full(self._sums, np.inf)
        self._mip = replace(
            mip,
            cost=np.concatenate([cost, np.zeros(self._sums)]),
            A=sp.vstack(
                [
                    sp.hstack([mip.A, sp.csr_array((mip.n_rows, self._sums))]),
                    sp.hstack([sums, -sp.eye_array(self._sums)]),
                ],
                format="csr",
            ),
            row_lower=np.concatenate([mip.row_lower, -shift]),
            row_upper=np.concatenate([mip.row_upper, -shift]),
            lower=np.concatenate([lower, -endless]),
            upper=np.concatenate([upper, endless]),
            integer=np.zeros(first + self._sums, dtype=bool),
            offset=offset,
            names=None,
            row_names=None,
        )
        zero = np.zeros(first)
        self._objective = Quadratic(
            self._mip.cost, offset, np.concatenate([zero, 2.0 * weight]), np.zeros(first + self._sums)
        )

    def solve(self, budget: Budget, fixed: FloatArray | None = None) -> FloatArray | None:
        """The best point, with the integers of `fixed` if given; None if PIQP finds none."""
        own, mip = self._own, self._mip
        columns = np.arange(own.n_columns, mip.n_columns)
        bounds = None
        if fixed is not None:
            integer = np.append(own.integer, np.zeros(self._sums, dtype=bool))
            whole = np.append(np.round(fixed), np.zeros(self._sums))
            bounds = np.where(integer, whole, mip.lower), np.where(integer, whole, mip.upper)
        answer = None
        with expendable("quadratic program of PIQP", EngineError):
            answer = (
                engine_for("piqp", mip, columns)
                .load(mip, columns)
                .solve(self._objective, budget=budget, bounds=bounds)
            )
        if answer is None or answer.x is None:
            return None
        x = answer.x[: own.n_columns].copy()
        for curve in self._curves:
            x[curve.output] = curve.value(x)
        return x
