"""A `pyscipopt.Model` as dovetail reads it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet, ref

import numpy as np
import pyscipopt
from pyscipopt.scip import PY_SCIP_EVENTTYPE as SCIP_EVENTTYPE

from dovetail.core.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.foreign import Answer, ForeignModel, Reading, Slack, Ties
from dovetail.core.mip import Mip
from dovetail.core.names import distinct
from dovetail.core.special_constraints import Indicator, SpecialConstraints
from dovetail.models.scip.rows import (
    BEING_WRITTEN,
    GONE,
    LINEAR,
    Constraints,
    LinearRows,
    ScipColumns,
    original_variables,
    removed,
)


class ScipModel(ForeignModel):
    """A `pyscipopt.Model`; its variables are `Variable` objects, known by the addresses SCIP has them at."""

    tool = "PySCIPOpt model"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._originals: dict[int, int] = {}

    def read(self, *, rows: bool = True) -> Reading:
        """The original problem.

        With rows, the slack columns that SCIP adds to indicator constraints are left out; without, they
        are among the columns, since only the rows tell whether anything else uses them.
        """
        columns = ScipColumns.of(self._model)
        self._originals = {key: key for key in columns.keys}
        if not rows:
            return Reading(_mip(self._model, columns), columns.keys)
        _refuse_callbacks(self._model)
        return _with_rows(self._model, columns)

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

    def watch(self, ties: Ties) -> None:
        """Put a `_Refusal` into the model: PySCIPOpt's classes cannot be changed."""
        if self._model not in _watched:
            self._require_open("attach predictors to")
            refusal = _Refusal(self._model, ties)
            self._model.includeEventhdlr(refusal, "dovetail", "refuses to solve without predictors")
            refusal.model = None  # which would keep the model alive
            _watched.add(self._model)

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

    def table(self, given: Any, entries: ObjectArray) -> Any:
        """A `MatrixVariable`."""
        return entries.view(pyscipopt.MatrixVariable)

    def load(self, reading: Reading, answer: Answer) -> None:
        """`getVal`, `getObjVal` and `getBestSol` answer; SCIP cannot be made to forget what it was given."""
        if answer.x is not None:
            self._require_open("hand a point to")
            load_point(self._model, reading, reading.whole(answer.x))

    def _require_open(self, doing: str) -> None:
        if self._model.getStage() != BEING_WRITTEN:
            raise ModelError(
                f"cannot {doing} a {self.tool} after it was solved; call its freeTransform() first (SCIP "
                "then forgets the solutions it found: take what you need of them before)."
            )


_watched: WeakSet[Any] = WeakSet()
"""Models with a `_Refusal`."""

EVENTS = SCIP_EVENTTYPE.PRESOLVEROUND, SCIP_EVENTTYPE.NODEFOCUSED, SCIP_EVENTTYPE.BESTSOLFOUND
"""One of them comes in every solve before it has an answer. An error there, unlike one in `eventinit`, leaves
SCIP in a state that `freeTransform` takes back."""


class _Refusal(pyscipopt.Eventhdlr):
    """Ends a solve or a copy of a model that has predictors.

    PySCIPOpt prints an error that is raised here and raises "SCIP: unspecified error!" in its place.
    """

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


def _originals(model: Any) -> dict[int, int]:
    """Addresses of the original variables, by their own and by those of their transformed copies."""
    variables = original_variables(model)
    result = {variable.ptr(): variable.ptr() for variable in variables}
    if model.getStage() > BEING_WRITTEN:
        result |= {model.getTransformedVar(variable).ptr(): variable.ptr() for variable in variables}
    return result


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


def _with_rows(model: Any, columns: ScipColumns) -> Reading:
    """The whole program; slack columns and rows that SCIP added for its indicators are left out."""
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
    """The program of the columns that are kept, with all `rows`."""
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
    """Let `getVal` and `getObjVal` of a model that is open for changes say the point.

    SCIP keeps the candidates it is given in an order of its own and reads values off the first. Where
    another one stands there (that of an earlier solve, say), it is written over.
    """
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
    """GONE where it is not in the model any more."""

    def owns_its_slack(self, columns: ScipColumns, rows: LinearRows, used: IntArray) -> bool:
        """Whether nothing but this row has to do with the slack, and only in one direction."""
        i, j = self.row, self.slack
        if i == GONE or used[j] != 1 or columns.cost[j] != 0.0:
            return False
        indices, data = rows.entries(i)
        falls = bool(np.any(data[indices == j] < 0.0))
        return falls and (columns.lower[j], columns.upper[j], rows.lower[i]) == (0.0, np.inf, -np.inf)

    def indicator(self, rows: LinearRows, kept: BoolArray, place: IntArray) -> Indicator:
        """The row without its slack, or where the slack is kept, that it is 0; columns by their `place`."""
        binary = int(place[self.binary])
        if kept[self.slack]:
            return Indicator(binary, self.active, [int(place[self.slack])], [1.0], -np.inf, 0.0, self.name)
        indices, data = rows.entries(self.row)
        own = indices != self.slack
        limit = float(rows.upper[self.row])
        return Indicator(binary, self.active, place[indices[own]], data[own], -np.inf, limit, self.name)

    def left_out(self, columns: ScipColumns, rows: LinearRows, place: IntArray) -> Slack:
        """The slack of a row that is told without it: as small as its row lets it be."""
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
    """All of a model."""
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
        if GONE in (slack[k], binary[k]):
            raise removed(constraint.name)
        row = model.getLinearConsIndicator(constraint)
        row = GONE if row is None else constraints.row_at.get(row.ptr(), GONE)
        active = 0 if negated[k] else 1
        result.append(SlackIndicator(constraint.name, int(binary[k]), active, int(slack[k]), row))
    return result
