"""Cells of columns against a search in each column's own cuts."""

import numpy as np

from dovetail.structure.trees import InputCells


def test_the_cell_of_a_value_is_where_a_search_in_its_cuts_says():
    rng = np.random.default_rng(0)
    cuts = [rng.normal(size=count) for count in (0, 1, 7)] + [np.array([0.5, 2.5])]
    whole = np.array([False, False, False, True])
    lower, upper = np.full(4, -2.0), np.full(4, 3.0)
    cells = InputCells.of(np.array([4, 0, 2, 1]), cuts, lower, upper, whole)
    inner = [np.unique(np.floor(cut) if w else cut) for cut, w in zip(cuts, whole, strict=True)]
    points = [rng.uniform(-2.0, 3.0, 5) for _ in range(200)]
    for k, j in enumerate(cells.columns):  # on the cuts themselves, and beside them
        for cut in inner[k]:
            for value in (cut, np.nextafter(cut, 9.0), np.nextafter(cut, -9.0)):
                points.append(np.full(5, 0.0))
                points[-1][j] = value
    for x in points:
        at = cells.of_point(x)
        assert at.tolist() == [
            np.searchsorted(inner[k][(inner[k] >= -2.0) & (inner[k] < 3.0)], x[j], side="left")
            for k, j in enumerate(cells.columns)
        ]
        for k in range(4):
            high = cells.high[cells.first[k] : cells.first[k + 1]]
            value = x[cells.columns[k]]
            assert cells.first_up_to(x[cells.columns])[k] == min(
                (i for i in range(high.size) if high[i] >= value), default=high.size
            )


def test_no_columns_have_no_cells():
    nothing = np.empty(0)
    cells = InputCells.of(np.empty(0, dtype=np.int64), [], nothing, nothing, np.empty(0, dtype=bool))
    assert cells.of_point(np.ones(3)).size == 0
