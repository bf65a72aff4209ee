"""The live line is one line, goes away, and lets nothing through that a name contains."""

import io
import re

from dovetail.report.log.live import LiveOutlet, can_be_live

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_only_a_terminal_that_can_move_its_cursor(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert can_be_live(Terminal())
    assert not can_be_live(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not can_be_live(Terminal())


def test_lines_stay_and_the_live_line_goes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    outlet = LiveOutlet(stream)
    outlet.write(lambda width: ["[bold]first[/bold] :smile:"], "section")
    outlet.show("| working")
    outlet.write(lambda width: [f"{width} columns"])
    outlet.show("/ working " + "x" * 200)
    outlet.close()
    outlet.close()
    raw = stream.getvalue()
    assert raw.count("\x1b[?25l") == raw.count("\x1b[?25h") == 1  # the cursor is back
    text = ESCAPES.sub("", raw)
    assert "[bold]first[/bold] :smile:\n" in text and "59 columns\n" in text
    assert all(len(line) <= 60 for line in re.split("[\r\n]", text))
    assert raw.endswith("\x1b[2K")  # what is left of the live line is nothing


def test_a_narrow_terminal_gets_whole_words(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    outlet = LiveOutlet(stream)
    outlet.show("| 12.4 s  first integer search  best 37.4049  MIP only: 900.125  282,073 evaluations")
    outlet.close()
    shown = {line.strip() for line in re.split("[\r\n]", ESCAPES.sub("", stream.getvalue()))} - {""}
    assert shown == {"| 12.4 s  first integer search  best 37.4049"}


def test_a_solve_inside_another_is_plain(monkeypatch):
    from rich.console import Console
    from rich.file_proxy import FileProxy

    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    assert not can_be_live(FileProxy(Console(file=stream), stream))
