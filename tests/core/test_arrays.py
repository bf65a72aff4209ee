"""Arrays that users pass in: the right ones are read, each wrong one is refused with its entry's name."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.arrays import (
    all_finite,
    as_array,
    columns_of_one,
    flags,
    require_finite,
    require_interval,
    resolve,
    vector,
)


def called(j):
    return f"column {j}"


def test_a_vector_is_a_read_only_copy():
    given = np.array([1, 2, 3])
    read = vector("cost", given, 3)
    given[0] = 7
    assert read.tolist() == [1.0, 2.0, 3.0]
    assert not read.flags.writeable


def test_a_number_stands_for_a_vector_of_it():
    assert vector("upper", 2.5, 3).tolist() == [2.5, 2.5, 2.5]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (None, "None"),
        ([1j, 0], "complex"),
        (["a", "b"], "cannot be read as numbers"),
        ([[1.0, 2.0]], "must be a vector"),
        ([1.0], "1 entry, expected 2"),
        ([10**400, 0], "cannot be read as numbers"),
    ],
)
def test_what_is_no_vector_of_that_size_is_refused(values, said):
    with pytest.raises(dt.OptionError, match=said):
        vector("start", values, 2, dt.OptionError)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_entry_that_is_not_finite_is_named(bad):
    with pytest.raises(dt.ModelError, match="column 1"):
        require_finite("cost", np.array([0.0, bad]), called)


@pytest.mark.parametrize("interval", [(2.0, 1.0), (np.nan, 1.0), (np.inf, np.inf), (-np.inf, -np.inf)])
def test_intervals_without_numbers_are_refused(interval):
    low, high = (np.array([0.0, limit]) for limit in interval)
    with pytest.raises(dt.ModelError, match="column 1"):
        require_interval("the interval", low, high, called)
    require_interval("the interval", np.array([-np.inf, 1.0]), np.array([np.inf, 1.0]), called)


def test_flags_take_booleans_zeros_and_ones():
    assert flags("integer", [1, 0], 2).tolist() == [True, False]
    assert flags("integer", True, 2).tolist() == [True, True]
    for wrong in ([2, 0], [0.5, 1.0], [True]):
        with pytest.raises(dt.ModelError, match="integer"):
            flags("integer", wrong, 2)


def test_columns_by_index_and_by_name_keep_their_shape():
    index = {"a": 0, "b": 1}
    assert resolve("inputs", [["b"], ["a"]], 2, lambda: index).tolist() == [[1], [0]]


def test_names_are_looked_up_only_where_there_are_names():
    def index():
        raise AssertionError("nobody gave a name")

    assert resolve("inputs", np.array([1, 0], dtype=object), 2, index).tolist() == [1, 0]
    assert resolve("inputs", [[1], [0]], 2, index).tolist() == [[1], [0]]


@pytest.mark.parametrize("references", [[2], [-1], [0.0], ["c"], [10**30]])
def test_columns_that_are_not_there(references):
    with pytest.raises(dt.ModelError, match="inputs"):
        resolve("inputs", references, 2, lambda: {"a": 0, "b": 1})


def test_rows_of_different_length_are_no_array():
    with pytest.raises(dt.ModelError, match="rows of equal length"):
        as_array("inputs", [[1, 2], [3]])


def test_columns_are_known_by_their_memory():
    whole = np.arange(12.0).reshape(4, 3)
    columns = [whole[:, k] for k in range(3)]
    found = columns_of_one(columns)
    assert np.shares_memory(found, whole) and np.array_equal(found, whole)
    assert columns_of_one(columns[::-1]) is None
    assert columns_of_one(columns[:2]) is None
    assert columns_of_one([*columns[:2], columns[2].copy()]) is None
    assert columns_of_one([np.ones(1)]) is None


@pytest.mark.parametrize(
    ("numbers", "finite"),
    [([1e308, 1e308], True), ([np.inf, -np.inf], False), ([1.0, np.nan], False), ([], True), ([[1.0]], True)],
)
def test_whether_all_are_finite(numbers, finite):
    assert all_finite(np.array(numbers)) == finite
