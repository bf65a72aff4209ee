"""Theorem 1, judged: boundedness, agreement, rates, the worth of its KKT points, its lemma, its proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dovetail_study.experiment import Rows
from dovetail_study.families import BY_NAME
from dovetail_study.run import Record
from dovetail_study.statistics import average, text
from dovetail_study.theorem1 import agrees, bounded, optimal, rate_holds, settles
from dovetail_study.verdict import Verdict, judged


def verdicts(rows: Rows) -> list[Verdict]:
    """One per statement of the theorem, one for its lemma, one for the proof, one for the repair."""
    assumed = [row for row in rows if BY_NAME[row["family"]].assumed]
    return [
        _statement(
            "Theorem 1: the iterates stay bounded",
            "proved",
            f"prices keep growing in {_outside(assumed, bounded)}",
            assumed,
            bounded,
            "x lies in a box; prices (largest norm so far) add over the last quarter of the iterations at "
            "most half of what they added over the second, or 1 % (growth like a logarithm would pass)",
        ),
        _agreement(rows, assumed),
        _worth([row for row in assumed if row["kkt"] is not None]),
        _statement(
            "Theorem 1: residuals fall like O(1/k)",
            "proved",
            f"they do not in {_outside(assumed, rate_holds)}",
            assumed,
            rate_holds,
            "k times the least squared residual at the end at most 1.1 times what it was after a quarter, or "
            "the residual is 1e-4",
        ),
        _statement(
            "Theorem 1: the augmented Lagrangian converges",
            "like O(1/k)",
            f"it does not in {_outside(assumed, settles)}",
            assumed,
            settles,
            "its last 20 values are within 1e-4 of each other; the rate is not judged",
        ),
        _lemma(assumed),
        _dual_step(assumed),
        _repaired([row for row in rows if BY_NAME[row["family"]].repaired]),
    ]


def _statement(
    claim: str, paper: str, ours: str, assumed: Rows, holds: Callable[[Record], bool], rule: str
) -> Verdict:
    """What the theorem says of every run: one that meets its assumptions and does otherwise refutes it."""
    return judged(
        claim,
        paper,
        ours,
        holds=all(map(holds, assumed)) if assumed else None,
        in_part=all(map(holds, _of(assumed, ""))),
        rule=f"{rule}; in every run under the assumptions; in part: in every one where C is everything",
        rows=assumed,
    )


def _of(rows: Rows, limit: str) -> Rows:
    """The rows whose C is of that kind."""
    return [row for row in rows if BY_NAME[row["family"]].limit == limit]


def _count(rows: Rows) -> str:
    return f"{sum(map(agrees, rows))} of {len(rows)}"


def _outside(rows: Rows, holds: Callable[[Record], bool]) -> str:
    """Where something does not hold, by what C is."""
    kinds = {
        "": "C is everything",
        "binding": "C binds",
        "apart": "X and C share no point",
        "separated": "a plane separates X and C",
    }
    parts = []
    for limit, words in kinds.items():
        mine = _of(rows, limit)
        parts.append(f"{sum(not holds(row) for row in mine)} of {len(mine)} where {words}")
    return ", ".join(parts)


def _agreement(rows: Rows, assumed: Rows) -> Verdict:
    small = [row for row in rows if row["rho"] < row["L"]]
    binding = _of(assumed, "binding")
    iterations = max((row["steps"] + 1 for row in binding), default=0)
    return _statement(
        "Theorem 1: every limit is a KKT point (u = x)",
        "proved",
        f"u = x at the end in {_count(_of(assumed, ''))} runs where C is everything; "
        f"{_count(binding)} where C binds and shares points with X, after up to {iterations:,} iterations "
        f"(in {sum(row['kkt'] == 0 for row in binding)} none of those points is a KKT point); "
        f"{_count(_of(assumed, 'apart'))} where they share none, {_count(_of(assumed, 'separated'))} where a "
        f"plane is between them; {_count(small)} with rho < L",
        assumed,
        agrees,
        "the last residual is at most 1e-4",
    )


def _worth(whole: Rows) -> Verdict:
    agreed = [row for row in whole if agrees(row)]
    best = sum(optimal(row, "last_objective") for row in agreed)
    return judged(
        "Introduction: no loss of optimality, at a KKT point",
        "without loss of optimality",
        f"with integers {text(average(agreed, 'kkt'))} of {text(average(agreed, 'points'))} points shared by "
        f"X and C are KKT points; the agreed one was optimal in {best} of the {len(agreed)} runs, of "
        f"{len(whole)}, that agreed",
        holds=best == len(agreed) if agreed else None,
        in_part=2 * best >= len(agreed),
        rule="the agreed point is the enumerated optimum in every run whose last residual is at most 1e-4; "
        "in part: in half of them",
        rows=whole,
    )


def _lemma(assumed: Rows) -> Verdict:
    free, limited = _of(assumed, ""), [row for row in assumed if BY_NAME[row["family"]].limit]
    proof, printed, steps = (
        sum(row[name] for row in free) for name in ("short_of_proof", "short_of_printed", "steps")
    )
    rises = sum(row["merit_rises"] for row in limited)
    return judged(
        "Lemma to Theorem 1: each iteration lowers the merit by (rho - L)/2 |u - x|^2",
        "proved",
        f"where C is everything short of it in {proof} of {steps:,} iterations with u and x after the "
        f"iteration, as its proof has it, in {printed} with u and x before it, as printed; where C limits u "
        f"the merit rises in {rises:,} of {sum(row['steps'] for row in limited):,}",
        holds=printed == 0 and rises == 0 if assumed else None,
        in_part=proof == 0,
        rule="it falls by that in every iteration from the second on; in part: it does where C is "
        "everything, with u and x after the iteration",
        rows=assumed,
    )


def _dual_step(assumed: Rows) -> Verdict:
    rises, falls = (sum(row[name] for row in assumed) for name in ("dual_rises", "dual_falls"))
    return judged(
        "Proof of Theorem 1: the dual step lowers the merit",
        "falls by rho/2 |u - x|^2",
        f"rises in {rises:,} iterations, falls in {falls}",
        holds=falls > 0 and rises == 0 if assumed else None,
        rule="it falls in every iteration in which u and x differ",
        rows=assumed,
    )


def _repaired(rows: Rows) -> Verdict:
    rises, short, steps = (
        sum(row[name] for row in rows) for name in ("merit_rises", "short_of_repaired", "steps")
    )
    verdict = judged(
        "Theorem 1 repaired (ours): C everything, rho > L, or 2 L where g is not convex",
        "not in the paper",
        f"the merit rises in {rises} of {steps:,} iterations and falls short of the lemma in {short}; u = x "
        f"at the end in {_count(rows)} runs; prices bounded in {sum(map(bounded, rows))}",
        holds=rises == short == 0 and all(agrees(row) and bounded(row) for row in rows) if rows else None,
        rule="the merit never rises, falls by what docs/theory.md proves, u = x at the end, prices bounded",
        rows=rows,
    )
    return replace(verdict, counted=False)  # ours, not the paper's
