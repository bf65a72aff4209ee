"""Cells that are left out by reduced costs hold nothing better: scipy's LP over each of them says so."""

import numpy as np
from scipy.optimize import linprog

from dovetail.methods.cell_branching.node import Node, Prices, tighten
from dovetail.structure.trees import InputCells
from tests.conftest import FULL

NONE = np.empty(0, dtype=np.int64)


def test_what_is_left_out_costs_more():
    left_out = kept = 0
    for seed in range(40 if FULL else 12):
        rng = np.random.default_rng(seed)
        n, rows = 5, 3
        A, cost = rng.normal(size=(rows, n)), rng.normal(size=n)
        side = A @ rng.uniform(-1.0, 1.0, n) + 0.3
        lower, upper = np.full(n, -2.0), np.full(n, 2.0)
        cuts = [np.sort(rng.uniform(-2.0, 2.0, 6)) for _ in range(3)]
        cells = InputCells.of(np.arange(3), cuts, lower[:3], upper[:3], np.zeros(3, dtype=bool))
        answer = linprog(cost, A, side, bounds=np.column_stack([lower, upper]))
        multipliers = answer.ineqlin.marginals
        reduced, noise = cost - multipliers @ A, np.abs(cost) + np.abs(multipliers) @ np.abs(A)
        node = Node(answer.fun, 0, np.zeros(3, dtype=np.int64), cells.counts - 1, lower, upper)
        room = rng.uniform(0.0, 2.0)
        tighten(cells, NONE, node, Prices(reduced, noise, room))
        for k in range(3):
            for cell in range(cells.counts[k]):
                bounds = np.column_stack([lower, upper])
                bounds[k] = cells.low[cells.first[k] + cell], cells.high[cells.first[k] + cell]
                inside = node.low[k] <= cell <= node.high[k]
                kept, left_out = kept + inside, left_out + (not inside)
                best = linprog(cost, A, side, bounds=bounds)
                assert inside or best.status == 2 or best.fun >= answer.fun + room - 1e-9, (seed, k, cell)
    assert kept > 30 and left_out > 30


def test_without_a_best_point_nothing_is_left_out():
    cells = InputCells.of(
        np.arange(1), [np.array([0.0])], np.array([-1.0]), np.array([1.0]), np.array([False])
    )
    node = Node(0.0, 0, np.array([0]), np.array([1]), np.array([-1.0]), np.array([1.0]))
    tighten(cells, NONE, node, Prices(np.array([1.0]), np.array([1.0]), np.inf))
    assert (node.low[0], node.high[0]) == (0, 1)
    tighten(cells, NONE, node, Prices(np.array([1.0]), np.array([1.0]), 0.5))
    assert (node.low[0], node.high[0]) == (0, 0)


def test_a_price_that_is_rounding_says_nothing():
    cells = InputCells.of(
        np.arange(1), [np.array([0.0])], np.array([-1.0]), np.array([1.0]), np.array([False])
    )
    node = Node(0.0, 0, np.array([0]), np.array([1]), np.array([-1.0]), np.array([1.0]))
    tighten(cells, NONE, node, Prices(np.array([1e-12]), np.array([1.0]), 1e-15))
    assert (node.low[0], node.high[0]) == (0, 1)
