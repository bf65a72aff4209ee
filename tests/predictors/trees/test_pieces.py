"""Splits by pieces of the line, written out with thresholds: the same leaf everywhere."""

import numpy as np
import pytest

from dovetail.core.errors import UnsupportedError
from dovetail.predictors.trees import assembly
from dovetail.predictors.trees.assembly import ReadTree, assembled, category_pieces, threshold_piece


def asked(piece, x):
    return piece.goes_left[np.searchsorted(piece.cuts, x)]


def test_a_set_is_its_runs():
    piece = category_pieces([5, 1, 2, 7], goes_left=False)
    assert piece.cuts.tolist() == [0.5, 2.5, 4.5, 5.5, 6.5, 7.5]
    assert [bool(asked(piece, x)) for x in range(-1, 9)] == [x not in (1, 2, 5, 7) for x in range(-1, 9)]
    assert category_pieces([], goes_left=True).goes_left.tolist() == [False]


def test_a_number_with_a_way_of_its_own():
    for island in (-3.0, 0.0, 2.0):
        for side in (False, True):
            piece = threshold_piece(0.0).but(np.nextafter(island, -9.0), island, side)
            for x in (-9.0, np.nextafter(island, -9.0), island, np.nextafter(island, 9.0), 0.0, 1.0, 9.0):
                assert asked(piece, x) == (side if x == island else x <= 0.0)


def random_tree(rng, depth):
    """A full tree over two features, some splits by sets, some by thresholds, some with an island."""
    inner = 2**depth - 1
    nodes = 2 * inner + 1
    left = np.where(np.arange(nodes) < inner, 2 * np.arange(nodes) + 1, -1)
    split = {}
    for node in range(inner):
        kind = rng.integers(3)
        cut = threshold_piece(float(rng.integers(0, 9)))
        split[node] = [
            cut,
            category_pieces(
                np.flatnonzero(rng.uniform(size=9) < 0.5).tolist(), goes_left=bool(rng.integers(2))
            ),
            cut.but(3.5, 4.5, bool(rng.integers(2))),
        ][kind]
    feature = rng.integers(0, 2, nodes)
    value = np.arange(nodes, dtype=float)[:, None]
    right = np.where(left < 0, -1, left + 1)
    return ReadTree(feature, np.zeros(nodes), left, right, value, split)


def reached(tree, row):
    node = 0
    while tree.left[node] >= 0:
        goes_left = asked(tree.pieces[node], row[tree.feature[node]])
        node = int((tree.left if goes_left else tree.right)[node])
    return float(tree.value[node, 0])


def test_the_same_leaf_is_reached():
    rng = np.random.default_rng(0)
    rows = np.array([(a, b) for a in range(-1, 11) for b in range(-1, 11)], dtype=float)
    for _ in range(5):
        tree = random_tree(rng, 5)
        ensemble = assembled([tree], features=2, base=[0.0])
        assert ensemble.values(rows)[:, 0].tolist() == [reached(tree, row) for row in rows]
        assert ensemble.is_leaf.sum() <= 121  # what is reached by no number is left out


def test_what_grows_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(assembly, "MOST_NODES", 20)
    with pytest.raises(UnsupportedError, match="fewer rules"):
        assembly.assembled([random_tree(np.random.default_rng(0), 5)], features=2, base=[0.0])
