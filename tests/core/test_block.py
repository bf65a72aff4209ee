"""What decides a class."""

import numpy as np

from dovetail.core.block import classes_of


def test_a_single_value_counts_from_its_threshold_on():
    values = np.array([[0.2], [0.5], [np.nextafter(0.5, 0.0)]])
    assert classes_of(values, 0.5).tolist() == [[0.0], [1.0], [0.0]]
    assert classes_of(np.array([[0.0], [-1e-300]])).tolist() == [[1.0], [0.0]]


def test_of_several_the_largest_and_of_equal_ones_the_first():
    values = np.array([[1.0, 3.0, 2.0], [2.0, 2.0, 1.0]])
    assert classes_of(values, 0.5).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
