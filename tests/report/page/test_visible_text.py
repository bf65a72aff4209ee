"""Names on a page: every character is seen, none moves the others, and long ones are cut in the middle."""

import pytest

from dovetail.report.page.number_text import visible


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
