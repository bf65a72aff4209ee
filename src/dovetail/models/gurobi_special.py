"""The general constraints, special ordered sets and piecewise-linear costs of a gurobipy model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.core.arrays import IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.indicator import Indicator
from dovetail.core.mip import INFINITY
from dovetail.core.special_constraints import SpecialConstraints

MAX, MIN, ABS, AND, OR, NORM, INDICATOR, PWL = 0, 1, 2, 3, 4, 5, 7, 8
"""Gurobi's numbers of the kinds that are taken; those of functions (exp, log, pow, sin, ...) are others."""

Write = Callable[[SpecialConstraints, list[int]], None]


@dataclass(frozen=True, eq=False)
class Special:
    """One constraint, and the variables that it is about."""

    variables: list[Any]
    to: Write
    """Writes it, given the columns of the variables."""

    def write(self, written: SpecialConstraints, place: IntArray) -> None:
        """Where variables are columns by `place`."""
        self.to(written, [int(place[variable.index]) for variable in self.variables])


def special_constraints(model: Any) -> Iterator[Special]:
    """All of a model; an `UnsupportedError` names the first that is not taken."""
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
                yield _cost(f"cost of {variable.VarName}", variable, np.array(points, dtype=np.float64))


def _general(model: Any, constraint: Any, name: str) -> Special:
    kind = constraint.GenConstrType
    if kind in (MAX, MIN):
        extreme = model.getGenConstrMax if kind == MAX else model.getGenConstrMin
        result, parts, constant = extreme(constraint)
        sign = 1.0 if kind == MAX else -1.0
        return Special([result, *parts], lambda to, x: to.maximum(name, x[0], x[1:], _size(constant), sign))
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
        f"{name} is a function constraint (exp, log, pow, ...), which is not taken; make the function a "
        "predictor, for instance lambda X: numpy.exp(X), and pass it to add_predictor_constr."
    )


def _size(constant: float) -> float:
    """A constant of a maximum; Gurobi has 1e30, of either sign, where its owner gave none."""
    return constant if abs(constant) < INFINITY else np.inf


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
    raise UnsupportedError(f"{name} is a {which:g}-norm, which is not taken; {remedy}.")


def _ordered(name: str, kind: int, variables: list[Any]) -> Special:
    return Special(variables, lambda to, x: to.ordered(name, kind, x))


def _cost(name: str, variable: Any, points: Any) -> Special:
    return Special([variable], lambda to, x: to.piecewise_cost(name, x[0], points[:, 0], points[:, 1]))
