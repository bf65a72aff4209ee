"""Weighted sums of the largest numbers, as values, ranges and graphs."""

import numpy as np
import pytest

from dovetail.networks.arithmetic import FLOAT32
from dovetail.networks.program import Recording
from tests.networks.graph_values import values as graph_values


def recorded(count, shares):
    recording = Recording(2 * count)
    rows = np.random.default_rng(count).permutation(2 * count).reshape(2, count)
    return recording.program(recording.largest(rows, np.asarray(shares))), rows


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 11])
def test_values_and_graphs_are_sums_of_sorted_numbers(count):
    rng = np.random.default_rng(0)
    for wanted in {1, min(2, count), (count + 1) // 2, count}:
        shares = np.sort(rng.uniform(size=wanted))[::-1]
        program, rows = recorded(count, shares)
        X = rng.normal(size=(50, 2 * count))
        truth = np.sort(X[:, rows], axis=2)[:, :, ::-1][:, :, :wanted] @ shares
        assert np.allclose(program.values(X), truth, rtol=0, atol=1e-14)
        assert np.allclose(graph_values(program.graph(), X), truth, rtol=0, atol=1e-13)


def test_ranges_and_errors_hold():
    rng = np.random.default_rng(1)
    program, rows = recorded(6, [0.5, 0.5])
    X = rng.normal(size=(200, 12))
    low, high, error = program.errors(FLOAT32, X - 0.1, X + 0.1)
    near = program.values(X + rng.uniform(-0.1, 0.1, X.shape))
    assert np.all((low <= near) & (near <= high))
    exact, rounded = X[:, rows], X.astype(np.float32)[:, rows]
    said = np.sort(rounded, axis=2)[:, :, -2:].mean(axis=2, dtype=np.float32)
    assert np.all(np.abs(said - np.sort(exact, axis=2)[:, :, -2:].mean(axis=2)) <= error)


def test_a_maximum_takes_one_comparison_less_than_numbers():
    program, _ = recorded(8, [1.0])
    relus = [
        step.size for step in program.graph().steps if step.operation.__class__.__name__ == "Elementwise"
    ]
    assert sum(relus) == 2 * 7
