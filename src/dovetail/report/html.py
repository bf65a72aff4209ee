"""A result as HTML: a small table for notebooks. Names come from the user, so everything is escaped."""

from __future__ import annotations

from html import escape
from typing import Any

Result = Any
"""A `dovetail.Result`. It knows its table, so the table does not know its class."""


def summary(result: Result) -> str:
    """The result as one table."""
    return _table(_facts(result))


def _facts(result: Result) -> list[tuple[str, str]]:
    facts = [
        ("status", f"{result.status.value} (stopped: {result.stop_reason.value})"),
        ("objective", _say(result.objective)),
        ("bound", f"{_say(result.bound)} ({result.bound_kind.value})"),
        ("gap", "-" if result.gap is None else f"{100 * result.gap:.3g} %"),
        ("method", result.method),
        ("iterations", str(result.iterations)),
        ("seconds", f"{result.seconds:.2f}"),
    ]
    if result.residual is not None:
        facts.append(("residual", f"{result.residual:.2e}"))
    if result.violation is not None:
        for kind in ("rows", "bounds", "integrality", "prediction", "precision", "rounding"):
            facts.append((f"worst {kind}", str(getattr(result.violation, kind))))
    facts += [("outside the training data", str(where)) for where in result.extrapolations[:20]]
    return facts


def _table(facts: list[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts)
    return f"<table>{rows}</table>"


def _say(value: float | None) -> str:
    return "-" if value is None else f"{value:.8g}"
