"""A result as HTML: a small table for notebooks, and one self-contained page.

Names come from the user, so everything is escaped; the page loads nothing.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

Result = Any
"""A `dovetail.Result`. It knows its page, so the page does not know its class."""

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; color: #222 }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .2rem .8rem; text-align: left; border-bottom: 1px solid #ddd }
figure { margin: 1rem 0 }
figcaption { color: #555 }
"""


def summary(result: Result) -> str:
    """The result as one table."""
    return _table(_facts(result))


def document(result: Result) -> str:
    """The result as a page: facts, violations, the course of the iterations."""
    parts = [
        f"<h1>dovetail: {escape(result.status.value)}</h1>",
        f"<p>{escape(result.message)}</p>",
        summary(result),
    ]
    if len(result.trace) > 1:
        incumbents = result.trace.column("incumbent")
        parts.append(_chart("Best verified objective by iteration", incumbents))
        if any(row.residuals for row in result.trace):
            residuals = [_log10(row.primal) for row in result.trace]
            parts.append(_chart("Largest primal residual by iteration (logarithm)", residuals))
    body = "\n".join(parts)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>dovetail result</title><style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


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


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else math.nan


def _chart(title: str, values: list[float], width: int = 640, height: int = 200) -> str:
    """A line of values by iteration as inline SVG, with the smallest and largest value written beside it."""
    points = [(k, v) for k, v in enumerate(values) if math.isfinite(v)]
    if not points:
        return f"<figure><figcaption>{escape(title)}: nothing to show.</figcaption></figure>"
    low, high = min(v for _, v in points), max(v for _, v in points)
    left, right, top, bottom = 70, width - 10, 10, height - 25
    across, up = (right - left) / max(len(values) - 1, 1), (bottom - top) / ((high - low) or 1.0)
    line = " ".join(f"{left + across * k:.1f},{bottom - up * (v - low):.1f}" for k, v in points)
    last = f"{len(values)} iterations"
    return (
        f'<figure><svg width="{width}" height="{height}" role="img" aria-label="{escape(title)}">'
        f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#999"/>'
        f'<polyline points="{line}" fill="none" stroke="#0a6" stroke-width="2"/>'
        f'<g font-size="12"><text x="4" y="{top + 8}">{high:.5g}</text>'
        f'<text x="4" y="{bottom}">{low:.5g}</text><text x="{left}" y="{height - 6}">1</text>'
        f'<text x="{right}" y="{height - 6}" text-anchor="end">{last}</text></g>'
        f"</svg><figcaption>{escape(title)}</figcaption></figure>"
    )
