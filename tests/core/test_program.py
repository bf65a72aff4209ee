"""Programs: numbers by their places."""

import numpy as np
import pytest

from dovetail.core.errors import UnsupportedError
from dovetail.core.program import Recording


def example():
    """Two inputs; their sum and difference; a product; the larger; a softmax."""
    recording = Recording(2)
    both = recording.sums(
        np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([1.0, 1.0, 1.0, -1.0]), np.array([0.0, 0.5])
    )
    product = recording.products(both[:1], both[1:])
    larger = recording.maxima(both[None])
    shares = recording.shares(np.concatenate([product, larger])[None], logarithm=False)
    return recording, shares


def test_values():
    recording, shares = example()
    X = np.array([[1.0, 2.0], [-3.0, 0.25]])
    a, b = X.sum(axis=1), X[:, 0] - X[:, 1] + 0.5
    powers = np.exp(np.stack([a * b, np.maximum(a, b)], axis=1))
    np.testing.assert_allclose(
        recording.program(shares).values(X), powers / powers.sum(axis=1, keepdims=True), atol=1e-15
    )


def test_what_rises_is_dropped_from_a_class():
    recording, shares = example()
    program, kind = recording.program(shares).without_last(0.0)
    assert kind == "softmax" and len(program.operations) == 3 and len(program.outputs) == 2
    assert recording.program(shares[::-1]).without_last(0.0)[1] == ""  # in another order
    assert recording.program(shares[:1]).without_last(0.5)[1] == ""  # one of several


@pytest.mark.parametrize(
    ("kind", "threshold", "dropped"), [("sigmoid", 0.5, True), ("sigmoid", 1.0, False), ("tanh", 0.5, False)]
)
def test_a_single_output_loses_a_sigmoid_only(kind, threshold, dropped):
    recording = Recording(1)
    outputs = recording.functions(kind, np.array([0]))
    program, found = recording.program(outputs).without_last(threshold)
    assert found == (kind if dropped else "") and len(program.operations) == (0 if dropped else 1)


def test_endless_constants_are_refused():
    with pytest.raises(UnsupportedError, match="not finite"):
        Recording(1).constants(np.array([np.inf]))
    with pytest.raises(UnsupportedError, match="not finite"):
        Recording(1).sums(np.zeros(1, int), np.zeros(1, int), np.ones(1), np.array([-np.inf]))
