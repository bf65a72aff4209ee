"""Programs as users of linopy write them; `ml` is dovetail, or what writes a predictor out, `run` solves."""

import linopy
import numpy as np
import pandas as pd
import xarray as xr

from tests.compat import trained

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def decisions(n):
    """A model with (n, 3) features, the last of which is a fact, and an output for each sample."""
    m = linopy.Model()
    samples, features = pd.RangeIndex(n, name="sample"), pd.Index(["price", "effort", "age"], name="feature")
    lower, upper = (xr.DataArray(part, coords=[samples, features]) for part in trained.limits(n))
    return m, m.add_variables(lower, upper, name="x"), m.add_variables(coords=[samples], name="y")


def ended(m, predictor, x, y):
    """What these programs read at their ends, and the largest error."""
    said = predictor.predict(x.solution.values)
    return float(m.objective.value), float(np.max(np.abs(said - y.solution.values)))


def gain(ml, run, predictor, n=2):
    """Most gain of n samples, with a budget of effort."""
    m, x, y = decisions(n)
    effort = x.sel(feature="effort")
    m.add_constraints(effort.sum() <= 0.5 * n)
    ml.add_predictor_constr(m, predictor, x, y)
    m.add_objective(y.sum() - 0.3 * effort.sum(), sense="max")
    run(m)
    return ended(m, predictor, x, y)


@program
def linear_regression(ml, run):
    return gain(ml, run, trained.fitted("Ridge"))


@program
def mlp_regressor(ml, run):
    return gain(ml, run, trained.mlp("MLPRegressor"))


@program
def quadratic_objective(ml, run):
    """The least change, squared, that a prediction asks for; sense is the other one here."""
    m, x, y = decisions(1)
    predictor = trained.fitted("LinearRegression")
    ml.add_predictor_constr(m, predictor, x, y)
    m.add_constraints(y >= 0.9)
    m.add_objective(-1.0 * (x * x).sum() + 0.4 * x.sum(), sense="max")
    run(m)
    return ended(m, predictor, x, y)
