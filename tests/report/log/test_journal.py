"""The journal: one log in several places, each in its own width, none of which can stop the others."""

import io
import logging

import pytest

from dovetail.report.log.journal import Journal, opened
from dovetail.report.log.outlet import PlainOutlet
from dovetail.report.log.table import PARTS, RESIDUALS, State

STATE = State(1.0, "part", 57.0, 75.0, rows_only=False, evaluations=1204)


class Screen:
    """An outlet with a live line."""

    live = True

    def __init__(self):
        self.lines, self.shown, self.closed = [], [], 0

    def write(self, rendering, style=""):
        self.lines += rendering(79)

    def show(self, line):
        self.shown.append(line)

    def close(self):
        self.closed += 1


class Broken(Screen):
    def write(self, rendering, style=""):
        raise OSError(28, "No space left")


def test_titles_come_once_and_again_with_other_columns():
    screen = Screen()
    journal = Journal([screen])
    for columns in (PARTS, PARTS, RESIDUALS):
        journal.row(columns, STATE)
    titles = [line for line in screen.lines if line.split()[:1] == ["time"]]
    assert len(titles) == 2 and "residual" in titles[1]
    assert sum(line.startswith("legend") for line in screen.lines) == 1


def test_a_sign_of_life_is_for_those_without_a_live_line():
    screen, stream = Screen(), io.StringIO()
    journal = Journal([screen, PlainOutlet(stream)])
    journal.row(PARTS, STATE)
    before = len(screen.lines)
    journal.row(PARTS, STATE, unwatched=True)
    journal.show(STATE)
    assert len(screen.lines) == before
    assert stream.getvalue().splitlines()[-1] == stream.getvalue().splitlines()[-2]
    assert "1.0 s" in screen.shown[0] and "best 57" in screen.shown[0]


def test_one_that_breaks_is_given_up_once(caplog):
    screen = Screen()
    journal = Journal([Broken(), screen])
    with caplog.at_level(logging.WARNING, "dovetail"):
        journal.say("one")
        journal.say("two")
    assert screen.lines == ["one", "two"]
    assert "No space left" in journal.failure
    assert len(caplog.records) == 1


def test_after_the_end_nothing_is_written():
    screen = Screen()
    journal = Journal([screen])
    journal.close()
    journal.say("late")
    journal.close()
    assert journal.silent and screen.lines == [] and screen.closed == 1


@pytest.mark.parametrize(
    ("log", "level", "records"),
    [(False, "INFO", 1), (True, "INFO", 0), (True, "DEBUG", 1), (False, "WARNING", 0)],
)
def test_a_program_that_has_set_logging_up_sees_nothing_twice(log, level, records, caplog):
    """At INFO where nothing is printed, at DEBUG where it is."""
    with caplog.at_level(level, "dovetail"):
        opened(io.StringIO() if log else None).say("hello")
    assert len(caplog.records) == records
