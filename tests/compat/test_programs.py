"""Thirty programs in the peers' style, run with the peer and with dovetail in its place: answers as good.

The peer's proven optimum is the judge, and dovetail's target: a solve ends when it is reached.
"""

import importlib
import os

import pytest
import torch

import dovetail as dt
from tests.compat import gurobi_programs, scip_programs

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


def both(peer, program, name):
    theirs = importlib.import_module(peer)
    for module in ("sklearn", "torch", "onnx", "xgboost", "lightgbm", "exceptions"):
        importlib.import_module(f"{peer}.{module}")
    if peer == "gurobi_ml":
        importlib.import_module("gurobi_ml.keras")
    senses = []

    def optimize(model):
        model.optimize()
        senses.append(model.ModelSense if peer == "gurobi_ml" else -1)

    with torch.no_grad():  # without which the peer cannot ask a Keras model on torch for its error
        best, _ = program(theirs, optimize)
    room = LOOSE.get(name, TOLERANCE) * (1.0 + abs(best))
    worst = best + senses[0] * room

    def solve(model):
        dt.solve(model, time_limit=20, target=worst, log=False)

    ours, error = program(importlib.import_module(f"dovetail.compat.{peer}"), solve)
    assert senses[0] * (ours - best) <= room, "worse than the peer"
    assert senses[0] * (best - ours) <= 10 * room, "too good to be true"
    assert error <= 1e-5


@pytest.mark.parametrize("name", gurobi_programs.PROGRAMS)
def test_gurobi_machinelearning(name, capsys):
    both("gurobi_ml", gurobi_programs.PROGRAMS[name], name)


@pytest.mark.parametrize("name", scip_programs.PROGRAMS)
def test_pyscipopt_ml(name, capsys):
    both("pyscipopt_ml", scip_programs.PROGRAMS[name], name)
