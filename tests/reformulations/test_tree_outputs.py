"""Rows of classes over leaf weights: no choice of leaves is cut off, however small values of leaves are."""

from itertools import product

import numpy as np
import pytest

import dovetail as dt
from dovetail.reformulations.tree_outputs import Weights, _largest, _one_class
from dovetail.reformulations.writer import Writer


def weights_of(trees, base):
    """Leaf weights in the first columns; each tree is a list of leaf values, or of rows of them."""
    value = np.concatenate([np.reshape(np.asarray(tree, dtype=float), (len(tree), -1)) for tree in trees])
    starts = np.cumsum([0, *(len(tree) for tree in trees)])[:-1]
    return Weights(np.arange(len(value)), value, np.asarray(base, dtype=float), starts)


def worst(writer, weights, trees, classes_of):
    """By how much the rows are missed at most, over all choices of leaves and the classes these may have."""
    size = int(weights.columns.size)
    mip = writer.extend(dt.Mip(np.zeros(writer.first)))
    missed = 0.0
    for choice in product(*(range(len(tree)) for tree in trees)):
        leaves = weights.starts + np.array(choice)
        for classes in classes_of(weights.base + weights.value[leaves].sum(axis=0)):
            z = np.zeros(mip.n_columns)
            z[leaves] = 1.0
            z[size : size + len(classes)] = classes
            missed = max(missed, float(np.max(mip.row_violation(z), initial=0.0)))
    return missed


@pytest.mark.parametrize(
    "trees",
    [
        [[-1.0, 1.0], [5e-10, 8e-10], [6e-10, 9e-10]],  # all leaves of a tree below what engines keep
        [[-1.0, 1.0], [-8e-10, -5e-10]],
        [[-1.0, 1.0], [-3.0, -1.0 + 5e-10]],  # the largest score is past the cut by next to nothing
        [[-1.0, 1.0], [3.0, 1.0 - 5e-10]],
    ],
)
def test_one_class_cuts_nothing_off(trees):
    weights = weights_of(trees, [0.0])
    writer = Writer(weights.columns.size + 1)
    _one_class(writer, weights, weights.columns.size, (0.0, 0.0), float(weights.unsaid(weights.value)[0]))
    assert worst(writer, weights, trees, lambda score: [[float(score[0] >= 0.0)]]) <= 1e-14


def test_the_largest_of_several_cuts_nothing_off():
    trees = [[[-1.0, 1.0], [1.0, -1.0]], [[2.0, 2.0 - 5e-10]]]
    weights = weights_of(trees, [0.0, 0.0])
    writer = Writer(weights.columns.size + 2)
    _largest(writer, weights, weights.columns.size + np.arange(2), np.zeros(2))
    assert worst(writer, weights, trees, lambda score: [np.eye(2)[int(np.argmax(score))]]) <= 1e-14
