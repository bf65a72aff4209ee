"""Where the time went, as shares of one bar."""

from __future__ import annotations

from typing import Any, NamedTuple

from dovetail.report.page.number_text import percent, seconds

KINDS = {
    "engine": "MIP, QP and LP solves",
    "network": "passes through the networks",
    "subsolver": "arithmetic of the network step",
    "check": "completing and checking points",
    "rest": "everything else",
}
"""The timers of `run/stopwatch.py`, in words."""


class Share(NamedTuple):
    """One stretch of the bar, in hundredths of its length."""

    colour: int
    begin: float
    length: float
    words: str
    seconds: str
    percent: str


def time_shares(result: Any) -> list[Share]:
    """Every timer that measured anything."""
    total = sum(float(getattr(result.profile, kind)) for kind in KINDS)
    shares, begin = [], 0.0
    for colour, (kind, words) in enumerate(KINDS.items()):
        spent = float(getattr(result.profile, kind))
        if total <= 0.0 or spent <= 0.0:
            continue
        part = spent / total
        shares.append(
            Share(colour, round(begin, 2), round(100 * part, 2), words, seconds(spent), percent(part))
        )
        begin += 100 * part
    return shares
