"""How good is the answer, and how soon is that known: `auto` beside SCIP on the written-out network (big-M).

One thread each, in processes of their own; networks are trained and libraries imported before the clock
starts, and the time to find the point counts. Files of --data are used where they are given, the generators'
look-alikes always. With --lines each run is a line of that file, and those that it has are not done again.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dovetail as dt
from benchmarks.parallel import ended
from benchmarks.reference import build
from dovetail_study.experiment import ResultTable
from dovetail_study.problems import PROBLEMS

LIMIT = 60.0
"""Seconds for each run."""
PATIENCE = 5.0 * LIMIT
"""Seconds after which a run counts as lost: training and the engine's last moments come on top."""
SEEDS = (0, 1, 2)
EARLIER = " *"
"""Behind the names of cases that were not measured again."""
FILES = (
    "function_3x16", "diet_2x16", "tree_8x32", "wine_2x16", "wine_2x32", "wine_3x16", "water_2x16_n100",
    "water_2x16_n400",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A problem that any process can build."""

    name: str
    file: Path | None = None
    generator: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    def problem(self) -> dt.Problem:
        """Built, networks trained."""
        if self.file is not None:
            return build(dict(np.load(self.file, allow_pickle=False)))
        made = PROBLEMS.load(self.generator)(**dict(self.options))
        assert isinstance(made.problem, dt.Problem)
        return made.problem


@dataclass(frozen=True)
class Asked:
    """One run."""

    case: Case
    method: str
    seed: int
    limit: float

    @property
    def key(self) -> str:
        """Which run it is, on any machine."""
        return f"{self.case.name} | {self.method} {self.seed} | {self.limit:g} s"


@dataclass(frozen=True)
class Answer:
    """What came of it."""

    status: str
    objective: float
    bound: float
    gap: float
    seconds: float


def answered(asked: Asked) -> Answer:
    """Solve once."""
    import torch

    torch.set_num_threads(1)
    problem = asked.case.problem()
    _warm_up(asked.method)
    before = time.perf_counter()
    result = dt.solve(problem, asked.method, time_limit=asked.limit, seed=asked.seed, gap=1e-6, log=False)
    seconds = time.perf_counter() - before
    numbers = [np.nan if value is None else float(value) for value in (result.objective, result.bound)]
    gap = np.nan if result.gap is None else result.gap
    return Answer(result.status.value, numbers[0], numbers[1], gap, seconds)


def _warm_up(method: str) -> None:
    """Solve something small, for the libraries that a first solve imports."""
    import torch

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double()
    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf]))
    problem.add_predictor(network, [0], [1])
    dt.solve(problem, method, time_limit=10.0, log=False)


def cases(data: Path | None) -> Iterator[Case]:
    """Those of the files, then other seeds of their generators."""
    if data is not None and (data / "reference").is_dir():
        for name in FILES:
            yield Case(name, data / "reference" / f"{name}.npz")
    generated: list[tuple[str, dict[str, Any]]] = [
        *(("adversarial", {"seed": seed}) for seed in range(3)),
        *(("diet", {"seed": seed}) for seed in (1, 2)),
        *(("function", {"seed": seed}) for seed in range(1, 5)),
        *(("function", {"network": "3x64", "seed": seed}) for seed in (42, 1, 2)),
        *(("function", {"network": "6x32", "seed": seed}) for seed in (42, 1, 2)),
        *(("function", {"features": 8, "seed": seed}) for seed in (42, 1, 2)),
        ("wine", {"seed": 1}),
        ("dispatch", {}),
    ]
    for generator, options in generated:
        if generator in PROBLEMS:
            words = " ".join(f"{name} {value}" for name, value in options.items())
            yield Case(f"{generator} {words}".strip(), None, generator, tuple(options.items()))


@dataclass(frozen=True)
class Kept:
    """An answer and where it was measured."""

    answer: Answer
    machine: str


def kept(lines: Path | None) -> dict[str, Kept]:
    """What a file has, by run; the last line of a run counts."""
    if lines is None or not lines.exists():
        return {}
    found = map(json.loads, lines.read_text(encoding="utf-8").splitlines())
    return {line["run"]: Kept(Answer(**line["answer"]), line["machine"]) for line in found}


def measured(asked: Sequence[Asked], jobs: int, lines: Path | None, within: float) -> dict[str, Kept]:
    """Answers to all that was asked before or is now, in time; written to the file as they come."""
    known = kept(lines)
    machine = f"{os.cpu_count()} {platform.machine()} cores, {jobs} runs at a time"
    missing = [one for one in asked if one.key not in known]
    for one, answer in ended(answered, missing, jobs, PATIENCE, within):
        if answer is None:
            print("NO ANSWER", one.key, flush=True)
            continue
        known[one.key] = Kept(answer, machine)
        print(one.key, answer, flush=True)
        if lines is not None:
            with lines.open("a", encoding="utf-8") as file:
                said = {"run": one.key, "machine": machine, "answer": asdict(answer)}
                file.write(json.dumps(said) + "\n")
    return known


def run(
    data: Path | None,
    jobs: int,
    chosen: Sequence[str] = (),
    lines: Path | None = None,
    within: float = float("inf"),
    earlier: Path | None = None,
) -> ResultTable:
    """All cases, or those whose names begin with a word of `chosen`; what has no answers is left out.

    Rows of an `earlier` table that are not measured now stay, with a mark.
    """
    picked = [case for case in cases(data) if not chosen or case.name.startswith(tuple(chosen))]
    asked = [
        Asked(case, method, seed, LIMIT)
        for case in picked
        for method, seeds in (("big-m", SEEDS[:1]), ("auto", SEEDS))
        for seed in seeds
    ]
    known = measured(asked, jobs, lines, within)
    table = ResultTable(
        "proof",
        f"Time to a proof, or the gap after {LIMIT:g} s (auto: seeds {', '.join(map(str, SEEDS))})",
        [
            "problem",
            "auto proves",
            "auto s",
            "auto gap %",
            "SCIP big-M",
            "SCIP s",
            "SCIP gap %",
            "times faster",
        ],
        reading=_reading([known[one.key].machine for one in asked if one.key in known]),
    )
    for case in sorted(picked, key=lambda case: case.name):
        here = [one for one in asked if one.case is case and one.key in known]
        mine = [known[one.key].answer for one in here if one.method == "auto"]
        scip = [known[one.key].answer for one in here if one.method == "big-m"]
        if mine and scip:
            table.rows.append([case.name, *_cells(mine, scip[0])])
    if kept_rows := _rows_of(earlier, {row[0] for row in table.rows}):
        table.rows = sorted([*table.rows, *kept_rows])
        table.reading += f" Rows with {EARLIER.strip()} are of an earlier version, on 16 x86_64 cores."
    return table


def _rows_of(earlier: Path | None, measured_now: set[str]) -> list[Sequence[str]]:
    """Rows of a table that was written before, but for those that are measured now."""
    if earlier is None or not earlier.exists():
        return []
    found = (line for line in earlier.read_text(encoding="utf-8").splitlines() if line.startswith("| "))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found]
    rows = [[row[0].removesuffix(EARLIER), *row[1:]] for row in rows[2:]]
    return [[row[0] + EARLIER, *row[1:]] for row in rows if row[0] not in measured_now]


def _reading(machines: Sequence[str]) -> str:
    where = "; ".join(sorted(set(machines)))
    return (
        "Wall seconds, one thread, search included, imports excluded (median over seeds; the largest gap). "
        "'times faster' is SCIP's time divided by auto's, if auto proves in every run; a lower bound if SCIP "
        "reached its limit. If SCIP's big-M is feasible without a gap, its claim was not accepted "
        '(docs/method.md, "Its word"), although SCIP may have ended before the limit. Water\'s gap is '
        f"relative to the samples that stay undrinkable. Measured on {where}, other work on the other cores."
    )


def _cells(mine: list[Answer], scip: Answer) -> list[str]:
    proved = sum(answer.status == "optimal" for answer in mine)
    seconds = statistics.median(answer.seconds for answer in mine)
    done = scip.status == "optimal"
    ratio = f"{'' if done else '> '}{scip.seconds / seconds:.1f}" if proved == len(mine) else "–"
    return [
        f"{proved} of {len(mine)}",
        f"{seconds:.1f}",
        _percent(max((answer.gap for answer in mine), default=np.nan)),
        "proves" if done else scip.status.replace("_", " "),
        f"{scip.seconds:.1f}",
        _percent(scip.gap),
        ratio,
    ]


def _percent(gap: float) -> str:
    return "–" if np.isnan(gap) else f"{100 * gap:.2g}"
