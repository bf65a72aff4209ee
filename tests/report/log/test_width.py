"""Lines keep to the terminal, and to 79 columns."""

import io
import os

import pytest

from dovetail.report.log.outlet import LEAST, MOST, is_terminal, width_of


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True

    def fileno(self):
        return 1


class Odd(io.StringIO):
    def isatty(self):
        raise RuntimeError("who knows")


@pytest.fixture(autouse=True)
def no_columns(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize(("columns", "width"), [(60, 59), (80, MOST), (120, MOST), (3, LEAST), (0, MOST)])
def test_of_a_terminal(columns, width, monkeypatch):
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((columns, 24)))
    assert width_of(Terminal()) == width


@pytest.mark.parametrize(
    ("said", "width"), [("60", 59), ("200", MOST), ("x", MOST), ("-5", MOST), ("", MOST)]
)
def test_what_the_environment_says_counts_everywhere(said, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", said)
    assert width_of(io.StringIO()) == width


def test_of_a_terminal_that_does_not_say(monkeypatch):
    def silent(number):
        raise OSError(25, "Inappropriate ioctl for device")

    monkeypatch.setattr(os, "get_terminal_size", silent)
    assert width_of(Terminal()) == MOST


def test_a_stream_that_cannot_be_asked_is_no_terminal():
    assert not is_terminal(Odd())
    closed = io.StringIO()
    closed.close()
    assert not is_terminal(closed)
    assert width_of(Odd()) == MOST
