"""The water problem, written by hand in each modelling tool as its users would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

BUDGET = 2.0


@dataclass(frozen=True, eq=False)
class Written:
    """A model in some tool, and the variables its author holds: each in a container of that tool."""

    model: Any
    x: Any
    added: Any
    removed: Any
    y: Any

    @property
    def groups(self):
        return self.x, self.added, self.removed, self.y


def pyscipopt(w):
    from pyscipopt import Model

    n, d = w.shape
    model = Model()
    x = model.addMatrixVar((n, d), lb=None, name="x")
    added = model.addMatrixVar((n, d), lb=0, name="added")
    removed = model.addMatrixVar((n, d), lb=0, name="removed")
    y = model.addMatrixVar((n, 1), vtype="B", name="y")
    model.addMatrixCons(x - added + removed == w)
    for j in range(d):
        model.addCons(sum(added[i, j] for i in range(n)) <= BUDGET)
        model.addCons(sum(removed[i, j] for i in range(n)) <= BUDGET)
    model.setObjective(sum(y[i, 0] for i in range(n)), "maximize")
    return Written(model, x, added, removed, y)


def highspy(w):
    import highspy

    n, d = w.shape
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    x = model.addVariables(n, d, lb=-highspy.kHighsInf)
    added = model.addVariables(n, d)
    removed = model.addVariables(n, d)
    y = model.addBinaries(n)
    for i in range(n):
        for j in range(d):
            model.addConstr(x[i, j] - added[i, j] + removed[i, j] == float(w[i, j]))
    for j in range(d):
        model.addConstr(sum(added[i, j] for i in range(n)) <= BUDGET)
        model.addConstr(sum(removed[i, j] for i in range(n)) <= BUDGET)
    model.setMaximize()
    for i in range(n):
        model.changeColCost(y[i].index, 1.0)
    return Written(model, x, added, removed, y)


def gurobipy(w):
    import gurobipy as gp

    n, d = w.shape
    model = gp.Model(env=_quiet(gp))
    x = model.addMVar((n, d), lb=-gp.GRB.INFINITY)
    added, removed = model.addMVar((n, d)), model.addMVar((n, d))
    y = model.addMVar((n, 1), vtype="B")
    model.addConstr(x - added + removed == w)
    model.addConstr(added.sum(axis=0) <= BUDGET)
    model.addConstr(removed.sum(axis=0) <= BUDGET)
    model.setObjective(y.sum(), gp.GRB.MAXIMIZE)
    return Written(model, x, added, removed, y)


def _quiet(gp):
    env = gp.Env(empty=True)
    env.setParam("OutputFlag", 0)
    env.start()
    return env


def pyomo(w):
    import pyomo.environ as pyo

    n, d = w.shape
    model = pyo.ConcreteModel()
    samples, features = range(n), range(d)
    model.x = pyo.Var(samples, features)
    model.added = pyo.Var(samples, features, domain=pyo.NonNegativeReals)
    model.removed = pyo.Var(samples, features, domain=pyo.NonNegativeReals)
    model.y = pyo.Var(samples, domain=pyo.Binary)
    model.treat = pyo.Constraint(
        samples, features, rule=lambda m, i, j: m.x[i, j] == w[i, j] + m.added[i, j] - m.removed[i, j]
    )
    model.adding = pyo.Constraint(features, rule=lambda m, j: sum(m.added[i, j] for i in samples) <= BUDGET)
    model.removing = pyo.Constraint(
        features, rule=lambda m, j: sum(m.removed[i, j] for i in samples) <= BUDGET
    )
    model.potable = pyo.Objective(expr=sum(model.y[i] for i in samples), sense=pyo.maximize)
    return Written(model, model.x, model.added, model.removed, model.y)


def linopy(w):
    import linopy
    import pandas as pd

    n, d = w.shape
    model = linopy.Model()
    coords = [pd.RangeIndex(n, name="sample"), pd.RangeIndex(d, name="feature")]
    x = model.add_variables(coords=coords, name="x")
    added = model.add_variables(lower=0, coords=coords, name="added")
    removed = model.add_variables(lower=0, coords=coords, name="removed")
    y = model.add_variables(coords=coords[:1], name="y", binary=True)
    model.add_constraints(x - added + removed == w, name="treat")
    model.add_constraints(added.sum("sample") <= BUDGET, name="adding")
    model.add_constraints(removed.sum("sample") <= BUDGET, name="removing")
    model.add_objective(y.sum(), sense="max")
    return Written(model, x, added, removed, y)


TOOLS = {tool.__name__: tool for tool in (pyscipopt, highspy, gurobipy, pyomo, linopy)}


def canonical(mip, columns):
    """A program with its columns in the given order and its rows sorted: equal for equal programs."""
    order = np.concatenate([np.ravel(group) for group in columns])
    assert sorted(order) == list(range(mip.n_columns))
    dense = mip.A.toarray()[:, order]
    rows = np.round(np.column_stack([dense, mip.row_lower, mip.row_upper]), 12) + 0.0
    return {
        "cost": mip.cost[order].tolist(),
        "lower": mip.lower[order].tolist(),
        "upper": mip.upper[order].tolist(),
        "integer": mip.integer[order].tolist(),
        "sense": mip.sense,
        "offset": mip.offset,
        "rows": sorted(map(tuple, rows.tolist())),
    }
