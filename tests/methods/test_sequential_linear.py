"""Sequential linear steps: on until there is a point."""

import pytest

import dovetail as dt
from tests.blends import blend


@pytest.mark.parametrize("seed", [1, 3])
def test_starts_go_on_while_there_is_no_point(seed):
    """That of blend 3 ends where its floors are missed, that of blend 1 does not (elsewhere it may)."""
    one, more = (
        dt.solve(blend(seed), dt.SequentialLinear(starts=1, until_feasible=on), time_limit=60, log=False)
        for on in (False, True)
    )
    assert one.iterations == 1
    assert more.x is not None
    assert (more.iterations > 1) is (one.x is None)


def test_starts_lose_patience_where_there_is_no_point_to_be_found():
    problem = dt.Problem(dt.Mip(cost=[1.0, 0.0], lower=[0.0, 20.0], upper=[3.0, 30.0]))
    problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])  # at most 9
    result = dt.solve(problem, dt.SequentialLinear(starts=1, patience=3, until_feasible=True), log=False)
    assert result.x is None
    assert result.iterations <= 3
