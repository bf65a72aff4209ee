"""Names that tell columns apart."""

import pytest

from dovetail.core.names import LazyNames, NumberedNames, distinct, in_short, label_of, split_index


@pytest.mark.parametrize(
    ("given", "told_apart"),
    [
        ([], None),
        (["", ""], None),
        (["a", "b"], ("a", "b")),
        (["a", "a", "a"], ("a", "a#2", "a#3")),
        (["a", "", "a"], ("a", "x[1]", "a#2")),
        (["a#2", "a", "a"], ("a#2", "a", "a#3")),
    ],
)
def test_later_ones_get_a_number(given, told_apart):
    assert distinct(given) == told_apart


def test_numbered_names():
    assert list(NumberedNames("up", (2, 3))) == [
        "up[0,0]",
        "up[0,1]",
        "up[0,2]",
        "up[1,0]",
        "up[1,1]",
        "up[1,2]",
    ]
    assert list(NumberedNames("budget", ())) == ["budget"]
    for shape in ((), (3,), (2, 3)):
        names = NumberedNames("up", shape)
        assert list(names) == [names[k] for k in range(len(names))]
    assert label_of("up[0,1]") == label_of("up") == "up"


def test_more_names_behind_lazy_ones():
    names = LazyNames(("a",), NumberedNames("x", (2,))).with_names(["a", "x[1]", "x", "b"])
    assert tuple(names) == ("a", "x[0]", "x[1]", "a#3", "x[1]#4", "x#5", "b")


def test_lazy_names_are_read_like_a_tuple():
    names = LazyNames(("a", "b"), NumberedNames("none", (0,)), NumberedNames("x", (3,)))
    whole = ("a", "b", "x[0]", "x[1]", "x[2]")
    assert tuple(names) == whole
    assert [names[k] for k in range(-5, 5)] == [whole[k] for k in range(-5, 5)]
    assert names[1:4] == whole[1:4]
    assert len(names) == 5
    with pytest.raises(IndexError):
        names[5]


@pytest.mark.parametrize(
    ("name", "label", "index"),
    [
        ("x", "x", ()),
        ("x[3]", "x", (3,)),
        ("x[1, a]", "x", (1, "a")),
        ("x['a b',-2]", "x", ("a b", -2)),
        ("x(0,1)", "x", (0, 1)),
        ("x_0_12", "x", (0, 12)),
        ("plan_b", "plan_b", ()),
        ("b[1].x[2]", "b[1].x", (2,)),
        ("x[]", "x[]", ()),
        ("[1]", "[1]", ()),
    ],
)
def test_names_and_their_indices(name, label, index):
    assert split_index(name) == (label, index)


def test_names_in_one_line():
    assert in_short("a\tb\x1b") == "a?b?" and in_short("x" * 30, 10) == "xxxxxxx..."
