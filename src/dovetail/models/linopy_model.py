"""Models written with linopy.

linopy numbers its variables ("labels") and never reuses a number, so columns are identified by labels. A
`linopy.Variable` holds its model; only labels and a weak reference are kept here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, cast
from weakref import ReferenceType, ref

import linopy
import numpy as np
import scipy.sparse as sp
import xarray as xr
from linopy.expressions import ScalarLinearExpression
from linopy.variables import ScalarVariable

from dovetail.core.arrays import FloatArray, IntArray, ObjectArray
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.foreign import Answer, ForeignModel, Reading, Ties, as_array, like
from dovetail.core.mip import Mip
from dovetail.core.names import distinct
from dovetail.core.quadratic import QuadraticTerms
from dovetail.core.special_constraints import Indicator, SpecialConstraints
from dovetail.models.tool_model import ask_first, tell_copies

MASKED = -1
"""The label of an entry that a mask left out."""


WITHOUT_POINT = {"infeasible": "infeasible", "unbounded": "unbounded", "error": "error"}
"""linopy's termination conditions without a solution, by dovetail's status; "other" for the rest."""
ENDED_BY = {"time": "time_limit", "iterations": "iteration_limit"}
"""linopy's termination conditions with a solution that is not proved optimal; "suboptimal" for the rest."""


@dataclass(frozen=True)
class Label:
    """One variable: its label, without keeping the model alive."""

    number: int
    model: ReferenceType[Any]

    def __str__(self) -> str:
        model = self.model()
        if model is None:
            return "a variable of a linopy model that no longer exists"
        try:
            name, place = model.variables.get_label_position(self.number)
        except ValueError:
            return f"a variable that was removed (label {self.number})"
        return f"{name}[{', '.join(map(str, place.values()))}]" if place else str(name)


class LinopyModel(ForeignModel):
    """A `linopy.Model`; its variables are `linopy.Variable` of any dimensions, and scalars of them."""

    tool = "linopy model"
    source = "what its add_variables gave you"
    expressions = (linopy.LinearExpression, linopy.QuadraticExpression, ScalarLinearExpression)
    heavy = (object,)

    def read(self, *, rows: bool = True) -> Reading:
        """The program; columns are identified by their labels."""
        _refuse_what_is_not_taken(self._model)
        mip, labels = _columns(self._model)
        keys = tuple(labels.tolist())
        if not rows:
            return Reading(mip, keys)
        mip, indicators, quadratics = _with_rows(self._model, mip, labels)
        special = SpecialConstraints(mip, list(indicators))
        _add_ordered_sets(self._model, labels, special)
        return Reading(special.program(), keys, tuple(special.indicators), quadratics=quadratics)

    def unpack(self, given: Any) -> ObjectArray:
        """Variables as arrays of labels, in their shape; arrays of numbers stay numbers."""
        return as_array(given, _unfold)

    def key(self, variable: Any) -> Hashable:
        """Its label."""
        if isinstance(variable, Label):
            if variable.number == MASKED:
                raise ModelError("a masked entry of a linopy variable was passed; select those that exist.")
            if variable.model() is self._model:
                return variable.number
        raise self.no_variable(variable)

    def watch(self, ties: Ties) -> None:
        """`solve`, and the ways to copy a model."""
        ask_first(linopy.Model, ("solve",), lambda model, *args, **options: ties.refuse((model,)))
        ways = "copy", "__copy__", "__deepcopy__"
        tell_copies(linopy.Model, ways, lambda model, copy: ties.copied((model,), copy))

    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """A variable under a name that is free, with dimensions of its own."""
        names = (name, *(f"{name}_{k}" for k in range(len(self._model.variables))))
        free = next(name for name in names if name not in self._model.variables)
        coords = [range(size) for size in shape]
        dims = [f"{free}_sample", f"{free}_output"]
        return self._model.add_variables(coords=coords, dims=dims, name=free, binary=binary)

    def discard(self, created: Any) -> None:
        """Remove the variable; linopy removes constraints that hold it too, and warns."""
        self._model.remove_variables(created.name)

    def like(self, given: Any, values: FloatArray) -> Any:
        """A `DataArray` with the coordinates of what was given, of linopy or xarray."""
        if isinstance(given, linopy.Variable):
            return given.labels.copy(data=values).rename(given.name)
        if isinstance(given, xr.DataArray):
            return given.copy(data=values)
        return like(given, values)

    def held(self, reading: Reading) -> FloatArray:
        """`solution` of each variable."""
        values: dict[Hashable, float] = {}
        for _, variable in self._model.variables.items():
            if "solution" in variable.data:
                own = variable.data["solution"].values.ravel().tolist()
                values.update(zip(variable.labels.values.ravel().tolist(), own, strict=True))
        return np.array([values.get(key, np.nan) for key in reading.keys])

    def load(self, reading: Reading, answer: Answer) -> None:
        """`solution`, `dual`, `objective.value`, `status` and `termination_condition`."""
        load_answer(self._model, reading, answer)


def _unfold(item: Any) -> Any:
    if isinstance(item, linopy.Variable):
        model = ref(item.model)
        labels = item.labels.values
        result = np.empty(labels.shape, dtype=object)
        for place, label in enumerate(labels.flat):
            result.flat[place] = Label(int(label), model)
        return result
    if isinstance(item, ScalarVariable):
        return Label(int(item.label), ref(item.model))
    if isinstance(item, xr.DataArray):
        if item.name == "labels":
            raise ModelError("labels of a linopy variable were passed; pass the variable itself.")
        return item.values
    return item


def _refuse_what_is_not_taken(model: linopy.Model) -> None:
    for name in model.variables.semi_continuous:
        raise UnsupportedError(
            f"{name} is semi-continuous; write it with a binary variable and two constraints."
        )


def _add_ordered_sets(model: linopy.Model, labels: IntArray, special: SpecialConstraints) -> None:
    """Special ordered sets: along one dimension of a variable, in the order of its coordinates."""
    place = {int(label): j for j, label in enumerate(labels)}
    for name in model.variables.sos:
        variable = model.variables[name]
        kind: Any = variable.attrs["sos_type"]
        along = variable.attrs["sos_dim"]
        order = np.argsort(variable.labels.get_index(along), kind="stable")
        members = np.moveaxis(variable.labels.values, variable.labels.dims.index(along), -1)
        for number, each in enumerate(members[..., order].reshape(-1, order.size).tolist()):
            columns = [place[label] for label in each if label != MASKED]
            special.ordered(f"SOS of {name}[{number}]", kind, columns)


def _columns(model: linopy.Model) -> tuple[Mip, IntArray]:
    """The program without rows, and the labels of its columns."""
    labels, lower, upper, integer, names = [], [], [], [], []
    for name, variable in model.variables.items():
        there = (variable.labels.values != MASKED).ravel()
        binary = bool(variable.attrs.get("binary"))  # a binary is 0 or 1 whatever its bounds are
        labels.append(variable.labels.values.ravel()[there])
        lower.append(np.maximum(variable.lower.values.ravel()[there], 0.0 if binary else -np.inf))
        upper.append(np.minimum(variable.upper.values.ravel()[there], 1.0 if binary else np.inf))
        integer.append(np.full(np.count_nonzero(there), binary or bool(variable.attrs.get("integer"))))
        names.append(_names(name, variable.labels)[there])
    if not sum(map(len, labels)):
        raise ModelError("the linopy model has no variables; add them first.")
    mip = Mip(
        np.zeros(sum(map(len, labels))),
        lower=np.concatenate(lower),
        upper=np.concatenate(upper),
        integer=np.concatenate(integer),
        names=distinct(np.concatenate(names).tolist()),
    )
    return mip, np.concatenate(labels).astype(np.int64)


def _with_rows(
    model: linopy.Model, columns: Mip, labels: IntArray
) -> tuple[Mip, tuple[Indicator, ...], tuple[QuadraticTerms, ...]]:
    """The program with its rows and costs, in the units of the owner, its indicators and quadratic terms.

    linopy returns scaled values.
    """
    try:
        matrices = model.matrices
    except ValueError as reason:  # a row holds a variable that was removed
        raise ModelError(f"linopy cannot put the model together: {reason}") from None
    place = np.full(int(labels.max()) + 1, MASKED)
    place[labels] = np.arange(labels.size)
    layout = _Layout(place[matrices.vlabels], matrices.var_scaling)
    plain = [(name, row) for name, row in model.constraints.items() if not row.is_indicator]
    switched = [(name, row) for name, row in model.constraints.items() if row.is_indicator]
    A = layout.matrix(matrices.A, _row_scaling(plain))
    limit = np.asarray(matrices.b, dtype=np.float64) / _row_scaling(plain)
    cost = np.zeros(labels.size)
    cost[layout.column] = matrices.c * layout.scaling / model.objective.scaling
    mip = replace(
        columns,
        cost=cost,
        A=A,
        row_lower=np.where(matrices.sense == "<", -np.inf, limit),
        row_upper=np.where(matrices.sense == ">", np.inf, limit),
        sense="max" if model.objective.sense == "max" else "min",
        offset=float(np.nan_to_num(model.objective.expression.const.values)),
        row_names=distinct(_row_names(plain)),
    )
    quadratics = layout.quadratic(matrices.Q, model.objective.scaling) if model.is_quadratic else ()
    return mip, _indicators(matrices, layout, switched), quadratics


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where linopy's columns are in the `Mip`, and what linopy multiplied their variables by."""

    column: IntArray
    scaling: FloatArray

    def matrix(self, given: Any, row_scaling: FloatArray) -> sp.csr_array:
        size = self.column.size
        if given is None:
            return sp.csr_array((0, size))
        entries = sp.coo_array(given)
        data = entries.data * self.scaling[entries.col] / row_scaling[entries.row]
        return sp.csr_array((data, (entries.row, self.column[entries.col])), shape=(given.shape[0], size))

    def quadratic(self, Q: Any, objective_scaling: float) -> tuple[QuadraticTerms, ...]:
        """linopy's half x'Qx of the objective, in the columns and units of the `Mip`."""
        entries = sp.coo_array(Q)
        left, right = self.column[entries.row], self.column[entries.col]
        scaling = self.scaling[entries.row] * self.scaling[entries.col] / objective_scaling
        return (QuadraticTerms(None, left, right, 0.5 * entries.data * scaling),)


_Rows = Sequence[tuple[str, Any]]
"""Constraints by name."""


def _row_scaling(rows: _Rows) -> FloatArray:
    """What linopy multiplied the rows by, of those that are not masked."""
    parts = [row.scaling.values.ravel()[row.active_row_mask()] for _, row in rows]
    return cast(FloatArray, np.concatenate([np.ones(0), *parts]))


def _row_names(rows: _Rows) -> list[str]:
    parts = [_names(name, row.labels)[row.active_row_mask()] for name, row in rows]
    return [name for part in parts for name in part]


def _names(name: str, labels: xr.DataArray) -> ObjectArray:
    """linopy's own labels for the entries of a variable or constraint, in their order."""
    result = np.empty(labels.size, dtype=object)
    indexes = [labels.get_index(dim) for dim in labels.dims]
    for place, index in enumerate(product(*indexes)):
        result[place] = f"{name}[{', '.join(map(str, index))}]" if index else name
    return result


def _indicators(matrices: Any, layout: _Layout, rows: _Rows) -> tuple[Indicator, ...]:
    if not rows:
        return ()
    A = layout.matrix(matrices.indicator_A, _row_scaling(rows))
    limits = matrices.indicator_b / _row_scaling(rows)
    result = []
    for i, name in enumerate(_row_names(rows)):
        part = slice(A.indptr[i], A.indptr[i + 1])
        result.append(
            Indicator(
                int(layout.column[matrices.indicator_binvar[i]]),
                int(matrices.indicator_binval[i]),
                A.indices[part].tolist(),
                A.data[part].tolist(),
                -np.inf if matrices.indicator_sense[i] == "<" else float(limits[i]),
                np.inf if matrices.indicator_sense[i] == ">" else float(limits[i]),
                name,
            )
        )
    return tuple(result)


def load_answer(model: Any, reading: Reading, answer: Answer) -> None:
    """Replace the model's solution; linopy reads a solution only if the status is "ok"."""
    model.reset_solution()
    if answer.x is None:
        model.status = "warning"
        model.termination_condition = WITHOUT_POINT.get(answer.status, "other")
        model.objective._value = None  # the only way to remove an earlier solution
        return
    for _, variable in model.variables.items():
        labels = variable.labels
        found = (reading.column.get(label) for label in labels.values.ravel().tolist())
        values = [np.nan if j is None else answer.x[j] for j in found]
        variable.solution = labels.copy(data=np.reshape(values, labels.shape)).rename(None)
    prices = answer.prices()
    for name, row in model.constraints.items():
        duals = [prices.get(each, np.nan) for each in _names(name, row.labels).tolist()]
        row.dual = row.labels.copy(data=np.array(duals).reshape(row.labels.shape)).rename(None)
    if answer.objective is not None:
        model.objective.set_value(answer.objective)
    model.status = "ok"
    ended = ENDED_BY.get(answer.stop_reason, "suboptimal")
    model.termination_condition = answer.status if answer.status in ("optimal", "unbounded") else ended
