"""Theorem 1, run: what Algorithm 1 does on the families, and what a row of it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import dovetail as dt
from dovetail_study.contestants import contest
from dovetail_study.exact_step import ExactStep
from dovetail_study.families import BY_NAME, Example, TheoremFamily
from dovetail_study.run import BenchSettings, Record, Run

ITERATIONS, QUICK_ITERATIONS = 200, 24
"""Four times the paper's 50, so that a rate can be seen."""
LONG = 1500
"""Where C binds: u and x that still differ then differ for ever, as far as can be seen."""
INSTANCES, QUICK_INSTANCES = 4, 1
"""Problems per family and seed: a share needs more of them than there are seeds."""
AGREED = 1e-4
"""The paper's tolerance."""
ROUNDING = 1e-9
"""Relative to the merit, or to 1: what float64 and two exact steps leave, with room."""
REST = 20
"""Last values of the Lagrangian that are compared, a quarter of a quick run's at most: a cycle is shorter."""
PATIENCE = 600.0
"""Seconds, in place of the bench's limit: these runs end after their iterations, whatever the clock says."""


def iterations(family: TheoremFamily, quick: bool) -> int:
    """How long a run of that family is."""
    return QUICK_ITERATIONS if quick else LONG if family.limit == "binding" else ITERATIONS


def execute(run: Run, settings: BenchSettings) -> Record:
    """Algorithm 1 on an example, both steps exact."""
    example = Example(BY_NAME[run["family"]], run.seed, run["instance"])
    count = iterations(example.family, settings.quick)
    step, settings = example.step(), replace(settings, time_limit=PATIENCE)
    row, result = contest(example.problem(), run, settings, example.method(step, count))
    assert result is not None
    numbers = {name: getattr(example, name) for name in ("L", "m", "rho", "fall")}
    followed = _followed(result.trace, count) | _merit(result.trace, example) | _prices(step, count)
    return row | numbers | followed | example.truth() | _curves(result.trace, run)


def _followed(trace: dt.Trace, count: int) -> Record:
    """Residuals and the Lagrangian, as far as they are judged."""
    residuals = trace.column("primal")
    last = trace.column("lagrangian")[-min(REST, count // 4) :]
    return {
        "last_residual": residuals[-1],
        "least_residuals": [min(residuals[: max(1, end)]) for end in (count // 4, count)],
        "unrest": (max(last) - min(last)) / max(1.0, abs(last[-1])),
        "last_objective": trace[-1].objective,
    }


def _merit(trace: dt.Trace, example: Example) -> Record:
    """Iterations in which the merit behaves otherwise than a lemma says; the first has none before it."""
    lagrangian, merit = (np.array(trace.column(name)) for name in ("lagrangian", "merit"))
    apart = (merit - lagrangian) / example.rho  # the dual step adds rho |u - x|^2
    moved = (np.array(trace.column("dual")) / example.rho) ** 2  # largest entry, so at most |u(k) - u(k-1)|^2
    change = np.diff(merit) - ROUNDING * np.maximum(1.0, np.abs(merit[1:]))
    margin = 0.5 * (example.rho - example.L)
    return {
        "steps": len(change),
        "dual_rises": int((merit > lagrangian + 1e-12).sum()),
        "dual_falls": int((merit < lagrangian - 1e-12).sum()),
        "merit_rises": int((change > 0.0).sum()),
        "highest_rise": float(np.diff(merit).max(initial=0.0)),
        "short_of_repaired": int((change > -example.fall * moved[1:]).sum()),
        "short_of_proof": int((change > -margin * apart[1:]).sum()),
        "short_of_printed": int((change > -margin * apart[:-1]).sum()),
    }


def _prices(step: ExactStep, count: int) -> Record:
    """The largest norm of the multipliers up to the end of each quarter."""
    return {"prices": [max(step.prices[: max(1, count * quarter // 4)]) for quarter in (1, 2, 3, 4)]}


def _curves(trace: dt.Trace, run: Run) -> Record:
    """What is drawn: of one problem per family and seed, and no longer than the others."""
    if run["instance"] > 0:
        return {}
    return {
        "residuals": [float(f"{value:.4g}") for value in trace.column("primal")[:ITERATIONS]],
        "merits": [float(f"{value:.10g}") for value in trace.column("merit")[:ITERATIONS]],
    }


def agrees(row: Record) -> bool:
    """u = x at the end."""
    return bool(row["last_residual"] <= AGREED)


def bounded(row: Record) -> bool:
    """Prices stop growing: a last quarter that adds half of what the second added, or 1 %, at most.

    What grows along a line adds as much in every quarter; growth like a logarithm passes.
    """
    first, second, third, last = row["prices"]
    return bool(last - third <= 0.5 * (second - first) + 0.01 * first + AGREED)


def rate_holds(row: Record) -> bool:
    """k times the least squared residual does not grow from a quarter of the iterations to all of them."""
    early, late = row["least_residuals"]
    return bool(4.0 * late**2 <= 1.1 * early**2 or late <= AGREED)


def settles(row: Record) -> bool:
    """The augmented Lagrangian comes to rest."""
    return bool(row["unrest"] <= AGREED)


def optimal(row: Record, name: str) -> bool:
    """Whether that objective is the optimum found by enumeration."""
    return bool(row[name] is not None and row[name] <= row["optimum"] + AGREED)
