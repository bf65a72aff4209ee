"""E2: ever deeper networks at n = 100, with torch's own initialisation and with ones that can be trained."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dovetail_study import paper
from dovetail_study.claims import Quality, all_solved, in_both, judged_time, read, said
from dovetail_study.contestants import CONTESTANTS, begun, on_water, written_out
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
from dovetail_study.figures import Drawing, LinesPanel
from dovetail_study.origin import in_order
from dovetail_study.sections import COUNTS, ENDING, HOW_TO_READ, ending, how_big_m_ended, reached
from dovetail_study.statistics import (
    End,
    Reachable,
    agreed,
    average,
    constant,
    converged,
    converged_in,
    count_of,
    distinct,
    done,
    end,
    exponent,
    found,
    known,
    mean,
    present,
    put_to_the_test,
    share,
    spent,
    spread,
    spread_of,
    tally,
    text,
    where,
)

BEGINS = {"default": "torch's own", "he": "He's", "residual": "He's in a residual network"}
"""How a network is initialised. The paper does not state its initialisation."""
OTHER = "residual"
"""The paper's network is plain; this one is shown for comparison and not judged."""
SUCCESS_ROOM = 0.2
"""One of the paper's five seeds."""
SUBLINEAR, FEWEST_SIZES = 0.95, 3
SIZE_ROOM = 0.02
"""The paper gives two digits."""


def per_iteration(row: Record) -> float:
    """Seconds of the two steps per iteration; NaN for rows without these fields."""
    steps = known([row], "mip_seconds") + known([row], "nn_seconds")
    return sum(steps) / row["iterations"] if len(steps) == 2 and row.get("iterations") else math.nan


def verdicts(rows: Rows) -> list[Verdict]:
    """Robustness, scalability and efficiency of DD in both readings of the budgets; then big-M."""
    mine = where(rows, n=paper.E2_SAMPLES)
    scip = [row for row in where(mine, method="big-m") if row["init"] != OTHER]
    return [
        *in_both(mine, _verdicts_of),
        _beyond_verdict([row for row in scip if row["network"] in paper.BEYOND]),
        _memory(scip),
        _introduction(where(rows, method="big-m", **paper.INTRODUCTION)),
        _size(where(rows, method="size", network=paper.DEEPEST)),
    ]


def _verdicts_of(rows: Rows) -> list[Verdict]:
    loop = where(rows, method="paper")
    beyond = [row for row in loop if row["network"] in paper.BEYOND]
    return [
        _success("E2 success of 2x16 within 50 iterations", where(loop, network="2x16"), 0.4),
        _success("E2 success from 16x128 on", beyond, 1.0),
        _deepest(where(loop, network=paper.DEEPEST), rows),
        _growth(loop),
    ]


def _success(claim: str, rows: Rows, wanted: float) -> Verdict:
    begun = {init: where(rows, init=init) for init in in_order(rows, "init")}
    listed = {
        init: f"{BEGINS.get(init, init)} {converged_in(mine)} ({sum(map(constant, mine))} of the networks "
        "constant)"
        for init, mine in begun.items()
    }
    beside = listed.pop(OTHER, None)
    hits = {
        ended: [abs(share(begun[init], ended) - wanted) <= SUCCESS_ROOM for init in listed]
        for ended in (agreed, converged)
    }
    return judged(
        claim,
        f"{100 * wanted:g} %",
        "by initialisation (not named by the paper): "
        f"{', '.join(listed.values()) or '–'}" + (f"; beside it, not judged: {beside}" if beside else ""),
        holds=all(hits[agreed]) if listed else None,
        in_part=any(hits[agreed]) or all(hits[converged]),
        rule=f"in that share of runs, give or take {SUCCESS_ROOM:g}, the blocks agree, with every "
        "initialisation of the plain network, which is the paper's; in part: with one, or counting runs that "
        "ended at a proved optimum, which end before the blocks can agree",
        rows=rows,
    )


def _deepest(rows: Rows, every: Rows) -> Verdict:
    plain = [row for row in rows if row["init"] != OTHER]
    seconds, live = known(plain, "seconds"), [row for row in plain if not constant(row)]
    below = bool(seconds) and max(seconds) < paper.DEEPEST_SECONDS
    beside = mean(known([row for row in rows if row["init"] == OTHER], "seconds"))
    return judged_time(
        "E2 64x512: total time",
        f"< {paper.DEEPEST_SECONDS:g} s",
        f"{text(mean(seconds))} s on average, and {count_of(plain, constant)} of the networks are constant: "
        f"nothing was optimised (a residual network of that size: {text(beside)} s)"
        if not live
        else f"{said(plain)}; {count_of(plain, constant)} of the networks are constant",
        fast=below if live else None,
        solved=all_solved(rows),
        quality=Quality.of(rows, every),
        rule=f"every run of the paper's settings ends within {paper.DEEPEST_SECONDS:g} s, and not "
        f"every network is "
        "constant",
        rows=rows,
    )


def _growth(rows: Rows) -> Verdict:
    places: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        if math.isfinite(per_iteration(row)) and row.get("parameters") and row["init"] != OTHER:
            places.setdefault((row.get("device", ""), row.get("machine", "")), []).append(row)
    powers = {place: exponent(list(map(_point, mine))) for place, mine in places.items()}
    listed = "; ".join(
        f"{', '.join(filter(None, place))}: {text(power)} over "
        f"{', '.join(distinct(places[place], 'network'))} "
        f"({text(_last_exponent(places[place]))} between the two largest)"
        for place, power in powers.items()
    )
    enough = [p for p in places if len(distinct(places[p], "network")) >= FEWEST_SIZES]
    below = all(powers[place] < SUBLINEAR for place in enough)
    used = [row for mine in places.values() for row in mine]
    covered = any(where(places[place], network=paper.DEEPEST) for place in enough)
    return judged(
        "E2 time per iteration grows sub-linearly with network size",
        "sub-linear",
        f"like parameters to a power, machine by machine: {listed or '–'}; {paper.DEEPEST} "
        f"{'is' if covered else 'is not'} among the sizes of a machine with at least {FEWEST_SIZES} of them",
        holds=below and covered if enough else None,
        in_part=below,
        rule=f"exponent below {SUBLINEAR:g} over at least {FEWEST_SIZES} sizes on one machine, "
        f"{paper.DEEPEST} "
        "among them; in part: without it",
        rows=used,
    )


def _point(row: Record) -> tuple[float, float]:
    return float(row["parameters"]), per_iteration(row)


def _last_exponent(rows: Rows) -> float:
    """The exponent between the two largest networks."""
    points = list(map(_point, rows))
    sizes = sorted({x for x, _ in points})
    return exponent([point for point in points if point[0] in sizes[-2:]])


def _beyond_verdict(rows: Rows) -> Verdict:
    mine = [row for row in rows if put_to_the_test(row)]
    failed = [row for row in mine if end(row) in (End.TIME, End.MEMORY)]
    reached = [w for w in paper.BEYOND if where(mine, network=w)]
    small = [row for row in failed if end(row) is End.MEMORY and not _whole_machine(row)]
    return judged(
        "E2 big-M beyond 6x128: memory or time",
        "fails: exceeds memory or times out at 300 s",
        f"of {len(rows)} runs {tally(rows) or 'none'}; of the {len(mine)} in which SCIP searched or memory "
        f"ran out ({', '.join(reached) or 'no network'}; {sum(map(constant, mine))} on constant networks) "
        f"{len(failed)} failed, {sum(map(found, failed))} of these with a point of their own",
        holds=len(failed) == len(mine) and len(reached) == len(paper.BEYOND) and not small if mine else None,
        in_part=bool(failed),
        rule="every run in which SCIP searched or memory ran out ends at the limit or out of a whole "
        "machine's memory, and there is one for every network; in part: some, or at a smaller limit",
        rows=rows,
    )


def _memory(rows: Rows) -> Verdict:
    deep = [row for row in rows if row["network"] in paper.BEYOND]
    out = [row for row in deep if end(row) is End.MEMORY]
    reached = [w for w in paper.BEYOND if any(put_to_the_test(row) for row in where(deep, network=w))]
    peaks = {
        w: max(known(where(rows, network=w), "memory_gb"), default=math.nan)
        for w in in_order(rows, "network")
    }
    listed = ", ".join(f"{w} {text(peak)}" for w, peak in peaks.items() if math.isfinite(peak))
    return judged(
        "Memory of big-M grows until deep networks exceed it (E2)",
        "deeper nets exceed memory limits (or time out)",
        f"out of memory in {len(out)} of {len(deep)} runs beyond 6x128; peak GB of the process: "
        f"{listed or 'not recorded'}",
        holds=any(map(_whole_machine, out)) if any(put_to_the_test(row) for row in deep) else None,
        in_part=bool(out),
        open_end=not out and len(reached) < len(paper.BEYOND),
        rule="a whole machine's memory ran out in a run beyond 6x128; in part: a smaller limit that was set; "
        "refuted only if every such network was searched without",
        rows=rows,
    )


def _whole_machine(row: Record) -> bool:
    """Whether a run had the machine and its memory for itself."""
    return "memory_limit" in row and row["memory_limit"] is None and row.get("shared") == 1


def _introduction(rows: Rows) -> Verdict:
    timed = [row for row in rows if end(row) is End.TIME]
    enough = spent(timed, "seconds", paper.INTRODUCTION_SECONDS)
    return judged(
        "Introduction: SCIP times out on 64x512 with 500 samples",
        "after two hours",
        f"{tally(rows)}; written in {spread_of(rows, 'writing_seconds')} s",
        holds=enough if rows else None,
        open_end=not any(map(done, rows)),
        rule="SCIP searched until two hours of writing and search were over",
        rows=rows,
    )


def _size(rows: Rows) -> Verdict:
    counted = {row["n"]: row for row in rows}
    claimed = paper.INTRODUCTION["n"]
    claimed_size = (
        f"{paper.WRITTEN_VARIABLES / 1e6:g} M variables, {paper.WRITTEN_CONSTRAINTS / 1e6:g} M constraints; "
        f"DD: {paper.DD_VARIABLES} variables"
    )
    if claimed not in counted:
        return judged("Model size by big-M, 64x512, 500 samples", claimed_size, "", holds=None)
    row = counted[claimed]
    note = "".join(
        f"; by arithmetic {n} samples have {_written(counted[n])} (what the authors counted is not known)"
        for n in counted
        if n != claimed and _is_near(counted[n])
    )
    columns = row["columns"]
    return judged(
        "Model size by big-M, 64x512, 500 samples",
        claimed_size,
        f"{_written(row)}, {text(row['variables'] / paper.WRITTEN_VARIABLES, 2)} times the paper's "
        f"variables{note}; the MIP of DD has {columns:,} columns, "
        f"{text(columns / paper.DD_VARIABLES, 2)} times "
        "the paper's",
        holds=_is_near(row) and columns == paper.DD_VARIABLES,
        in_part=_is_near(row),
        rule=f"both counts within {100 * SIZE_ROOM:g} %, and DD's MIP has {paper.DD_VARIABLES} "
        f"columns; in part: "
        "the counts",
        rows=rows,
    )


def _written(row: Record) -> str:
    return f"{row['variables'] / 1e6:.1f} M variables, {row['constraints'] / 1e6:.1f} M constraints"


def _is_near(row: Record) -> bool:
    counts = ((row["variables"], paper.WRITTEN_VARIABLES), (row["constraints"], paper.WRITTEN_CONSTRAINTS))
    return all(abs(ours / theirs - 1) <= SIZE_ROOM for ours, theirs in counts)


NAME = "e2"
LOOPS = ("paper", "dual-decomposition")
METHODS = (*LOOPS, "big-m", "auto", "size")
CLAIMED_SIZE = {**paper.INTRODUCTION, "init": "default"}
"""The instance whose written-out size the paper names, and which SCIP did not solve in two hours."""


HEADER = (
    "network", "initialisation", "n", "budgets", "parameters", "accuracy", "majority", "spread", "method",
    "runs", *COUNTS, "iterations", "s / iteration", *ENDING, "device",
)  # fmt: skip


def tables(rows: Rows) -> list[ResultTable]:
    """One line per network, beginning and method; then big-M's endings and sizes."""
    solved = [row for row in rows if row["method"] != "size"]
    reachable = Reachable(solved)
    table = ResultTable(
        "e2",
        "E2: networks of growing depth",
        HEADER,
        reading=f"{HOW_TO_READ} *Initialisation*: torch's own, He's, or He's in a residual network, "
        "which is not the paper's; the paper does not say which it used. *Accuracy* is on held-out rows, "
        "*majority* that of always saying the more frequent class, *spread* the standard deviation of the "
        f"logits over the data: at 0 the network is a constant.{_constants(solved)}",
        records=solved,
    )
    for network in in_order(solved, "network"):
        for init in BEGINS:
            for method in present(CONTESTANTS, solved):
                for budgets in paper.BUDGETS:
                    mine = where(read(solved, budgets), network=network, init=init, method=method)
                    for n in distinct(mine, "n"):
                        table.rows.append(_line(where(mine, n=n), reachable))
    ends = how_big_m_ended("e2", "E2", rows, "network", "init", "n")
    return [made for made in (table, *ends, _sizes(where(rows, method="size"))) if made.rows]


def _line(cell: Rows, reachable: Reachable) -> list[str]:
    first = cell[0]
    loop = first["method"] in LOOPS
    return [
        first["network"],
        BEGINS[first["init"]],
        str(first["n"]),
        first.get("budgets", "total"),
        f"{first['parameters']:,}" if first.get("parameters") else "–",
        text(average(cell, "accuracy")),
        text(average(cell, "majority")),
        text(average(cell, "spread"), 2),
        first["method"],
        str(len(cell)),
        *reached(cell, reachable),
        spread_of(cell, "iterations") if loop else "–",
        spread(_per_run(cell)) if loop else "–",
        *ending(cell),
        ", ".join(map(str, distinct(cell, "device"))),
    ]


def _sizes(rows: Rows) -> ResultTable:
    header = ("network", "n", "variables", "constraints", "coefficients", "columns of the MIP in DD")
    table = ResultTable(
        "e2-size", "Model size if the network is written out: counted, nothing solved", header, records=rows
    )
    for row in rows:
        numbers = [f"{row[name]:,}" for name in ("variables", "constraints", "coefficients", "columns")]
        table.rows.append([row["network"], str(row["n"]), *numbers])
    return table


def _constants(rows: Rows) -> str:
    """The number of constant networks, and the loops' results on them."""
    flat = [row for row in rows if row["method"] in LOOPS and constant(row)]
    if not flat:
        return ""
    agreed = ", ".join(f"{m} in {count_of(where(flat, method=m), converged)}" for m in present(LOOPS, flat))
    begun = ", ".join(
        f"{w} ({BEGINS[i]})" for w, i in dict.fromkeys((row["network"], row["init"]) for row in flat)
    )
    return (
        f" Networks that came out constant: {begun}. A constant network has no gradient: nothing that the "
        "network step does makes a sample potable, and u stays at x. On these the loops converged: "
        f"{agreed}. That success rises with depth because deep networks trained this way are constant is a "
        "hypothesis about the paper's figure, not a finding: the paper names neither its initialisation nor "
        "whether its networks were constant."
    )


def draw(rows: Rows) -> Drawing | None:
    """Success and time over networks, with the budgets by which the page judges."""
    loops = [row for row in rows if row["method"] in LOOPS]
    solved = read(loops, paper.BUDGETS[-1]) or loops
    networks = in_order(solved, "network")
    if not networks:
        return None
    place = {network: float(i) for i, network in enumerate(networks)}

    def series(value: Any) -> dict[str, list[tuple[float, float]]]:
        return {
            f"{method}, {kind}": [
                (place[w], value(where(solved, network=w, init=init, method=method))) for w in networks
            ]
            for method in LOOPS
            for init, kind in BEGINS.items()
        }

    shared: dict[str, Any] = {
        "x": "network (depth x width)",
        "ticks": {i: network for network, i in place.items()},
    }
    rate = series(lambda cell: share(cell, converged))
    total, each = series(lambda cell: average(cell, "seconds")), series(lambda cell: mean(_per_run(cell)))
    return Drawing(
        "E2: networks of growing depth",
        [
            LinesPanel(
                f"converged within the iterations{_with(solved)}", y="share of runs", series=rate, **shared
            ),
            LinesPanel("time to the end of the run", y="seconds", log_y=True, series=total, **shared),
            LinesPanel("time per iteration", y="seconds", log_y=True, series=each, **shared),
        ],
    )


def _with(rows: Rows) -> str:
    return "".join(f", budgets {budgets}" for budgets in distinct(rows, "budgets"))


def _per_run(cell: Rows) -> list[float]:
    return [value for row in cell if math.isfinite(value := per_iteration(row))]


def _runs(settings: BenchSettings) -> list[Run]:
    networks, n = (paper.E2_NETWORKS[:2], 10) if settings.quick else (paper.E2_NETWORKS, paper.E2_SAMPLES)
    cells = [{"network": w, "n": n, "init": init} for w in networks for init in ("default", "he")]
    # even with He's initialisation a plain 64x512 network is constant, so a residual one is added
    cells.append({"network": networks[-1], "n": n, "init": "residual"})
    again = cells[:1] if settings.quick else cells
    solved = cells + [{**cell, "budgets": "per sample"} for cell in again]
    planned = runs(NAME, solved, (*LOOPS, "auto"), settings)
    planned += tried_first(NAME, cells, "big-m", settings)
    if not settings.quick:
        claimed = runs(NAME, [CLAIMED_SIZE], ("big-m",), settings, seeds=1)
        planned += [replace(run, whole=paper.INTRODUCTION_SECONDS) for run in claimed]
    counted = [{**CLAIMED_SIZE, "network": networks[-1], "n": n} for n in (500, 60)]
    return planned + runs(NAME, counted, ("size",), settings, seeds=1)


def _execute(run: Run, settings: BenchSettings) -> Record:
    if run.method == "size":  # only the size is computed
        return {**begun(run, settings), "found": False, **written_out(run["network"], run["n"])}
    return on_water(run, settings)


E2 = Experiment(NAME, "E2: networks of growing depth", METHODS, _runs, _execute, tables, verdicts, draw)
