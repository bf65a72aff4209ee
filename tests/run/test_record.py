"""The parts of a result in a file: what cannot be is refused where it stands."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.run.record import read, sayable


@dataclass(frozen=True)
class Shelf:
    label: str
    width: float = 1.0
    books: tuple[str, ...] = ()


def test_what_json_cannot_say_is_said_in_words():
    said = sayable({"a": math.inf, "b": [np.float64(1.0), math.nan], "c": ("x", "y"), "d": [1.0, 2.0]})
    assert said == {"a": "inf", "b": [1.0, "nan"], "c": ("x", "y"), "d": [1.0, 2.0]}
    assert read("a", "-inf", float) == -math.inf and math.isnan(read("b", "nan", float))
    assert sayable([Shelf("top", math.nan)]) == [{"label": "top", "width": "nan", "books": []}]
    assert sayable(np.array([[1.0, np.inf]])) == [[1.0, "inf"]]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, float),
        ("seven", float),
        (None, float),
        (True, int),
        (3, str),
        (["a", 1], list[str]),
        ("text", FloatArray),
        ([["x"]], FloatArray),
        ([0.5], IntArray),
        ("top", Shelf),
        ({"a": "b"}, Mapping[str, float]),
    ],
)
def test_other_kinds_are_refused_by_name(value, kind):
    with pytest.raises(ValueError, match="n( of a)? is"):
        read("n", value, kind)


def test_arrays_of_numbers_and_words():
    assert read("a", [[1, 2], [3, 4]], FloatArray).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert read("a", [1.0, "inf"], FloatArray).tolist() == [1.0, math.inf]
    assert read("n", None, float | None) is None


def test_dataclasses_have_their_fields_and_no_others():
    shelves = read("shelves", [{"label": "top", "width": 1, "books": ["a", "b"]}], tuple[Shelf, ...])
    assert shelves == (Shelf("top", 1.0, ("a", "b")),)
    with pytest.raises(ValueError, match="shelf has no 'width'"):
        read("shelf", {"label": "top", "books": []}, Shelf)
    with pytest.raises(ValueError, match="shelf has 'depth'"):
        read("shelf", {"label": "top", "depth": 2}, Shelf)
    with pytest.raises(ValueError, match=r"shelf\.width is 'wide', no number"):
        read("shelf", {"label": "top", "width": "wide", "books": []}, Shelf)
