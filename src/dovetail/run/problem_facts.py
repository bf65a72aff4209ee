"""The facts about a problem that a result stores, so that the result can be read without the problem.

The bounds of variables show which values are at a bound. The classes before the decision show what the
decision changed. Both go into the result's file: a page made from the file is the page of the solve.

`untouched_inputs` are the inputs of a block when nothing is done: the values that the constraints give them.
A treatment is mostly stated as ``x - up + down = w``: with all other variables at 0 the input x is w. A
distance is stated as ``x - d <= w`` and ``x + d >= w``. The constraints of an input that contain no other
input and no output, and whose other variables may be 0, limit the input to an interval. If the interval is a
single value, the value is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.problem import Problem
from dovetail.core.sparse import row_of_entries
from dovetail.core.stated_program import StatedProgram
from dovetail.core.template import FamilyColumns, Place, Template, column_of, entries_of, places_of
from dovetail.run.record import read, sayable

MOST_CLASSIFIED = 100_000
"""Largest number of samples whose class is evaluated again and stored in a file."""

MOST_ENTRIES = 5_000_000
"""Largest number of matrix entries that are examined after the end of a solve."""

MOST_COLUMNS = 100_000_000
"""Largest number of columns accepted from a file, because each takes 32 bytes."""

FLAGS = ("integer", "read", "written")
"""Boolean fields of each column; 1 and 0 in a file."""


@dataclass(frozen=True, eq=False)
class Untouched:
    """The samples of a classification block without any decision (see `run/problem_facts.py`)."""

    inputs: IntArray
    """(n, d) columns."""
    outputs: IntArray
    """(n, q) columns."""
    values: FloatArray
    """(n, d) the inputs; NaN if the rows do not determine them."""
    classes: FloatArray
    """(n, q) the classes there, by the predictor; NaN if not evaluated."""


@dataclass(frozen=True, eq=False)
class BlockFacts:
    """One block: the columns that it connects, and its samples without any decision."""

    name: str
    predictor: str
    samples: int
    n_inputs: int
    n_outputs: int
    classifies: bool
    features: tuple[str, ...] = ()
    """The predictor's feature names, if it has any."""
    untouched: Untouched | None = None


class Limits(NamedTuple):
    """Facts about each column in a file: (columns,) each."""

    lower: FloatArray
    upper: FloatArray
    integer: BoolArray


@dataclass(frozen=True, eq=False)
class ProblemFacts:
    """Sense, size and limits of a problem, and the columns that predictors read and write."""

    sense: str
    n_rows: int
    limits: StatedProgram | Limits
    """Limits of the columns; very large problems make these vectors on access."""
    inputs: tuple[IntArray, ...]
    """Columns that blocks read."""
    outputs: tuple[IntArray, ...]
    """Columns that blocks write."""
    blocks: tuple[BlockFacts, ...]
    objective: str = ""
    """The name of the objective: the model's, or that of its only variable."""

    @classmethod
    def of(cls, problem: Problem, *, ask: bool = True) -> ProblemFacts:
        """The facts of a problem; with `ask`, its predictors are evaluated for the classes of untouched
        samples."""
        program = problem.stated
        inputs, outputs = (tuple(getattr(b, name) for b in problem.blocks) for name in ("inputs", "outputs"))
        blocks = tuple(_block_facts(problem, block, ask) for block in problem.blocks)
        return cls(program.sense, program.n_rows, program, inputs, outputs, blocks, _objective_name(program))

    @property
    def lower(self) -> FloatArray:
        """(columns,) lower bounds."""
        return self.limits.lower

    @property
    def upper(self) -> FloatArray:
        """(columns,) upper bounds."""
        return self.limits.upper

    @property
    def integer(self) -> BoolArray:
        """(columns,)."""
        return self.limits.integer

    @cached_property
    def read(self) -> BoolArray:
        """(columns,) whether each is an input of a block."""
        return self._column_mask(self.inputs)

    @cached_property
    def written(self) -> BoolArray:
        """(columns,) whether each is an output."""
        return self._column_mask(self.outputs)

    def _column_mask(self, columns: tuple[IntArray, ...]) -> BoolArray:
        found = np.zeros(self.lower.size, dtype=bool)
        for mine in columns:
            found[mine] = True
        return found

    def to_record(self) -> dict[str, Any]:
        """As JSON; values shared by many columns are written once."""
        return {
            "sense": self.sense,
            "n_rows": self.n_rows,
            "lower": _runs(self.lower),
            "upper": _runs(self.upper),
            **{name: _runs(getattr(self, name).astype(np.int64)) for name in FLAGS},
            "blocks": sayable(self.blocks),
            "objective": self.objective,
        }

    @classmethod
    def from_record(cls, record: Any, columns: int | None) -> ProblemFacts | None:
        """Read the output of `to_record` for this number of columns; a `ValueError` for anything else."""
        if record is None:
            return None
        columns = sum(int(count) for _, count in record["lower"]) if columns is None else columns
        lower, upper = (_spread(record[name], columns, np.float64) for name in ("lower", "upper"))
        flags = {name: _spread(record[name], columns, np.int64).astype(bool) for name in FLAGS}
        blocks = read("blocks", record["blocks"], tuple[BlockFacts, ...])
        for block in blocks:
            if block.untouched is not None:
                _require_fitting(block.untouched, columns)
        sense = read("sense", record["sense"], str)
        if sense not in ("min", "max"):
            raise ValueError(f"sense is {sense!r}")
        inputs, outputs = ((np.flatnonzero(flags[name]),) for name in ("read", "written"))
        limits = Limits(lower, upper, flags["integer"])
        name = read("objective", record.get("objective", ""), str)
        return cls(sense, int(record["n_rows"]), limits, inputs, outputs, blocks, name)


def _objective_name(program: StatedProgram) -> str:
    """The name of the objective; empty for large problems and if nothing has a name."""
    if program.waiting or program.host is None:
        return ""
    costs = np.flatnonzero(program.host.cost)
    only = program.host.names is not None and costs.size == 1
    return program.host.objective_name or (program.host.column_name(int(costs[0])) if only else "")


def _block_facts(problem: Problem, block: Block, ask: bool) -> BlockFacts:
    known = block.description
    (samples, n_inputs), n_outputs = block.inputs.shape, block.outputs.shape[1]
    untouched = _untouched(problem, block, ask) if block.classifies else None
    features = known.feature_names or ()
    return BlockFacts(
        block.name, known.name, samples, n_inputs, n_outputs, block.classifies, features, untouched
    )


def _untouched(problem: Problem, block: Block, ask: bool) -> Untouched | None:
    """None if the rows give no starting value."""
    if problem.stated.nonzeros > MOST_ENTRIES or block.samples > MOST_CLASSIFIED:
        return None
    values = untouched_inputs(problem, block)
    if np.all(np.isnan(values)):
        return None
    classes = np.full(block.outputs.shape, np.nan)
    whole = np.flatnonzero(~np.isnan(values).any(axis=1))
    if ask and whole.size:
        classes[whole] = _classes(block, values[whole])
    return Untouched(block.inputs, block.outputs, values, classes)


def _classes(block: Block, values: FloatArray) -> FloatArray:
    """The classes; a predictor that fails here does not fail the solve."""
    try:
        said = block.predictor.predict(values)
    except Exception:
        return np.full((len(values), block.outputs.shape[1]), np.nan)
    finite = np.isfinite(said).all(axis=1, keepdims=True)
    return np.where(finite, block.decode(said), np.nan)


def _require_fitting(untouched: Untouched, columns: int) -> None:
    inputs, outputs = untouched.inputs, untouched.outputs
    fits = inputs.ndim == outputs.ndim == 2 and len(inputs) == len(outputs)
    if not fits or inputs.shape != untouched.values.shape or outputs.shape != untouched.classes.shape:
        raise ValueError("the samples of a block have different shapes")
    for places in (inputs, outputs):
        if places.size and not 0 <= places.min() <= places.max() < columns:
            raise ValueError("a block refers to variables that the problem does not have")


def _runs(array: FloatArray | IntArray) -> list[list[float]]:
    """Values with their number of repetitions."""
    if not array.size:
        return []
    first = np.flatnonzero(np.concatenate([[True], array[1:] != array[:-1]]))
    counts = np.diff(np.append(first, array.size))
    return [[value, count] for value, count in zip(array[first].tolist(), counts.tolist(), strict=True)]


def _spread(runs: Iterable[Any], columns: int, kind: type) -> Any:
    values, counts = [value for value, _ in runs], [int(count) for _, count in runs]
    if sum(counts) != columns or min(counts, default=0) < 0 or columns > MOST_COLUMNS:
        raise ValueError(f"limits of {sum(counts)} columns, where there are {columns}")
    return np.repeat(np.array(values, dtype=kind), counts)


NEAR = 1e-9
"""Relative: two ends of an interval that differ by less are the same value."""


def untouched_inputs(problem: Problem, block: Block) -> FloatArray:
    """(n, d) values of a block's inputs if all other columns of their rows are 0; NaN where unknown."""
    families = problem.families_of(block)
    if families is not None and families[0].template in problem.stated.waiting:
        return _stated_inputs(problem, families[0])
    mip = problem.mip
    tied = np.zeros(mip.n_columns, dtype=bool)
    tied[problem.inputs] = tied[problem.outputs] = True
    row, column, entry = row_of_entries(mip.A), mip.A.indices, mip.A.data
    in_the_way = tied[column] | (mip.lower[column] > 0.0) | (mip.upper[column] < 0.0)
    alone = np.bincount(row, in_the_way, mip.n_rows)[row] == 1.0
    mine = np.zeros(mip.n_columns, dtype=bool)
    mine[block.inputs] = True
    where = np.flatnonzero(alone & mine[column])
    low, high = _intervals(mip.row_lower[row[where]], mip.row_upper[row[where]], entry[where])
    least, most = np.full(mip.n_columns, -np.inf), np.full(mip.n_columns, np.inf)
    np.maximum.at(least, column[where], low)
    np.minimum.at(most, column[where], high)
    fixed = mip.lower == mip.upper
    least[fixed] = most[fixed] = mip.lower[fixed]
    return _single(least, most)[block.inputs]


def _stated_inputs(problem: Problem, inputs: FamilyColumns) -> FloatArray:
    """The same for families of a template that is not written out."""
    template, places = inputs.template, places_of(inputs)
    pairs = [
        pair for b in problem.blocks if (pair := problem.families_of(b)) and pair[0].template is template
    ]
    tied = {place for pair in pairs for families in pair for place in places_of(families)}
    rows = [(row, k, entries_of(template, row, k)) for row in template.rows for k in range(row.width)]
    values = np.empty((template.count, len(places)))
    for number, place in enumerate(places):
        least, most = np.full(template.count, -np.inf), np.full(template.count, np.inf)
        for row, k, entries in rows:
            if place not in entries or any(other in tied for other in entries if other != place):
                continue
            counts = _may_be_zero(template, {p: e for p, e in entries.items() if p != place})
            counts = counts & (entries[place] != 0.0)
            entry = np.where(entries[place] == 0.0, 1.0, entries[place])
            low, high = _intervals(column_of(row.lower, k), column_of(row.upper, k), entry)
            least = np.maximum(least, np.where(counts, low, -np.inf))
            most = np.minimum(most, np.where(counts, high, np.inf))
        own = template.families[place[0]]
        lower, upper = column_of(own.lower, place[1]), column_of(own.upper, place[1])
        values[:, number] = np.where(lower == upper, lower, _single(least, most))
    return values


def _may_be_zero(template: Template, entries: dict[Place, FloatArray]) -> BoolArray:
    """(blocks,) or (1,): whether all these columns of a row may be 0 together."""
    free = np.ones(1, dtype=bool)
    for (name, k), entry in entries.items():
        family = template.families[name]
        zero = (column_of(family.lower, k) <= 0.0) & (column_of(family.upper, k) >= 0.0)
        free = free & (zero | (entry == 0.0))
    return free


def _single(least: FloatArray, most: FloatArray) -> FloatArray:
    """The value of each interval that contains a single number; NaN for others."""
    known = np.isfinite(least) & (np.abs(most - least) <= NEAR * np.maximum(1.0, np.abs(least)))
    return np.where(known, least, np.nan)


def _intervals(lower: FloatArray, upper: FloatArray, entry: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The interval that each row allows its only column."""
    ends = lower / entry, upper / entry
    return np.minimum(*ends), np.maximum(*ends)
