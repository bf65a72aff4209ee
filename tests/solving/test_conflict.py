"""A smallest set of parts of an infeasible problem, against all points of small problems."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.core.conflict import Conflict, ConflictPart
from tests.conftest import FULL

RANDOM = 60 if FULL else 8
FAR = 25
"""A variable without bounds is tried up to here."""


def made(seed, limits=True):
    """Three integers, the answer of a network to the first two, and rows that are often too much."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1)).double()
    A = rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0], size=(4, 4)) * (rng.uniform(size=(4, 4)) < 0.7)
    point = np.r_[rng.integers(0, 3, 3), rng.normal()]
    row_lower = A @ point + rng.uniform(-3.0, 2.0, 4)
    mip = dt.Mip(
        np.zeros(4), A, row_lower, np.inf, [0.0, 0.0, 0.0, -3.0], [2.0, 2.0, 2.0, 3.0],
        [True, True, True, False], names=["a", "b", "c", "y"], row_names=[f"r{i}" for i in range(4)],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(net, ["a", "b"], ["y"], name="net")
    return problem, net


def feasible(problem, net, parts):
    """Whether these parts are satisfied by any point; the inputs of the network keep their bounds if the
    network is among the parts. Without the network its output is as free as its bounds."""
    mip, kinds = problem.mip, {(part.kind, part.name) for part in parts}
    known = ("predictor", "net") in kinds
    rows = [i for i in range(4) if ("constraint", f"r{i}") in kinds]
    ranges, y = [], [-1e3, 1e3]
    for j, name in enumerate("abcy"):
        own = known and name in "ab"
        lower = mip.lower[j] if own or ("lower bound", name) in kinds else -FAR
        upper = mip.upper[j] if own or ("upper bound", name) in kinds else FAR
        if name == "y":
            y = [max(y[0], lower), min(y[1], upper)] if lower > -FAR or upper < FAR else y
        else:
            ranges.append(np.arange(lower, upper + 1))
    points = np.array([*itertools.product(*ranges)])
    low, high = np.full(len(points), y[0]), np.full(len(points), y[1])
    if known:
        with torch.no_grad():
            answer = net(torch.tensor(points[:, :2])).numpy()[:, 0]
        low, high = np.maximum(low, answer), np.minimum(high, answer)
    for i in rows:
        rest, a = mip.row_lower[i] - points @ mip.A.toarray()[i, :3], mip.A.toarray()[i, 3]
        if a > 0:
            low = np.maximum(low, rest / a)
        elif a < 0:
            high = np.minimum(high, rest / a)
        else:
            high = np.where(rest > 0, -np.inf, high)
    return bool(np.any(low <= high + 1e-9))


@pytest.mark.parametrize("seed", range(RANDOM))
def test_a_conflict_is_infeasible_and_nothing_of_it_can_be_left_out(seed):
    problem, net = made(seed)
    result = dt.solve(problem, time_limit=20, log=False)
    every = [ConflictPart("constraint", f"r{i}") for i in range(4)] + [ConflictPart("predictor", "net")]
    every += [ConflictPart(f"{side} bound", name, 0.0) for side in ("lower", "upper") for name in "abcy"]
    assert (result.status == "infeasible") == (not feasible(problem, net, every))
    if result.status != "infeasible":
        assert result.conflict is None
        return
    parts = result.conflict.parts
    assert result.conflict.minimal
    assert not feasible(problem, net, parts)
    for k in range(len(parts)):
        assert feasible(problem, net, parts[:k] + parts[k + 1 :]), parts[k]


def test_names_are_those_of_the_user():
    mip = dt.Mip(
        [0.0, 0.0, 0.0], A=[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], row_lower=[0.0, 5.0], row_upper=np.inf,
        upper=[1.0, 1.0, 9.0],
        names=["heat", "flow", "yield"], row_names=["other", "demand"],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(torch.nn.Linear(2, 1).double(), ["heat", "flow"], ["yield"], name="plant")
    result = dt.solve(problem, log=False)
    conflict = result.conflict
    assert (conflict.constraints, conflict.bounds, conflict.predictors) == (["demand"], [], ["plant"])
    assert "constraint demand, predictor plant with the bounds of its inputs" in result.message
    assert dt.Result.from_json(result.to_json()).conflict == conflict
    assert replace(conflict, minimal=False).in_words.endswith("did not end)")


def test_samples_and_fixed_values_are_named():
    mip = dt.Mip([0.0] * 4, lower=[0.0, 2.0, 0.0, 3.0], upper=[1.0, 2.0, 9.0, 9.0])
    problem = dt.Problem(mip)
    problem.add_predictor(dt.Square(), inputs=[[0], [1]], outputs=[[2], [3]], name="square")
    assert dt.solve(problem, log=False).x is not None
    low = dt.Problem(replace(mip, upper=np.array([1.0, 2.0, 9.0, 3.5])))
    low.add_predictor(dt.Square(), inputs=[[0], [1]], outputs=[[2], [3]], name="square")
    found = dt.solve(low, log=False).conflict
    assert [*map(str, found.parts)] == ["x[3] <= 3.5", "predictor square (sample 1)"]
    alone = dt.Problem(
        dt.Mip([0.0, 0.0], A=[[1.0, 1.0]], row_lower=4.0, row_upper=9.0, lower=[2.0, 0.0], upper=[2.0, 1.0])
    )
    found = dt.solve(alone, log=False).conflict
    assert [*map(str, found.parts)] == ["row[0]", "x[1] <= 1", "x[0] = 2"]


def test_without_time_there_is_no_conflict():
    mip = dt.Mip([0.0, 0.0], A=[[1.0, 1.0]], row_lower=4.0, row_upper=9.0, upper=[1.0, 1.0])
    result = dt.solve(dt.Problem(mip), time_limit=0.0, log=False)
    assert result.conflict is None


def test_the_samples_of_a_predictor_are_named_together():
    parts = [
        ConflictPart("constraint", "total"),
        *(ConflictPart("predictor", "net", sample=k) for k in (0, 2)),
    ]
    assert str(Conflict(tuple(parts), minimal=True)) == "constraint total, predictor net (samples 0, 2)"


def test_many_parts_are_counted():
    many = Conflict(tuple(ConflictPart("constraint", f"r{k}") for k in range(20)), minimal=True)
    assert "constraint r11 and 8 more" in many.in_words
