"""Result files: checked before a solve, written after it, and read with errors that name the file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.files import require_writable, text_of, write_file

if TYPE_CHECKING:
    from dovetail.certificates.certificate import Certificate
    from dovetail.run.result import Result
if TYPE_CHECKING:  # commands that read no result need no numpy
    from dovetail.core.problem import Problem
    from dovetail.run.result import Result


@dataclass(frozen=True)
class Outputs:
    """The files to write."""

    solution: Path | None = None
    report: Path | None = None
    certificate: Path | None = None

    def require_writable(self, inputs: Iterable[Path]) -> None:
        """Refuse, before the solve, files that cannot be written or would overwrite an input."""
        taken = {os.path.realpath(path): "it is an input file" for path in inputs}
        for path in filter(None, (self.solution, self.report, self.certificate)):
            place = os.path.realpath(path)
            if place in taken:
                raise OptionError(f"{path} cannot be written: {taken[place]}; give another name.")
            if not Path(place).exists() or Path(place).is_file():
                taken[place] = "two outputs have this name"
            require_writable(path)

    def write(self, result: Result) -> list[str]:
        """Write the requested files and return a message for each; a failure does not affect the other
        files."""
        from dovetail.run.failures import expendable

        written: list[str] = []
        failures: list[DovetailError] = []
        for name, path, write in (
            (
                "solution",
                self.solution,
                lambda result, path: _line("solution", write_file(path, result.to_json() + "\n")),
            ),
            ("report", self.report, lambda result, path: _line("report", result.report(path))),
            ("certificate", self.certificate, _certificate),
        ):
            if path is None:
                continue
            line = f"{name:<11} none: it could not be written"
            with expendable(name):
                try:
                    line = write(result, path)
                except DovetailError as failure:
                    failures.append(failure)
                    continue
            written.append(line)
        if failures:
            raise failures[0]
        return written


def _line(what: str, path: Path) -> str:
    return f"{what:<11} {path}"


def _certificate(result: Result, path: Path) -> str:
    certificate = None if result.stop_reason.value == "interrupt" else result.certificate
    if certificate is None:
        return f"certificate none: the bound has no certificate, and nothing is written to {path}"
    return f"certificate {certificate.save(path)}{_falls_short(result, certificate)}"


def _falls_short(result: Result, certificate: Certificate) -> str:
    """A note if the certificate proves less than the bound."""
    from dovetail.certificates.proof import CertificateKind
    from dovetail.core.mip import TOLERANCE

    bound, sign = result.bound, -1.0 if result.facts is not None and result.facts.sense == "max" else 1.0
    assert bound is not None
    if certificate.kind is CertificateKind.SOLVER:
        return f": reported by {certificate.source}; `dovetail check` cannot verify it"
    proved = sign * certificate.bound
    if abs(proved - bound) <= TOLERANCE * max(1.0, abs(bound)):
        return ""
    return f": it proves {proved:.10g} only, not the bound {bound:.10g}"


def read_result(path: Path) -> Result:
    """The result in a file that `--solution` or `Result.to_json` wrote."""
    from dovetail.run.result import Result
    from dovetail.solving.starts import LARGEST

    text = text_of(path, LARGEST)
    try:
        return Result.from_json(text)
    except OptionError as reason:
        raise OptionError(f"{path}: {reason}") from None


def require_same_columns(path: Path, result: Result, problem: Problem) -> None:
    """Refuse the result of another problem."""
    assert result.x is not None
    mip = problem.mip
    if result.names != mip.names or result.x.size != mip.n_columns:
        mine, theirs = set(mip.names or ()), set(result.names or ())
        other = sorted(mine ^ theirs)
        why = f"{other[0]!r} is in only one of the two" if other else "their variables are in another order"
        raise OptionError(f"{path} is the result of another problem: {why}.")
