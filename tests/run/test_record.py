"""The parts of a result in a file: what cannot be is refused where it stands."""

import math

import numpy as np
import pytest

from dovetail.run.record import array_of, number, require, sayable, texts


def test_what_json_cannot_say_is_said_in_words():
    said = sayable({"a": math.inf, "b": [np.float64(1.0), math.nan], "c": ("x", "y"), "d": [1.0, 2.0]})
    assert said == {"a": "inf", "b": [1.0, "nan"], "c": ("x", "y"), "d": [1.0, 2.0]}
    assert number("a", "-inf") == -math.inf and math.isnan(number("b", "nan"))


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda v: number("n", v), True),
        (lambda v: number("n", v), "seven"),
        (lambda v: number("n", v), None),
        (lambda v: require("n", v, int), True),
        (lambda v: require("n", v, str), 3),
        (lambda v: texts("n", v), ["a", 1]),
        (lambda v: array_of("n", v), "text"),
        (lambda v: array_of("n", v), [["x"]]),
    ],
)
def test_other_kinds_are_refused_by_name(read, value):
    with pytest.raises(ValueError, match="n is"):
        read(value)


def test_arrays_of_numbers_and_words():
    assert array_of("a", [[1, 2], [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert array_of("a", [1.0, "inf"]).tolist() == [1.0, math.inf]
    assert number("n", None, optional=True) is None
