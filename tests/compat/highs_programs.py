"""Programs as users of highspy write them; `ml` is dovetail, or what writes a predictor out, `run` solves."""

import highspy
import numpy as np

from tests.compat import trained

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def decisions(n):
    """A model with (n, 3) features, the last of which is a fact, and an output for each sample."""
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    lower, upper = trained.limits(n)
    x = [[h.addVariable(lower[i, j], upper[i, j]) for j in range(3)] for i in range(n)]
    return h, x, [[h.addVariable(-h.inf, h.inf)] for _ in range(n)]


def ended(h, predictor, x, y, cost):
    """The objective, which highspy's own run knows only, by values; and the largest error."""
    X = np.array([[h.val(v) for v in row] for row in x])
    said = np.array([h.val(row[0]) for row in y])
    return float(said.sum()) - cost(X), float(np.max(np.abs(predictor.predict(X) - said)))


def gain(ml, run, predictor, n=2):
    """Most gain of n samples, with a budget of effort."""
    h, x, y = decisions(n)
    h.addConstr(sum(row[1] for row in x) <= 0.5 * n)
    ml.add_predictor_constr(h, predictor, x, y)
    h.setObjective(sum(row[0] for row in y) - 0.3 * sum(row[1] for row in x), highspy.ObjSense.kMaximize)
    run(h)
    return ended(h, predictor, x, y, lambda X: 0.3 * float(X[:, 1].sum()))


@program
def linear_regression(ml, run):
    return gain(ml, run, trained.fitted("LinearRegression"))


@program
def mlp_regressor(ml, run):
    return gain(ml, run, trained.mlp("MLPRegressor"))


@program
def one_of_two(ml, run):
    """Effort for one of two samples only, which is chosen; and it is worth something to choose none."""
    h, x, y = decisions(2)
    used = [h.addBinary() for _ in x]
    for row, chosen in zip(x, used, strict=True):
        h.addConstr(row[1] <= chosen)
    h.addConstr(sum(used) <= 1)
    predictor = trained.mlp("MLPRegressor")
    ml.add_predictor_constr(h, predictor, x, y)
    h.setObjective(sum(row[0] for row in y), highspy.ObjSense.kMaximize)
    run(h)
    assert sum(h.val(chosen) for chosen in used) <= 1.0 + 1e-6
    return ended(h, predictor, x, y, lambda X: 0.0)
