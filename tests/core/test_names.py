"""Names that tell columns apart."""

import pytest

from dovetail.core.names import distinct


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
