"""The suite of bounds is worth something: faults that are planted in the proofs are heard.

Each is small, and of a kind that has been seen or feared: a plane a hair too high, planes in float32, a
branch left out. Without the fault nothing is said of the same cases.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching import plane_boxes
from dovetail.branching.tree import Tree
from dovetail.methods.branching import Branching
from tests.conftest import volume
from tests.differential.claims import EXACT, Count, judge
from tests.differential.proof_cases import make

CASES = (33, 37, 17, 23)
"""On a box, with integers, a sigmoid, with coupling constraints: branching closes each at once."""


def heard():
    """Of the cases up to the first in which something is wrong."""
    count = Count()
    for seed in CASES:
        if not count.wrong:
            count.add(judge(make(seed), Branching(), room=EXACT, time_limit=60.0, deaf_only=True))
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
    monkeypatch.setattr(Tree, "_planes_lead", lambda self, goal: self.planes is not None)
    own = plane_boxes.split

    def half(*boxes):
        lower, upper, score = own(*boxes)
        upper[len(upper) // 2 :] = -torch.inf
        return lower, upper, score

    monkeypatch.setattr(plane_boxes, "split", half)
    assert heard().wrong
