"""What a result keeps of the problem that it answers, so that it can be read without it.

The limits of columns say which values are at a bound; what the classes were when nothing was done says what
the answer changed. All of it goes into the result's file: a page made of the file is the page of the solve.
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
from dovetail.core.stated_program import StatedProgram
from dovetail.core.untouched import untouched_inputs
from dovetail.run.record import require, texts

MOST_ASKED = 100_000
"""Samples whose class is asked for once more, and that a file gets the values of."""

MOST_ENTRIES = 5_000_000
"""Of the matrix: a look at more of them takes longer than anybody waits after the time is over."""

MOST_COLUMNS = 100_000_000
"""That a file is believed: a few letters may claim any number, and each would take 32 bytes."""

FLAGS = ("integer", "read", "written")
"""What is yes or no of each column; 1 and 0 in a file."""


@dataclass(frozen=True, eq=False)
class Untouched:
    """The samples of a classification block when nothing is done (see `core/untouched.py`)."""

    inputs: IntArray
    """(n, d) columns."""
    outputs: IntArray
    """(n, q) columns."""
    values: FloatArray
    """(n, d) of the inputs; NaN where the rows do not say."""
    classes: FloatArray
    """(n, q) of the outputs there, by the predictor; NaN where nobody asked."""


@dataclass(frozen=True, eq=False)
class BlockFacts:
    """One block: what it ties, and what its samples were before."""

    name: str
    predictor: str
    samples: int
    n_inputs: int
    n_outputs: int
    classifies: bool
    features: tuple[str, ...] = ()
    """What the predictor calls its inputs, if it does."""
    untouched: Untouched | None = None


class Limits(NamedTuple):
    """What a file says of each column: (columns,) each."""

    lower: FloatArray
    upper: FloatArray
    integer: BoolArray


@dataclass(frozen=True, eq=False)
class ProblemFacts:
    """Sense, size and limits of a problem, and which of its columns predictors read and write."""

    sense: str
    n_rows: int
    limits: StatedProgram | Limits
    """Of the columns; a stated program makes vectors over ten million blocks when somebody reads them."""
    inputs: tuple[IntArray, ...]
    """Columns that blocks read."""
    outputs: tuple[IntArray, ...]
    """Columns that blocks write."""
    blocks: tuple[BlockFacts, ...]

    @classmethod
    def of(cls, problem: Problem, *, ask: bool = True) -> ProblemFacts:
        """Of a problem as it is now; `ask` its predictors for the classes of untouched samples."""
        program = problem.stated
        inputs, outputs = (tuple(getattr(b, name) for b in problem.blocks) for name in ("inputs", "outputs"))
        blocks = tuple(_block_facts(problem, block, ask) for block in problem.blocks)
        return cls(program.sense, program.n_rows, program, inputs, outputs, blocks)

    @property
    def lower(self) -> FloatArray:
        """(columns,) limits."""
        return self.limits.lower

    @property
    def upper(self) -> FloatArray:
        """(columns,) limits."""
        return self.limits.upper

    @property
    def integer(self) -> BoolArray:
        """(columns,)."""
        return self.limits.integer

    @cached_property
    def read(self) -> BoolArray:
        """(columns,) whether it is an input of some block."""
        return self._among(self.inputs)

    @cached_property
    def written(self) -> BoolArray:
        """(columns,) whether it is an output."""
        return self._among(self.outputs)

    def _among(self, columns: tuple[IntArray, ...]) -> BoolArray:
        found = np.zeros(self.lower.size, dtype=bool)
        for mine in columns:
            found[mine] = True
        return found

    def to_record(self) -> dict[str, Any]:
        """As JSON has it: what is the same for many columns is written once."""
        return {
            "sense": self.sense,
            "n_rows": self.n_rows,
            "lower": _runs(self.lower),
            "upper": _runs(self.upper),
            **{name: _runs(getattr(self, name).astype(np.int64)) for name in FLAGS},
            "blocks": [_block_record(block) for block in self.blocks],
        }

    @classmethod
    def from_record(cls, record: Any, columns: int | None) -> ProblemFacts | None:
        """What `to_record` wrote, of so many columns; a `ValueError` for anything else."""
        if record is None:
            return None
        columns = sum(int(count) for _, count in record["lower"]) if columns is None else columns
        lower, upper = (_spread(record[name], columns, np.float64) for name in ("lower", "upper"))
        flags = {name: _spread(record[name], columns, np.int64).astype(bool) for name in FLAGS}
        blocks = tuple(_read_block(block, columns) for block in record["blocks"])
        sense = require("sense", record["sense"], str)
        if sense not in ("min", "max"):
            raise ValueError(f"sense is {sense!r}")
        limits, (read, written) = Limits(lower, upper, flags["integer"]), (flags["read"], flags["written"])
        return cls(
            sense, int(record["n_rows"]), limits, (np.flatnonzero(read),), (np.flatnonzero(written),), blocks
        )


def _block_facts(problem: Problem, block: Block, ask: bool) -> BlockFacts:
    description = block.description
    return BlockFacts(
        block.name,
        description.name,
        block.samples,
        block.inputs.shape[1],
        block.outputs.shape[1],
        block.classifies,
        description.feature_names or (),
        _untouched(problem, block, ask) if block.classifies else None,
    )


def _untouched(problem: Problem, block: Block, ask: bool) -> Untouched | None:
    """None where the rows give no starting value."""
    if problem.stated.nonzeros > MOST_ENTRIES or block.samples > MOST_ASKED:
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
    """A word beside the answer: a predictor that fails here has failed nobody."""
    try:
        said = block.predictor.predict(values)
    except Exception:
        return np.full((len(values), block.outputs.shape[1]), np.nan)
    finite = np.isfinite(said).all(axis=1, keepdims=True)
    return np.where(finite, block.decode(said), np.nan)


def _block_record(block: BlockFacts) -> dict[str, Any]:
    record = {**vars(block), "features": list(block.features)}
    if block.untouched is not None:
        record["untouched"] = {name: array.tolist() for name, array in vars(block.untouched).items()}
    return record


def _read_block(record: Any, columns: int) -> BlockFacts:
    untouched = None if record["untouched"] is None else _read_untouched(record["untouched"], columns)
    samples, n_inputs, n_outputs = (int(record[name]) for name in ("samples", "n_inputs", "n_outputs"))
    return BlockFacts(
        require("name", record["name"], str),
        require("predictor", record["predictor"], str),
        samples,
        n_inputs,
        n_outputs,
        bool(record["classifies"]),
        tuple(texts("features", record["features"])),
        untouched,
    )


def _read_untouched(record: Any, columns: int) -> Untouched:
    inputs, outputs = (np.array(record[name], dtype=np.int64) for name in ("inputs", "outputs"))
    values, classes = (np.array(record[name], dtype=np.float64) for name in ("values", "classes"))
    fits = inputs.ndim == outputs.ndim == 2 and len(inputs) == len(outputs)
    if not fits or inputs.shape != values.shape or outputs.shape != classes.shape:
        raise ValueError("the samples of a block have different shapes")
    for places in (inputs, outputs):
        if places.size and not 0 <= places.min() <= places.max() < columns:
            raise ValueError("a block is over columns that are not there")
    return Untouched(inputs, outputs, values, classes)


def _runs(array: FloatArray | IntArray) -> list[list[float]]:
    """Values and how often each is repeated."""
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
