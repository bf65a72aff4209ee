"""The quadratic objective and the quadratic constraints of a gurobipy model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.core.quadratic import QuadraticTerms


@dataclass(frozen=True, eq=False)
class QuadraticRow:
    """One quadratic constraint; variables are their indices in the model."""

    name: str
    linear: IntArray
    coefficients: FloatArray
    lower: float
    upper: float
    products: QuadraticTerms


def quadratic_objective(model: Any) -> list[QuadraticTerms]:
    """What is quadratic in the objective, if anything."""
    if not model.NumQNZs:
        return []
    Q = sp.coo_array(model.getQ())  # as it was written: no half, no second triangle
    left, right = (index.astype(np.int64) for index in Q.coords)
    return [QuadraticTerms(None, left, right, Q.data)]


def quadratic_rows(model: Any) -> list[QuadraticRow]:
    """All quadratic constraints, as rows that follow the linear ones."""
    constraints = model.getQConstrs() if model.NumQConstrs else ()
    return [_row(model, constraint, model.NumConstrs + k) for k, constraint in enumerate(constraints)]


def _row(model: Any, constraint: Any, number: int) -> QuadraticRow:
    body = model.getQCRow(constraint)
    line, terms = body.getLinExpr(), range(body.size())
    limit = constraint.QCRHS - line.getConstant()
    return QuadraticRow(
        constraint.QCName,
        _indices([line.getVar(k).index for k in range(line.size())]),
        np.array([line.getCoeff(k) for k in range(line.size())]),
        -np.inf if constraint.QCSense == "<" else limit,
        np.inf if constraint.QCSense == ">" else limit,
        QuadraticTerms(
            number,
            _indices([body.getVar1(k).index for k in terms]),
            _indices([body.getVar2(k).index for k in terms]),
            np.array([body.getCoeff(k) for k in terms]),
        ),
    )


def _indices(found: list[int]) -> IntArray:
    return np.array(found, dtype=np.int64)


def with_quadratic_rows(mip: Mip, rows: list[QuadraticRow], place: IntArray) -> Mip:
    """`mip` with what is linear in the quadratic constraints, and their limits, as rows at its end."""
    if not rows:
        return mip
    number = np.repeat(np.arange(len(rows)), [row.linear.size for row in rows])
    columns = place[np.concatenate([row.linear for row in rows])]
    data = np.concatenate([row.coefficients for row in rows])
    linear = sp.coo_array((data, (number, columns)), shape=(len(rows), mip.n_columns))
    lower, upper, names = zip(*((row.lower, row.upper, row.name) for row in rows), strict=True)
    return mip.with_rows(linear, lower, upper, names)
