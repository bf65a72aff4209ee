"""Exit codes; docs/command_line.md has the same list."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from dovetail.run.environment import termination

if TYPE_CHECKING:
    from dovetail.run.result import Result


class ExitCode(IntEnum):
    """Exit codes of every command; 2 is also the code for misspelt options."""

    FINE = 0
    """A verified solution (optimal or feasible), or success of another command."""
    NOTHING_FOUND = 1
    """No candidate passed the check, and nothing is proved; or `check` finds a violation, or `migrate`
    leaves calls that have to be changed by hand."""
    BAD_INPUT = 2
    """A file, an option or a folder is invalid; nothing was written."""
    INFEASIBLE = 3
    UNBOUNDED = 4
    FAILED = 5
    """A predictor or a sub-solver failed; the best solution so far was written, if there is one."""
    INTERRUPTED = 130
    """Ctrl-C; the best solution so far was written, if there is one. 128 + 2, as in every shell."""
    TERMINATED = 143
    """SIGTERM; the best solution so far was written, if there is one. 128 + 15, as in every shell."""


def interrupted() -> ExitCode:
    """The exit code after an interrupt: by SIGTERM, or by Ctrl-C."""
    return ExitCode.TERMINATED if termination.is_set() else ExitCode.INTERRUPTED


def exit_code(result: Result) -> ExitCode:
    """The exit code for a result."""
    if result.stop_reason.value == "interrupt":
        return interrupted()
    codes = {
        "optimal": ExitCode.FINE, "feasible": ExitCode.FINE, "no_solution": ExitCode.NOTHING_FOUND,
        "infeasible": ExitCode.INFEASIBLE, "unbounded": ExitCode.UNBOUNDED, "error": ExitCode.FAILED,
    }  # fmt: skip
    return codes[result.status.value]


def one_line(text: object) -> str:
    """The text in one line, with control and formatting characters spelt out."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in " ".join(str(text).split())
    )
