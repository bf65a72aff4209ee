"""Sequential linear steps: on until there is a point."""

import pytest

import dovetail as dt
from tests.blends import blend


@pytest.mark.parametrize(("until_feasible", "found"), [(False, False), (True, True)])
def test_starts_go_on_while_there_is_no_point(until_feasible, found):
    """The first start of this blend ends where its floors are missed."""
    method = dt.SequentialLinear(starts=1, until_feasible=until_feasible)
    result = dt.solve(blend(3), method, time_limit=60, log=False)
    assert (result.x is not None) is found
    assert (result.iterations > 1) is found


def test_starts_end_where_there_is_a_point():
    result = dt.solve(blend(1), dt.SequentialLinear(starts=1, until_feasible=True), log=False)
    assert result.status == "feasible"
    assert result.iterations == 1


def test_starts_lose_patience_where_there_is_no_point_to_be_found():
    problem = dt.Problem(dt.Mip(cost=[1.0, 0.0], lower=[0.0, 20.0], upper=[3.0, 30.0]))
    problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])  # at most 9
    result = dt.solve(problem, dt.SequentialLinear(starts=1, patience=3, until_feasible=True), log=False)
    assert result.x is None
    assert result.iterations <= 3
