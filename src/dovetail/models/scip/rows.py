"""The variables, the linear and quadratic rows and the logical constraints of a PySCIPOpt model.

PySCIPOpt cannot be asked about special ordered sets, cardinality and exclusive or: these are read from SCIP's
own text of the model, in which variables and constraints are numbered in their order.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.quadratic import QuadraticTerms
from dovetail.core.special_constraints import SpecialConstraints, logic_rows

KINDS = frozenset({"SOS1", "SOS2", "cardinality", "xor"})

BY_HAND = "write it with binary variables and linear constraints"
"""What to do about a constraint that nothing can be made of."""

_VARIABLE = re.compile(r"<x(\d+)>")
_LAST_NUMBER = re.compile(r"<?= (\d+)$")


LINEAR = frozenset({"linear", "knapsack", "setppc", "logicor", "varbound"})
"""Kinds of constraints of which SCIP itself gives coefficients and limits."""

REFUSED = {
    "disjunction": ("a disjunction", "write it with one indicator constraint for each part"),
    "bounddisjunction": ("a disjunction of bounds", "write it with one indicator constraint for each part"),
    "conjunction": ("a conjunction", "add its parts one by one"),
    "cumulative": ("a cumulative constraint", BY_HAND),
    "pseudoboolean": ("a pseudo-Boolean constraint", "write its products with addConsAnd"),
    "nonlinear": (
        "neither linear nor quadratic",
        "make the nonlinear part a predictor (a function of numpy arrays is one)",
    ),
}
"""Kinds that are not taken, in words, and what to do about them."""


_LINE = re.compile(r"^\s*\[(\w+)\] <c(\d+)>: (.*);\s*$")
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_CONSTANT = re.compile(rf"^(?:{_NUMBER} <= )?({_NUMBER})(?=[-+])")


@dataclass(frozen=True, eq=False)
class LinearRows:
    """Linear rows over all columns."""

    A: sp.csr_array
    lower: FloatArray
    upper: FloatArray
    names: list[str]

    def entries(self, i: int) -> tuple[IntArray, FloatArray]:
        """The columns and coefficients of one row."""
        inside = slice(self.A.indptr[i], self.A.indptr[i + 1])
        return self.A.indices[inside], self.A.data[inside]

    def some(self, kept: BoolArray) -> LinearRows:
        """Those that are kept."""
        names = [self.names[i] for i in np.flatnonzero(kept)]
        return LinearRows(self.A[kept], self.lower[kept], self.upper[kept], names)


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
    special: list[ListedConstraint] = field(default_factory=list)
    """Those that are no rows."""

    @classmethod
    def of(cls, model: Any) -> Constraints:
        """All of a model; an `UnsupportedError` for the first that is not taken."""
        found = cls()
        told: dict[int, str] = {}  # names of those that only SCIP's text tells of, by their numbers
        quadratic: dict[int, int] = {}  # rows by the numbers of their constraints
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
                for variables, entries, most in logic_rows(result, parts, 1.0 if kind == "and" else -1.0):
                    found._add(constraint.name, variables, entries, -np.inf, most)
            elif kind == "nonlinear" and model.checkQuadraticNonlinear(constraint):
                quadratic[number] = len(found.sizes)
                found._add_quadratic(model, constraint)
            elif kind in KINDS:
                told[number] = constraint.name
            else:
                raise _refusal(constraint.name, kind)
        if told or quadratic:
            texts = constraint_texts(model)
            found.special = listed(texts, told)
            for number, row in quadratic.items():
                found._subtract(row, constant_in(texts[number][1]), model.infinity())
        return found

    def _subtract(self, row: int, constant: float, infinity: float) -> None:
        """The constant of a quadratic row, which PySCIPOpt leaves out, goes to the finite limits."""
        for limit in (self.lower, self.upper):
            limit[row] -= constant if abs(limit[row]) < infinity else 0.0

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

    def quadratics(self, model: Any, columns: ScipColumns) -> list[QuadraticTerms]:
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

    def rows(self, model: Any, columns: ScipColumns) -> LinearRows:
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
        return LinearRows(A, lower, upper, self.names)


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


def constraint_texts(model: Any) -> dict[int, tuple[str, str]]:
    """Kind and text of every constraint, by its number."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cip"
        model.writeProblem(str(path), trans=False, genericnames=True, verbose=False)
        lines = path.read_text().splitlines()
    return {int(match[2]): (match[1], match[3]) for match in map(_LINE.match, lines) if match}


def constant_in(text: str) -> float:
    """The constant of a quadratic expression, which SCIP writes before its terms.

    >>> constant_in("-1 <= 3.5+(<x0>)^2+2*<x1> <= 5"), constant_in("2*<x0>*<x1> <= 5")
    (3.5, 0.0)
    """
    match = _CONSTANT.match(text)
    return float(match[1]) if match else 0.0


@dataclass(frozen=True)
class ListedConstraint:
    """One such constraint: its kind, its variables by their places in the model, and its number."""

    name: str
    kind: str
    variables: list[int]
    number: int
    """Of a special ordered set its type, else the limit."""

    def write(self, written: SpecialConstraints, place: IntArray) -> None:
        """Where variables are columns by `place`."""
        columns = [int(place[j]) for j in self.variables]
        if self.kind.startswith("SOS"):
            written.ordered(self.name, self.number, columns)
        elif self.kind == "xor":
            written.parity(self.name, columns, bool(self.number))
        else:
            written.at_most(self.name, columns, self.number)


def listed(texts: Mapping[int, tuple[str, str]], names: Mapping[int, str]) -> list[ListedConstraint]:
    """Constraints by their numbers; an `UnsupportedError` for one that is written in another way."""
    return [_read(name, *texts.get(number, ("", ""))) for number, name in names.items()]


def _read(name: str, kind: str, text: str) -> ListedConstraint:
    variables = [int(number) for number in _VARIABLE.findall(text)]
    limit = _LAST_NUMBER.search(text)
    if kind not in KINDS or not variables or len(variables) != text.count("<") - text.count("<="):
        raise UnsupportedError(
            f"the constraint {name} is one that SCIP writes down as {text!r}, which cannot be read; "
            f"{BY_HAND}."
        )
    if kind.startswith("SOS"):
        return ListedConstraint(name, kind, variables, int(kind[-1]))
    if limit is None:
        raise UnsupportedError(f"the constraint {name} has no limit that is a number; give one.")
    return ListedConstraint(name, kind, variables, int(limit[1]))


NO_PROBLEM, BEING_WRITTEN = 0, 1
"""Stages of SCIP: freed, and open for changes. All later ones have a transformed copy."""

GONE = -1
"""Stands for a column or row that is not in the model any more."""


def original_variables(model: Any) -> list[Any]:
    """The variables as their owner made them; a `ModelError` where there are none."""
    if model.getStage() == NO_PROBLEM:
        raise ModelError("the PySCIPOpt model has no problem any more: it was freed, with freeProb.")
    variables: list[Any] = model.getVars()
    if not variables:
        raise ModelError("the PySCIPOpt model has no variables; add some first.")
    return variables


def limits(values: list[float], infinity: float) -> FloatArray:
    """Limits of columns or rows. What SCIP holds for infinite, its owner may have changed."""
    found = np.array(values, dtype=np.float64)
    found[found >= infinity] = np.inf
    found[found <= -infinity] = -np.inf
    return found


@dataclass(frozen=True, eq=False)
class ScipColumns:
    """The original variables; they are known by the addresses SCIP has them at."""

    variables: list[Any]
    keys: tuple[int, ...]
    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray

    @classmethod
    def of(cls, model: Any) -> ScipColumns:
        """All of a model."""
        variables, infinity = original_variables(model), model.infinity()
        return cls(
            variables,
            tuple(variable.ptr() for variable in variables),
            np.array([variable.getObj() for variable in variables]),
            limits([variable.getLbOriginal() for variable in variables], infinity),
            limits([variable.getUbOriginal() for variable in variables], infinity),
            np.array([variable.isIntegral() for variable in variables]),  # also those that are by themselves
        )

    @cached_property
    def place(self) -> dict[int, int]:
        """Columns by key."""
        return {key: j for j, key in enumerate(self.keys)}

    def find(self, model: Any, variables: list[Any]) -> tuple[IntArray, BoolArray]:
        """The columns of variables in constraints, GONE for removed ones, and which of them are negated.

        A negated variable stands for 1 - x. PySCIPOpt does not say which x; but a point in which every
        binary column j has the value j + 1 does, for there it has the value -j.
        """
        column = np.array([self.place.get(variable.ptr(), GONE) for variable in variables], dtype=np.int64)
        negated = np.zeros(column.size, dtype=bool)
        unknown = [k for k in np.flatnonzero(column == GONE) if variables[k].getStatus() == "NEGATED"]
        if unknown:
            point = model.createOrigSol()
            for j, variable in enumerate(self.variables):
                if variable.isBinary():
                    model.setSolVal(point, variable, float(j + 1))
            column[unknown] = [round(-model.getSolVal(point, variables[k])) for k in unknown]
            negated[unknown] = True
        return column, negated
