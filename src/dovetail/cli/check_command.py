"""`dovetail check`: is the solution in a result file valid? The predictors are evaluated again."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.exit_code import ExitCode, one_line
from dovetail.cli.solve_command import PredictorOption, ProblemPath, TrustOption

if TYPE_CHECKING:
    from dovetail.core.check import Violation
    from dovetail.core.problem import Problem
    from dovetail.run.result import Result

KINDS = {
    "rows": "constraints",
    "bounds": "bounds",
    "integrality": "integrality",
    "prediction": "predictions",
}
"""Violations that decide whether a solution passes, in words."""


def check(
    problem: ProblemPath,
    result: Annotated[Path, typer.Argument(help="A result file, as --solution writes it.")],
    predictor: PredictorOption = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Verify the bound too, by a file that --certificate wrote.")
    ] = None,
    trust: TrustOption = False,
) -> None:
    """Check the solution of a result again: constraints, bounds, integers and predictions.

    No solver is used. The exit code is 0 if everything holds, otherwise 1.
    """
    from dovetail.cli.outputs import read_result, require_same_columns
    from dovetail.problem_file.description import FileDescription

    description = FileDescription.read(problem, predictor or ())
    claimed = read_result(result)
    if claimed.x is None:
        typer.echo(f"There is no solution to check: the status is {claimed.status.value}.")
        raise typer.Exit(ExitCode.NOTHING_FOUND)
    ready = description.problem(trust=trust)
    require_same_columns(result, claimed, ready)
    violation = _point(ready, claimed)
    holds = violation.within() & _objective_holds(ready, claimed)
    against = _contradiction(ready, claimed)
    if against:
        _print_check(False, "bound", against)
    if certificate is not None:
        holds &= _bound_holds(ready, claimed, certificate)
    elif claimed.bound is not None and not against:
        said = f"{claimed.bound:.10g}, as the file says (--certificate verifies it)"
        _print_finding("  - ", "bound", said)
    holds &= not against
    typer.echo("Everything holds." if holds else "A check FAILED, or a claim cannot be confirmed.")
    raise typer.Exit(ExitCode.FINE if holds else ExitCode.NOTHING_FOUND)


def _point(problem: Problem, claimed: Result) -> Violation:
    """Check the solution and print its violations."""
    import dovetail
    from dovetail.core.mip import TOLERANCE

    assert claimed.x is not None
    violation = dovetail.check(problem, claimed.x)
    for kind, words in KINDS.items():
        worst = getattr(violation, kind)
        _print_check(worst.amount <= TOLERANCE, words, f"largest violation {worst}")
    if not violation.steady() and violation.within():
        _print_finding("  - ", "rounding", f"on another processor {violation.rounding} may be violated")
    return violation


def _objective_holds(problem: Problem, claimed: Result) -> bool:
    """Whether the claimed objective equals that of the solution, in float64; unbounded problems have none."""
    from dovetail.core.mip import TOLERANCE

    assert claimed.x is not None
    if claimed.objective is None:
        return True
    objective = problem.mip.objective(claimed.x)
    holds = abs(objective - claimed.objective) <= TOLERANCE * max(1.0, abs(objective))
    _print_check(
        holds, "objective", f"{objective:.10g}" + ("" if holds else f", not {claimed.objective:.10g}")
    )
    return holds


def _contradiction(problem: Problem, claimed: Result) -> str:
    """The contradiction between the file's claims about the bound; "" if there is none."""
    from dovetail.core.mip import HAIR
    from dovetail.run.bound import GapLimit
    from dovetail.run.result import Status

    assert claimed.x is not None
    if claimed.objective is None:
        return ""
    mip, objective = problem.mip, problem.mip.objective(claimed.x)
    if claimed.bound is None:
        return "the file says optimal and has no bound" if claimed.status is Status.OPTIMAL else ""
    if mip.sign * (claimed.bound - objective) > HAIR * (1.0 + abs(objective)):
        return (
            f"the file says that no solution is better than {claimed.bound:.10g}, but this one is: "
            f"{objective:.10g}"
        )
    allowed = GapLimit().allowed(objective) if claimed.allowed_gap is None else claimed.allowed_gap
    if claimed.status is Status.OPTIMAL and abs(objective - claimed.bound) > (1.0 + HAIR) * allowed + HAIR:
        return (
            f"the file says optimal, but its bound {claimed.bound:.10g} is farther than {allowed:.2g} from "
            f"{objective:.10g}"
        )
    return ""


def _bound_holds(problem: Problem, claimed: Result, certificate: Path) -> bool:
    """Whether the certificate is valid and confirms the claimed bound."""
    import dovetail
    from dovetail.certificates.certificate import SHORT
    from dovetail.core.mip import HAIR

    assert claimed.x is not None
    found = dovetail.check(
        problem, claimed.x, certificate=dovetail.read_certificate(certificate)
    ).verification
    text, holds = str(found), found.holds
    if holds and found.bound is not None and claimed.bound is not None:
        sign = problem.mip.sign
        short = sign * (claimed.bound - found.bound)
        holds = short <= SHORT * (1.0 + abs(claimed.bound))
        if not holds:
            text += f", but the file claims {claimed.bound:.10g}"
        elif short > HAIR:
            text += ", of constraints relaxed as in the check; "
            text += f"the file claims {claimed.bound:.10g} of the constraints as written"
    _print_check(holds, "bound", text)
    return holds


def _print_check(holds: bool, what: str, text: str) -> None:
    _print_finding("  ok" if holds else "  NO", what, text)


def _print_finding(mark: str, what: str, text: str) -> None:
    from dovetail.report.log.outlet import width_of

    first = f"{mark}  {what:<12} "
    width = max(width_of(sys.stdout), len(first) + 1)
    typer.echo(fill(one_line(text), width, initial_indent=first, subsequent_indent=" " * len(first)))
