"""What is kept of big-M: every end has its word, and writing is told from solving."""

import pytest

import dovetail as dt
from dovetail.testing.problems import busy
from dovetail_study.contestants import baseline_fields
from tests.small import linear_net

FIELDS = {"writing_seconds", "solving_seconds", "memory_gb", "variables", "constraints", "scip", "end"}


def ramp(least: float) -> dt.Problem:
    """min x with y = x between `least` and 4, x between 0 and 1."""
    mip = dt.Mip(
        cost=[1.0, 0.0],
        A=[[0.0, 1.0]],
        row_lower=[least],
        row_upper=[4.0],
        lower=[0.0, -9.0],
        upper=[1.0, 9.0],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    return problem


@pytest.mark.parametrize(
    ("problem", "method", "limit", "end"),
    [
        (ramp(0.5), dt.BigM(), 60.0, "proved"),
        (ramp(3.0), dt.BigM(), 60.0, "infeasible"),
        (busy(60), dt.BigM(solve_seconds=0.5, margin=1e-4), 60.0, "time"),
        (busy(3), dt.BigM(solve_seconds=60.0), 60.0, "writing"),
        (busy(3), dt.BigM(memory_limit=0.01), 60.0, "memory"),
        (busy(3), dt.BigM(margin=1e-4), 60.0, "other"),
    ],
)
def test_every_end_has_its_word(problem, method, limit, end):
    fields = baseline_fields(dt.solve(problem, method, time_limit=limit, log=False))
    assert set(fields) == FIELDS
    assert fields["end"] == end
    began = end not in ("writing", "memory")
    assert fields["memory_gb"] > 0.01 and fields["writing_seconds"] >= 0.0
    for name in ("solving_seconds", "variables", "constraints", "scip"):
        assert (fields[name] is not None) == began


def test_a_refusal_has_all_fields_too():
    fields = baseline_fields(None)
    assert set(fields) == FIELDS
    assert {name for name, value in fields.items() if value is not None} == {"end"}
    assert fields["end"] == "refused"


def test_a_host_that_is_infeasible_leaves_nothing_to_write():
    mip = dt.Mip(cost=[1.0, 0.0], A=[[1.0, 0.0]], row_lower=[2.0], row_upper=[3.0], upper=1.0)
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    fields = baseline_fields(dt.solve(problem, "big-m", log=False))
    assert fields["end"] == "other" and fields["writing_seconds"] is None
