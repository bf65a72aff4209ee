"""Where the variables of a model are found, and what they are worth at a point."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.foreign import NUMBER, Origin, Places, Reading, Slack, locate
from dovetail.models.own import OwnModel

PROBLEM = dt.Problem(dt.Mip(np.zeros(3), names=["a", "b", "c"]))


def test_variables_and_numbers_in_their_shape():
    model = OwnModel(PROBLEM)
    found = locate(model, model.read(), "x", model.unpack([["b", 2.5], [0, "c"]]))
    assert found.column.tolist() == [[1, NUMBER], [0, 2]]
    assert found.values(np.array([7.0, 8.0, 9.0])).tolist() == [[8.0, 2.5], [7.0, 9.0]]


@pytest.mark.parametrize("number", [np.nan, np.inf, 10**400])
def test_numbers_are_finite(number):
    entries = np.empty(1, dtype=object)
    entries[0] = float(number) if isinstance(number, float) else number
    with pytest.raises(dt.ModelError, match="x holds .*finite numbers"):
        locate(OwnModel(PROBLEM), OwnModel(PROBLEM).read(), "x", entries)


def test_a_variable_that_is_not_among_the_columns():
    model = OwnModel(PROBLEM)
    with pytest.raises(dt.ModelError, match="x: column 2 is not a variable of this Problem"):
        locate(model, Reading(dt.Mip([0.0, 0.0]), (0, 1)), "x", model.unpack([2]))


def test_values_by_name_and_of_what_moved(monkeypatch):
    model = OwnModel(PROBLEM)
    origin, x = Origin(model, model.read()), np.array([7.0, 8.0, 9.0])
    assert origin.value(["c", "a"], x).tolist() == [9.0, 7.0]
    assert origin.value("b", x) == 8.0 and isinstance(origin.value("b", x), float)
    monkeypatch.setattr(OwnModel, "moved", lambda *_: True)
    assert origin.value("b", x) == 8.0  # names stay what they are
    with pytest.raises(dt.ModelError, match="deleted since"):
        origin.value([1], x)


def test_places_that_are_all_numbers():
    assert Places(np.array([NUMBER]), np.array([3.0])).values(np.zeros(1)).tolist() == [3.0]


def test_slacks_have_values_by_key_and_by_name():
    slack = Slack("s", "slack", [0, 2], [1.0, -1.0], 5.0)
    floor = Slack("f", "c", [1], [1.0], -10.0, at_least=0.0)
    reading = Reading(PROBLEM.mip, (0, 1, 2), slacks=(slack, floor))
    x = np.array([7.0, 8.0, 9.0, 0.5])  # with a column that was added for a number
    assert reading.whole(x).tolist() == [7.0, 8.0, 9.0, 3.0, 0.0]
    assert reading.with_slacks.column == {0: 0, 1: 1, 2: 2, "s": 3, "f": 4}
    assert reading.index == {"a": 0, "b": 1, "c": 2, "slack": 3}  # a column comes before a slack of its name
    assert Origin(OwnModel(PROBLEM), reading).value(["slack", "c"], x).tolist() == [3.0, 9.0]
