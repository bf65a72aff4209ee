"""Where one solve spends its time: the five timers, and milliseconds per iteration."""

from __future__ import annotations

import dovetail as dt
from dovetail_study.experiment import ResultTable
from dovetail_study.problems.water import water

TIMERS = ("engine", "network", "sub-solver", "check", "rest")


def run(n: int = 400, network: str = "6x128") -> ResultTable:
    instance = water(n, network)
    table = ResultTable(
        "timers",
        f"Where the time goes: water, n = {n}, {network}",
        ["method", "ms/iteration", *TIMERS, "untouched", "potable", "flipped"],
    )
    rests = []
    for name in ("dual-decomposition", "paper"):
        result = dt.solve(instance.problem, name, time_limit=300, log=False)
        shares, counts = result.profile.shares(), instance.counts(result)
        rests.append(shares["rest"])
        table.rows.append(
            [
                name,
                f"{1000 * result.seconds / max(1, result.iterations):.0f}",
                *[f"{100 * share:.1f} %" for share in shares.values()],
                *[str(count) for count in (counts.untouched, counts.potable, counts.flipped)],
            ]
        )
    table.reading = f"Largest rest: {100 * max(rests):.1f} % (wanted: at most 10 %)."
    return table
