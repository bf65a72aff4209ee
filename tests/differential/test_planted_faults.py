"""The suite of bounds is worth something: faults that are planted in the proofs are heard.

Each is small, and of a kind that has been seen or feared: a plane a hair too high, planes in float32, a
branch left out, rows that were not widened. Without the fault nothing is said of the same cases.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

import dovetail as dt
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.planes.pool import Pool
from dovetail.methods.branching import InputBranching
from tests.conftest import volume
from tests.differential.claims import ACCEPTED, Count, judge
from tests.differential.proof_case import Case, Tied, state
from tests.differential.proof_cases import make

CASES = (41, 3, 17, 2)
"""A ReLU network on a box, a ball, a sigmoid, a simplex: input branching closes them in seconds."""


def heard():
    """Of the cases up to the first in which something is wrong."""
    count = Count()
    for seed in CASES:
        if not count.wrong:
            count.add(judge(make(seed), InputBranching(), room=ACCEPTED, time_limit=60.0, deaf_only=True))
    return count


@volume("the differential runs are the same without faults")
def test_nothing_is_wrong_without_them():
    count = heard()
    assert count.wrong == []
    assert count.beyond_host > 0, "a suite without proofs tests nothing"


def off_by(amount):
    own = NetworkPlanes.planes

    def planes(self, *args, **named):
        found = own(self, *args, **named)
        return replace(found, offset=found.offset + amount)

    return planes


def test_a_plane_off_by_a_hair(monkeypatch):
    monkeypatch.setattr(NetworkPlanes, "planes", off_by(1e-5))
    assert heard().wrong


def test_planes_in_float32(monkeypatch):
    own = NetworkPlanes.planes

    def coarse(self, *args, **named):
        found = own(self, *args, **named)
        up = torch.tensor(1e-6)  # what single precision is off by on networks like these
        return replace(found, offset=found.offset.float().double() + up * (1.0 + found.offset.abs()))

    monkeypatch.setattr(NetworkPlanes, "planes", coarse)
    assert heard().wrong


def test_a_branch_left_out(monkeypatch):
    own = Pool.add

    def half(self, lower, upper, bound):
        kept = (len(bound) + 1) // 2
        own(self, lower[:kept], upper[:kept], bound[:kept])

    monkeypatch.setattr(Pool, "add", half)
    assert heard().wrong


def flat_case():
    """The largest x whose network, which hardly rises, stays below a limit: a tolerance goes a long way."""
    case = Case(0, "box", ["relu"])
    case.free = case.inputs = [case.column(-1.0, 1.0, cost=-1.0)]
    net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).double()
    with torch.no_grad():
        for parameter, values in zip(
            net.parameters(), ([[1.0], [-1.0]], [0.1, 0.1], [[0.01, -0.01]], [0.0]), strict=True
        ):
            parameter.copy_(torch.tensor(values))
    output = case.column(-1.0, 1.0)
    case.tied = [Tied(net, torch.float64, np.array([[0]]), np.array([[output]]), False)]
    case.rows = [({output: 1.0}, -np.inf, 0.005)]
    state(case)
    return case


def test_rows_that_were_not_widened(monkeypatch):
    case = flat_case()
    options = {"room": ACCEPTED, "time_limit": 60.0, "deaf_only": True}
    right = judge(case, InputBranching(), **options)
    assert right.solves == 1
    assert right.wrong == []
    monkeypatch.setattr(dt.Mip, "loosened", lambda self, *_: self)
    assert judge(case, InputBranching(), **options).wrong
