"""Models written with gurobipy.

gurobipy applies changes late, so a model is updated before it is read. The owner of the model sees two
effects only: new variables get their index, and values of an earlier solution are gone. Asking for values
therefore does not update the model.

`load_point` hands a point to the model: it fixes all variables, solves once and restores the bounds, because
gurobipy offers no other way to set the solution in its attributes. The restored bounds are pending changes
like all changes of gurobipy: the next `update` or `optimize` applies them and discards the values. A
restricted licence solves no model of more than 2,000 variables, or of 200 with quadratic terms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import unwrap
from typing import Any

import gurobipy as gp
import numpy as np
import scipy.sparse as sp
from gurobipy import GRB

from dovetail.core.arrays import FloatArray, IntArray, ObjectArray
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.foreign import Answer, ForeignModel, Reading, Slack, Ties, as_array, like
from dovetail.core.mip import INFINITY, Mip
from dovetail.core.names import distinct
from dovetail.core.quadratic import QuadraticTerms
from dovetail.core.special_constraints import Indicator, SpecialConstraints
from dovetail.models.tool_model import Identity, ask_first, tell_copies


class GurobiModel(ForeignModel):
    """A `gurobipy.Model`; its variables are `Var`, `MVar`, and the containers that gurobipy makes of them."""

    tool = "gurobipy model"
    source = "what its addVar, addVars or addMVar gave you"
    expressions = (gp.LinExpr, gp.QuadExpr, gp.MLinExpr, gp.MQuadExpr)

    def read(self, *, rows: bool = True) -> Reading:
        """The program; columns are identified by their `Var` objects, of which gurobipy keeps one each."""
        model = self._model
        model.update()
        _refuse_what_cannot_be_read(model)
        variables = model.getVars()
        if not variables:
            raise ModelError("the gurobipy model has no variables; add them first.")
        special = list(special_constraints(model))
        quadratic = quadratic_rows(model)
        products = [*quadratic_objective(model), *(row.products for row in quadratic)]
        needed = {v.index for one in special for v in one.variables}
        needed.update(j for row in quadratic for j in row.linear.tolist())
        needed.update(j for terms in products for j in (*terms.left.tolist(), *terms.right.tolist()))
        slacks = _range_slacks(model, variables, needed)
        own = np.setdiff1d(np.arange(len(variables)), slacks.column)
        mip = _columns(model, variables, own)
        keys = tuple(Identity(variables[j]) for j in own)
        if not rows:
            return Reading(mip, keys)
        linear = _with_rows(model, mip, own, slacks)
        place = np.searchsorted(own, np.arange(len(variables)))
        written = SpecialConstraints(with_quadratic_rows(linear, quadratic, place))
        for one in special:
            one.write(written, place)
        return Reading(
            written.program(),
            keys,
            tuple(written.indicators),
            tuple(slacks.read(model, linear)),
            tuple(terms.moved(place, np.arange(linear.n_rows + len(quadratic))) for terms in products),
        )

    def unpack(self, given: Any) -> ObjectArray:
        """`MVar`, `tupledict`, frames and lists."""
        return as_array(given, _unfold)

    def key(self, variable: Any) -> Hashable:
        """The `Var` itself; gurobipy raises an error for a variable of another model or a removed one."""
        if isinstance(variable, gp.Var) and (self._holds_variable(variable) or self._has_waiting(variable)):
            return Identity(variable)
        raise self.no_variable(variable)

    def _holds_variable(self, variable: gp.Var) -> bool:
        try:
            self._model.getAttr("LB", [variable])
        except (gp.GurobiError, AttributeError):  # a key whose model no longer exists
            return False
        return True

    def _has_waiting(self, variable: gp.Var) -> bool:
        """Whether the variable was just added, and is waiting for an update."""
        self._model.update()
        return self._holds_variable(variable)

    def watch(self, ties: Ties) -> None:
        """Wrap all methods that solve or copy a model."""
        solves = "optimize", "optimizeAsync", "optimizeBatch", "tune"
        ask_first(gp.Model, solves, lambda model, *args, **options: ties.refuse((model,)))
        copies = "copy", "relax", "fixed", "presolve"
        tell_copies(gp.Model, copies, lambda model, copy: ties.copied((model,), copy))

    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """An `MVar`."""
        made = (
            self._model.addMVar(shape, vtype=GRB.BINARY, name=name)
            if binary
            else self._model.addMVar(shape, lb=-GRB.INFINITY, name=name)
        )
        self._model.update()
        return made

    def discard(self, created: Any) -> None:
        """Remove the variables, also from their constraints."""
        self._model.remove(created)
        self._model.update()

    def like(self, given: Any, values: FloatArray) -> Any:
        """Arrays; a `tupledict` for a `tupledict`."""
        found = like(given, values)
        return gp.tupledict(found) if isinstance(given, gp.tupledict) else found

    def table(self, given: Any, entries: ObjectArray) -> Any:
        """An `MVar`; an array with its `X` if numbers are among the variables."""
        whole = all(isinstance(entry, gp.Var) for entry in entries.flat)
        return gp.MVar.fromlist(entries.tolist()) if whole else entries.view(VariablesAndNumbers)

    def held(self, reading: Reading) -> FloatArray:
        """`Start` of each variable: an earlier solution is gone after the update that reading needs."""
        things = [key.thing for key in reading.keys if isinstance(key, Identity)]
        values = np.array(self._model.getAttr("Start", things), dtype=float)
        return np.where(np.abs(values) >= UNDEFINED, np.nan, values)

    def load(self, reading: Reading, answer: Answer) -> None:
        """Make `X` and `ObjVal` return the solution until the next update."""
        self._model.update()  # an earlier solution is gone
        if answer.x is not None:
            load_point(self._model, reading, reading.whole(answer.x), unwrap(gp.Model.optimize))


class VariablesAndNumbers(np.ndarray[Any, Any]):
    """Variables beside numbers, which gurobipy has no array for."""

    @property
    def X(self) -> FloatArray:
        """The values in the model's solution."""
        values = [entry.X if isinstance(entry, gp.Var) else float(entry) for entry in self.flat]
        return np.array(values).reshape(self.shape)


def _unfold(item: Any) -> Any:
    return item.tolist() if isinstance(item, gp.MVar) else item


def _refuse_what_cannot_be_read(model: gp.Model) -> None:
    """An `UnsupportedError` that names an unsupported part of the model."""
    if model.NumObj > 1 or model.IsMultiObj:  # setObjectiveN gives a weight to a single objective, too
        raise UnsupportedError(
            f"the model has {model.NumObj} objectives set by setObjectiveN; set model.NumObj = 0, and the "
            "objective, or the weighted sum of several, with setObjective."
        )
    if model.NumScenarios:
        raise UnsupportedError(
            f"the model has {model.NumScenarios} scenarios; solve one at a time (singleScenarioModel)."
        )


@dataclass(frozen=True, eq=False)
class _Slacks:
    """Columns that gurobipy made for range constraints (addRange), where row + slack = right-hand side."""

    column: IntArray
    row: IntArray

    def read(self, model: gp.Model, mip: Mip) -> Iterator[Slack]:
        """The value of each slack, from the rest of its row."""
        variables, rows = model.getVars(), model.getConstrs()
        for j, i in zip(self.column.tolist(), self.row.tolist(), strict=True):
            part = slice(mip.A.indptr[i], mip.A.indptr[i + 1])
            columns, coefficients = mip.A.indices[part].tolist(), (-mip.A.data[part]).tolist()
            variable = variables[j]
            yield Slack(Identity(variable), variable.VarName, columns, coefficients, rows[i].RHS)


def _range_slacks(model: gp.Model, variables: list[gp.Var], needed: set[int]) -> _Slacks:
    """The slacks of range constraints that are not `needed` elsewhere. gurobipy marks them only by the name
    "Rg" plus the name of the row, so their other properties are tested too. A variable with these properties
    can be left out without changing the model."""
    found: dict[int, int] = {}  # column by row
    for j, name in enumerate(model.getAttr("VarName", variables)):
        if name.startswith("Rg") and j not in needed:
            row = _slack_equation(model, variables[j])
            if row is not None and name == f"Rg{row.ConstrName}":
                found.setdefault(row.index, j)
    return _Slacks(np.array(list(found.values()), dtype=np.int64), np.array(list(found), dtype=np.int64))


def _slack_equation(model: gp.Model, variable: gp.Var) -> gp.Constr | None:
    """The equation of a slack, if the variable is in no other row and has no cost."""
    held = model.getCol(variable)
    if held.size() != 1 or held.getCoeff(0) != 1.0 or variable.Obj != 0.0:
        return None
    if variable.VType != GRB.CONTINUOUS or held.getConstr(0).Sense != GRB.EQUAL:
        return None
    return held.getConstr(0)


def _columns(model: gp.Model, variables: list[gp.Var], own: IntArray) -> Mip:
    names = model.getAttr("VarName", variables)
    kinds = np.array(model.getAttr("VType", variables))
    for j in np.flatnonzero(np.isin(kinds, [GRB.SEMICONT, GRB.SEMIINT]))[:1]:
        raise UnsupportedError(
            f"{names[j]} is semi-continuous or semi-integer; write it with a binary variable and "
            "two constraints."
        )
    lower = np.array(model.getAttr("LB", variables))
    upper = np.array(model.getAttr("UB", variables))
    binary = kinds == GRB.BINARY  # a binary is 0 or 1 whatever its bounds are
    return Mip(
        np.array(model.getAttr("Obj", variables))[own],
        lower=np.where(binary, np.maximum(lower, 0.0), lower)[own],
        upper=np.where(binary, np.minimum(upper, 1.0), upper)[own],
        integer=(kinds != GRB.CONTINUOUS)[own],
        sense="max" if model.ModelSense == GRB.MAXIMIZE else "min",
        offset=model.ObjCon,
        names=distinct([names[j] for j in own]),
    )


def _with_rows(model: gp.Model, columns: Mip, own: IntArray, slacks: _Slacks) -> Mip:
    """The program with its rows; slacks become limits of their rows."""
    rows = model.getConstrs()
    sense = np.array(model.getAttr("Sense", rows), dtype=str)
    limit = np.array(model.getAttr("RHS", rows), dtype=np.float64)
    row_lower = np.where(sense == GRB.LESS_EQUAL, -np.inf, limit)
    row_upper = np.where(sense == GRB.GREATER_EQUAL, np.inf, limit)
    variables = [model.getVars()[j] for j in slacks.column]
    if variables:
        row_lower[slacks.row] -= model.getAttr("UB", variables)
        row_upper[slacks.row] -= model.getAttr("LB", variables)
    return replace(
        columns,
        A=sp.csr_array(model.getA())[:, own],
        row_lower=row_lower,
        row_upper=row_upper,
        row_names=distinct(model.getAttr("ConstrName", rows)),
    )


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
    """The quadratic terms of the objective, if any."""
    if not model.NumQNZs:
        return []
    Q = sp.coo_array(model.getQ())  # as it was written: without the factor 1/2, and one triangle
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
    """`mip` with the linear parts and limits of the quadratic constraints as rows at its end."""
    if not rows:
        return mip
    number = np.repeat(np.arange(len(rows)), [row.linear.size for row in rows])
    columns = place[np.concatenate([row.linear for row in rows])]
    data = np.concatenate([row.coefficients for row in rows])
    linear = sp.coo_array((data, (number, columns)), shape=(len(rows), mip.n_columns))
    lower, upper, names = zip(*((row.lower, row.upper, row.name) for row in rows), strict=True)
    return mip.with_rows(linear, lower, upper, names)


MAX, MIN, ABS, AND, OR, NORM, INDICATOR, PWL = 0, 1, 2, 3, 4, 5, 7, 8
"""Gurobi's numbers of the supported kinds of general constraints."""

Write = Callable[[SpecialConstraints, list[int]], None]


@dataclass(frozen=True, eq=False)
class Special:
    """A general constraint and its variables."""

    variables: list[Any]
    to: Write
    """Writes the constraint, given the columns of the variables."""

    def write(self, written: SpecialConstraints, place: IntArray) -> None:
        """Write the constraint; variables are columns by `place`."""
        self.to(written, [int(place[variable.index]) for variable in self.variables])


def special_constraints(model: Any) -> Iterator[Special]:
    """All general constraints of a model; an `UnsupportedError` names the first unsupported one."""
    for constraint in model.getGenConstrs():
        yield _general(model, constraint, constraint.GenConstrName)
    for number, ordered in enumerate(model.getSOSs() if model.NumSOS else ()):
        kind, variables, weights = model.getSOS(ordered)
        in_order = [variables[k] for k in np.argsort(weights, kind="stable")]
        yield _ordered(f"SOS{number}", kind, in_order)
    if model.NumPWLObjVars:
        for variable in model.getVars():
            points = model.getPWLObj(variable)
            if points:
                yield _cost(f"cost of {variable.VarName}", variable, np.array(points, dtype=np.float64).T)


def _general(model: Any, constraint: Any, name: str) -> Special:
    kind = constraint.GenConstrType
    if kind in (MAX, MIN):
        extreme = model.getGenConstrMax if kind == MAX else model.getGenConstrMin
        result, parts, constant = extreme(constraint)
        sign = 1.0 if kind == MAX else -1.0
        # Gurobi stores 1e30, of either sign, if no constant was given
        least = constant if abs(constant) < INFINITY else np.inf
        return Special([result, *parts], lambda to, x: to.maximum(name, x[0], x[1:], least, sign))
    if kind == ABS:
        return Special([*model.getGenConstrAbs(constraint)], lambda to, x: to.absolute(name, *x))
    if kind in (AND, OR):
        result, parts = (model.getGenConstrAnd if kind == AND else model.getGenConstrOr)(constraint)
        sign = 1.0 if kind == AND else -1.0
        return Special([result, *parts], lambda to, x: to.logic(name, x[0], x[1:], sign))
    if kind == INDICATOR:
        return _indicator(model, constraint, name)
    if kind == PWL:
        x, y, *curve = model.getGenConstrPWL(constraint)
        points, values = (np.array(part, dtype=np.float64) for part in curve)
        return Special([x, y], lambda to, at: to.piecewise(name, at[0], at[1], points, values))
    if kind == NORM:
        result, parts, which = model.getGenConstrNorm(constraint)
        return _norm(name, result, parts, which)
    raise UnsupportedError(
        f"{name} is a function constraint (exp, log, pow, ...), which is not supported; make the function a "
        "predictor, for instance lambda X: numpy.exp(X), and pass it to add_predictor_constr."
    )


def _indicator(model: Any, constraint: Any, name: str) -> Special:
    binary, active, body, sense, limit = model.getGenConstrIndicator(constraint)
    terms = range(body.size())
    limit -= body.getConstant()
    lower, upper = -np.inf if sense == "<" else limit, np.inf if sense == ">" else limit
    entries = [body.getCoeff(k) for k in terms]

    def write(to: SpecialConstraints, x: list[int]) -> None:
        to.indicators.append(Indicator(x[0], int(active), x[1:], entries, lower, upper, name))

    return Special([binary, *(body.getVar(k) for k in terms)], write)


def _norm(name: str, result: Any, parts: list[Any], which: float) -> Special:
    if which == 1.0:
        return Special([result, *parts], lambda to, x: to.sum_of_sizes(name, x[0], x[1:]))
    if which >= INFINITY:
        return Special([result, *parts], lambda to, x: to.largest_size(name, x[0], x[1:]))
    remedy = (
        "write its square as a quadratic expression"
        if which == 2.0
        else "count with binary variables and indicator constraints"
    )
    raise UnsupportedError(f"{name} is a {which:g}-norm, which is not supported; {remedy}.")


def _ordered(name: str, kind: int, variables: list[Any]) -> Special:
    return Special(variables, lambda to, x: to.ordered(name, kind, x))


def _cost(name: str, variable: Any, curve: Any) -> Special:
    return Special([variable], lambda to, x: to.piecewise_cost(name, x[0], *curve))


SETTINGS: dict[str, float] = {
    "TimeLimit": np.inf,
    "WorkLimit": np.inf,
    "NodeLimit": np.inf,
    "IterationLimit": np.inf,
    "BarIterLimit": 2_000_000_000,
    "SolutionLimit": 2_000_000_000,
    "FeasibilityTol": 1e-4,
    "IntFeasTol": 1e-4,
}
"""Parameters for fixing a checked point: no limit of the owner ends the solve, and rows within 1e-6 count as
satisfied, however Gurobi scales them."""
UNDEFINED = 1e101
"""Gurobi's value for a start that is not given."""
OPTIMAL, TOO_LARGE = 2, 10010
"""Gurobi's codes for a solve with a solution, and for a model beyond a restricted licence."""


def load_point(model: Any, reading: Reading, point: FloatArray, optimize: Callable[[Any], None]) -> None:
    """Make `X` and `ObjVal` return the point; a `ModelError` if Gurobi refuses it. `optimize` is gurobipy's
    own, unwrapped function."""
    variables, values = _values_still_in_model(model, reading, point)
    with _without_output(model, SETTINGS | {"Cutoff": -np.inf if model.ModelSense < 0 else np.inf}):
        with _fixed(model, variables, values):
            fault = _why_no_solution(model, optimize)
        if fault:
            model.update()
    if fault:
        raise ModelError(
            f"X and ObjVal of the gurobipy model stay empty: {fault}. Read with result.value(variables)."
        )


def _why_no_solution(model: Any, optimize: Callable[[Any], None]) -> str:
    """Why the solved model has no solution; empty if it has one."""
    try:
        optimize(model)
    except Exception as reason:  # gurobipy's own type, which this file does not import
        if getattr(reason, "errno", 0) == TOO_LARGE:
            most = "200 with quadratic terms" if model.NumQNZs or model.NumQConstrs else "2,000"
            return f"it has {model.NumVars} variables, and a restricted licence of Gurobi solves up to {most}"
        return f"Gurobi says {reason}"
    return "" if model.Status == OPTIMAL else f"Gurobi solves it with the status {model.Status}"


def _values_still_in_model(model: Any, reading: Reading, point: FloatArray) -> tuple[list[Any], list[float]]:
    """The variables that are still in the model, and their values; integers rounded."""
    integer = np.zeros(point.size, dtype=bool)
    integer[: len(reading.keys)] = reading.mip.integer[: len(reading.keys)]
    values = np.where(integer, np.round(point), point)
    at = {key: values[j] for j, key in enumerate(reading.with_slacks.keys)}
    found = [(variable, at.get(Identity(variable))) for variable in model.getVars()]
    return [v for v, value in found if value is not None], [float(x) for _, x in found if x is not None]


@contextmanager
def _fixed(model: Any, variables: list[Any], values: list[float]) -> Iterator[None]:
    """The variables fixed at these values inside; the bounds are restored afterwards in any case."""
    bounds = {name: model.getAttr(name, variables) for name in ("LB", "UB")}
    try:
        for name in bounds:
            model.setAttr(name, variables, values)
        yield
    finally:
        for name, before in bounds.items():
            model.setAttr(name, variables, before)


@contextmanager
def _without_output(model: Any, settings: dict[str, float]) -> Iterator[None]:
    """Parameters set inside and restored afterwards, without output of Gurobi."""
    silence = {"OutputFlag": 0, "LogToConsole": 0}
    wanted = silence | settings
    before = {name: model.getParamInfo(name)[2] for name in wanted}
    try:
        for name, value in wanted.items():
            model.setParam(name, value)
        yield
    finally:
        for name in [*settings, *silence]:
            model.setParam(name, before[name])
