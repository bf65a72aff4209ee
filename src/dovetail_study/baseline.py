"""What is kept of a run of big-M besides what is kept of every run: writing told from solving."""

from __future__ import annotations

import dovetail as dt
from dovetail_study.run import Record


def baseline_fields(result: dt.Result | None) -> Record:
    """The fields of a row that only big-M has; `result` is None where it refused the problem.

    `end` is "proved", "time" (SCIP searched to its limit), "writing" (never finished writing), "memory",
    "infeasible" (SCIP's word, which is not believed), "refused" or "other"; `scip` is SCIP's own last word.
    """
    written = None if result is None else result.written
    if written is None:  # refused; or over before anything was written, the host being infeasible
        nothing = ("writing_seconds", "solving_seconds", "memory_gb", "variables", "constraints", "scip")
        return {**dict.fromkeys(nothing), "end": "refused" if result is None else "other"}
    return {
        "writing_seconds": round(written.writing_seconds, 4),
        "solving_seconds": _rounded(written.solving_seconds),
        "memory_gb": _rounded(written.memory_gb),
        "variables": written.variables,
        "constraints": written.constraints,
        "scip": written.said,
        "end": written.end.value,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
