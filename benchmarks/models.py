"""How long it takes to read a large model in each modelling tool: 100,000 rows, 300,000 entries.

gurobipy is left out: the licence that comes with it ends at 2,000 rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dovetail.models import foreign_model
from dovetail_study.experiment import ResultTable

ROWS, COLUMNS, PER_ROW = 100_000, 50_000, 3
"""Large enough that a loop over rows in Python shows."""


def run(rows: int = ROWS, columns: int = COLUMNS) -> ResultTable:
    rng = np.random.default_rng(0)
    places = rng.integers(0, columns, (rows, PER_ROW))
    places[:, 1] = (places[:, 0] + 1 + rng.integers(0, columns - 2, rows)) % columns
    places[:, 2] = (places[:, 0] + columns - 1) % columns
    values = np.round(rng.uniform(1, 2, (rows, PER_ROW)), 3)
    table = ResultTable(
        "models",
        f"Reading a model of {rows:,} rows, {rows * PER_ROW:,} entries, {columns:,} columns",
        ["tool", "whole, CPU s", "columns only, CPU s"],
    )
    for build in (_highspy, _pyscipopt, _linopy, _pyomo):
        model = build(places, values, columns)
        foreign = foreign_model(model)
        assert foreign is not None
        whole, part = _seconds(foreign.read), _seconds(partial(foreign.read, rows=False))
        table.rows.append([build.__name__[1:], f"{whole:.2f}", f"{part:.2f}"])
    return table


def _seconds(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def _highspy(places: np.ndarray, values: np.ndarray, columns: int) -> Any:
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.addVars(columns, np.zeros(columns), np.ones(columns))
    rows = len(places)
    starts = np.arange(0, rows * PER_ROW, PER_ROW)
    model.addRows(
        rows, np.full(rows, -1e30), np.full(rows, 4.0), places.size, starts, places.ravel(), values.ravel()
    )
    return model


def _pyscipopt(places: np.ndarray, values: np.ndarray, columns: int) -> Any:
    from pyscipopt import Model, quicksum

    model = Model()
    x = [model.addVar(ub=1.0) for _ in range(columns)]
    for row, entries in zip(places, values, strict=True):
        model.addCons(quicksum(float(v) * x[j] for j, v in zip(row, entries, strict=True)) <= 4.0)
    return model


def _linopy(places: np.ndarray, values: np.ndarray, columns: int) -> Any:
    import linopy
    import pandas as pd
    import xarray as xr

    model = linopy.Model()
    x = model.add_variables(lower=0, upper=1, coords=[pd.RangeIndex(columns, name="c")], name="x")
    picked = x.sel(c=xr.DataArray(places, dims=["row", "entry"]))
    model.add_constraints((picked * xr.DataArray(values, dims=["row", "entry"])).sum("entry") <= 4.0)
    model.add_objective(x.sum())
    return model


def _pyomo(places: np.ndarray, values: np.ndarray, columns: int) -> Any:
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(columns), bounds=(0, 1))
    model.rows = pyo.Constraint(
        range(len(places)),
        rule=lambda m, i: (
            pyo.quicksum(float(v) * m.x[int(j)] for j, v in zip(places[i], values[i], strict=True)) <= 4.0
        ),
    )
    return model
