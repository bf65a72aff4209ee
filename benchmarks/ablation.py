"""What each part of the default method, and each constant of its schedule, is worth.

    python -m benchmarks ablation --jobs 16 [--data DIR]

Every variant solves the same problems: one part left out (where the part had a turn), or one constant a
quarter or four times as large.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType

from benchmarks.anytime import FILES, PATIENCE, Run, Task, mean_distance, solved
from benchmarks.parallel import ended
from dovetail.methods import auto, phases
from dovetail.run import turns
from dovetail_study.experiment import ResultTable
from dovetail_study.zoo import KINDS

SECONDS, GAP = 8.0, 1e-6
CONSTANTS: dict[str, ModuleType] = {
    "FIRST": turns,
    "BEGIN": turns,
    "SEARCH_SHARE": auto,
    "FIRST_SEARCH_SHARE": auto,
    "LEAST_WEIGHT": turns,
    "MISCOUNTED": turns,
    "HEAD_START": auto,
}
FACTORS = (0.25, 4.0)
ALIKE = 0.02
"""Two sums of mean distances that differ by less count as equal. On heat two runs differ by more."""


@dataclass(frozen=True)
class Variant:
    """The default method, with one thing changed."""

    part: str = ""
    """Left out."""
    constant: str = ""
    factor: float = 1.0

    def __str__(self) -> str:
        if self.part:
            return f"without {self.part}"
        return f"{self.constant} times {self.factor:g}" if self.constant else "as it is"

    def begin(self) -> None:
        """Make this process use it."""
        if self.part:
            phases.PHASES = tuple(phase for phase in phases.PHASES if phase.name != self.part)
        if self.constant:
            module = CONSTANTS[self.constant]
            setattr(
                module,
                self.constant,
                type(getattr(module, self.constant))(self.factor * getattr(module, self.constant)),
            )


AS_IT_IS = Variant()
VARIANTS = (
    AS_IT_IS,
    *(Variant(part=name) for name in dict.fromkeys(phase.name for phase in phases.PHASES)),
    *(Variant(constant=name, factor=factor) for name in CONSTANTS for factor in FACTORS),
)


@dataclass(frozen=True)
class Varied:
    """One problem, solved by one variant."""

    variant: Variant
    task: Task


def varied(asked: Varied) -> Run:
    """Solve; in a process of its own."""
    asked.variant.begin()
    return solved(asked.task)


def run(
    data: Path | None,
    jobs: int,
    *,
    names: Sequence[str] = (),
    seconds: float = SECONDS,
    within: float = math.inf,
) -> ResultTable:
    """A row for each variant; without names all kinds of the zoo of size 2, and the reference files."""
    begun = time.time()
    names = names or [*(f"{kind} 2 0" for kind in KINDS), *(FILES if data is not None else ())]
    given = {name: Task(name, "auto", seconds, GAP, data) for name in names}
    runs: dict[tuple[str, Variant], Run] = {}

    def solve_all(variants: Sequence[Variant]) -> None:
        """Those that change anything; a part that had no turn cannot be missed."""
        asked = []
        for name, one in product(names, variants):
            plain = runs.get((name, AS_IT_IS))
            if plain is not None and one.part and one.part not in plain.parts:
                runs[name, one] = plain
            else:
                asked.append(Varied(one, given[name]))
        for done, answer in ended(varied, asked, jobs, seconds + PATIENCE, begun + within - time.time()):
            if answer is not None:
                runs[done.task.problem, done.variant] = answer

    solve_all(VARIANTS[:1])
    solve_all(VARIANTS[1:])
    names = [name for name in names if all((name, one) in runs for one in VARIANTS)]
    apart = {key: _apart(runs[key], _best(runs, key[0]), seconds) for key in runs if key[0] in names}
    table = ResultTable(
        "ablation",
        f"The default method with one thing changed ({len(names)} problems, {seconds:g} s each, gap {GAP:g})",
        ["variant", "proofs", "CPU s", "incumbents", "bounds", "worse on", "better on", "most worse"],
        reading=(
            "Incumbents, bounds: mean distance from the best objective of all variants over the time, in "
            "percent (0: known at once, 100: nothing known). Worse (better) on: problems on which the sum of "
            f"the two is larger (smaller) than that of the method as it is, by more than {100 * ALIKE:g}."
        ),
    )
    for one in VARIANTS:
        mine = [runs[name, one] for name in names]
        gains = {name: sum(apart[name, AS_IT_IS]) - sum(apart[name, one]) for name in names}
        worst = min(gains, key=gains.__getitem__, default="")
        worse = [name for name in names if gains[name] < -ALIKE]
        table.rows.append(
            [
                str(one),
                str(sum(run.status == "optimal" for run in mine)),
                f"{sum(run.cpu for run in mine):.0f}",
                *(
                    f"{100 * sum(apart[name, one][k] for name in names) / max(1, len(names)):.2f}"
                    for k in (0, 1)
                ),
                str(len(worse)),
                str(sum(gain > ALIKE for gain in gains.values())),
                f"{worst} ({-100 * gains[worst]:.0f})" if worse else "",
            ]
        )
    return table


def _best(runs: dict[tuple[str, Variant], Run], name: str) -> float:
    values = [run.objective for (problem, _), run in runs.items() if problem == name]
    return min((value for value in values if not math.isnan(value)), default=math.nan)


def _apart(run: Run, best: float, seconds: float) -> tuple[float, float]:
    return mean_distance(run.incumbents, best, seconds), mean_distance(run.bounds, best, seconds)
