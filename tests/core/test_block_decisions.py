"""How clearly a block's classes are decided, and what its outputs are."""

import numpy as np
import pytest

import dovetail as dt
from tests.small import linear_net


def block_of(outputs, **options):
    """n samples of two features each, and so many outputs."""
    problem = dt.Problem(dt.Mip(np.zeros(2 * (2 + outputs)), lower=-9.0, upper=9.0))
    inputs, out = np.arange(4).reshape(2, 2), 4 + np.arange(2 * outputs).reshape(2, outputs)
    return problem.add_predictor(linear_net(np.ones((outputs, 2))), inputs, out, **options)


def test_a_regression_is_its_values():
    values = np.array([[0.5], [-2.0]])
    assert block_of(1).decode(values).tolist() == [[0.5], [-2.0]]


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_one_class_column_is_one_from_the_threshold_on(threshold):
    block = block_of(1, output_type="classification", threshold=threshold)
    values = threshold + np.array([[0.0], [-1e-12]])
    assert block.decode(values).tolist() == [[1.0], [0.0]]
    assert block.lead(values) == pytest.approx([0.0, 1e-12], abs=1e-15)


def test_of_equal_values_the_first_class_wins():
    block = block_of(3, output_type="classification")
    values = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    assert block.decode(values).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert block.lead(values).tolist() == [0.0, 2.0]


def test_samples_are_rows():
    assert block_of(1).samples == 2
