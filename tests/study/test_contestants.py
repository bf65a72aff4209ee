"""What is kept of a solve: the fields that tables and verdicts read."""

import pytest

import dovetail as dt
from dovetail.testing.problems import busy
from dovetail_study.contestants import contest
from dovetail_study.experiment import BenchSettings, Run

KEPT = {
    "key", "experiment", "n", "method", "seed", "device", "limit", "status", "stop", "objective", "found",
    "raw", "bound", "bound_kind", "iterations", "best_at", "best_seconds", "residual", "engine", "seconds",
    "mip_seconds", "nn_seconds", "message",
}  # fmt: skip
OF_BASELINE = {
    "writing_seconds", "solving_seconds", "memory_gb", "memory_limit", "variables", "constraints", "scip",
    "end",
}  # fmt: skip
SETTINGS = BenchSettings(time_limit=20.0, baseline_limit=10.0, writing_limit=5.0, memory_limit=50.0)


def made(method, problem=None, **fields):
    run = Run("e1", (("n", 3),), method, 7, **fields)
    return contest(problem or busy(3), run, SETTINGS)[0]


@pytest.mark.parametrize(("method", "engine"), [("paper-scip", "scip"), ("ssg-one-step", None)])
def test_a_loop_says_what_solved_its_mip_steps(method, engine):
    row = made(method)
    assert set(row) == KEPT
    assert (row["engine"], row["limit"], row["seed"]) == (engine, 20.0, 7)
    assert row["bound_kind"] in ("proven", "estimate", "none")


def test_big_m_has_its_own_limits_and_fields():
    row = made("big-m", times=2.0)
    assert set(row) == KEPT | OF_BASELINE
    assert (row["engine"], row["limit"], row["memory_limit"]) == ("scip", 25.0, 50.0)
    assert row["found"] and row["best_seconds"] <= row["seconds"]


def test_a_refusal_is_a_row_without_an_outcome():
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=0.0, upper=[3.0, 9.0]))
    problem.add_predictor(lambda X: X**2 + 1.0, [0], [1])
    row = made("big-m", problem)
    assert (row["status"], row["end"], row["found"]) == ("refused", "refused", False)
    assert "seconds" not in row and "cannot be written out" in row["message"]


@pytest.mark.parametrize(("whole", "solving", "limit"), [(None, 20.0, 25.0), (99.0, None, 99.0)])
def test_writing_takes_nothing_from_scip_unless_they_share_their_time(monkeypatch, whole, solving, limit):
    asked = []
    monkeypatch.setattr(
        dt, "solve", lambda problem, method, **options: asked.append((method, options)) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        made("big-m", times=2.0, whole=whole)
    ((method, options),) = asked
    assert (method.solve_seconds, method.memory_limit, options["time_limit"]) == (solving, 50.0, limit)
    assert options["n_jobs"] == 1
