"""Columns by family: what modelling tools and old files call them, and names that are no pattern at all."""

import pytest

from dovetail.core.names import LazyNames, NumberedNames
from dovetail.report.page.decision import families, grids, split


@pytest.mark.parametrize(
    ("name", "label", "index"),
    [
        ("x[3,ph]", "x", ("3", "ph")),
        ("x(3, 4)", "x", ("3", "4")),
        ("plant.load[17]", "plant.load", ("17",)),
        ("make_3_17", "make", ("3", "17")),
        ("x12", "x", ("12",)),
        ("cement", "cement", ()),
        ("[3]", "[3]", ()),
        ("", "", ()),
        ("2024", "2024", ()),
        ("a[b[1]]", "a[b[1]]", ()),
        ("plant['a b',07]", "plant", ("a b", "07")),
    ],
)
def test_labels_and_indices(name, label, index):
    assert split(name) == (label, index)


def test_families_and_those_that_stand_alone():
    found = families(["cost", "x[0]", "y[0,1]", "x[1]", "y[0,2]", "z[9]"], 6)
    assert [(family.label, family.columns.tolist(), family.depth) for family in found] == [
        ("x", [1, 3], 1),
        ("y", [2, 4], 2),
        ("", [0, 5], 0),
    ]
    assert found[-1].indices == [("cost",), ("z[9]",)]


def test_columns_without_names():
    (family,) = families(None, 3)
    assert (family.label, list(family.indices)) == ("x", [("0",), ("1",), ("2",)])


def test_names_that_are_made_when_asked_for_are_sorted_as_if_they_were_written():
    lazy = LazyNames(
        ("cost",), NumberedNames("x", (3,)), NumberedNames("up", (3, 2)), NumberedNames("z", (1,))
    )
    for made in (lazy, tuple(lazy)):
        found = families(made, len(made))
        assert [(family.label, family.columns.tolist(), family.depth) for family in found] == [
            ("x", [1, 2, 3], 1),
            ("up", [4, 5, 6, 7, 8, 9], 2),
            ("", [0, 10], 0),
        ]
        assert list(found[1].indices)[-1] == ("2", "1") and found[1].indices[0] == ("0", "0")
    written, asked = (grids(families(made, len(made))) for made in (tuple(lazy), lazy))
    for one, other in zip(written, asked, strict=True):
        assert (one.title, *one.rows, *one.across) == (other.title, *other.rows, *other.across)
        assert one.columns.tolist() == other.columns.tolist()


def test_indices_that_collide_or_differ_in_number_make_a_list():
    assert families(["x[1]", "x(1)"], 2)[0].depth == 0
    assert families(["x[1]", "x[1,2]"], 2)[0].depth == 0
