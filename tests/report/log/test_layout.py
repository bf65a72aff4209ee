"""Text is wrapped by what a terminal shows of it, and hostile names do no harm."""

import pytest

from dovetail.core.words import several
from dovetail.report.log.table import LABEL, cells, count, cut, fact, harmless, number, wrapped

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\nstatus      optimal",
    "a\r\nb",
    "back\x08\x08space",
    "\u202egnp.exe",
    "\u2066isolate\u2069",
    "zero\u200bwidth",
    "\u2028line",
    "\x85next",
    "\x9b31m",
    "null\x00",
]
"""What must not reach a terminal: escapes, breaks, marks of direction, what cannot be seen."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name):
    shown = harmless(name)
    assert shown.isprintable() and len(shown) == len(name)
    assert all(c == "?" or c in name for c in shown)


@pytest.mark.parametrize("name", ["zement", "größe", "濃度", "[bold]x[/bold]", "مياه", ":smile:"])
def test_other_names_stay_as_they_are(name):
    assert harmless(name) == name


@pytest.mark.parametrize("width", [20, 59, 79])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "many words " * 30,
        "x" * 500,
        "濃度" * 60,
        "a " + "y" * 200 + " b",
        " leading",
        "e\u0301" * 90,
    ],
)
def test_no_line_is_wider_and_nothing_is_lost(text, width):
    lines = wrapped(text, width, "-- ", "   ")
    assert all(cells(line) <= width for line in lines)
    assert "".join(line[3:] for line in lines).replace(" ", "") == text.replace(" ", "")


def test_words_are_not_broken_where_there_is_another_line():
    assert wrapped("one two three", 9, "", "  ") == ["one two", "  three"]


def test_a_number_stays_with_its_unit():
    assert wrapped("it took 12 s, and 5 % of it", 9) == ["it took", "12 s, and", "5 % of it"]


def test_a_fact_has_its_label_once():
    lines = fact("status", "word " * 20, 40)
    assert lines[0].startswith("status ") and len(lines) > 1
    assert all(line[:LABEL].isspace() for line in lines[1:])


def test_what_is_cut_says_so():
    assert cut("first descents", 11) == "first des.."
    assert cut("short", 11) == "short"
    assert cells(cut("濃度濃度", 5)) <= 5


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (1234567.0, 12, "1.23457e+06"),
        (-1.234567e-7, 10, "-1.235e-07"),
        (0.1 + 0.2, 12, "0.3"),
        (-0.0, 12, "0"),
        (None, 12, "-"),
        (float("nan"), 12, "-"),
        (float("inf"), 12, "-"),
    ],
)
def test_numbers(value, width, text):
    assert number(value, width) == text


def test_counts():
    assert count(1_234_567) == "1,234,567"
    assert count(1_234_567_890, 10) == "1,234.6M"
    assert several(1, "row") == "1 row" and several(2_000, "row") == "2,000 rows"
