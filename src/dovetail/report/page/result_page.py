"""One result as a page: `result.report("page.html")`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.extrapolation import nearly_inside, notable
from dovetail.core.files import write_file
from dovetail.core.mip import TOLERANCE
from dovetail.core.words import several
from dovetail.report.gains import ENDED, found_by, gap_text, proved_by
from dovetail.report.page import decision
from dovetail.report.page.course import (
    SHAPES,
    Course,
    by_part,
    course_figure,
    listed_points,
    residual_figures,
)
from dovetail.report.page.flips import flips
from dovetail.report.page.number_text import change, number, numbers, percent, seconds, visible
from dovetail.report.page.templates import render

STATUS = {
    "optimal": "Optimal",
    "feasible": "Best solution found",
    "infeasible": "Infeasible",
    "unbounded": "Unbounded",
    "no_solution": "No solution found",
    "error": "Ended by an error",
}
"""Statuses as a heading."""


@dataclass(frozen=True)
class Tile:
    """A number with its label."""

    figure: str
    words: str


@dataclass(frozen=True)
class Headline:
    """Heading, the line below it, and the figures."""

    title: str
    subtitle: str
    tone: str
    """"good", "fair" or "bad": the colour of the status."""
    status: str
    tiles: list[Tile]


def headline(result: Any, course: Course) -> Headline:
    """The parts of the page of one result."""
    status, reason = result.status.value, result.stop_reason.value
    title = STATUS[status]
    if result.objective is not None:
        title = f"{title}: {number(result.objective)}"
    tone = {"optimal": "good", "feasible": "fair"}.get(status, "bad")
    subtitle = f"{visible(result.method)}, ended {ENDED[reason]} after {seconds(result.seconds)}"
    tiles = [_verified(result), _bound(result), _work(result, course)]
    if result.objective is not None:
        tiles.insert(0, _objective(result))
    return Headline(title, subtitle, tone, status.replace("_", " "), tiles)


def _objective(result: Any) -> Tile:
    facts = result.facts
    name = "objective" if facts is None or not facts.objective else visible(facts.objective)
    sense = {"min": ", minimised", "max": ", maximised"}
    return Tile(number(result.objective), name + sense.get("" if facts is None else facts.sense, ""))


def _bound(result: Any) -> Tile:
    if result.bound is not None and result.bound_error is not None:
        said = f"about {number(result.bound)} (standard error {number(result.bound_error)})"
        return Tile("not proved", f"an estimate from a sample of the blocks: no solution is beyond {said}")
    if result.bound is None:
        return Tile("no bound", "the distance to the optimum is not known")
    by = f" ({visible(proved_by(result.bound_source))})" if result.bound_source else ""
    if result.status.value == "optimal":
        said = "proved" if result.bound_kind.value == "proven" else "reported by an engine"
        within = f", within {gap_text(result.gap)}" if result.gap else ""
        return Tile(f"{said}{within}", f"bound {number(result.bound)}{by}")
    if result.gap is None:
        return Tile(number(result.bound), f"bound on every solution{by}")
    if result.rows_only:
        return Tile("not proved", f"the only bound ignores the predictors: {number(result.bound)}")
    return Tile(f"{gap_text(result.gap)} gap", f"bound {number(result.bound)}{by}")


def _verified(result: Any) -> Tile:
    if result.violation is None:
        return Tile("no solution", "no candidate passed the check")
    if result.violation.within():
        return Tile("verified", "constraints, bounds, integers, and outputs by your own predictors")
    return Tile("not verified", visible(f"violates {result.violation.missed}"))


def _work(result: Any, course: Course) -> Tile:
    words = several(result.iterations, "iteration")
    if result.evaluations:
        words += f", {several(result.evaluations, 'network evaluation')}"
    if course.points:
        last = course.points[-1]
        words += f"; last improvement at {seconds(last.seconds)} by {visible(found_by(last.source))}"
    return Tile(seconds(result.seconds), words)


Result = Any
"""A `dovetail.Result`. The type of the result is not imported here, because the result imports the page."""

MANY_COLUMNS = 60
"""From this number on, a table of families comes before the families themselves."""


KINDS = {
    "engine": "MIP, QP and LP solves",
    "network": "evaluation of the predictors",
    "subsolver": "steps between evaluations",
    "check": "completing and checking solutions",
    "rest": "everything else",
}
"""The timers of `run/work.py`, in words."""


def write_page(result: Result, path: Path, opinion: Any = None) -> Path:
    """Write the page of a result, with a second opinion if there is one; the path again."""
    return write_file(path, result_page(result, opinion))


def result_page(result: Result, opinion: Any = None) -> str:
    """The page of a result, as text."""
    course = Course.of(result)
    points, left_out = listed_points(course)
    tables, more = decision.decision_tables(result) if result.x is not None else ([], "")
    many = result.x is not None and result.x.size > MANY_COLUMNS
    named, unnamed = extrapolations(result)
    return render(
        "result.html",
        head=headline(result, course),
        message=sentence(result.message),
        warnings=warnings(result),
        hints=hints(result),
        flips=flips(result),
        overview=decision.family_rows(result) if many else [],
        tables=tables,
        more_tables=more,
        held=held_back(result),
        several=side_by_side(result),
        opinion=None if opinion is None else promised_and_kept(opinion),
        course=course_figure(course),
        found=by_part(course.points, course, found_by),
        proved=by_part(course.bounds, course, proved_by),
        points=points,
        points_left_out=left_out,
        residuals=residual_figures(result.trace),
        bands=part_bands(result),
        end=seconds(result.seconds),
        shares=time_shares(result),
        checks=checks(result),
        extrapolations=named,
        more_extrapolations=unnamed,
        blocks=_blocks(result),
        settings=settings_lines(result),
        call="" if result.settings is None else visible(result.settings.call, 1000),
        change=change,
        shapes=[*SHAPES, SHAPES[0]],
        square=SHAPES[1],
    )


MOST_HELD = 20
"""Largest number of constraints on the page."""


MOST_DIFFERENT = 40
"""Largest number of variables in the comparison of several solutions."""


def side_by_side(result: Result) -> decision.ValueTable | None:
    """The variables that differ between several solutions, those first that differ most; None for one."""
    solutions = result.solutions
    if len(solutions) < 2:
        return None
    points = np.array([each.x for each in solutions])
    spread = np.ptp(points, axis=0) / np.maximum(np.abs(points).max(axis=0), TOLERANCE)
    spread[np.ptp(points, axis=0) <= TOLERANCE] = 0.0
    rows = np.argsort(-spread, kind="stable")
    differ = rows[spread[rows] > 0.0]
    shown = [number(each.objective) for each in solutions]
    proved = [each.status.value for each in solutions]
    lines = [
        ("objective", [decision.Cell(text) for text in shown]),
        ("status", [decision.Cell(text) for text in proved]),
    ]
    for j in np.sort(differ[:MOST_DIFFERENT]).tolist():
        name = f"x[{j}]" if result.names is None else result.names[j]
        texts = numbers(points[:, j])
        lines.append((visible(name), [decision.Cell(text) for text in texts]))
    rest = differ.size - MOST_DIFFERENT
    about = f"{several(int(differ.size), 'variable')} differ"
    left_out = f"{rest:,} more variables differ." if rest > 0 else ""
    head = ["variable", "best", *(str(k) for k in range(2, len(solutions) + 1))]
    return decision.ValueTable("Solutions", about, head, lines, left_out)


class Opinion(NamedTuple):
    """What was promised and what other models say remains."""

    figure: str
    """The share of the promised gain that is kept, in words."""
    table: decision.ValueTable
    sentences: list[str]


def promised_and_kept(opinion: Any) -> Opinion:
    """A second opinion side by side with the promise."""
    lines = [
        (what, [decision.Cell(text) for text in numbers(np.array(values))])
        for what, *values in opinion.rows()
    ]
    head = ["", "promised", "kept", "spread", "at worst"]
    table = decision.ValueTable("Promised and kept", f"by {opinion.models}", head, lines)
    share = "" if opinion.kept is None else f"{percent(opinion.kept)} of the promised gain is kept."
    return Opinion(share, table, [visible(f"{line}.", 300) for line in opinion.sentences()])


class HeldBack(NamedTuple):
    """The constraints whose limits are worth most."""

    sentence: str
    table: decision.ValueTable | None


def held_back(result: Result) -> HeldBack | None:
    """The binding constraints with their prices; None without constraints."""
    table = None if result.x is None else result.constraint_table
    if table is None or len(table) == 0:
        return None
    binding = np.flatnonzero(table.binding & (table.lower < table.upper))
    equal = int(np.count_nonzero(table.lower == table.upper))
    rows = list(dict.fromkeys([*table.hardest.tolist(), *binding.tolist()]))
    unknown = int(np.count_nonzero(np.isnan(table.price[rows])))
    words = f"{binding.size:,} of {several(len(table) - equal, 'inequality', 'inequalities')} "
    words += f"{'is' if binding.size == 1 else 'are'} at a limit"
    words += f", beside {several(equal, 'equation')}." if equal else "."
    if rows:
        words += " The price is the change of the objective per unit of the limit"
        words += f"; {unknown:,} have none." if unknown else "."
    lines = [_held_line(table[i]) for i in rows[:MOST_HELD]]
    head = ["constraint", "activity", "limits", "price", "from"]
    left_out = f"{len(rows) - MOST_HELD:,} more." if len(rows) > MOST_HELD else ""
    shown = decision.ValueTable("Constraints", "the hardest first", head, lines, left_out) if lines else None
    return HeldBack(words, shown)


def _held_line(row: Any) -> tuple[str, list[decision.Cell]]:
    limits = number(row.lower) if row.lower == row.upper else f"{number(row.lower)} to {number(row.upper)}"
    price = number(None) if row.price is None else change(row.price)
    at = row.lower if abs(row.activity - row.lower) <= abs(row.activity - row.upper) else row.upper
    cells = number(at if row.binding else row.activity), limits, price, row.price_from or "no price"
    return visible(row.name), [decision.Cell(cell) for cell in cells]


def _blocks(result: Result) -> list[str]:
    """The problem: a line for the program and one for each block."""
    facts = result.facts
    if facts is None:
        return []
    verb = "minimise" if facts.sense == "min" else "maximise"
    lines = [
        f"{verb} over {several(facts.lower.size, 'variable')} ({int(facts.integer.sum()):,} integer) "
        f"and {several(facts.n_rows, 'constraint')}"
    ]
    for block in facts.blocks[:MOST_BLOCKS]:
        lines.append(
            f"{visible(block.name)}: {visible(block.predictor)}, {several(block.samples, 'sample')}, "
            f"{several(block.n_inputs, 'input')} to {several(block.n_outputs, 'output')}, "
            f"{'classes' if block.classifies else 'values'}"
        )
    rest = len(facts.blocks) - MOST_BLOCKS
    return [*lines, f"and {several(rest, 'more block')}"] if rest > 0 else lines


MOST_BLOCKS = 12
"""Largest number of blocks with a line of their own."""


def settings_lines(result: Result) -> list[tuple[str, str]]:
    """The settings needed to repeat the solve, beside the call."""
    if result.settings is None:
        return [("method", visible(result.method))]
    settings = result.settings
    options = ", ".join(f"{name}={value}" for name, value in settings.fields.items())
    versions = ", ".join(f"{name} {value}" for name, value in settings.versions.items())
    lines = [("method", f"{result.method}: {options}" if options else result.method)]
    lines += [("engine", result.engine)] if result.engine else []
    lines += [("versions", versions), ("machine", settings.machine)]
    return [(name, visible(text, 1500)) for name, text in lines]


class TimeShare(NamedTuple):
    """One segment of the bar, in per cent of its length."""

    colour: int
    begin: float
    length: float
    words: str
    seconds: str
    percent: str


def time_shares(result: Any) -> list[TimeShare]:
    """The shares of all timers that measured anything."""
    total = sum(float(getattr(result.profile, kind)) for kind in KINDS)
    shares, begin = [], 0.0
    for colour, (kind, words) in enumerate(KINDS.items()):
        spent = float(getattr(result.profile, kind))
        if total <= 0.0 or spent <= 0.0:
            continue
        part = spent / total
        shares.append(
            TimeShare(colour, round(begin, 2), round(100 * part, 2), words, seconds(spent), percent(part))
        )
        begin += 100 * part
    return shares


class PartBand(NamedTuple):
    """The turns of one part on a band as long as the solve, in per cent of the length."""

    name: str
    turns: list[tuple[float, float]]
    """Begin and length of each turn."""
    seconds: str
    percent: str


def part_bands(result: Any) -> list[PartBand]:
    """One band for each part, in the order in which the parts began; none for a single part."""
    turns = result.trace.turns
    names = list(dict.fromkeys(turn.part for turn in turns))
    if len(names) < 2:
        return []
    end = max(result.seconds, turns[-1].end)
    bands = []
    for name in names:
        mine = [turn for turn in turns if turn.part == name]
        spent = sum(turn.end - turn.begin for turn in mine)
        places = [
            (round(100 * turn.begin / end, 2), max(round(100 * (turn.end - turn.begin) / end, 2), THINNEST))
            for turn in mine
        ]
        bands.append(PartBand(visible(name), places, seconds(spent), percent(spent / end)))
    return bands


THINNEST = 0.2
"""The smallest width of a turn on a band, about a pixel."""
MOST_NAMED = 20
"""Largest number of inputs outside the training data that are named."""


class Check(NamedTuple):
    """One check of the solution."""

    passed: bool | None
    """None for values that are reported only."""
    words: str
    amount: str


def checks(result: Any) -> list[Check]:
    """The checks of the solution; none without a solution."""
    violation = result.violation
    if violation is None:
        return []
    facts = result.facts
    rows = "constraints" if facts is None else several(facts.n_rows, "constraint")
    columns = "" if facts is None else f" of {several(facts.lower.size, 'variable')}"
    integers = "integers" if facts is None else several(int(np.count_nonzero(facts.integer)), "integer")
    judged = (
        (rows, violation.rows),
        (f"bounds{columns}", violation.bounds),
        (integers, violation.integrality),
        ("outputs equal the predictors' answers", violation.prediction),
    )
    told = (
        ("difference from the predictors in float64", violation.precision),
        ("effect of rounding: samples one by one, or on another processor", violation.rounding),
    )
    return [Check(worst.amount <= TOLERANCE, words, _amount(worst)) for words, worst in judged] + [
        Check(None, words, _amount(worst)) for words, worst in told
    ]


def _amount(worst: Any) -> str:
    name = f" ({visible(worst.name)})" if worst.name else ""
    if math.isnan(worst.amount):
        return f"not measured{name}"
    return "exact" if worst.amount == 0.0 else f"off by {worst.amount:.1e}{name}"


def sentence(message: str) -> str:
    """A message as a sentence of the page."""
    return visible(f"{message[:1].upper()}{message[1:]}.", 2000)


def warnings(result: Any) -> list[str]:
    """Warnings, the most urgent first."""
    words = [] if result.x is not None else [sentence(result.message)]
    violation = result.violation
    if violation is not None and violation.within() and not violation.steady():
        words.append(
            f"Evaluated one by one, or on another processor, the solution may violate "
            f"{visible(violation.rounding.name)} by {violation.rounding.amount:.1e}: predictors round."
        )
    outside = notable(result.extrapolations)
    if outside:
        words.append(
            f"{several(len(outside), 'input lies', 'inputs lie')} outside the training data, "
            "where the predictors are not supported by data."
        )
    near = nearly_inside(result.extrapolations)
    if near:
        lie = several(len(near), "input lies", "inputs lie")
        words.append(f"{lie} outside the training data, by no more than 1 % of its range.")
    failed = "A part failed, and the solve continued without it"
    return words + [f"{failed}: {visible(str(failure), 600)}." for failure in result.failures]


def hints(result: Any) -> list[str]:
    """What to try next."""
    return [visible(hint, 600) for hint in result.hints]


def extrapolations(result: Any) -> tuple[list[str], int]:
    """Inputs outside their training range, the farthest first, and the number of further ones."""
    outside = notable(result.extrapolations)
    named = [visible(str(where), 200) for where in outside[:MOST_NAMED]]
    return named, len(outside) - len(named)
