"""Programs in the peers' style, run with the peer and with dovetail in its place: answers as good.

The peer's proven optimum is the judge, and dovetail's target: a solve ends when it is reached.
"""

import importlib
import os

import pytest
import torch

import dovetail as dt
from tests.compat import gurobi_programs, highs_programs, linopy_programs, scip_programs, written_out
from tests.conftest import FULL

os.environ.setdefault("KERAS_BACKEND", "torch")

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TOLERANCE = 1e-4
"""The peers' answers are as exact as their solvers: margins at splits, tolerances of rows."""
LOOSE = {"logistic_probabilities": 0.05}
"""Where the peer's own formulation is an approximation: a logistic curve of straight pieces."""


def modules_of(peer):
    """The peer as its programs import it."""
    parts = ["sklearn", "torch", "onnx", "xgboost", "lightgbm", "exceptions"]
    for part in parts + ["keras"] * (peer == "gurobi_ml"):
        importlib.import_module(f"{peer}.{part}")
    return importlib.import_module(peer)


def answers(peer, program):
    """What the peer proves, what dovetail finds in its place and by how much its outputs are off; all of it
    turned so that less is better. A solve ends at the peer's value."""
    senses = []

    def optimize(model):
        model.optimize()
        senses.append(model.ModelSense if peer == "gurobi_ml" else -1)

    with torch.no_grad():  # without which the peer cannot ask a Keras model on torch for its error
        best, _ = program(modules_of(peer), optimize)
    (sense,) = set(senses)

    def solve(model):
        target = best + sense * room_of(program, best)
        dt.solve(model, time_limit=60, target=target, log=False)

    ours, error = program(importlib.import_module(f"dovetail.compat.{peer}"), solve)
    return sense * best, sense * ours, error


def room_of(program, best):
    return LOOSE.get(program.__name__, TOLERANCE) * (1.0 + abs(best))


PROGRAMS = [
    pytest.param(peer, program, id=f"{peer}-{name}")
    for peer, written in (("gurobi_ml", gurobi_programs), ("pyscipopt_ml", scip_programs))
    for name, program in written.PROGRAMS.items()
]


def test_there_are_thirty():
    assert len(PROGRAMS) >= 30 and len({param.id for param in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize(("peer", "program"), PROGRAMS if FULL else PROGRAMS[::2])
def test_the_answer_is_as_good_as_the_peers(peer, program, capsys):
    best, ours, error = answers(peer, program)
    room = room_of(program, best)
    assert ours <= best + room, "worse than the peer"
    assert ours >= best - 10 * room, "too good to be true"
    assert error <= 1e-5


WRITTEN_OUT = {
    "highspy": (highs_programs, written_out.Highspy, lambda h: h.run()),
    "linopy": (linopy_programs, written_out.Linopy, lambda m: m.solve("highs", output_flag=False)),
}
"""Tools without a peer: the predictor is written out by hand, and the tool's own solver is the judge."""

TOOLS = [(tool, name) for tool, (written, *_) in WRITTEN_OUT.items() for name in written.PROGRAMS]


@pytest.mark.parametrize(("tool", "name"), TOOLS if FULL else TOOLS[::2])
def test_the_answer_is_as_good_as_that_of_a_predictor_written_out(tool, name, capfd):
    written, by_hand, own_solver = WRITTEN_OUT[tool]
    program = written.PROGRAMS[name]
    best, its_error = program(by_hand, own_solver)
    ours, error = program(dt, lambda model: dt.solve(model, time_limit=60, gap=1e-5, log=False))
    assert ours == pytest.approx(best, rel=TOLERANCE, abs=TOLERANCE)
    assert error <= 1e-5 and its_error <= 1e-5
