"""The quadratic objective and the quadratic constraints of a gurobipy model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import IntArray
from dovetail.core.mip import Mip
from dovetail.core.names import distinct
from dovetail.core.quadratic import QuadraticTerms


def quadratic_terms(model: Any) -> list[QuadraticTerms]:
    """By the indices of variables; rows of quadratic constraints follow the linear ones."""
    found = []
    if model.NumQNZs:
        Q = sp.coo_array(model.getQ())  # as it was written: no half, no second triangle
        left, right = (index.astype(np.int64) for index in Q.coords)
        found.append(QuadraticTerms(None, left, right, Q.data))
    for number, constraint in enumerate(model.getQConstrs() if model.NumQConstrs else ()):
        body = model.getQCRow(constraint)
        terms = range(body.size())
        left, right = [body.getVar1(k).index for k in terms], [body.getVar2(k).index for k in terms]
        coefficients = np.array([body.getCoeff(k) for k in terms])
        row = model.NumConstrs + number
        found.append(QuadraticTerms(row, _indices(left), _indices(right), coefficients))
    return found


def _indices(found: list[int]) -> IntArray:
    return np.array(found, dtype=np.int64)


def with_quadratic_rows(model: Any, mip: Mip, place: IntArray) -> Mip:
    """`mip` with what is linear in the quadratic constraints, and their limits, as rows at its end."""
    constraints = model.getQConstrs() if model.NumQConstrs else []
    if not constraints:
        return mip
    rows, columns, data, lower, upper = [], [], [], [], []
    for number, constraint in enumerate(constraints):
        body = model.getQCRow(constraint).getLinExpr()
        limit = constraint.QCRHS - body.getConstant()
        rows += [number] * body.size()
        columns += [int(place[body.getVar(k).index]) for k in range(body.size())]
        data += [body.getCoeff(k) for k in range(body.size())]
        lower.append(-np.inf if constraint.QCSense == "<" else limit)
        upper.append(np.inf if constraint.QCSense == ">" else limit)
    linear = sp.coo_array((data, (rows, columns)), shape=(len(constraints), mip.n_columns))
    own = [*map(mip.row_name, range(mip.n_rows))]
    return replace(
        mip,
        A=sp.vstack([mip.A, linear], format="csr"),
        row_lower=np.concatenate([mip.row_lower, lower]),
        row_upper=np.concatenate([mip.row_upper, upper]),
        row_names=distinct([*own, *(constraint.QCName for constraint in constraints)]),
    )
