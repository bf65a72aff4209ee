"""The linear and quadratic rows of a PySCIPOpt model, and its logical constraints as rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.quadratic import QuadraticTerms
from dovetail.models.scip.columns import GONE, Columns, limits
from dovetail.models.scip.special import KINDS

LINEAR = frozenset({"linear", "knapsack", "setppc", "logicor", "varbound"})
"""Kinds of constraints of which SCIP itself gives coefficients and limits."""

BINARIES_AND_ROWS = "write it with binary variables and linear constraints"

REFUSED = {
    "disjunction": ("a disjunction", "write it with one indicator constraint for each part"),
    "bounddisjunction": ("a disjunction of bounds", "write it with one indicator constraint for each part"),
    "conjunction": ("a conjunction", "add its parts one by one"),
    "cumulative": ("a cumulative constraint", BINARIES_AND_ROWS),
    "pseudoboolean": ("a pseudo-Boolean constraint", "write its products with addConsAnd"),
    "nonlinear": (
        "neither linear nor quadratic",
        "make the nonlinear part a predictor (a function of numpy arrays is one)",
    ),
}
"""Kinds that are not linear, in words, and what to do about them."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Linear rows over all columns."""

    A: sp.csr_array
    lower: FloatArray
    upper: FloatArray
    names: list[str]

    def entries(self, i: int) -> tuple[IntArray, FloatArray]:
        """The columns and coefficients of one row."""
        inside = slice(self.A.indptr[i], self.A.indptr[i + 1])
        return self.A.indices[inside], self.A.data[inside]

    def some(self, kept: BoolArray) -> Rows:
        """Those that are kept."""
        names = [self.names[i] for i in np.flatnonzero(kept)]
        return Rows(self.A[kept], self.lower[kept], self.upper[kept], names)


@dataclass(eq=False)
class Constraints:
    """All constraints while they are collected: entries one after another, with how many each row has."""

    variables: list[Any] = field(default_factory=list)
    entries: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    row_at: dict[int, int] = field(default_factory=dict)
    """Rows by the addresses of their constraints."""
    indicators: list[Any] = field(default_factory=list)
    """Indicator constraints, as PySCIPOpt has them."""
    products: list[tuple[int, list[Any], list[Any], list[float]]] = field(default_factory=list)
    """Of quadratic rows: the row, two variables and a coefficient each."""
    listed: dict[int, str] = field(default_factory=dict)
    """Names of the constraints that only SCIP's own text tells of, by their numbers (see `special.py`)."""

    @classmethod
    def of(cls, model: Any) -> Constraints:
        """All of a model; an `UnsupportedError` for the first that is not taken."""
        found = cls()
        for number, constraint in enumerate(model.getConss(transformed=False)):
            kind = constraint.getConshdlrName()
            if kind in LINEAR:
                found.row_at[constraint.ptr()] = len(found.sizes)
                found._add(
                    constraint.name,
                    model.getConsVars(constraint),
                    model.getConsVals(constraint),
                    model.getLhs(constraint),
                    model.getRhs(constraint),
                )
            elif kind == "indicator":
                found.indicators.append(constraint)
            elif kind in ("and", "or"):
                *parts, result = model.getConsVars(constraint)
                found._add_logic(constraint.name, parts, result, 1.0 if kind == "and" else -1.0)
            elif kind == "nonlinear" and model.checkQuadraticNonlinear(constraint):
                found._add_quadratic(model, constraint)
            elif kind in KINDS:
                found.listed[number] = constraint.name
            else:
                raise _refusal(constraint.name, kind)
        return found

    def _add_quadratic(self, model: Any, constraint: Any) -> None:
        mixed, squares, linear = model.getTermsQuadratic(constraint)
        parts = [*linear, *((variable, entry) for variable, _, entry in squares)]
        products = [*mixed, *((variable, variable, entry) for variable, entry, _ in squares)]
        left, right, weights = ([term[k] for term in products if term[2]] for k in range(3))
        self.products.append((len(self.sizes), left, right, weights))
        limits = model.getLhs(constraint), model.getRhs(constraint)
        self._add(constraint.name, [part[0] for part in parts], [part[1] for part in parts], *limits)

    def _add(self, name: str, variables: list[Any], entries: list[float], lower: float, upper: float) -> None:
        self.variables += variables
        self.entries += entries
        self.sizes.append(len(entries))
        self.lower.append(lower)
        self.upper.append(upper)
        self.names.append(name)

    def _add_logic(self, name: str, parts: list[Any], result: Any, sign: float) -> None:
        """For a sign of 1, `result` is 1 exactly if all parts are; for -1, if any of them is.

        All: result <= each part, and result >= sum of parts - (number of parts - 1).
        Any: result >= each part, and result <= sum of parts.
        """
        for part in parts:
            self._add(name, [result, part], [sign, -sign], -np.inf, 0.0)
        limit = len(parts) - 1.0 if sign > 0 else 0.0
        self._add(name, [result, *parts], [-sign] + [sign] * len(parts), -np.inf, limit)

    def quadratics(self, model: Any, columns: Columns) -> list[QuadraticTerms]:
        """What is quadratic in the rows, over all columns."""
        result = []
        for row, *sides, weights in self.products:
            found = [columns.find(model, side) for side in sides]
            if any(np.any(negated) for _, negated in found):
                raise UnsupportedError(
                    f"the constraint {self.names[row]} multiplies a negated variable; write 1 - x instead."
                )
            if any(np.any(column == GONE) for column, _ in found):
                raise removed(self.names[row])
            result.append(QuadraticTerms(row, found[0][0], found[1][0], np.array(weights)))
        return result

    def rows(self, model: Any, columns: Columns) -> Rows:
        """The matrix; a (1 - x) becomes -a x, and a goes to the limits."""
        data = np.array(self.entries, dtype=np.float64)
        row = np.repeat(np.arange(len(self.sizes)), self.sizes)
        column, negated = columns.find(model, self.variables)
        for k in np.flatnonzero(column == GONE)[:1]:
            raise removed(self.names[row[k]])
        shift = np.bincount(row[negated], data[negated], minlength=len(self.sizes))
        data[negated] *= -1.0
        A = sp.csr_array(
            (data, column, np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])),
            shape=(len(self.sizes), len(columns.keys)),
        )
        A.sum_duplicates()
        A.eliminate_zeros()
        infinity = model.infinity()
        lower, upper = limits(self.lower, infinity) - shift, limits(self.upper, infinity) - shift
        return Rows(A, lower, upper, self.names)


def _refusal(name: str, kind: str) -> UnsupportedError:
    what, remedy = REFUSED.get(
        kind, (f"a constraint of SCIP's kind {kind!r}", "state it with linear constraints")
    )
    return UnsupportedError(f"the constraint {name} is {what}, which is not taken; {remedy}.")


def removed(constraint: str) -> ModelError:
    """The error for a constraint that outlived one of its variables."""
    return ModelError(
        f"the constraint {constraint} has a variable that was removed from the PySCIPOpt model; SCIP cannot "
        "solve that either. Take the constraint out with delCons, and state it again."
    )
