"""Models written with Pyomo: a `ConcreteModel`, or a `Block` of one.

Rows come from Pyomo's own view of an expression as a linear or quadratic one. Its compiler to standard form
is not used: it makes two rows of a range, leaves out variables that are in no row, and stops at rows that
fixed variables have broken.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any, Literal

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.common.modeling import unique_component_name
from pyomo.contrib.fbbt.fbbt import compute_bounds_on_expr
from pyomo.core.base.block import BlockData
from pyomo.core.base.expression import NamedExpressionData
from pyomo.core.base.indexed_component_slice import IndexedComponent_slice
from pyomo.core.base.param import ParamData
from pyomo.core.base.var import VarData
from pyomo.core.expr.base import ExpressionBase
from pyomo.core.expr.numeric_expr import (
    AbsExpression,
    DivisionExpression,
    PowExpression,
    ProductExpression,
    UnaryFunctionExpression,
)
from pyomo.core.expr.visitor import replace_expressions
from pyomo.repn import generate_standard_repn

from dovetail.core.arrays import FloatArray, ObjectArray
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.foreign import Answer, ForeignModel, FunctionTerm, Reading, Ties, as_array, like
from dovetail.core.mip import Mip
from dovetail.core.names import distinct
from dovetail.core.quadratic import QuadraticTerms
from dovetail.core.special_constraints import SpecialConstraints
from dovetail.models.tool_model import Identity, ask_first, tell_copies

_TAKEN = frozenset(
    {"Block", "Constraint", "Objective", "Var", "Param", "Expression", "Set", "RangeSet", "ContinuousSet",
     "SOSConstraint", "Suffix", "BuildAction", "BuildCheck", "BooleanVar", "ExternalFunction", "Port"}
)  # fmt: skip
"""Components that are rows or columns, or that have no meaning by themselves."""

_WITH_BINARIES = "write it with binary variables and linear constraints, or deactivate it."

_FIXES = {
    "Disjunct": "apply pyo.TransformationFactory('gdp.bigm') to the model first.",
    "Disjunction": "apply pyo.TransformationFactory('gdp.bigm') to the model first.",
    "LogicalConstraint": "apply pyo.TransformationFactory('core.logical_to_linear') to the model first.",
    "Arc": "apply pyo.TransformationFactory('network.expand_arcs') to the model first.",
    "DerivativeVar": "discretise the model first, for instance with 'dae.finite_difference'.",
}
"""What to do about unsupported components."""


class PyomoModel(ForeignModel):
    """A `ConcreteModel` or `Block`; its variables are `Var`, members of them, slices and references."""

    tool = "Pyomo model"
    source = "variables of the model itself that have not been deleted"
    expressions = (ExpressionBase, NamedExpressionData)

    def read(self, *, rows: bool = True) -> Reading:
        """The program; columns are identified by their variable objects."""
        _require_taken(self._model)
        columns = _Columns(self._model.component_data_objects(pyo.Var, active=True, descend_into=True))
        lines = _PyomoRows(columns)
        objective = lines.add_objective(self._model) if rows else None
        if rows:
            lines.add_constraints(self._model)
        if not columns.variables:
            raise ModelError("the Pyomo model has no variables; add them first.")
        ordered = _ordered_sets(self._model, columns) if rows else []
        special = SpecialConstraints(_mip(columns, lines, objective))
        for size, inside in lines.sizes:
            special.absolute(lines.shown[size], size, inside)
        for name, level, members in ordered:
            special.ordered(name, level, members)
        keys = tuple(map(Identity, columns.variables))
        return Reading(
            special.program(), keys, tuple(special.indicators), quadratics=tuple(lines.quadratics),
            functions=tuple(lines.functions), helper_rows=tuple(lines.helpers),
        )  # fmt: skip

    def unpack(self, given: Any) -> ObjectArray:
        """Indexed variables (with two indices as rows and columns), slices, references, lists, frames."""
        entries = as_array(given, _unfold)
        for place, entry in enumerate(entries.flat):
            if isinstance(entry, ParamData):  # the current value; containers are unpacked again at each solve
                entries.flat[place] = float(_number(entry.name, entry))
        return entries

    def key(self, variable: Any) -> Hashable:
        """The variable itself, if it belongs to this model."""
        if isinstance(variable, VarData) and variable.model() is self._model.model():
            return Identity(variable)
        raise self.no_variable(variable)

    def enclosed(self) -> Iterable[Any]:
        """The block and all active blocks in it."""
        blocks: Iterable[Any] = self._model.block_data_objects(active=True)
        return blocks

    def watch(self, ties: Ties) -> None:
        """Wrap the `solve` of every solver that Pyomo knows by name, including the classes behind `appsi`
        and `contrib.solver`."""

        def ask(solver: Any, *args: Any, **options: Any) -> None:
            held = getattr(solver, "_pyomo_model", None)  # a persistent solver, whose solve() gets no model
            for model in (held, *args, *options.values()):
                if isinstance(model, BlockData):
                    ties.refuse(model.block_data_objects(active=True))

        for name in pyo.SolverFactory:
            for owner in pyo.SolverFactory.get_class(name).__mro__:
                ask_first(owner, ["solve"], ask)
        tell_copies(BlockData, ["clone"], lambda model, copy: ties.copied(model.block_data_objects(), copy))

    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """An indexed `Var` under a name that is free."""
        name = unique_component_name(self._model, name)
        made = pyo.Var(range(shape[0]), range(shape[1]), domain=pyo.Binary if binary else pyo.Reals)
        self._model.add_component(name, made)
        return made

    def discard(self, created: Any) -> None:
        """Delete the component; constraints that its owner wrote with it stay."""
        self._model.del_component(created)

    def like(self, given: Any, values: FloatArray) -> Any:
        """Values of indexed components as dictionaries by index."""
        return like(_unfold(given), values)

    def held(self, reading: Reading) -> FloatArray:
        """`value` of each variable."""
        things = (key.thing for key in reading.keys if isinstance(key, Identity))
        values = [None if one is None else one.value for one in things]
        return np.array([np.nan if value is None else float(value) for value in values])

    def load(self, reading: Reading, answer: Answer) -> None:
        """Set `value` of every variable that is not fixed; without a solution all are stale. Prices of
        constraints go into the suffix `dual`, if the model has one that is imported."""
        for j, key in enumerate(reading.keys):
            variable = key.thing if isinstance(key, Identity) else None
            if variable is None or variable.model() is not self._model.model() or variable.fixed:
                continue
            if answer.x is None:
                variable.stale = True
            else:
                variable.set_value(float(answer.x[j]), skip_validation=True)
        dual = self._model.component("dual")
        if isinstance(dual, pyo.Suffix) and dual.import_enabled():
            dual.clear()
            prices = {} if answer.x is None else answer.prices()
            for row in self._model.component_data_objects(pyo.Constraint, active=True, descend_into=True):
                if row.name in prices:
                    dual[row] = prices[row.name]


def _unfold(item: Any) -> Any:
    if isinstance(item, IndexedComponent_slice):
        item = pyo.Reference(item)
    if isinstance(item, VarData) or not hasattr(item, "is_indexed"):
        return item
    return dict(item.items()) if item.is_indexed() else item


def _require_taken(model: Any) -> None:
    """Refuse unsupported components by name."""
    if not model.is_constructed():
        raise UnsupportedError(
            f"{model.name} is an abstract Pyomo model without data; pass model.create_instance(...)."
        )
    kinds = model.collect_ctypes(active=True, descend_into=True)
    for kind in sorted(kinds, key=lambda kind: str(kind.__name__)):
        if kind.__name__ not in _TAKEN:
            found = next(model.component_objects(kind, active=True, descend_into=True))
            fix = _FIXES.get(kind.__name__, _WITH_BINARIES)
            raise UnsupportedError(
                f"{found.name} is a {kind.__name__}, which is not a linear constraint; {fix}"
            )


class _Columns:
    def __init__(self, variables: Iterable[Any]) -> None:
        self._places: dict[int, int] = {}
        self.variables: list[Any] = []
        for variable in variables:
            self.place(variable)

    def place(self, variable: Any) -> int:
        """The column of a variable; a new one for variables that only constraints know, such as a parent
        block's."""
        place = self._places.setdefault(id(variable), len(self.variables))
        if place == len(self.variables):
            self.variables.append(variable)
        return place


@dataclass(eq=False)
class _PyomoRows:
    columns: _Columns
    data: list[float] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    indptr: list[int] = field(default_factory=lambda: [0])
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    quadratics: list[QuadraticTerms] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    """Columns for absolute values and their arguments, which are no variables of the model."""
    functions: list[FunctionTerm] = field(default_factory=list)
    helpers: list[int] = field(default_factory=list)
    """Rows for the arguments of functions and absolute values."""
    objective_name: str = ""
    shown: dict[int, str] = field(default_factory=dict)
    """Names of these columns: their expressions."""

    def add_constraints(self, model: Any) -> None:
        """Add all active constraints; fixed variables are numbers."""
        for constraint in model.component_data_objects(pyo.Constraint, active=True, descend_into=True):
            name = constraint.name
            try:
                low, body, high = constraint.lb, constraint.body, constraint.ub
            except ValueError as reason:  # for example limits that contain variables
                raise UnsupportedError(
                    f"constraint {name} has no limits that are numbers ({reason})."
                ) from None
            self._add(name, self._expanded(f"constraint {name}", body), low, high)

    def _add(self, name: str, line: Any, low: float | None, high: float | None) -> None:
        self._add_quadratic(len(self.names), line)
        self.data.extend(line.linear_coefs)
        self.indices.extend(map(self.columns.place, line.linear_vars))
        self.indptr.append(len(self.data))
        self.lower.append(-np.inf if low is None else low - line.constant)
        self.upper.append(np.inf if high is None else high - line.constant)
        self.names.append(name)

    def _expanded(self, what: str, expression: Any) -> Any:
        """An expression as coefficients of variables and products; absolute values and functions become
        variables, and so do factors of products of more than two."""
        line = _expanded(what, expression)
        if line.nonlinear_expr is None:
            return line
        found = {id(node): self._stand_in(what, node) for node in _functions_in(line.nonlinear_expr)}
        if not found:
            factors = _factors_in(line.nonlinear_expr)
            found = {id(part): self._equal_to(what, part) for part in factors}
        if not found:
            raise UnsupportedError(
                f"{what} has {line.nonlinear_expr}; the functions {', '.join(FUNCTIONS)}, abs and powers by "
                "numbers are taken; compute another one in a predictor (a function of numpy arrays is one), "
                "and use its output variable instead."
            )
        return self._expanded(what, replace_expressions(expression, found))

    def _stand_in(self, what: str, node: Any) -> Any:
        """A variable for an absolute value or a function."""
        if isinstance(node, DivisionExpression):
            above, below = node.args
            return above * self._function(what, "power", below, -1.0, node)
        if isinstance(node, PowExpression):
            power = float(pyo.value(node.args[1]))
            kind = "sqrt" if power == 0.5 else "power"
            return self._function(what, kind, node.args[0], power, node)
        if not isinstance(node, AbsExpression):
            return self._function(what, node.getname(), node.args[0], 1.0, node)
        size, inside = self._made((0.0, None), node), self._equal_to(what, node.args[0])
        self.sizes.append((self.columns.place(size), self.columns.place(inside)))
        return size

    def _function(self, what: str, kind: str, argument: Any, power: float, node: Any) -> Any:
        low, high = compute_bounds_on_expr(argument)
        positive, negative = low is not None and low > 0.0, high is not None and high < 0.0
        whole = kind == "power" and power == round(power)
        known = {
            "log": positive, "log10": positive, "sqrt": low is not None and low >= 0.0,
            "power": positive or (whole and (power > 0.0 or negative)),
        }  # fmt: skip
        if not known.get(kind, True):
            raise UnsupportedError(
                f"{what} has {node}, which is not defined everywhere in the bounds of {argument}; give its "
                "variables bounds in which it is."
            )
        made, inside = self._made((None, None), node), self._equal_to(what, argument)
        places = self.columns.place(inside), self.columns.place(made)
        self.functions.append(FunctionTerm(kind, *places, power))
        return made

    def _equal_to(self, what: str, expression: Any) -> Any:
        """A variable that equals an expression: the expression itself if it is one."""
        if isinstance(expression, VarData):
            return expression
        inside = self._made(compute_bounds_on_expr(expression), expression)
        row = f"{what}: {self.shown[self.columns.place(inside)]}"
        line = self._expanded(what, expression - inside)
        self.helpers.append(len(self.names))
        self._add(row, line, 0.0, 0.0)
        return inside

    def _made(self, bounds: Any, meaning: Any) -> Any:
        """A variable that is not of the model, named by its meaning in one line of the log."""
        variable = pyo.Var(bounds=bounds)
        variable.construct()
        self.shown[self.columns.place(variable)] = shorten(str(meaning), 60, placeholder=" ...")
        return variable

    def add_objective(self, model: Any) -> _Objective:
        """Add the active objective; without one the objective is 0."""
        active = list(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
        if len(active) > 1:
            raise UnsupportedError(
                f"the Pyomo model has {len(active)} active objectives, {active[0].name} and "
                f"{active[1].name} among them; deactivate all but one."
            )
        if not active:
            return _Objective()
        self.objective_name = active[0].name
        line = self._expanded(f"objective {active[0].name}", active[0].expr)
        self._add_quadratic(None, line)
        return _Objective(
            "min" if active[0].is_minimizing() else "max",
            float(line.constant),
            list(map(self.columns.place, line.linear_vars)),
            list(line.linear_coefs),
        )

    def _add_quadratic(self, row: int | None, line: Any) -> None:
        if not line.quadratic_vars:
            return
        left, right = (
            np.array([self.columns.place(pair[side]) for pair in line.quadratic_vars]) for side in (0, 1)
        )
        coefficients = np.array(line.quadratic_coefs, dtype=np.float64)
        self.quadratics.append(QuadraticTerms(row, left, right, coefficients))


def _ordered_sets(model: Any, columns: _Columns) -> list[tuple[str, int, list[int]]]:
    """Special ordered sets: name, type and members in their order."""
    found = []
    for ordered in model.component_data_objects(pyo.SOSConstraint, active=True, descend_into=True):
        members = sorted(ordered.get_items(), key=lambda member: float(member[1]))
        found.append((ordered.name, ordered.level, [columns.place(variable) for variable, _ in members]))
    return found


@dataclass(frozen=True, eq=False)
class _Objective:
    sense: Literal["min", "max"] = "min"
    offset: float = 0.0
    columns: list[int] = field(default_factory=list)
    coefficients: list[float] = field(default_factory=list)


def _expanded(what: str, expression: Any) -> Any:
    """An expression as a constant, and coefficients of variables that are not fixed and of their products."""
    try:
        return generate_standard_repn(expression, compute_values=True, quadratic=True)
    except ValueError as reason:  # a parameter or a fixed variable without a value
        raise ModelError(f"{what} cannot be computed ({reason}).") from None


FUNCTIONS = ("exp", "log", "log10", "sqrt", "sin", "cos", "tanh")


def _functions_in(expression: Any) -> Iterator[Any]:
    """The absolute values, functions, powers and divisions in an expression, without nested ones."""
    if not getattr(expression, "is_expression_type", bool)() or not expression.is_potentially_variable():
        return
    by_number = isinstance(expression, PowExpression) and not _varies(expression.args[1])
    divided = isinstance(expression, DivisionExpression) and _varies(expression.args[1])
    named = isinstance(expression, UnaryFunctionExpression) and expression.getname() in FUNCTIONS
    if by_number or divided or named or isinstance(expression, AbsExpression):
        yield expression
        return
    for part in expression.args:
        yield from _functions_in(part)


def _varies(expression: Any) -> bool:
    return bool(getattr(expression, "is_potentially_variable", bool)())


def _factors_in(expression: Any) -> Iterator[Any]:
    """The nonlinear factors of the first product that has any."""
    if not getattr(expression, "is_expression_type", bool)():
        return
    if isinstance(expression, ProductExpression):
        parts = [part for part in expression.args if _varies(part) and part.polynomial_degree() not in (0, 1)]
        yield from parts
        return
    for part in expression.args:
        yield from _factors_in(part)


def _mip(columns: _Columns, lines: _PyomoRows, objective: _Objective | None) -> Mip:
    variables = columns.variables
    size = len(variables)
    objective = objective or _Objective()
    cost = np.zeros(size)
    np.add.at(cost, objective.columns, objective.coefficients)
    limits = np.array([_limits(variable) for variable in variables])
    return Mip(
        cost,
        A=sp.csr_array((lines.data, lines.indices, lines.indptr), shape=(len(lines.names), size)),
        row_lower=lines.lower,
        row_upper=lines.upper,
        lower=limits[:, 0],
        upper=limits[:, 1],
        integer=[_integer(variable) for variable in variables],
        sense=objective.sense,
        offset=objective.offset,
        names=distinct([lines.shown.get(j) or variable.name for j, variable in enumerate(variables)]),
        row_names=distinct(lines.names),
        objective_name=lines.objective_name,
    )


def _limits(variable: Any) -> tuple[float, float]:
    """Bounds from bounds and domain; a fixed variable has its value."""
    if variable.fixed:
        value = _number(variable.name, variable)
        return value, value
    try:
        low, high = variable.lb, variable.ub
    except ValueError as reason:  # a parameter without a value
        raise ModelError(f"the bounds of {variable.name} cannot be computed ({reason}).") from None
    return -np.inf if low is None else low, np.inf if high is None else high


def _integer(variable: Any) -> bool:
    if variable.fixed or variable.is_continuous():
        return False
    if not variable.is_integer():
        raise UnsupportedError(
            f"{variable.name} has the domain {variable.domain}, which is neither an interval nor all the "
            "integers in one; give it such a domain, and binary variables for the rest."
        )
    return True


def _number(name: str, item: Any) -> float:
    value = pyo.value(item, exception=False)
    if value is None:
        raise ModelError(f"{name} is fixed or a parameter, but has no value; give it one.")
    return float(value)
