"""Outlets: a stream of any encoding, and Python's logging."""

import io
import logging

import pytest

from dovetail.report.log.outlet import LoggerOutlet, PlainOutlet, encodable


def ascii_stream():
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii")


def test_what_the_encoding_cannot_say():
    stream = ascii_stream()
    PlainOutlet(stream).write(lambda width: ["\u2713 濃度", "plain"])
    stream.seek(0)
    assert stream.read().splitlines() == ["+ ??", "plain"]


@pytest.mark.parametrize("encoding", [None, "utf-8", "no-such-encoding", 3])
def test_other_encodings_are_left_alone(encoding):
    assert encodable("\u2713 濃度", encoding) == "\u2713 濃度"


def test_a_file_of_the_log_s_own_is_closed_with_it_and_others_are_not():
    own, other = io.StringIO(), io.StringIO()
    PlainOutlet(own, owned=True).close()
    PlainOutlet(other).close()
    assert own.closed and not other.closed


def test_a_file_is_not_as_narrow_as_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    widths = []
    for owned in (True, False):
        PlainOutlet(io.StringIO(), owned=owned).write(lambda width: widths.append(width) or [])
    assert widths == [79, 39]


def test_lines_are_records(caplog):
    logger = logging.getLogger("dovetail")
    with caplog.at_level(logging.INFO, "dovetail"):
        outlet = LoggerOutlet(logger, logging.INFO)
        outlet.write(lambda width: ["one", "100 % of two"])
        outlet.write(lambda width: ["beware"], "warning")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "one"),
        ("INFO", "100 % of two"),
        ("WARNING", "beware"),
    ]
