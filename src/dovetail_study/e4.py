"""E4: four kinds of network, one unchanged solver."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product

from dovetail_study import paper
from dovetail_study.claims import Quality, all_solved, in_both, judged_time, read, said
from dovetail_study.contestants import CONTESTANTS, on_water
from dovetail_study.experiment import (
    BenchSettings,
    Experiment,
    Record,
    ResultTable,
    Rows,
    Run,
    Verdict,
    judged,
    runs,
    tried_first,
)
from dovetail_study.figures import Bars, Drawing, LinesPanel
from dovetail_study.sections import COUNTS, ENDING, HOW_TO_READ, ending, how_big_m_ended, reached
from dovetail_study.statistics import (
    Reachable,
    agreed,
    average,
    converged,
    count_of,
    distinct,
    found,
    geometric_mean,
    known,
    mean,
    present,
    share,
    text,
    where,
    worth,
)

CONVERGENCE_ROOM = 0.15
SLOWER = 1.5
"""Times the paper's seconds that count as no slower: another machine."""
EQUAL = 0.05
"""Objectives count as the same within one sample in 20."""
LARGEST, FULLY = max(paper.E4_SIZES), "2x16"


def verdicts(rows: Rows) -> list[Verdict]:
    """Accuracy, distortion and big-M; in both readings of the budgets all requirements on a loop."""
    rows = [row for row in rows if row["n"] in paper.E4_SIZES]
    return [
        _accuracy(where(rows, method="paper")),
        _distortion([row for row in rows if row["method"] in ("paper", "dual-decomposition")]),
        *in_both(rows, _verdicts_of),
        _writing_verdict([row for row in where(rows, method="big-m") if row["network"] in paper.SWAPPED]),
    ]


def _verdicts_of(rows: Rows) -> list[Verdict]:
    loop = where(rows, method="paper")
    largest = where(loop, n=LARGEST)
    return [
        _convergence(loop),
        _seconds(largest, rows),
        _swapped([row for row in largest if row["network"] in paper.SWAPPED], rows),
        _same_objective(rows),
    ]


def _accuracy(rows: Rows) -> Verdict:
    ours = {w: average(where(rows, network=w), "accuracy") for w in paper.ACCURACY}
    return judged(
        f"E4 accuracy of {_kinds(paper.ACCURACY)}",
        ", ".join(f"{value:g}" for value in paper.ACCURACY.values()),
        f"{', '.join(text(value) for value in ours.values())} with networks of our own making, majority "
        f"class {text(average(rows, 'majority'))}: the paper's architectures and training are not published",
        holds=None,
        rule="not judged: other networks have other accuracies",
        rows=rows,
    )


def _distortion(rows: Rows) -> Verdict:
    points = [row for row in rows if found(row)]
    agree = [row for row in points if _own_count(row)]
    verdict = judged(
        "E4 no distortion of the learned models",
        "zero distortion",
        "no method here changes a network, so its accuracy cannot change; what the loop counts as potable is "
        f"what the network itself says of the point in {len(agree)} of {len(points)} points; "
        f"{len(rows) - len(points)} of {len(rows)} runs have none",
        holds=len(agree) == len(points) if points else None,
        rule="every point's objective is the number of samples the network itself calls potable",
        rows=rows,
    )
    return replace(verdict, counted=False)  # the claim cannot fail


def _own_count(row: Record) -> bool:
    """Whether the objective is the count of samples that the network itself judged potable."""
    counted = known([row], "potable")
    claimed = known([row], "objective")
    return bool(counted) and bool(claimed) and abs(counted[0] - claimed[0]) < 0.5


def _convergence(rows: Rows) -> Verdict:
    by_rule, with_proofs = (
        {w: share(where(rows, network=w), ended) for w in paper.CONVERGENCE} for ended in (agreed, converged)
    )
    there = [w for w in paper.CONVERGENCE if math.isfinite(by_rule[w])]

    def near(ours: Mapping[str, float]) -> list[bool]:
        return [abs(ours[w] - paper.CONVERGENCE[w]) <= CONVERGENCE_ROOM for w in there]

    return judged(
        f"E4 convergence of {_kinds(paper.CONVERGENCE)}",
        ", ".join(f"{value:g}" for value in paper.CONVERGENCE.values()),
        f"{', '.join(text(value) for value in by_rule.values())} by its rule |u - x| < 1e-4 (counting runs "
        "that ended before, at a proved optimum: "
        f"{', '.join(text(value) for value in with_proofs.values())})",
        holds=all(near(by_rule)) if there else None,
        in_part=any(near(by_rule)) or any(near(with_proofs)),
        rule=f"by the paper's rule each share within {CONVERGENCE_ROOM:g}, with networks of our own making; "
        "in part: some, or counting runs that ended at a proved optimum, before the blocks could agree",
        rows=rows,
    )


def _seconds(rows: Rows, every: Rows) -> Verdict:
    ours = {w: geometric_mean(known(where(rows, network=w), "seconds")) for w in paper.E4_SECONDS}
    there = {w: value for w, value in ours.items() if math.isfinite(value)}
    fast = [value <= SLOWER * paper.E4_SECONDS[w] for w, value in there.items()]
    return judged_time(
        f"E4 seconds at n = {LARGEST} of {_kinds(paper.E4_SECONDS)}",
        ", ".join(f"{value:g}" for value in paper.E4_SECONDS.values()),
        f"{', '.join(text(value) for value in ours.values())} s (geometric means) to the end; {said(rows)}",
        fast=all(fast) if fast else None,
        part=any(fast),
        solved=all_solved(rows),
        quality=Quality.of(rows, every),
        rule=f"each at most {SLOWER:g} times the paper's; in part: some",
        rows=rows,
    )


def _writing_verdict(rows: Rows) -> Verdict:
    return judged(
        "E4 big-M cannot write Conv1d and LSTM",
        "not supported",
        f"our writer refuses the layer by name in {count_of(rows, _refused)} runs, as PySCIPOpt-ML itself "
        "does",
        holds=all(map(_refused, rows)) if rows else None,
        in_part=any(map(_refused, rows)),
        rule="refused in every run",
        rows=rows,
    )


def _refused(row: Record) -> bool:
    return row.get("status") == "refused"


def _swapped(rows: Rows, every: Rows) -> Verdict:
    seconds = known(rows, "seconds")
    below = bool(seconds) and max(seconds) < paper.SWAPPED_SECONDS
    return judged_time(
        "Introduction: CNN and LSTM solve in less than 47 s",
        f"< {paper.SWAPPED_SECONDS:g} s (its own E4: LSTM about {paper.E4_SECONDS['lstm']:g} s)",
        f"at n = {LARGEST}: {said(rows)}",
        fast=below if seconds else None,
        solved=all_solved(rows),
        quality=Quality.of(rows, every),
        rule=f"every run at n = {LARGEST} ends within {paper.SWAPPED_SECONDS:g} s",
        rows=rows,
    )


def _same_objective(rows: Rows) -> Verdict:
    used, reachable = where(rows, method="paper"), Reachable(rows)
    fully = {(row["n"], row["seed"]): worth(row) for row in where(used, network=FULLY)}
    gaps: dict[tuple[str, int], list[float]] = {}
    for row in used:
        base, mine = fully.get((row["n"], row["seed"])), worth(row)
        if row["network"] in paper.SWAPPED and base and mine is not None:
            gaps.setdefault((row["network"], row["n"]), []).append(mine / base - 1.0)
    apart = [abs(gap) for cell in gaps.values() for gap in cell]
    listed = ", ".join(
        f"{kind} {text(average(where(used, network=w), 'potable'))} "
        f"({_best(reachable, where(used, network=w))})"
        for w, kind in paper.E4_KINDS.items()
        if where(used, network=w)
    )
    return judged(
        "CNN and LSTM reach the same objective as the fully connected network (introduction)",
        "same objective value, identical optima",
        f"potable samples per run {listed or '–'}; the same as FC's in {sum(gap <= EQUAL for gap in apart)} "
        f"of {len(apart)} pairs, {text(100 * mean(apart), 2)} % apart on average, at most "
        f"{text(100 * max(apart, default=math.nan), 2)} %; these are different networks",
        holds=all(gap <= EQUAL for gap in apart) if apart else None,
        in_part=all(abs(mean(cell)) <= EQUAL for cell in gaps.values()),
        rule=f"within {100 * EQUAL:g} % of FC's at every size and seed; in part: on average over seeds at "
        "every size",
        rows=used,
    )


def _best(reachable: Reachable, rows: Rows) -> str:
    values = reachable.values(rows)
    return f"best known {text(mean(values))}" if values else "no reference yet"


def _kinds(networks: Iterable[str]) -> str:
    return ", ".join(paper.E4_KINDS[network] for network in networks)


NAME = "e4"
LOOPS = ("paper", "dual-decomposition")
METHODS = (*LOOPS, "big-m", "auto")


HEADER = ("network", "accuracy", "majority", "n", "budgets", "method", "runs", *COUNTS, *ENDING)


def tables(rows: Rows) -> list[ResultTable]:
    """One line per network, size and method; then big-M's endings."""
    reachable = Reachable(rows)
    table = ResultTable(
        "e4",
        "E4: the unchanged solver on four kinds of network",
        HEADER,
        reading=f"{HOW_TO_READ} *Accuracy* on held-out rows, beside that of the majority class; the "
        "networks are of our own making, since the paper does not publish its own. big-M appears where it "
        "was tried.",
        records=rows,
    )
    for network, kind in paper.E4_KINDS.items():
        for n in sorted(distinct(where(rows, network=network), "n")):
            for budgets, method in product(paper.BUDGETS, present(CONTESTANTS, rows)):
                cell = where(read(rows, budgets), network=network, method=method, n=n)
                if cell:
                    learnt = [text(average(cell, name)) for name in ("accuracy", "majority")]
                    place = [kind, *learnt, str(n), budgets, method, str(len(cell))]
                    table.rows.append([*place, *reached(cell, reachable), *ending(cell)])
    return [table, *how_big_m_ended("e4", "E4", rows, "network", "n")]


def draw(rows: Rows) -> Drawing | None:
    """Accuracy, success and time, with the budgets by which the page judges."""
    rows = read(rows, paper.BUDGETS[-1]) or rows
    if not rows:
        return None
    sizes = sorted(distinct(rows, "n"))
    kinds = {w: kind for w, kind in paper.E4_KINDS.items() if where(rows, network=w)}
    names = list(kinds.values())
    accuracy = {
        label: [average(where(rows, network=w), field) for w in kinds]
        for label, field in (("network", "accuracy"), ("majority class", "majority"))
    }
    rates = {m: [share(where(rows, network=w, method=m), converged) for w in kinds] for m in LOOPS}
    seconds = {
        f"{kind}, {m}": [
            (float(n), geometric_mean(known(where(rows, network=w, n=n, method=m), "seconds"))) for n in sizes
        ]
        for m in LOOPS
        for w, kind in kinds.items()
    }
    return Drawing(
        "E4: four kinds of network, one solver",
        [
            Bars("accuracy on held-out rows", "accuracy", names, accuracy),
            Bars("converged within the iterations", "share of runs", names, rates),
            LinesPanel(
                "time to the end of the run", "samples n", "seconds (geometric mean)", seconds, log_y=True,
                ticks={float(n): str(n) for n in sizes},
            ),
        ],
    )  # fmt: skip


def _runs(settings: BenchSettings) -> list[Run]:
    sizes = (5,) if settings.quick else paper.E4_SIZES
    cells = [{"network": network, "n": n} for network in paper.E4_KINDS for n in sizes]
    again = cells[:1] if settings.quick else cells
    both = cells + [{**cell, "budgets": "per sample"} for cell in again]
    solved = runs(NAME, both, (*LOOPS, "auto"), settings)
    # the smallest size shows which layers big-M can write
    return solved + tried_first(NAME, [cell for cell in cells if cell["n"] == sizes[0]], "big-m", settings)


E4 = Experiment(NAME, "E4: kinds of network", METHODS, _runs, on_water, tables, verdicts, draw)
