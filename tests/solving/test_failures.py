"""Parts that fail before, beside and after the search; and errors of the user's own, which are raised."""

import io

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.core.description import Description
from dovetail.run.failures import Failure
from dovetail.solving import concurrent as concurrent_file
from dovetail.solving import host as host_file
from dovetail.solving import job as job_file
from dovetail.solving import packing as packing_file
from tests.small import bowl, knapsack

QUICK = dt.Auto(effort=1)


@pytest.fixture(autouse=True)
def not_strict(monkeypatch):
    monkeypatch.delenv("DOVETAIL_STRICT", raising=False)


def fails(*_, **__):
    raise RuntimeError("made to fail")


def line(predictor):
    """The least of x / 10 + y over x in [-1, 1], where the predictor says y."""
    problem = dt.Problem(dt.Mip(cost=[0.1, 1.0], lower=[-1.0, -9.0], upper=[1.0, 9.0]))
    problem.add_predictor(predictor, [0], [1])
    return problem


# --- around the search --------------------------------------------------------------------------------


PARTS = {
    "analysis of the host": (host_file, "_analyse"),
    "search for open inputs": (job_file, "open_inputs"),
    "search for a solution that tolerates rounding": (job_file, "clear"),
    "last check": (job_file, "check"),
    "look at training ranges": (packing_file, "extrapolations"),
    "hints": (packing_file, "hints"),
    "facts for the report": (job_file.ProblemFacts, "of"),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("strict", [False, True])
def test_a_part_beside_the_search(name, strict, monkeypatch):
    where, what = PARTS[name]
    monkeypatch.setattr(where, what, fails)
    log = io.StringIO()
    if strict:
        monkeypatch.setenv("DOVETAIL_STRICT", "1")
        with pytest.raises(RuntimeError, match="made to fail"):
            dt.solve(knapsack(), QUICK, log=log)
        return
    result = dt.solve(knapsack(), QUICK, log=log)
    assert result.failures == (Failure(name, "RuntimeError", "made to fail"),)
    assert result.status == "optimal" and result.objective == -4.0
    assert result.violation.within()
    assert result.message.endswith(
        f"1 part failed, and the solve continued without: {name} (RuntimeError: made to fail)"
    )
    assert f"failed: {name} (RuntimeError: made to fail)" in " ".join(log.getvalue().split())
    assert dt.Result.from_json(result.to_json()).failures == result.failures


def test_the_page_and_the_end_of_the_log_name_what_failed(monkeypatch, tmp_path):
    monkeypatch.setattr(packing_file, "hints", fails)
    log = io.StringIO()
    result = dt.solve(knapsack(), QUICK, log=log)
    assert "failed hints (RuntimeError: made to fail): the solve continued without it" in " ".join(
        log.getvalue().split()
    )
    page = result.report(tmp_path / "page.html").read_text()
    assert "A part failed, and the solve continued without it: hints (RuntimeError: made to fail)." in page


def test_a_certificate_that_fails_is_none(monkeypatch, caplog):
    monkeypatch.setattr(packing_file, "certify", fails)
    assert dt.solve(knapsack(), QUICK, log=False).certificate is None
    assert caplog.messages == ["certificate (RuntimeError: made to fail)"]


def test_processes_that_cannot_be_started(monkeypatch):
    monkeypatch.setattr(concurrent_file, "_worthwhile", lambda *_: True)
    monkeypatch.setattr(concurrent_file, "_begun", fails)
    result = dt.solve(knapsack(), QUICK, log=False)
    assert [failure.part for failure in result.failures] == ["start of concurrent solves"]
    assert result.status == "optimal" and result.objective == -4.0


def test_nothing_failed():
    result = dt.solve(knapsack(), QUICK, log=False)
    assert result.failures == () and "failed" not in result.message


# --- methods by name ----------------------------------------------------------------------------------


def test_a_method_that_fails_leaves_the_best_point(monkeypatch):
    from dovetail.coupling.augmented_lagrangian import AugmentedLagrangian

    true_step, steps = AugmentedLagrangian.mip_step, []

    def third_time_unlucky(self, *arguments):
        steps.append(1)
        if len(steps) == 3:
            raise IndexError("it broke")
        return true_step(self, *arguments)

    monkeypatch.setattr(AugmentedLagrangian, "mip_step", third_time_unlucky)
    problem = bowl()
    result = dt.solve(problem, "dual-decomposition", log=False)
    assert (result.status, result.stop_reason) == ("feasible", "error")
    assert dt.check(problem, result.x).within()
    assert result.failures == (Failure("dual-decomposition", "IndexError", "it broke"),)


def test_a_method_that_fails_without_a_point(monkeypatch):
    monkeypatch.setattr(dt.SequentialLinear, "solve", fails)
    monkeypatch.setattr("dovetail.run.incumbent.Incumbent.offer", lambda *_, **__: np.nan)
    result = dt.solve(bowl(), "sequential-linear", log=False)
    assert (result.status, result.stop_reason, result.x) == ("error", "error", None)
    assert "sequential-linear (RuntimeError: made to fail)" in result.message


def test_what_a_method_cannot_take_is_the_user_s_to_know():
    with pytest.raises(dt.UnsupportedError):
        dt.solve(knapsack(), dt.DualDecomposition(engine="piqp"), log=False)


def test_a_method_of_the_user_s_own_raises():
    class Mine:
        name = "mine"

        def solve(self, context):
            raise IndexError("my mistake")

    with pytest.raises(IndexError, match="my mistake"):
        dt.solve(knapsack(), Mine(), log=False)


# --- the user's own errors ----------------------------------------------------------------------------


def tired(error, after=20):
    """A function that fails for good after some calls."""
    calls = []

    def predict(X):
        calls.append(len(X))
        if len(calls) > after:
            raise error
        return np.abs(X - 0.5)

    return predict


class Slotted:
    """A predictor that has no room for other methods."""

    __slots__ = ("function",)

    def __init__(self, function):
        self.function = function

    def predict(self, X):
        return self.function(X)

    def snapshot(self, device):
        return lambda U: torch.abs(U - 0.5) + 0.0 * float(self.predict(U.detach().numpy()).sum())

    def describe(self, X):
        return Description("slotted")


@pytest.mark.parametrize("made", [lambda function: function, Slotted], ids=["function", "slotted"])
@pytest.mark.parametrize(
    "error", [RuntimeError("tired"), dt.PredictorError("tired"), KeyError("tired")], ids=repr
)
@pytest.mark.parametrize("method", [QUICK, "dual-decomposition"], ids=["auto", "dual"])
def test_an_error_of_a_predictor_reaches_the_user(made, error, method):
    with pytest.raises(type(error), match="tired") as raised:
        dt.solve(line(made(tired(error))), method, log=False)
    assert raised.traceback[-1].name == "predict"
    result = raised.value.result
    assert result.x is not None and result.stop_reason == "error" and result.failures == ()


def test_a_predictor_that_runs_out_of_memory_costs_the_parts_that_asked_for_too_much():
    """Checks of a point ask about few rows, and pass."""

    class Small(torch.nn.Module):
        def forward(self, x):
            if len(x) > 40:
                raise MemoryError("none left")
            return (x - 0.5).abs()

    problem = line(Small())
    result = dt.solve(problem, QUICK, log=False)
    assert result.status == "feasible" and dt.check(problem, result.x).within()
    assert {failure.error for failure in result.failures} == {"MemoryError"}


def test_a_predictor_without_memory_is_no_crash():
    """The last check fails, too: what the check saw before stands."""
    problem = line(tired(MemoryError("none left")))
    result = dt.solve(problem, QUICK, log=False)
    assert result.x is not None and result.violation.within()
    assert {failure.error for failure in result.failures} == {"MemoryError"}


def test_an_error_of_the_callback_reaches_the_user():
    def callback(event):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as raised:
        dt.solve(bowl(), QUICK, callback=callback, log=False)
    assert raised.value.result.failures == ()


def test_an_error_while_a_predictor_is_traced_is_not_the_user_s(monkeypatch):
    """It costs what needs the network operation by operation, and nothing else."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).double()
    problem = line(net)
    truth = dt.solve(problem, QUICK, log=False)
    block = problem.blocks[0]
    for name in ("layers", "program"):
        if getattr(block.description, name) is not None:
            object.__setattr__(block.description, name, fails)
    result = dt.solve(problem, QUICK, log=False)
    assert result.failures
    assert dt.check(problem, result.x).within()
    assert result.objective == pytest.approx(truth.objective, abs=1e-4)
