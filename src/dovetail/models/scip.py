"""A `pyscipopt.Model` as dovetail reads it: variables, linear and quadratic constraints, logical
constraints.

PySCIPOpt gives no access to special ordered sets, cardinality constraints and exclusive or. These are read
from SCIP's own text of the model, in which variables and constraints are numbered in order. Only constraints
that can be written linearly are read.

Two calls of PySCIPOpt end the process on unexpected input (`getVars` without a problem, `getConsVars` of a
special ordered set), and a variable may outlive its model. SCIP is therefore called only in states in which
it can answer.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakSet, ref

import numpy as np
import pyscipopt
import scipy.sparse as sp
from pyscipopt.scip import PY_SCIP_EVENTTYPE as SCIP_EVENTTYPE

from dovetail.core.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.foreign import Answer, ForeignModel, Reading, Slack, Ties
from dovetail.core.mip import Mip
from dovetail.core.names import distinct
from dovetail.core.quadratic import QuadraticTerms
from dovetail.core.special_constraints import Indicator, SpecialConstraints, logic_rows

KINDS = frozenset({"SOS1", "SOS2", "cardinality", "xor"})

REWRITE_ADVICE = "write it with binary variables and linear constraints"
"""What to do about a constraint that is not supported."""

_VARIABLE = re.compile(r"<x(\d+)>")
_LAST_NUMBER = re.compile(r"<?= (\d+)$")


LINEAR = frozenset({"linear", "knapsack", "setppc", "logicor", "varbound"})
"""Kinds of constraints of which SCIP gives coefficients and limits."""

REFUSED = {
    "disjunction": ("a disjunction", "write it with one indicator constraint for each part"),
    "bounddisjunction": ("a disjunction of bounds", "write it with one indicator constraint for each part"),
    "conjunction": ("a conjunction", "add its parts one by one"),
    "cumulative": ("a cumulative constraint", REWRITE_ADVICE),
    "pseudoboolean": ("a pseudo-Boolean constraint", "write its products with addConsAnd"),
    "nonlinear": (
        "neither linear nor quadratic",
        "make the nonlinear part a predictor (a function of numpy arrays is one)",
    ),
}
"""Unsupported kinds in words, and what to do about them."""


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
        """A part of the rows."""
        names = [self.names[i] for i in np.flatnonzero(kept)]
        return LinearRows(self.A[kept], self.lower[kept], self.upper[kept], names)


@dataclass(eq=False)
class Constraints:
    """All constraints while they are collected: entries one after another, and their number per row."""

    variables: list[Any] = field(default_factory=list)
    entries: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    row_at: dict[int, int] = field(default_factory=dict)
    """Rows by the addresses of their constraints."""
    indicators: list[Any] = field(default_factory=list)
    """Indicator constraints as PySCIPOpt objects."""
    products: list[tuple[int, list[Any], list[Any], list[float]]] = field(default_factory=list)
    """Of quadratic rows: the row, two variables and a coefficient each."""
    special: list[ListedConstraint] = field(default_factory=list)
    """Constraints that are not rows."""

    @classmethod
    def of(cls, model: Any) -> Constraints:
        """All constraints of a model; an `UnsupportedError` for the first unsupported one."""
        found = cls()
        told: dict[int, str] = {}  # names of constraints that only SCIP's text shows, by their numbers
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
        """Subtract the constant of a quadratic row, which PySCIPOpt leaves out, from the finite limits."""
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
        """The quadratic terms of the rows, over all columns."""
        result = []
        for row, *sides, weights in self.products:
            found = [columns.find(model, side) for side in sides]
            if any(np.any(negated) for _, negated in found):
                raise UnsupportedError(
                    f"the constraint {self.names[row]} multiplies a negated variable; write 1 - x instead."
                )
            if any(np.any(column == REMOVED) for column, _ in found):
                raise removed(self.names[row])
            result.append(QuadraticTerms(row, found[0][0], found[1][0], np.array(weights)))
        return result

    def rows(self, model: Any, columns: ScipColumns) -> LinearRows:
        """The matrix; a (1 - x) becomes -a x, and a is moved to the limits."""
        data = np.array(self.entries, dtype=np.float64)
        row = np.repeat(np.arange(len(self.sizes)), self.sizes)
        column, negated = columns.find(model, self.variables)
        for k in np.flatnonzero(column == REMOVED)[:1]:
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
    return UnsupportedError(f"the constraint {name} is {what}, which is not supported; {remedy}.")


def removed(constraint: str) -> ModelError:
    """The error for a constraint of which a variable was removed."""
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
    """A constraint known by SCIP's text: its kind, its variables, and its number."""

    name: str
    kind: str
    variables: list[int]
    number: int
    """The type of a special ordered set, otherwise the limit."""

    def write(self, written: SpecialConstraints, place: IntArray) -> None:
        """The numbering of variables as columns, by `place`."""
        columns = [int(place[j]) for j in self.variables]
        if self.kind.startswith("SOS"):
            written.ordered(self.name, self.number, columns)
        elif self.kind == "xor":
            written.parity(self.name, columns, bool(self.number))
        else:
            written.at_most(self.name, columns, self.number)


def listed(texts: Mapping[int, tuple[str, str]], names: Mapping[int, str]) -> list[ListedConstraint]:
    """Constraints by their numbers; an `UnsupportedError` for an unknown form."""
    return [_read(name, *texts.get(number, ("", ""))) for number, name in names.items()]


def _read(name: str, kind: str, text: str) -> ListedConstraint:
    variables = [int(number) for number in _VARIABLE.findall(text)]
    limit = _LAST_NUMBER.search(text)
    if kind not in KINDS or not variables or len(variables) != text.count("<") - text.count("<="):
        raise UnsupportedError(
            f"the constraint {name} is one that SCIP writes down as {text!r}, which dovetail cannot read; "
            f"{REWRITE_ADVICE}."
        )
    if kind.startswith("SOS"):
        return ListedConstraint(name, kind, variables, int(kind[-1]))
    if limit is None:
        raise UnsupportedError(f"the constraint {name} has no limit that is a number; give one.")
    return ListedConstraint(name, kind, variables, int(limit[1]))


NO_PROBLEM, BEING_WRITTEN = 0, 1
"""Stages of SCIP: freed, and open for changes. All later stages have a transformed copy."""

REMOVED = -1
"""Marks a column or row that was removed."""


def original_variables(model: Any) -> list[Any]:
    """The variables as their owner made them; a `ModelError` if there are none."""
    if model.getStage() == NO_PROBLEM:
        raise ModelError("the PySCIPOpt model has no problem any more: it was freed, with freeProb.")
    variables: list[Any] = model.getVars()
    if not variables:
        raise ModelError("the PySCIPOpt model has no variables; add some first.")
    return variables


def limits(values: list[float], infinity: float) -> FloatArray:
    """Limits of columns or rows, with the model's own value for infinity."""
    found = np.array(values, dtype=np.float64)
    found[found >= infinity] = np.inf
    found[found <= -infinity] = -np.inf
    return found


@dataclass(frozen=True, eq=False)
class ScipColumns:
    """The original variables, identified by their addresses in SCIP."""

    variables: list[Any]
    keys: tuple[int, ...]
    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray

    @classmethod
    def of(cls, model: Any) -> ScipColumns:
        """All constraints of a model."""
        variables, infinity = original_variables(model), model.infinity()
        return cls(
            variables,
            tuple(variable.ptr() for variable in variables),
            np.array([variable.getObj() for variable in variables]),
            limits([variable.getLbOriginal() for variable in variables], infinity),
            limits([variable.getUbOriginal() for variable in variables], infinity),
            np.array([variable.isIntegral() for variable in variables]),  # also free variables
        )

    @cached_property
    def place(self) -> dict[int, int]:
        """Columns by key."""
        return {key: j for j, key in enumerate(self.keys)}

    def find(self, model: Any, variables: list[Any]) -> tuple[IntArray, BoolArray]:
        """The columns of variables in constraints, REMOVED for removed ones, and which of them are negated.

        A negated variable stands for 1 - x. PySCIPOpt does not return x; but at a point in which every binary
        column j has the value j + 1 the negated variable has the value -j, which identifies x.
        """
        column = np.array([self.place.get(variable.ptr(), REMOVED) for variable in variables], dtype=np.int64)
        negated = np.zeros(column.size, dtype=bool)
        unknown = [k for k in np.flatnonzero(column == REMOVED) if variables[k].getStatus() == "NEGATED"]
        if unknown:
            point = model.createOrigSol()
            for j, variable in enumerate(self.variables):
                if variable.isBinary():
                    model.setSolVal(point, variable, float(j + 1))
            column[unknown] = [round(-model.getSolVal(point, variables[k])) for k in unknown]
            negated[unknown] = True
        return column, negated


class ScipModel(ForeignModel):
    """A `pyscipopt.Model`; its `Variable` objects are identified by their addresses in SCIP."""

    tool = "PySCIPOpt model"
    source = "what its addVar or addMatrixVar gave you"
    expressions = (pyscipopt.Expr,)

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._original_addresses: dict[int, int] = {}

    def read(self, *, rows: bool = True) -> Reading:
        """The original problem.

        With rows, the slack columns that SCIP adds to indicator constraints are left out; without rows they
        are kept, since only the rows show whether another constraint uses them.
        """
        columns = ScipColumns.of(self._model)
        self._original_addresses = {key: key for key in columns.keys}
        if not rows:
            return Reading(_mip(self._model, columns), columns.keys)
        _refuse_callbacks(self._model)
        return _with_rows(self._model, columns)

    def key(self, variable: Any) -> Hashable:
        """The address of the original variable; an unknown variable is not accessed."""
        if isinstance(variable, pyscipopt.Variable):
            address = variable.ptr()
            if address not in self._original_addresses:
                self._original_addresses = _original_addresses(self._model)
            if address in self._original_addresses:
                return self._original_addresses[address]
            fault = "a variable was removed, or is" if address == 0 else "a variable is"
            raise ModelError(
                f"{fault} of another model than this {self.tool}; pass variables that its addVar or "
                "addMatrixVar gave you."
            )
        raise self.no_variable(variable)

    def watch(self, ties: Ties) -> None:
        """Put a `_Refusal` into the model, because PySCIPOpt's classes cannot be changed."""
        if self._model not in _watched:
            self._require_open("attach predictors to")
            refusal = _Refusal(self._model, ties)
            self._model.includeEventhdlr(refusal, "dovetail", "refuses to solve without predictors")
            refusal.model = None  # a bound method would keep the model alive
            _watched.add(self._model)

    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """New variables, as `addMatrixVar` makes them."""
        self._require_open("add variables to")
        low, high, kind = (0.0, 1.0, "B") if binary else (None, None, "C")
        return self._model.addMatrixVar(shape, name=name, vtype=kind, lb=low, ub=high)

    def discard(self, created: Any) -> None:
        """Delete the variables; refused if one is in a constraint, because SCIP could not solve the rest."""
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

    def table(self, given: Any, entries: ObjectArray) -> Any:
        """A `MatrixVariable`."""
        return entries.view(pyscipopt.MatrixVariable)

    def held(self, reading: Reading) -> FloatArray:
        """The best solution that SCIP knows, also one that `addSol` added."""
        solutions, at = self._model.getSols(), {}
        if solutions:
            best = self._model.getBestSol()
            at = {v.ptr(): self._model.getSolVal(best, v) for v in self._model.getVars(transformed=False)}
        values = np.array([at.get(key, np.nan) for key in reading.keys], dtype=float)
        return np.where(np.abs(values) >= UNKNOWN, np.nan, values)

    def load(self, reading: Reading, answer: Answer) -> None:
        """Make `getVal`, `getObjVal` and `getBestSol` return the solution; SCIP cannot forget an earlier
        one."""
        if answer.x is not None:
            self._require_open("hand a point to")
            load_point(self._model, reading, reading.whole(answer.x))

    def _require_open(self, doing: str) -> None:
        if self._model.getStage() != BEING_WRITTEN:
            raise ModelError(
                f"cannot {doing} a {self.tool} after it was solved; call its freeTransform() first (SCIP "
                "then forgets the solutions it found: take what you need of them before)."
            )


UNKNOWN = 1e20
"""SCIP's infinity: values of a partial solution that are not known are larger."""
_watched: WeakSet[Any] = WeakSet()
"""Models whose own solve raises a `_Refusal`."""

EVENTS = SCIP_EVENTTYPE.PRESOLVEROUND, SCIP_EVENTTYPE.NODEFOCUSED, SCIP_EVENTTYPE.BESTSOLFOUND
"""Events of which one occurs in every solve before a solution. An error here, unlike one in `eventinit`,
leaves SCIP in a state that `freeTransform` resets."""


class _Refusal(pyscipopt.Eventhdlr):
    """Ends a solve or a copy of a model with predictors. PySCIPOpt prints the error raised here and raises
    "SCIP: unspecified error!" instead."""

    def __init__(self, model: Any, ties: Ties) -> None:
        self._model: Callable[[], Any] = ref(model)
        self._ties = ties

    def eventinit(self) -> None:
        for event in EVENTS:
            self._model().catchEvent(event, self)

    def eventexec(self, event: Any) -> None:
        self._ties.refuse((self._model(),))

    def eventcopy(self) -> None:
        self._ties.refuse((self._model(),))


def _original_addresses(model: Any) -> dict[int, int]:
    """Addresses of the original variables, by their own addresses and by those of their transformed
    copies."""
    variables = original_variables(model)
    result = {variable.ptr(): variable.ptr() for variable in variables}
    if model.getStage() > BEING_WRITTEN:
        result |= {model.getTransformedVar(variable).ptr(): variable.ptr() for variable in variables}
    return result


def _refuse_callbacks(model: Any) -> None:
    """Refuse constraint handlers and pricers, which cannot be read."""
    plain = pyscipopt.Model().getParams()
    for parameter in model.getParams():
        if parameter in plain:
            continue
        family, _, rest = parameter.partition("/")
        name = rest.split("/")[0]
        if family == "constraints":
            raise UnsupportedError(
                f"the PySCIPOpt model has a constraint handler of its own, {name}; its meaning is not "
                f"known outside SCIP. State it with linear constraints."
            )
        if family in ("pricers", "benders"):
            raise UnsupportedError(
                f"the PySCIPOpt model is not complete before it is solved: it has {name} (of its {family}) "
                "to add to it. Give the whole model."
            )


def _with_rows(model: Any, columns: ScipColumns) -> Reading:
    """The whole program without the slack columns and rows that SCIP added for its indicators."""
    constraints = Constraints.of(model)
    rows = constraints.rows(model, columns)
    found = slack_indicators(model, columns, constraints)
    quadratics = constraints.quadratics(model, columns)
    read = [rows.A.indices, *(side for terms in quadratics for side in (terms.left, terms.right))]
    read += [np.array(one.variables, dtype=np.int64) for one in constraints.special]
    used = np.bincount(np.concatenate(read), minlength=len(columns.keys))
    kept_rows, kept = np.ones(len(rows.names), dtype=bool), np.ones(len(columns.keys), dtype=bool)
    for each in found:
        if each.owns_its_slack(columns, rows, used):
            kept_rows[each.row] = kept[each.slack] = False
    place, row_place = np.cumsum(kept) - 1, np.cumsum(kept_rows) - 1
    special = SpecialConstraints(_mip(model, columns, rows.some(kept_rows), kept))
    for one in constraints.special:
        one.write(special, place)
    return Reading(
        special.program(),
        tuple(columns.keys[j] for j in np.flatnonzero(kept)),
        (*(each.indicator(rows, kept, place) for each in found), *special.indicators),
        tuple(each.left_out(columns, rows, place) for each in found if not kept[each.slack]),
        tuple(terms.moved(place, row_place) for terms in quadratics),
    )


def _mip(
    model: Any, columns: ScipColumns, rows: LinearRows | None = None, keep: BoolArray | None = None
) -> Mip:
    """The program of some columns, with all `rows`."""
    kept = np.ones(len(columns.keys), dtype=bool) if keep is None else keep
    return Mip(
        columns.cost[kept],
        None if rows is None else rows.A[:, np.flatnonzero(kept)],
        () if rows is None else rows.lower,
        () if rows is None else rows.upper,
        columns.lower[kept],
        columns.upper[kept],
        columns.integer[kept],
        sense="max" if model.getObjectiveSense() == "maximize" else "min",
        offset=model.getObjoffset(),
        names=distinct(columns.variables[j].name for j in np.flatnonzero(kept)),
        row_names=None if rows is None or not rows.names else distinct(rows.names),
    )


def load_point(model: Any, reading: Reading, point: FloatArray) -> None:
    """Make `getVal` and `getObjVal` of a model that is open for changes return the point. SCIP orders its
    candidates itself and reads values from the first, so another candidate there is overwritten."""
    at = dict(zip(reading.with_slacks.keys, point.tolist(), strict=True))
    values = [(variable, at.get(variable.ptr(), 0.0)) for variable in model.getVars()]
    candidate = model.createOrigSol()
    _write(model, candidate, values)
    model.addSol(candidate)
    first = model.getBestSol()
    if any(model.getSolVal(first, variable) != value for variable, value in values):
        _write(model, first, values)


def _write(model: Any, solution: Any, values: list[tuple[Any, float]]) -> None:
    for variable, value in values:
        model.setSolVal(solution, variable, value)


@dataclass(frozen=True, eq=False)
class SlackIndicator:
    """If column `binary` is `active`, then column `slack` of a row is 0."""

    name: str
    binary: int
    active: int
    slack: int
    row: int
    """REMOVED if the row was removed."""

    def owns_its_slack(self, columns: ScipColumns, rows: LinearRows, used: IntArray) -> bool:
        """Whether only this row uses the slack, in one direction."""
        i, j = self.row, self.slack
        if i == REMOVED or used[j] != 1 or columns.cost[j] != 0.0:
            return False
        indices, data = rows.entries(i)
        falls = bool(np.any(data[indices == j] < 0.0))
        return falls and (columns.lower[j], columns.upper[j], rows.lower[i]) == (0.0, np.inf, -np.inf)

    def indicator(self, rows: LinearRows, kept: BoolArray, place: IntArray) -> Indicator:
        """The row without its slack, or the condition that a kept slack is 0; columns by their `place`."""
        binary = int(place[self.binary])
        if kept[self.slack]:
            return Indicator(binary, self.active, [int(place[self.slack])], [1.0], -np.inf, 0.0, self.name)
        indices, data = rows.entries(self.row)
        own = indices != self.slack
        limit = float(rows.upper[self.row])
        return Indicator(binary, self.active, place[indices[own]], data[own], -np.inf, limit, self.name)

    def left_out(self, columns: ScipColumns, rows: LinearRows, place: IntArray) -> Slack:
        """The value of an omitted slack: as small as its row allows."""
        indices, data = rows.entries(self.row)
        own, falls = indices != self.slack, -float(data[indices == self.slack][0])
        return Slack(
            columns.keys[self.slack],
            columns.variables[self.slack].name,
            place[indices[own]].tolist(),
            (data[own] / falls).tolist(),
            -float(rows.upper[self.row]) / falls,
            0.0,
        )


def slack_indicators(model: Any, columns: ScipColumns, constraints: Constraints) -> list[SlackIndicator]:
    """All slack indicators of a model."""
    slacks = [model.getSlackVarIndicator(constraint) for constraint in constraints.indicators]
    firsts = [model.getConsVars(constraint)[0] for constraint in constraints.indicators]
    slack, _ = columns.find(model, slacks)
    binary, negated = columns.find(model, firsts)
    result = []
    for k, constraint in enumerate(constraints.indicators):
        if slack[k] == binary[k]:
            raise ModelError(
                f"the indicator constraint {constraint.name} has no binary variable; give one, as binvar."
            )
        if REMOVED in (slack[k], binary[k]):
            raise removed(constraint.name)
        row = model.getLinearConsIndicator(constraint)
        row = REMOVED if row is None else constraints.row_at.get(row.ptr(), REMOVED)
        active = 0 if negated[k] else 1
        result.append(SlackIndicator(constraint.name, int(binary[k]), active, int(slack[k]), row))
    return result
