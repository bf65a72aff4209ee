"""Commands in this process: torch is imported once, and a start costs nothing."""

import contextlib
import io
import sys
from typing import NamedTuple

import pytest

from dovetail.cli import main


class Ran(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str


def dovetail(*arguments, columns=120) -> Ran:
    """Run a command as a shell would."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["dovetail", *map(str, arguments)])
        patch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as end:
            main()
    return Ran(int(end.value.code or 0), out.getvalue(), err.getvalue())


def refused(*arguments) -> str:
    """The one line that a command ends with that does nothing."""
    ran = dovetail(*arguments)
    assert ran.code == 2, ran
    assert ran.err.startswith("dovetail: ")
    assert len(ran.err.splitlines()) == 1, ran.err
    assert "Traceback" not in ran.err
    return ran.err.removeprefix("dovetail: ").strip()
