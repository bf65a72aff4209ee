"""Foreign models: variables are found in their columns, numbers beside them stay numbers."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.foreign import NUMBER, Origin, Places, Reading, locate


class Variable:
    """A variable that compares like many tools' do: == makes something that is not a truth."""

    __hash__ = None

    def __eq__(self, other):
        return "a constraint"


class Tool:
    tool = "toy model"
    deleted = False

    def key(self, variable):
        return id(variable)

    def unpack(self, given):
        return np.array(given, dtype=object)

    def moved(self, reading):
        return self.deleted


KNOWN, OTHER = Variable(), Variable()
READING = Reading(dt.Mip([1.0, 1.0], names=["a", "b"]), (id(OTHER), id(KNOWN)))
POINT = np.array([7.0, 8.0])


def test_variables_are_found_and_numbers_stay_numbers():
    places = locate(Tool(), READING, "inputs", np.array([[KNOWN, 2.5]], dtype=object))
    assert places.column.tolist() == [[1, NUMBER]]
    assert places.values(POINT).tolist() == [[8.0, 2.5]]


@pytest.mark.parametrize("entry", [np.inf, np.nan, 10**400])
def test_numbers_that_are_not_finite_are_refused(entry):
    with pytest.raises(dt.ModelError, match="inputs holds"):
        locate(Tool(), READING, "inputs", np.array([entry], dtype=object))


def test_a_variable_of_another_model_is_refused():
    with pytest.raises(dt.ModelError, match="not a variable of this toy model"):
        locate(Tool(), READING, "inputs", np.array([Variable()], dtype=object))


def test_numbers_alone_need_no_columns():
    assert Places(np.array([NUMBER]), np.array([3.0])).values(POINT).tolist() == [3.0]


def test_values_by_variable_by_name_and_by_index():
    origin = Origin(Tool(), READING)
    assert origin.value([KNOWN, OTHER], POINT).tolist() == [8.0, 7.0]
    assert origin.value(["b", "a"], POINT).tolist() == [8.0, 7.0]
    assert origin.value([1, 0], POINT).tolist() == [8.0, 7.0]


def test_after_a_deletion_only_names_and_indices_are_safe():
    tool = Tool()
    tool.deleted = True
    origin = Origin(tool, READING)
    assert origin.value(["b"], POINT).tolist() == [8.0]
    with pytest.raises(dt.ModelError, match="deleted since it was solved"):
        origin.value([KNOWN], POINT)
