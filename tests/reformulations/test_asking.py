"""Long tables: asked for where that is in time and allowed, each row once; known optima."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.reformulations import tables
from dovetail.reformulations.tables import answers_within
from tests.small import random_mlp


class Clocked:
    """Takes so long for a call and for each row, by a clock of its own."""

    def __init__(self, monkeypatch, call, row):
        self.now, self.rows, self._call, self._row = 0.0, [], call, row
        monkeypatch.setattr(tables.time, "perf_counter", lambda: self.now)

    def predict(self, X):
        self.now += self._call + self._row * len(X)
        self.rows += X[:, 0].tolist()
        return X**2


@pytest.mark.parametrize(
    ("call", "row", "most"),
    [
        (0.0, 0.001, None),  # one second for all
        (0.3, 0.0, None),  # slow to begin with, whatever the number of rows
        (0.0, 1.0, 5),  # hopeless: seen after a tenth of the ten seconds
        (0.0, 0.011, 400),
    ],
)
def test_rows_are_asked_for_where_that_is_in_time(monkeypatch, call, row, most):
    clocked, X = Clocked(monkeypatch, call, row), np.arange(1000.0)[:, None]
    answers = answers_within(clocked, X, 10.0)
    assert len(set(clocked.rows)) == len(clocked.rows)
    if most is None:
        assert np.array_equal(answers, X**2)
    else:
        assert answers is None
        assert len(clocked.rows) <= most


def plan(function, shape=(16, 30)):
    """The least y with a limit on z and on the sum, over a box of whole numbers."""
    mip = dt.Mip(
        cost=[0.01, 0.0, 1.0, 0.0],
        A=[[1.0, 1.0, 0.0, 0.0]], row_lower=[-np.inf], row_upper=[40.0],
        lower=[0.0, 0.0, -np.inf, -np.inf], upper=[shape[0] - 1.0, shape[1] - 1.0, np.inf, 0.5],
        integer=[True, True, False, False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(function, [0, 1], [2, 3], name="plant")
    if isinstance(function, dt.Function):
        return problem
    X = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, 2).astype(float)
    said = np.asarray(problem.blocks[0].predictor.predict(X))
    held = (said[:, 1] <= 0.5) & (X.sum(axis=1) <= 40.0)
    return problem, float(np.min((said[:, 0] + 0.01 * X[:, 0])[held])), len(X)


def jumps(X):
    """Nothing that slopes lead through."""
    return np.stack([np.sin(X[:, 0] ** 2) + np.cos(7.0 * X[:, 1]), np.sin(X[:, 0] * X[:, 1])], axis=1)


def test_a_plain_function_of_whole_numbers_is_listed():
    problem, best, rows = plan(jumps)
    result = dt.solve(problem, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert result.evaluations <= rows + 10


def test_a_network_of_whole_numbers_is_listed():
    problem, best, _ = plan(random_mlp(2, 2, seed=1), (20, 40))
    result = dt.solve(problem, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert [row.part for row in result.trace] == ["exact MIP of tables"]


def test_a_function_is_not_asked_for_more_than_its_owner_allows():
    """A table that it would not finish is not begun: what it answers goes to the search."""
    function = dt.Function(jumps, max_evaluations=100, integer_only=True)
    result = dt.solve(plan(function, (12, 12)), log=False)
    assert function.evaluations <= 100
    assert result.stop_reason == "evaluations"
    assert result.x is not None
