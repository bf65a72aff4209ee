"""A search that brings nothing leaves its time to others: by the clock of the solve, and in its own words."""

import math
from types import SimpleNamespace

import numpy as np

from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.methods.integer_search import IntegerLocalSearch, local_search
from dovetail.methods.integer_search.local_search import LocalSearch
from dovetail.methods.integer_search.method import LEAST, Yielding
from dovetail.run.budget import StopReason
from tests.blends import blend
from tests.contexts import context_of


def at(seconds, objective=math.nan, gains=()):
    trace = [SimpleNamespace(elapsed=gain, source="x") for gain in gains]
    monitor = SimpleNamespace(elapsed=seconds, trace=trace)
    return SimpleNamespace(monitor=monitor, incumbent=SimpleNamespace(objective=objective))


def test_it_waits_as_long_as_the_last_gain_took():
    context = at(6.0, 3.0, gains=(1.0, 4.0))
    search = Yielding(context)
    search.begin()
    context.monitor.elapsed = 9.9
    assert not search.due()
    context.monitor.elapsed, context.incumbent.objective = 9.95, 2.0
    assert not search.due()  # a gain
    context.monitor.elapsed = 19.8
    assert not search.due()
    context.monitor.elapsed = 19.95
    assert search.due()


def test_phases_count_together_until_others_gain():
    context = at(5.0, 3.0, gains=(4.0,))
    search = Yielding(context)
    search.begin()
    context.monitor.elapsed = 8.0
    search.end()
    context.monitor.elapsed = 20.0
    search.begin()
    assert not search.due()
    context.monitor.elapsed = 21.1
    assert search.due()
    search.end()
    context.monitor.elapsed, context.incumbent.objective = 30.0, 2.0
    search.begin()
    assert not search.due()


def test_it_does_not_yield_without_a_point_nor_at_once():
    context = at(0.0)
    search = Yielding(context)
    search.begin()
    context.monitor.elapsed = 50.0
    assert not search.due()
    context = at(0.0, 3.0)
    search = Yielding(context)
    search.begin()
    context.monitor.elapsed = 0.9 * LEAST
    assert not search.due()
    context.monitor.elapsed = 1.1 * LEAST
    assert search.due()


def test_a_search_that_yields_says_so_and_may_go_on(monkeypatch):
    monkeypatch.setattr(Yielding, "due", lambda self: True)
    context = context_of(blend(0))
    outcome = IntegerLocalSearch(yields=True).solve(context)
    assert outcome.stop_reason is StopReason.STALLED and outcome.yielded
    assert outcome.iterations == 1
    assert "no gain" in outcome.message
    assert IntegerLocalSearch(rounds=2, kicks=0).solve(context).stop_reason is StopReason.ITERATIONS


def test_a_batch_is_no_larger_with_many_samples(monkeypatch):
    """Two samples: as many neighbours as make so many questions, and never fewer than a few."""
    context = context_of(blend(0))
    scaled, asked = context.once(scaled_problem), []
    merits = local_search.CompletedMerit.of
    monkeypatch.setattr(
        local_search.CompletedMerit, "of", lambda self, Z: asked.append(len(Z)) or merits(self, Z)
    )
    monkeypatch.setattr(local_search, "FEWEST_NEIGHBOURS", 3)
    for most in (4, 10):
        monkeypatch.setattr(local_search, "MOST_SAMPLES", most)
        asked.clear()
        LocalSearch(context, scaled).run(np.full(14, 0.5), 0, context.budget, "test")
        assert max(asked) == max(3, most // 2)
