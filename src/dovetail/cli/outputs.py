"""The files that a solve leaves: looked at before it, written after it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.file_writing import require_writable, write_file

if TYPE_CHECKING:
    from dovetail.certificates.certificate import Certificate
    from dovetail.run.result import Result


@dataclass(frozen=True)
class Outputs:
    """Where a result goes."""

    solution: Path | None = None
    report: Path | None = None
    certificate: Path | None = None

    def require_writable(self, inputs: Iterable[Path]) -> None:
        """Refuse, before any work is done, what could not be written or would destroy something."""
        taken = {os.path.realpath(path): "it is one of the files that are read" for path in inputs}
        for path in filter(None, (self.solution, self.report, self.certificate)):
            place = os.path.realpath(path)
            if place in taken:
                raise OptionError(f"{path} cannot be written: {taken[place]}; give another name.")
            if not Path(place).exists() or Path(place).is_file():
                taken[place] = "it is asked for twice"
            require_writable(path)

    def write(self, result: Result) -> list[str]:
        """Write what is asked for, and say what was; a file that cannot be written spoils no other."""
        from dovetail.run.failures import expendable

        written: list[str] = []
        failures: list[DovetailError] = []
        for name, path, write in (
            ("solution", self.solution, _solution),
            ("report", self.report, _report),
            ("certificate", self.certificate, _certificate),
        ):
            if path is None:
                continue
            line = f"{name:<11} none: it could not be made"
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


def _solution(result: Result, path: Path) -> str:
    return f"solution    {write_file(path, result.to_json() + chr(10))}"


def _report(result: Result, path: Path) -> str:
    return f"report      {result.report(path)}"


def _certificate(result: Result, path: Path) -> str:
    certificate = None if result.stop_reason.value == "interrupt" else result.certificate
    if certificate is None:
        return f"certificate none: there is nothing to write to {path}"
    return f"certificate {certificate.save(path)}{_falls_short(result, certificate)}"


def _falls_short(result: Result, certificate: Certificate) -> str:
    """What the file does not prove of the bound, so that nobody hears of it from `dovetail check` first."""
    from dovetail.certificates.proof import CertificateKind
    from dovetail.core.mip import TOLERANCE

    bound, sign = result.bound, -1.0 if result.facts is not None and result.facts.sense == "max" else 1.0
    assert bound is not None
    if certificate.kind is CertificateKind.SOLVER:
        return f": the word of {certificate.source}, which `dovetail check` cannot look at again"
    proved = sign * certificate.bound
    if abs(proved - bound) <= TOLERANCE * max(1.0, abs(bound)):
        return ""
    return f": it proves {proved:.10g} only, not the bound {bound:.10g}"
