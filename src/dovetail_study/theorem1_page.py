"""Theorem 1, shown: tables of what the families did, and their curves."""

from __future__ import annotations

from typing import Any

from dovetail_study.experiment import Rows
from dovetail_study.families import FAMILIES, TheoremFamily
from dovetail_study.figures import LinesPanel
from dovetail_study.statistics import average, text, where
from dovetail_study.table import ResultTable
from dovetail_study.theorem1 import ITERATIONS, agrees, bounded, optimal, rate_holds, settles

FLOOR = 1e-8
"""Smaller residuals are drawn as this."""


def tables(rows: Rows) -> list[ResultTable]:
    """What the theorem concludes, and what its merit does; one row per family each."""
    by_family = {family: where(rows, family=family.name) for family in FAMILIES}
    there = {family: mine for family, mine in by_family.items() if mine}
    conclusions, merit = _conclusions(), _merit()
    conclusions.rows += [_concluded(family, mine) for family, mine in there.items()]
    merit.rows += [_measured(family, mine) for family, mine in there.items()]
    conclusions.records = merit.records = rows
    return [conclusions, merit] if there else []


def _conclusions() -> ResultTable:
    return ResultTable(
        "theory",
        "Theorem 1: what it concludes, both steps solved to the end",
        (
            "family", "assumptions hold", "runs", "u = x at the end", "last residual", "rate O(1/k) kept",
            "Lagrangian settles", "prices bounded", "KKT points", "agreed point optimal",
            "best visited optimal",
        ),
        reading=(
            "Counts of runs; rho is 1.5 L unless the family says otherwise. MIP steps by HiGHS, by PIQP "
            "where there are no integers; network steps to the last digit. *Assumptions hold*: those of the "
            "paper's Theorem 1, of the repaired one (docs/theory.md), or both. *KKT points* are solutions of "
            "its system among the points that X and C share, by enumeration. Without limits "
            "on u (C is everything) the theorem's conclusions are right. Where C binds they are not, though "
            "X and C share points and Slater's condition holds. Where X and C share no point, which "
            "Assumption 1 allows, u and x cycle at a distance; where a plane separates them the prices grow "
            "for ever. A whole point is a KKT point as soon as rho/2 is at least the largest slope there, so "
            "there may be many, and the one the loop agrees on need not be the best."
        ),
    )  # fmt: skip


def _merit() -> ResultTable:
    return ResultTable(
        "theory-merit",
        "Theorem 1: what its merit does, counted in iterations",
        (
            "family", "rho over L", "iterations", "dual step raises it", "whole iteration raises it",
            "short of the repaired lemma", "short of the paper's, as proved",
            "short of the paper's, as printed",
        ),
        reading=(
            "The merit is the augmented Lagrangian after the dual update, compared from the second iteration "
            "on. The paper's proof has it *fall* by half rho times |u - x|² in the dual step; by its own "
            "definition it *rises* by rho times that. The whole iteration lowers it all the same wherever C "
            "is everything and rho is above L (above 2 L where g is not convex), by the repaired lemma; it "
            "is counted here with the largest entry of the change of u, which is at most its norm: a weaker "
            "demand than the lemma's. *Prices bounded* is passed by growth like a logarithm too. The paper's "
            "lemma promises a fall of (rho - L)/2 |u - x|²: with u and x after the iteration, as its proof "
            "has it, that is true there too; with u and x before it, as it is printed, it is not."
        ),
    )  # fmt: skip


def _whose(family: TheoremFamily) -> str:
    return {(True, True): "both", (True, False): "paper's", (False, True): "repaired"}.get(
        (family.assumed, family.repaired), "none"
    )


def _concluded(family: TheoremFamily, mine: Rows) -> list[str]:
    held = [str(sum(map(holds, mine))) for holds in (rate_holds, settles, bounded)]
    return [
        family.name,
        _whose(family),
        str(len(mine)),
        str(sum(map(agrees, mine))),
        text(average(mine, "last_residual"), 2),
        *held,
        f"{text(average(mine, 'kkt'))} of {text(average(mine, 'points'))}" if family.whole else "–",
        _share_optimal(mine, "last_objective"),
        _share_optimal(mine, "objective"),
    ]


def _share_optimal(rows: Rows, name: str) -> str:
    known = [row for row in rows if row["optimum"] is not None and (name == "objective" or agrees(row))]
    return f"{sum(optimal(row, name) for row in known)} of {len(known)}" if known else "–"


def _measured(family: TheoremFamily, mine: Rows) -> list[str]:
    names = ("dual_rises", "merit_rises", "short_of_repaired", "short_of_proof", "short_of_printed")
    # each lemma is only asked where it speaks
    asked = (True, True, family.repaired, family.assumed, family.assumed)
    counts = [
        str(sum(row[name] for row in mine)) if ask else "–" for name, ask in zip(names, asked, strict=True)
    ]
    return [family.name, text(mine[0]["rho"] / mine[0]["L"]), str(sum(row["steps"] for row in mine)), *counts]


def panels(rows: Rows) -> list[LinesPanel]:
    """Residual and merit of the first seed's first problem, family by family."""
    drawn = [row for row in rows if "residuals" in row]
    if not drawn:
        return []
    seed = drawn[0]["seed"]
    shown = {row["family"]: row for row in where(drawn, seed=seed)}
    residuals = {family: _curve([max(r, FLOOR) for r in row["residuals"]]) for family, row in shown.items()}
    residuals["k^-1/2, as proved"] = _curve([k**-0.5 for k in range(1, ITERATIONS + 1)])
    merits = {family: _curve(row["merits"]) for family, row in shown.items()}
    axes: dict[str, Any] = {"x": "iteration k", "log_x": True}
    return [
        LinesPanel(
            f"residual, seed {seed}", y="largest |u - x| (floor 1e-8)", series=residuals, log_y=True, **axes
        ),
        LinesPanel(f"merit, seed {seed}", y="value", series=merits, **axes),
    ]


def _curve(values: list[float]) -> list[tuple[float, float]]:
    return [(float(k), value) for k, value in enumerate(values, start=1)]
