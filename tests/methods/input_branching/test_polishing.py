"""Descents from points of boxes: to a point where the LP's own is none, within a share of the time."""

import numpy as np
import torch

from dovetail.methods.input_branching import polishing
from dovetail.methods.input_branching.polishing import Polishing
from tests.blends import blend
from tests.contexts import context_of


def test_a_point_that_misses_its_floors_leads_to_one_that_does_not():
    problem = blend(0)
    context = context_of(problem)
    even = np.concatenate([np.full(8, 0.25), np.full(4, 2.75), problem.mip.lower[12:]])
    with torch.no_grad():  # as boxes are
        Polishing(context).run(even, context.budget)
    assert context.incumbent.x is not None
    assert context.incumbent.source == "boxes"


def test_descents_keep_to_their_share(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(polishing.time, "perf_counter", lambda: clock[0])
    context = context_of(blend(0))
    descents = Polishing(context)
    monkeypatch.setattr(descents, "_descend", lambda point, budget: clock.__setitem__(0, clock[0] + 1.0))
    assert not descents.due()
    clock[0] = 0.3
    assert descents.due()  # a quarter of the time, while there is no point
    descents.run(np.zeros(14), context.budget)
    assert not descents.due()
    clock[0] = 8.1
    assert descents.due()


def test_a_leaf_whose_point_would_be_lost_does_not_wait(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(polishing.time, "perf_counter", lambda: clock[0])
    context = context_of(blend(0))
    descents = Polishing(context)
    monkeypatch.setattr(descents, "_descend", lambda point, budget: clock.__setitem__(0, clock[0] + 1.0))
    for _ in range(2):  # no point is known
        assert not descents.due() and descents.due(lost=True)
        descents.run(np.zeros(14), context.budget, lost=True)
    context.incumbent.x = np.zeros(14)
    assert not descents.due(lost=True)  # another is one too many
    assert Polishing(context).due(lost=True)
