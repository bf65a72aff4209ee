"""E2's claims: success, time and growth with depth; what becomes of big-M beyond 6x128; its size."""

from __future__ import annotations

import math

from dovetail.experiments.claims.duration import all_solved, said
from dovetail.experiments.ends import End, done, end, put_to_the_test, tally
from dovetail.experiments.experiment import Rows
from dovetail.experiments.paper import (
    BEYOND,
    DD_VARIABLES,
    DEEPEST,
    DEEPEST_SECONDS,
    E2_SAMPLES,
    INTRODUCTION,
    INTRODUCTION_SECONDS,
    WRITTEN_CONSTRAINTS,
    WRITTEN_VARIABLES,
)
from dovetail.experiments.run import Record
from dovetail.experiments.statistics import (
    converged,
    count_of,
    distinct,
    exponent,
    found,
    known,
    share,
    text,
    where,
)
from dovetail.experiments.verdict import Verdict, judged
from dovetail.problems.training import DEAD

BEGINS = {"default": "torch's own", "he": "He's", "residual": "He's in a residual network"}
"""How a network is initialised. The paper does not say how its own were."""
SUCCESS_ROOM = 0.2
"""One run of the paper's five."""
SUBLINEAR, FEWEST_SIZES = 0.95, 3
SIZE_ROOM = 0.02
"""The paper gives two digits."""
DONE = 0.99
"""SCIP looks at the clock now and then: this part of its limit is all of it."""


def constant(row: Record) -> bool:
    """Whether the network came out as a constant: nothing can be changed by its inputs."""
    return row.get("spread") is not None and bool(row["spread"] < DEAD)


def per_iteration(row: Record) -> float:
    """Seconds of the two steps per iteration; NaN of a row that does not say."""
    steps = known([row], "mip_seconds") + known([row], "nn_seconds")
    return sum(steps) / row["iterations"] if len(steps) == 2 and row.get("iterations") else math.nan


def verdicts(rows: Rows) -> list[Verdict]:
    """Robustness, scalability and efficiency of DD; then big-M."""
    mine = where(rows, n=E2_SAMPLES)
    loop, scip = where(mine, method="paper"), where(mine, method="big-m")
    return [
        _success("E2 success of 2x16 within 50 iterations", where(loop, network="2x16"), 0.4),
        _success("E2 success from 16x128 on", [row for row in loop if row["network"] in BEYOND], 1.0),
        _deepest(where(loop, network=DEEPEST)),
        _growth(loop),
        _beyond([row for row in scip if row["network"] in BEYOND]),
        _memory(scip),
        _introduction(where(rows, method="big-m", **INTRODUCTION)),
        _size(where(rows, method="size", network=DEEPEST)),
    ]


def _success(claim: str, rows: Rows, wanted: float) -> Verdict:
    begun = {init: where(rows, init=init) for init in distinct(rows, "init")}
    near = {init: abs(share(mine, converged) - wanted) <= SUCCESS_ROOM for init, mine in begun.items()}
    listed = ", ".join(
        f"{BEGINS.get(init, init)} {count_of(mine, converged)} ({sum(map(constant, mine))} of these networks "
        "constant)"
        for init, mine in begun.items()
    )
    real = [row for row in rows if not constant(row)]
    return judged(
        claim,
        f"{100 * wanted:g} %",
        f"the paper's settings converge, by initialisation (which the paper does not name): {listed}; over "
        f"networks that are not constant {count_of(real, converged)}",
        holds=all(near.values()) if near else None,
        in_part=any(near.values()),
        rule=f"that share of runs, give or take {SUCCESS_ROOM:g}, with every initialisation; in part: with "
        "one",
        rows=rows,
    )


def _deepest(rows: Rows) -> Verdict:
    seconds = known(rows, "seconds")
    below = bool(seconds) and max(seconds) < DEEPEST_SECONDS
    return judged(
        "E2 64x512: total time",
        f"< {DEEPEST_SECONDS:g} s",
        f"{said(rows)}, on {', '.join(map(str, distinct(rows, 'device'))) or 'nothing'}",
        holds=below and all_solved(rows) if seconds else None,
        in_part=below,
        rule=f"every run of the paper's settings converges within {DEEPEST_SECONDS:g} s; in part: ends "
        "within it",
        rows=rows,
    )


def _growth(rows: Rows) -> Verdict:
    places: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        if math.isfinite(per_iteration(row)) and row.get("parameters"):
            places.setdefault((row.get("device", ""), row.get("machine", "")), []).append(row)
    place = max(places, key=lambda p: len(distinct(places[p], "parameters")), default=("", ""))
    used = places.get(place, [])
    points = [(float(row["parameters"]), per_iteration(row)) for row in used]
    sizes = sorted({x for x, _ in points})
    power = exponent(points)
    last = exponent([point for point in points if point[0] in sizes[-2:]])
    return judged(
        "E2 time per iteration grows sub-linearly with network size",
        "sub-linear",
        f"like parameters to the power {text(power)} over {len(sizes)} sizes on "
        f"{', '.join(filter(None, place))}, {text(last)} between the two largest of them: small networks "
        f"cost what calling them costs; {len(rows) - len(used)} of {len(rows)} runs were made elsewhere and "
        "are left out",
        holds=power < SUBLINEAR if len(sizes) >= FEWEST_SIZES else None,
        rule=f"exponent below {SUBLINEAR:g} over at least {FEWEST_SIZES} sizes on one machine",
        rows=used,
    )


def _beyond(rows: Rows) -> Verdict:
    mine = [row for row in rows if put_to_the_test(row)]
    failed = [row for row in mine if end(row) in (End.TIME, End.MEMORY)]
    reached = [w for w in BEYOND if where(mine, network=w)]
    return judged(
        "E2 big-M beyond 6x128: memory or time",
        "fails: exceeds memory or times out at 300 s",
        f"of {len(rows)} runs {tally(rows) or 'none'}; of the {len(mine)} in which SCIP searched or memory "
        f"ran out ({', '.join(reached) or 'no network'}; {sum(map(constant, mine))} on constant networks) "
        f"{len(failed)} failed, {sum(map(found, failed))} of these with a point of their own",
        holds=len(failed) == len(mine) and len(reached) == len(BEYOND) if mine else None,
        in_part=bool(failed),
        rule="every run in which SCIP searched or memory ran out ends at the limit or out of memory, and "
        "there is one for every network; in part: some",
        rows=rows,
    )


def _memory(rows: Rows) -> Verdict:
    deep = [row for row in rows if row["network"] in BEYOND]
    out = [row for row in deep if end(row) is End.MEMORY]
    reached = [w for w in BEYOND if any(put_to_the_test(row) for row in where(deep, network=w))]
    peaks = {
        w: max(known(where(rows, network=w), "memory_gb"), default=math.nan)
        for w in distinct(rows, "network")
    }
    listed = ", ".join(f"{w} {text(peak)}" for w, peak in peaks.items() if math.isfinite(peak))
    limits = sorted(set(known(rows, "memory_limit")))
    return judged(
        "Memory of big-M grows until deep networks exceed it (E2)",
        "deeper nets exceed memory limits (or time out)",
        f"out of memory in {len(out)} of {len(deep)} runs beyond 6x128; peak GB of the process: "
        f"{listed or 'not recorded'}; its limit: {', '.join(text(gb) for gb in limits) or 'not recorded'} GB",
        holds=bool(out) if any(put_to_the_test(row) for row in deep) else None,
        open_end=len(reached) < len(BEYOND),
        rule="memory ran out in a run beyond 6x128; refuted only if every such network was searched without",
        rows=rows,
    )


def _introduction(rows: Rows) -> Verdict:
    timed = [row for row in rows if end(row) is End.TIME]
    enough = bool(timed) and min(known(timed, "seconds"), default=0.0) >= DONE * INTRODUCTION_SECONDS
    seconds = ", ".join(
        f"{text(row.get('writing_seconds'))} s of writing, {text(row.get('solving_seconds'))} s of SCIP"
        for row in rows
    )
    return judged(
        "Introduction: SCIP times out on 64x512 with 500 samples",
        "after two hours",
        f"{tally(rows)}; {seconds}; {text(max(known(rows, 'memory_gb'), default=math.nan))} GB",
        holds=enough if rows else None,
        open_end=not any(map(done, rows)),
        rule="SCIP searched until two hours of writing and search were over",
        rows=rows,
    )


def _size(rows: Rows) -> Verdict:
    counted = {row["n"]: row for row in rows}
    claimed = INTRODUCTION["n"]
    paper = (
        f"{WRITTEN_VARIABLES / 1e6:g} M variables, {WRITTEN_CONSTRAINTS / 1e6:g} M constraints; "
        f"DD: {DD_VARIABLES} variables"
    )
    if claimed not in counted:
        return judged("Model size by big-M, 64x512, 500 samples", paper, "", holds=None)
    row = counted[claimed]
    note = "".join(
        f"; by arithmetic {n} samples have {_written(counted[n])} (what the authors counted is not known)"
        for n in counted
        if n != claimed and _near(counted[n])
    )
    columns = row["columns"]
    return judged(
        "Model size by big-M, 64x512, 500 samples",
        paper,
        f"{_written(row)}, {text(row['variables'] / WRITTEN_VARIABLES, 2)} times the paper's "
        f"variables{note}; the MIP of DD has {columns:,} columns, {text(columns / DD_VARIABLES, 2)} times "
        "the paper's",
        holds=_near(row) and columns == DD_VARIABLES,
        in_part=_near(row),
        rule=f"both counts within {100 * SIZE_ROOM:g} %, and DD's MIP has {DD_VARIABLES} columns; in part: "
        "the counts",
        rows=rows,
    )


def _written(row: Record) -> str:
    return f"{row['variables'] / 1e6:.1f} M variables, {row['constraints'] / 1e6:.1f} M constraints"


def _near(row: Record) -> bool:
    counts = ((row["variables"], WRITTEN_VARIABLES), (row["constraints"], WRITTEN_CONSTRAINTS))
    return all(abs(ours / theirs - 1) <= SIZE_ROOM for ours, theirs in counts)
