"""Containers of variables as one array."""

import numpy as np
import pandas as pd
import pytest

import dovetail as dt
from dovetail.core.foreign import as_array, like


class Variable:
    """Looks like a sequence, as some tools' variables do."""

    def __len__(self):
        raise AssertionError("nobody looks inside")

    __getitem__ = __iter__ = __len__


V = [Variable() for _ in range(6)]
GRID = np.empty((2, 3), dtype=object)
GRID.flat = V


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        (V, (6,)),
        ([V[:3], tuple(V[3:])], (2, 3)),
        (GRID, (2, 3)),
        (dict(enumerate(V)), (6,)),
        ({(i, j): GRID[i, j] for i in range(2) for j in range(3)}, (2, 3)),
        (pd.DataFrame({k: GRID[:, k] for k in range(3)}), (2, 3)),
        ([GRID, GRID], (2, 2, 3)),
    ],
)
def test_shapes(given, shape):
    array = as_array(given, lambda item: item)
    assert array.shape == shape
    assert list(array.flat)[:6] == V


def test_a_single_variable_and_numbers():
    assert as_array(V[0], lambda item: item).shape == ()
    assert as_array(np.array([[1.0, 2.0]]), lambda item: item).tolist() == [[1.0, 2.0]]
    assert as_array(range(3), lambda item: item).tolist() == [0, 1, 2]


def test_a_dictionary_with_gaps_is_a_list():
    assert as_array({(0, 0): V[0], (1, 1): V[1]}, lambda item: item).shape == (2,)


def test_a_tools_own_container_is_unfolded():
    assert as_array({"mine": 2}, lambda item: V[:2] if item == {"mine": 2} else item).tolist() == V[:2]


def test_ragged_rows_are_refused():
    with pytest.raises(dt.ModelError, match=r"different shapes \(1,\) and \(2,\)"):
        as_array([V[:1], V[:2]], lambda item: item)


def test_values_go_back_into_what_they_were_taken_from():
    keyed = {("b", 1): V[0], ("b", 0): V[1], ("a", 1): V[2], ("a", 0): V[3]}
    for given in (keyed, {"k": V[4], "l": V[5]}, {"deep": {0: V[0], 1: V[1]}}):
        array = as_array(given, lambda item: item)
        values = np.arange(array.size, dtype=float).reshape(array.shape)
        back = like(given, values)
        assert list(back) == list(given)
        flat = as_array(back, lambda item: item)
        assert flat.shape == array.shape and flat.ravel().tolist() == values.ravel().tolist()
    assert like(keyed, np.array([[0.0, 1.0], [2.0, 3.0]]))["a", 0] == 3.0
    frame = pd.DataFrame([[V[0], V[1]]], index=["r"], columns=["p", "q"])
    assert like(frame, np.array([[1.0, 2.0]])).loc["r", "q"] == 2.0
    series = like(frame.loc["r"], np.array([1.0, 2.0]))
    assert series["p"] == 1.0 and series.name == "r"
    assert like(V[0], np.array(2.0)) == 2.0 and isinstance(like(V[0], np.array(2.0)), float)
    assert like(V[:2], np.array([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_nothing_is_asked_of_a_variable():
    """gurobipy repeats a complaint about an attribute at the next error that has nothing to do with it."""

    class Touchy:
        def __getattr__(self, name):
            raise AssertionError(name)

    assert as_array([Touchy()], lambda item: item).shape == (1,)
