"""How many of something, in words."""

import pytest

from dovetail.core.words import several


@pytest.mark.parametrize(
    ("amount", "words", "said"),
    [(0, ("round",), "0 rounds"), (1, ("round",), "1 round"), (2_000, ("round",), "2,000 rounds"),
     (1, ("box", "boxes"), "1 box"), (3, ("box", "boxes"), "3 boxes")],
)  # fmt: skip
def test_one_and_several(amount, words, said):
    assert several(amount, *words) == said
