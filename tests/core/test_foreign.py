"""Foreign models: containers keep their shape, variables their columns, and equal names become different."""

import gc

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.foreign import NUMBER, Itself, Places, Reading, distinct, locate, table


class Variable:
    """A variable that compares like many tools' do: == makes something that is not a truth."""

    __hash__ = None

    def __eq__(self, other):
        return "a constraint"


class Tool:
    tool = "toy model"

    def key(self, variable):
        return Itself(variable)


def test_containers_of_all_kinds_become_one_table():
    a, b = Variable(), Variable()
    assert table([[a, 1.0], [b, 2.0]], lambda item: item).shape == (2, 2)
    by_index = {(i, j): 10 * i + j for i in range(2) for j in range(3)}
    assert table(by_index, lambda item: item).tolist() == [[0, 1, 2], [10, 11, 12]]
    assert table(np.arange(3), lambda item: item).tolist() == [0, 1, 2]
    with pytest.raises(dt.ModelError, match="different shapes"):
        table([[a, b], [a]], lambda item: item)


def test_variables_are_found_and_numbers_stay_numbers():
    known, unknown = Variable(), Variable()
    reading = Reading(dt.Mip([1.0, 1.0]), (Itself(Variable()), Itself(known)))
    places = locate(Tool(), reading, "inputs", np.array([[known, 2.5]], dtype=object))
    assert places.column.tolist() == [[1, NUMBER]]
    assert places.values(np.array([7.0, 8.0])).tolist() == [[8.0, 2.5]]
    with pytest.raises(dt.ModelError, match="not a variable of this toy model"):
        locate(Tool(), reading, "inputs", np.array([unknown], dtype=object))
    with pytest.raises(dt.ModelError, match="finite"):
        locate(Tool(), reading, "inputs", np.array([np.inf], dtype=object))


def test_a_key_is_its_object_and_does_not_keep_it():
    variable = Variable()
    key = Itself(variable)
    assert key == Itself(variable) and hash(key) == hash(Itself(variable))
    assert key != Itself(Variable())
    del variable
    gc.collect()
    other = [Variable() for _ in range(50)]  # one of them may have the same number now
    assert all(key != Itself(variable) for variable in other)


def test_places_of_numbers_only_need_no_point():
    places = Places(np.array([NUMBER]), np.array([3.0]))
    assert places.values(np.array([1.0])).tolist() == [3.0]


def test_equal_names_get_numbers():
    assert distinct(["a", "b", "a", ""]) == ("a", "b", "a#2", "x[3]")
    assert distinct(["", ""]) is None
