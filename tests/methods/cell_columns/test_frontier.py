"""The boxes of a component: costs rounded down, none that a closed one stands for, engines that fail."""

from fractions import Fraction

import numpy as np
import pytest

from dovetail.branching import tree_ensembles as ranges
from dovetail.core.errors import EngineError
from dovetail.methods.cell_columns.frontier import Frontier, tree_components
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.run.budget import Budget
from dovetail.structure.structure import structure_of
from tests.contexts import context_of
from tests.methods.cell_columns.test_method import plant

PRICES = np.append(1.0, np.full(4, 0.37))
"""Of the cost, and of the coupling rows."""


@pytest.fixture(scope="module")
def component():
    problem = plant()
    structure = context_of(problem).once(structure_of)
    return next(tree_components(structure.loose_trees, structure.proved_parts))


def refined(component, times):
    frontier, budget = Frontier(component, seed=0, threads=1), Budget(60.0)
    rest = frontier.least_active(PRICES, budget)
    for _ in range(times):
        frontier.refine(6, PRICES, rest, budget)
    return frontier


def test_no_box_costs_less_than_it_is_said_to(component):
    frontier, prices = refined(component, 3), np.array([1.0, 0.1, 1e9, 1e-9, 0.7])
    for key, use in zip(frontier.keys(prices), frontier.use, strict=True):
        assert Fraction(key) <= sum(Fraction(u) * Fraction(p) for u, p in zip(use, prices, strict=True))


def test_a_closed_box_stands_for_all_that_use_no_less(component):
    frontier = refined(component, 30)
    assert frontier.ever_closed and np.any(frontier.closed)
    for k in np.flatnonzero(frontier.closed):
        no_less = np.all(frontier.use[k] <= frontier.use, axis=1)
        assert np.flatnonzero(no_less).tolist() == [k]


def test_known_points_are_points_of_the_component(component):
    frontier, host = refined(component, 30), component.trees.host
    assert len(frontier.points) > 1
    for x, used in zip(frontier.points, frontier.used, strict=True):
        said = component.trees.problem.predict(x)
        assert np.allclose(said, x, rtol=0.0, atol=1e-6), "outputs are the predictor's"
        assert np.all(host.A @ x >= host.row_lower - 2e-6) and np.all(host.A @ x <= host.row_upper + 2e-6)
        assert np.allclose(component.terms @ x, used, rtol=0.0, atol=1e-6)


def test_an_engine_that_fails_closes_nothing_and_ends_nothing(component, monkeypatch):
    def failing(self, *args):
        raise EngineError("HiGHS ended with kSolveError; its answer is not used.")

    monkeypatch.setattr(LoadedHighs, "run", failing)
    frontier = refined(component, 3)
    assert frontier.points == [] and frontier.size > 1


def test_a_few_boxes_at_a_time_are_as_all_at_once(component, monkeypatch):
    frontier, (sample,) = refined(component, 4), component.trees.samples
    low, high = (frontier._samples.cells_of(ends) for ends in (frontier.lower, frontier.upper))
    at_once = ranges.ranges_in(sample, low, high)
    monkeypatch.setattr(ranges, "CELLS", 1)
    for one, other in zip(at_once, ranges.ranges_in(sample, low, high), strict=True):
        assert np.allclose(one, other)
    none = ranges.ranges_in(sample, low[:0], high[:0])
    assert [len(part) for part in none] == [0, 0]
