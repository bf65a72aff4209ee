"""Numbers as people read them: alike below each other, and never a zero that is none.

Names on a page: every character is seen, none moves the others, and long ones are cut in the middle.
"""

import numpy as np
import pytest

from dovetail.core.words import several
from dovetail.report.page.number_text import change, number, numbers, percent, seconds, visible


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-603.7213, "−603.721"), (0.0, "0"), (-0.0, "0"), (1234567.0, "1,234,567"), (1e9, "1e+09"),
        (40.0, "40"), (0.5, "0.5"), (1e-7, "1e−07"), (None, "–"), (np.nan, "–"), (-np.inf, "−∞"),
    ],
)  # fmt: skip
def test_one_number(value, text):
    assert number(value) == text


def test_numbers_below_each_other():
    assert numbers(np.array([0.4, 0.0, 12.345, np.nan])) == ["0.40", "0", "12.35", ""]
    assert numbers(np.array([1.0, 2.0000001, -3000.0])) == ["1", "2", "−3,000"]
    assert numbers(np.array([0.00004, 5.5])) == ["4e−05", "5.500"]
    assert numbers(np.array([2e9, 1.0])) == ["2e+09", "1"]
    assert numbers(np.array([np.inf, 0.25])) == ["∞", "0.2500"]
    assert numbers(np.array([])) == []


def test_times_shares_and_differences():
    assert [seconds(t) for t in (0.0, 0.0123, 0.5, 12.34, 4000.0)] == [
        "0 s", "0.012 s", "0.50 s", "12.3 s", "4,000 s",
    ]  # fmt: skip
    assert [percent(p) for p in (0.0, 1e-9, 3e-7, 5e-5, 0.0312, 2.5, 40.0, None)] == [
        "0 %", "0 %", "< 0.01 %", "< 0.01 %", "3.12 %", "250 %", "40 times", "–",
    ]  # fmt: skip
    assert (change(2.0), change(-0.25)) == ("+2", "−0.25")
    assert (several(1, "row"), several(2000, "row"), several(2, "family", "families")) == (
        "1 row", "2,000 rows", "2 families",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("make[3,bread]", "make[3,bread]"),
        ("größe 木", "größe 木"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("abc\u202edcba", r"abc\u202edcba"),
        ("a\u200bb", r"a\u200bb"),
        ("\ud800", r"\ud800"),
        ("nul\0", r"nul\x00"),
    ],
)
def test_what_cannot_be_seen_is_spelt_out(text, shown):
    assert visible(text) == shown


def test_marks_do_not_climb():
    assert visible("e" + "\u0301" * 50) == "e\u0301\u0301"


def test_long_names_keep_both_ends():
    shown = visible("A" * 10_000 + "[17]", 30)
    assert len(shown) == 30
    assert shown.startswith("AAA") and shown.endswith("[17]") and "…" in shown
    assert len(visible("\u202e" * 1000, 40)) == 40
