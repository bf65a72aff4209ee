"""Families and rows as arrays: no copies, shapes that broadcast, errors that name family and place."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.family_arrays import FamilyArrays, RowArrays

N = 4
NAN = float("nan")


def family(**said):
    return FamilyArrays.of("load", dt.Family(**said), N, 0)


def row(coefficients, column_of=None, **said):
    families = {
        "a": FamilyArrays.of("a", dt.Family(), N, 0),
        "wide": FamilyArrays.of("wide", dt.Family(width=3), N, N),
        "pair": FamilyArrays.of("pair", dt.Family(width=2), N, 4 * N),
    }
    return RowArrays.of("limit", dt.FamilyRow(coefficients, **said), families, N, column_of)


def host(row, key):
    return {"plant": 7}[key]


def test_numbers_stay_numbers_and_arrays_are_not_copied():
    own, wide = np.arange(4.0), np.ones((N, 3))
    read = family(lower=-1.0, upper=wide, cost=own)
    assert read.lower.shape == ()
    assert read.cost.shape == (N, 1)
    assert np.shares_memory(read.cost, own)
    assert np.shares_memory(read.upper, wide)
    assert read.width == 3
    assert own.flags.writeable  # the user's own array is as it was
    assert not read.cost.flags.writeable


def test_bounds_of_integers_become_whole_and_far_ones_infinite():
    read = family(
        lower=np.array([0.2, -3.0, 0.4, -1e20]), upper=np.array([2.7, 1e30, 0.6, 5.0]), integer=True
    )
    assert read.lower.ravel().tolist() == [1.0, -3.0, 0.4, -np.inf]
    assert read.upper.ravel().tolist() == [2.0, np.inf, 0.6, 5.0]


def test_fixed_is_both_bounds():
    read = family(fixed=np.arange(4.0))
    assert np.array_equal(read.lower, read.upper)
    assert family().upper == np.inf


@pytest.mark.parametrize(
    ("said", "culprit"),
    [
        ({"lower": np.zeros(3)}, r"lower of family load has shape \(3, 1\).*4 blocks"),
        ({"cost": np.zeros((2, N))}, r"cost of family load has shape \(2, 4\)"),
        ({"upper": np.ones((N, 3)), "cost": np.ones((N, 2))}, r"cost of family load has shape \(4, 2\)"),
        ({"upper": np.ones((N, 3)), "width": 2}, r"upper of family load has shape \(4, 3\)"),
        ({"upper": np.ones((1, 1, 1))}, r"upper of family load has shape \(1, 1, 1\)"),
        ({"cost": NAN}, "cost of family load is nan;"),
        ({"cost": np.array([0, 1, np.inf, 2])}, "cost of family load is inf at block 2, column 0"),
        ({"lower": np.array([0, 1, NAN, 2])}, r"family load is \[nan, inf\] at block 2, column 0"),
        ({"lower": 2.0, "upper": np.array([3, 1, 2, 2])}, r"family load is \[2.0, 1.0\] at block 1"),
        ({"lower": np.inf}, r"family load is \[inf, inf\];"),
        ({"cost": "dear"}, "cost of family load cannot be read as numbers"),
        ({"cost": None}, "cost of family load cannot be read as numbers"),
        ({"cost": [1j] * N}, "cost of family load cannot be read as numbers"),
        ({"integer": 3}, "integer of family load is 3"),
        ({"fixed": 1.0, "upper": 3.0}, "family load has fixed= and bounds"),
        ({"width": 0}, "width of family load is 0"),
    ],
)
def test_families_that_cannot_be(said, culprit):
    with pytest.raises(dt.DovetailError, match=culprit):
        family(**said)


def test_what_is_no_family():
    with pytest.raises(dt.ModelError, match=r"family load is 3; give a dovetail.Family"):
        FamilyArrays.of("load", 3, N, 0)


def test_rows_have_the_width_of_their_families():
    assert row({"a": 1.0}).width == 1
    assert row({"a": np.ones((1, 3)), "wide": np.ones(N)}).width == 3
    assert row({"wide": np.ones((1, 3)), "pair": 1.0}, summed=True).width == 1
    assert row({"wide": 1.0, "plant": [1, 2, 3]}, host, upper=[1, 2, 3]).host[7].tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("coefficients", "said", "culprit"),
    [
        ({}, {}, "row limit names no family"),
        ({"plant": 1.0}, {}, "row limit names no family"),
        ({"a": 1.0, "plant": 1.0}, {}, "row limit names 'plant', which is no family"),
        ({"wide": 1.0, "pair": 1.0}, {}, "row limit has family pair with 2 columns and another with 3"),
        ({"a": np.ones(3)}, {}, r"coefficient of a in row limit has shape \(3, 1\)"),
        ({"a": NAN}, {}, "coefficient of a in row limit is nan"),
        ({"a": [1.0, 1e-12, 0.0, 1.0]}, {}, "coefficient of a in row limit is 1e-12 at block 1"),
        ({"a": 1e16}, {}, "coefficient of a in row limit is 1e"),
        ({"a": 1.0}, {"upper": [1.0, NAN, 1.0, 1.0]}, r"row limit is \[-inf, nan\] at block 1"),
        ({"a": 1.0}, {"lower": 2.0, "upper": 1.0}, r"row limit is \[2.0, 1.0\]"),
        ({"a": 1.0}, {"upper": np.ones((N, 2))}, r"upper of row limit has shape \(4, 2\)"),
    ],
)
def test_rows_that_cannot_be(coefficients, said, culprit):
    with pytest.raises(dt.ModelError, match=culprit):
        row(coefficients, **said)


def test_a_column_of_the_host_is_named_once():
    with pytest.raises(dt.ModelError, match="row limit names column 'works' twice"):
        row({"a": 1.0, "plant": 1.0, "works": 2.0}, lambda row, key: 7)


def test_limits_of_coupling_rows_are_not_per_block():
    with pytest.raises(dt.ModelError, match=r"upper of row limit has shape \(1, 4\)"):
        row({"a": 1.0}, host, upper=np.ones(N))
    with pytest.raises(dt.ModelError, match=r"coefficient of 'plant' in row limit has shape \(1, 4\)"):
        row({"a": 1.0, "plant": np.ones(N)}, host)
