"""Models written with PySCIPOpt: the problem as its owner stated it, also when SCIP has transformed it.

Only constraints that say something linear are read. Two calls of PySCIPOpt end the process when they meet
what they do not expect (`getVars` without a problem, `getConsVars` of a special ordered set), and a
variable may outlive its model: what is asked of SCIP here is asked only where it can answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyscipopt
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.foreign import ObjectArray, Reading, distinct, table
from dovetail.core.indicator import Indicator
from dovetail.core.mip import Mip
from dovetail.reformulations.indicators import with_indicators

NO_PROBLEM, BEING_WRITTEN = 0, 1
"""Stages of SCIP: freed, and open for changes. All later ones have a transformed copy."""

LINEAR = frozenset({"linear", "knapsack", "setppc", "logicor", "varbound"})
"""Kinds of constraints of which SCIP itself gives coefficients and limits."""

GONE = -1
"""Stands for a column or row that is not in the model any more."""

BINARIES_AND_ROWS = "write it with binary variables and linear constraints"

REFUSED = {
    "SOS1": ("a special ordered set of type 1", BINARIES_AND_ROWS),
    "SOS2": ("a special ordered set of type 2", BINARIES_AND_ROWS),
    "cardinality": ("a cardinality constraint", BINARIES_AND_ROWS),
    "xor": ("an exclusive or", "write the sum of its variables as 2k or 2k + 1 with an integer variable k"),
    "disjunction": ("a disjunction", "write it with one indicator constraint for each part"),
    "bounddisjunction": ("a disjunction of bounds", "write it with one indicator constraint for each part"),
    "conjunction": ("a conjunction", "add its parts one by one"),
    "cumulative": ("a cumulative constraint", BINARIES_AND_ROWS),
    "pseudoboolean": ("a pseudo-Boolean constraint", "write its products with addConsAnd"),
    "nonlinear": (
        "a nonlinear constraint",
        "write it piecewise linear, or make the nonlinear part a predictor",
    ),
}
"""Kinds that are not linear, in words, and what to do about them."""


class ScipModel:
    """A `pyscipopt.Model`; its variables are `Variable` objects, known by the addresses SCIP has them at."""

    tool = "PySCIPOpt model"
    heavy = ()

    def __init__(self, model: Any) -> None:
        self._model = model
        self._originals: dict[int, int] = {}

    def read(self, *, rows: bool = True) -> Reading:
        """The original problem.

        With rows, the slack columns that SCIP adds to indicator constraints are left out; without, they
        are among the columns, since only the rows tell whether anything else uses them.
        """
        columns = _Columns.of(self._model)
        self._originals = {key: key for key in columns.keys}
        if not rows:
            return Reading(columns.mip(self._model), columns.keys)
        _refuse_callbacks(self._model)
        return _with_rows(self._model, columns)

    def unpack(self, given: Any) -> ObjectArray:
        """`MatrixVariable`, dictionaries and lists of variables."""
        return table(given, lambda item: np.asarray(item) if isinstance(item, np.ndarray) else item)

    def key(self, variable: Any) -> Hashable:
        """The address of the original variable; nothing is asked of a variable before it is known."""
        if isinstance(variable, pyscipopt.Variable):
            address = variable.ptr()
            if address not in self._originals:
                self._originals = _originals(self._model)
            if address in self._originals:
                return self._originals[address]
            fault = "a variable was removed, or is" if address == 0 else "a variable is"
            raise ModelError(
                f"{fault} of another model than this {self.tool}; pass variables that its addVar or "
                "addMatrixVar gave you."
            )
        if isinstance(variable, pyscipopt.Expr):
            raise ModelError(
                f"{str(variable)[:80]} is an expression; add a variable to the {self.tool}, set it equal to "
                "the expression with addCons, and pass the variable."
            )
        raise ModelError(
            f"{variable!r} is not a variable of this {self.tool}; pass what its addVar or addMatrixVar gave."
        )

    def enclosed(self) -> Iterable[Any]:
        """Nothing but the model itself."""
        return (self._model,)

    def moved(self, reading: Reading) -> bool:
        """Never: variables are known by what they are."""
        return False

    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """New variables, as `addMatrixVar` makes them."""
        self._require_open("add variables to")
        low, high, kind = (0.0, 1.0, "B") if binary else (None, None, "C")
        return self._model.addMatrixVar(shape, name=name, vtype=kind, lb=low, ub=high)

    def discard(self, created: Any) -> None:
        """Delete the variables, none of which may be in a constraint: SCIP could not solve what is left."""
        self._require_open("take variables out of")
        addresses = {variable.ptr() for variable in np.asarray(created).flat}
        for constraint in self._model.getConss(transformed=False):
            if constraint.getConshdlrName() not in LINEAR | {"and", "or", "xor", "indicator", "nonlinear"}:
                continue
            for variable in self._model.getConsVars(constraint):
                if variable.ptr() in addresses:
                    raise ModelError(
                        f"{variable.name} cannot be removed while it is in the constraint "
                        f"{constraint.name}; take that out first, with delCons."
                    )
        for variable in np.asarray(created).flat:
            self._model.delVar(variable)

    def _require_open(self, doing: str) -> None:
        if self._model.getStage() != BEING_WRITTEN:
            raise ModelError(
                f"cannot {doing} a {self.tool} after it was solved; call its freeTransform() first (SCIP "
                "then forgets the solutions it found: take what you need of them before)."
            )


def _originals(model: Any) -> dict[int, int]:
    """Addresses of the original variables, by their own and by those of their transformed copies."""
    variables = _variables(model)
    result = {variable.ptr(): variable.ptr() for variable in variables}
    if model.getStage() > BEING_WRITTEN:
        result |= {model.getTransformedVar(variable).ptr(): variable.ptr() for variable in variables}
    return result


def _variables(model: Any) -> list[Any]:
    if model.getStage() == NO_PROBLEM:
        raise ModelError("the PySCIPOpt model has no problem any more: it was freed, with freeProb.")
    variables: list[Any] = model.getVars()
    if not variables:
        raise ModelError("the PySCIPOpt model has no variables; add some first.")
    return variables


def _refuse_callbacks(model: Any) -> None:
    """Constraint handlers and pricers of the user's own say what no reader can know."""
    plain = pyscipopt.Model().getParams()
    for parameter in model.getParams():
        if parameter in plain:
            continue
        family, _, rest = parameter.partition("/")
        name = rest.split("/")[0]
        if family == "constraints":
            raise UnsupportedError(
                f"the PySCIPOpt model has a constraint handler of its own, {name}; what it demands is not "
                "known outside SCIP. State it with linear constraints."
            )
        if family in ("pricers", "benders"):
            raise UnsupportedError(
                f"the PySCIPOpt model is not complete before it is solved: it has {name} (of its {family}) "
                "to add to it. Give the whole model."
            )


@dataclass(frozen=True, eq=False)
class _Columns:
    """The original variables, with what is said of each alone."""

    variables: list[Any]
    keys: tuple[int, ...]
    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray

    @classmethod
    def of(cls, model: Any) -> _Columns:
        variables, infinity = _variables(model), model.infinity()
        return cls(
            variables,
            tuple(variable.ptr() for variable in variables),
            np.array([variable.getObj() for variable in variables]),
            _limits([variable.getLbOriginal() for variable in variables], infinity),
            _limits([variable.getUbOriginal() for variable in variables], infinity),
            np.array(
                [variable.isIntegral() for variable in variables]
            ),  # also those that are so by themselves
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

    def mip(self, model: Any, rows: _Rows | None = None, keep: BoolArray | None = None) -> Mip:
        """The program of the columns that are kept, with all `rows`."""
        kept = np.ones(len(self.keys), dtype=bool) if keep is None else keep
        return Mip(
            self.cost[kept],
            None if rows is None else rows.A[:, np.flatnonzero(kept)],
            () if rows is None else rows.lower,
            () if rows is None else rows.upper,
            self.lower[kept],
            self.upper[kept],
            self.integer[kept],
            sense="max" if model.getObjectiveSense() == "maximize" else "min",
            offset=model.getObjoffset(),
            names=distinct(self.variables[j].name for j in np.flatnonzero(kept)),
            row_names=None if rows is None or not rows.names else distinct(rows.names),
        )


def _limits(values: list[float], infinity: float) -> FloatArray:
    """What SCIP holds for infinite, its owner may have changed."""
    limits = np.array(values, dtype=np.float64)
    limits[limits >= infinity] = np.inf
    limits[limits <= -infinity] = -np.inf
    return limits


@dataclass(frozen=True, eq=False)
class _Rows:
    """Linear rows over all columns."""

    A: sp.csr_array
    lower: FloatArray
    upper: FloatArray
    names: list[str]

    def entries(self, i: int) -> tuple[IntArray, FloatArray]:
        """The columns and coefficients of one row."""
        inside = slice(self.A.indptr[i], self.A.indptr[i + 1])
        return self.A.indices[inside], self.A.data[inside]

    def some(self, kept: BoolArray) -> _Rows:
        names = [self.names[i] for i in np.flatnonzero(kept)]
        return _Rows(self.A[kept], self.lower[kept], self.upper[kept], names)


@dataclass(eq=False)
class _Sheet:
    """Rows while they are collected: entries one after another, with how many of them each row has."""

    variables: list[Any] = field(default_factory=list)
    entries: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    place: dict[int, int] = field(default_factory=dict)
    """Rows by the addresses of their constraints."""
    switches: list[Any] = field(default_factory=list)
    """Indicator constraints."""

    @classmethod
    def of(cls, model: Any) -> _Sheet:
        sheet = cls()
        for constraint in model.getConss(transformed=False):
            kind = constraint.getConshdlrName()
            if kind in LINEAR:
                sheet.place[constraint.ptr()] = len(sheet.sizes)
                sheet.add(
                    constraint.name,
                    model.getConsVars(constraint),
                    model.getConsVals(constraint),
                    model.getLhs(constraint),
                    model.getRhs(constraint),
                )
            elif kind == "indicator":
                sheet.switches.append(constraint)
            elif kind in ("and", "or"):
                *parts, result = model.getConsVars(constraint)
                sheet.add_logic(constraint.name, parts, result, 1.0 if kind == "and" else -1.0)
            else:
                raise _refusal(constraint.name, kind)
        return sheet

    def add(self, name: str, variables: list[Any], entries: list[float], lower: float, upper: float) -> None:
        self.variables += variables
        self.entries += entries
        self.sizes.append(len(entries))
        self.lower.append(lower)
        self.upper.append(upper)
        self.names.append(name)

    def add_logic(self, name: str, parts: list[Any], result: Any, sign: float) -> None:
        """For a sign of 1, `result` is 1 exactly if all parts are; for -1, if any of them is.

        All: result <= each part, and result >= sum of parts - (number of parts - 1).
        Any: result >= each part, and result <= sum of parts.
        """
        for part in parts:
            self.add(name, [result, part], [sign, -sign], -np.inf, 0.0)
        limit = len(parts) - 1.0 if sign > 0 else 0.0
        self.add(name, [result, *parts], [-sign] + [sign] * len(parts), -np.inf, limit)

    def rows(self, model: Any, columns: _Columns) -> _Rows:
        """The matrix; a (1 - x) becomes -a x, and a goes to the limits."""
        data = np.array(self.entries, dtype=np.float64)
        row = np.repeat(np.arange(len(self.sizes)), self.sizes)
        column, negated = columns.find(model, self.variables)
        for k in np.flatnonzero(column == GONE)[:1]:
            raise _removed(self.names[row[k]])
        shift = np.bincount(row[negated], data[negated], minlength=len(self.sizes))
        data[negated] *= -1.0
        A = sp.csr_array(
            (data, column, np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])),
            shape=(len(self.sizes), len(columns.keys)),
        )
        A.sum_duplicates()
        infinity = model.infinity()
        lower, upper = _limits(self.lower, infinity) - shift, _limits(self.upper, infinity) - shift
        return _Rows(A, lower, upper, self.names)


def _refusal(name: str, kind: str) -> UnsupportedError:
    what, remedy = REFUSED.get(
        kind, (f"a constraint of SCIP's kind {kind!r}", "state it with linear constraints")
    )
    return UnsupportedError(f"the constraint {name} is {what}, but the model must be linear; {remedy}.")


def _removed(constraint: str) -> ModelError:
    return ModelError(
        f"the constraint {constraint} has a variable that was removed from the PySCIPOpt model; SCIP cannot "
        "solve that either. Take the constraint out with delCons, and state it again."
    )


def _with_rows(model: Any, columns: _Columns) -> Reading:
    """The whole program; slack columns and rows that SCIP added for its indicators are left out."""
    sheet = _Sheet.of(model)
    rows = sheet.rows(model, columns)
    switches = _switches(model, columns, sheet)
    used = np.bincount(rows.A.indices, minlength=len(columns.keys))
    kept_rows, kept = np.ones(len(rows.names), dtype=bool), np.ones(len(columns.keys), dtype=bool)
    for switch in switches:
        if switch.only_helps(columns, rows, used):
            kept_rows[switch.row] = kept[switch.slack] = False
    place = np.cumsum(kept) - 1
    indicators = [switch.indicator(rows, kept, place) for switch in switches]
    mip = columns.mip(model, rows.some(kept_rows), kept)
    keys = tuple(columns.keys[j] for j in np.flatnonzero(kept))
    mip, left = with_indicators(mip, indicators)
    return Reading(mip, keys, left)


@dataclass(frozen=True, eq=False)
class _Switch:
    """An indicator constraint as SCIP has it: a row with a slack, which is 0 if the binary is active."""

    name: str
    binary: int
    active: int
    slack: int
    row: int
    """GONE where it is not in the model any more."""

    def only_helps(self, columns: _Columns, rows: _Rows, used: IntArray) -> bool:
        """Whether nothing but this row has to do with the slack, and only in one direction."""
        i, j = self.row, self.slack
        if i == GONE or used[j] != 1 or columns.cost[j] != 0.0:
            return False
        indices, data = rows.entries(i)
        falls = bool(np.any(data[indices == j] < 0.0))
        return falls and (columns.lower[j], columns.upper[j], rows.lower[i]) == (0.0, np.inf, -np.inf)

    def indicator(self, rows: _Rows, kept: BoolArray, place: IntArray) -> Indicator:
        """The row without its slack, or where the slack is kept, that it is 0; columns by their `place`."""
        binary = int(place[self.binary])
        if kept[self.slack]:
            return Indicator(binary, self.active, [int(place[self.slack])], [1.0], -np.inf, 0.0, self.name)
        indices, data = rows.entries(self.row)
        own = indices != self.slack
        limit = float(rows.upper[self.row])
        return Indicator(binary, self.active, place[indices[own]], data[own], -np.inf, limit, self.name)


def _switches(model: Any, columns: _Columns, sheet: _Sheet) -> list[_Switch]:
    slacks = [model.getSlackVarIndicator(constraint) for constraint in sheet.switches]
    firsts = [model.getConsVars(constraint)[0] for constraint in sheet.switches]
    slack, _ = columns.find(model, slacks)
    binary, negated = columns.find(model, firsts)
    result = []
    for k, constraint in enumerate(sheet.switches):
        if slack[k] == binary[k]:
            raise ModelError(
                f"the indicator constraint {constraint.name} has no binary variable; give one, as binvar."
            )
        if GONE in (slack[k], binary[k]):
            raise _removed(constraint.name)
        row = model.getLinearConsIndicator(constraint)
        row = GONE if row is None else sheet.place.get(row.ptr(), GONE)
        active = 0 if negated[k] else 1
        result.append(_Switch(constraint.name, int(binary[k]), active, int(slack[k]), row))
    return result
