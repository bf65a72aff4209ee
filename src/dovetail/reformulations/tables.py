"""Blocks whose inputs take few values, written into the MIP as tables: exact, whatever the network.

Inputs are fixed, integers, or, of known layers, columns that equations determine from integers (x = n / 20).

- no free input: y = f, one row;
- one binary: y = f(0) + (f(1) - f(0)) x, one row;
- several binaries: y and x are the same convex combination of the table's rows. The corners of a cube
  are no combination of others, so the weights need not be integer;
- general integers: the weights are binaries.

A sample stays a block if its network returns a value that no row can hold (infinity, NaN, or a number beyond
the range of engines) for any input combination: the behaviour of engines is then unknown.

A derivative with respect to a binary gives no information about its two values, so tables are tried first.

A table contains the predictor's answers to all rows in one large batch. Asked for one row alone, or in
another batch, a float32 network gives other last digits, since its sums are taken in another order. How far
is measured, not derived (`batch_spread`): rows are asked for again, alone and among others, and the largest
difference is allowed for, and one more rounding. Worst cases of any machine, as `Program.errors` has them,
are ten times as wide, and known for few networks. float64 moves in the sixteenth digit; only classes can
notice. If answers may change in other batches, bounds are proved for a relaxed problem: rows that contain an
output are relaxed by its possible change, the objective is lowered by the effect of this change, and a class
that may change is left free.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.batch_rounding import DOUBLE
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.description import Description
from dovetail.core.mip import LARGEST, Mip
from dovetail.core.predictor import LimitedPredictor, Predictor
from dovetail.core.problem import Problem
from dovetail.core.words import several
from dovetail.networks.arithmetic import FLOAT32, FLOAT64, FORMATS
from dovetail.reformulations.reformulated import FillColumns, Reformulated
from dovetail.reformulations.writer import Writer
from dovetail.structure.boxes import grid, limits_within
from dovetail.structure.definitions import Equations

MOST_COLUMNS = 20_000
"""Largest number of columns that tables may add."""
SMALL = 1e-12
"""Outputs that vary less, relative to max(1, |largest|), are used as they are: float64 rounding."""


SHORT_ROWS = 256
"""Tables up to this length are always written: a search evaluates more in a second."""
FUNCTION_ROWS = 5_000
"""Longest table of a predictor with unknown operations, about which nothing else can prove anything: a
search evaluates this number in five seconds, and HiGHS takes about the same time for the MIP (0.6 s for
2,000 rows)."""
NETWORK_ROWS = 1_000
"""Longest table if branch and bound over the inputs is possible too, which may be faster beyond that."""
QUADRATIC_ROWS = 16
"""Longest table of a quadratic function, for which SCIP and tangents are better."""
TRIED = 0.1
"""Share of the time for a trial that shows whether the time suffices."""
GROWTH = 4
"""Growth factor of batches."""


@dataclass(frozen=True, eq=False)
class _Table:
    """All values of one sample's free inputs, with the network's answers."""

    columns: IntArray
    """The free inputs, without repetitions."""
    points: FloatArray
    """(k, free)."""
    inputs: FloatArray
    """(k, d) complete rows of inputs."""
    binary: bool

    @property
    def is_long(self) -> bool:
        """Whether it is long enough to need a decision about time."""
        return len(self.points) > SHORT_ROWS

    @property
    def weights(self) -> int:
        """Number of columns that the table needs."""
        k = len(self.points)
        return k if k > 2 or (k == 2 and not self.binary) else 0


def may_have_tables(problem: Problem) -> bool:
    """Whether a sample reads only integer, fixed and determined columns; known before any box."""
    whole = np.zeros(problem.stated.n_columns, dtype=bool)
    for part in problem.stated.columns:
        part.of(whole)[:] = part.integer | (part.lower == part.upper)
    for block in problem.blocks:
        if block.classifies:
            whole[block.outputs] = True
    if any(bool(np.any(np.all(whole[block.inputs], axis=1))) for block in problem.blocks):
        return True
    if not any(map(_is_continuous, problem.blocks)) or not np.any(whole):
        return False
    Equations(problem.mip).define(whole, np.isin(np.arange(whole.size), problem.outputs))
    return any(
        bool(np.any(np.all(whole[block.inputs], axis=1))) for block in problem.blocks if _is_continuous(block)
    )


def _is_continuous(block: Block) -> bool:
    """Whether a row that is met to within the tolerance of the check does not change the answer: neither a
    class nor a threshold is near."""
    return block.description.layers is not None and not block.classifies


@dataclass(frozen=True, eq=False)
class _Determined:
    """Columns that fixed columns and integers determine: z = constant + matrix z, for those columns."""

    known: BoolArray
    matrix: sp.csr_array
    constant: FloatArray

    @classmethod
    def of(cls, problem: Problem, fixed: BoolArray, integer: BoolArray) -> _Determined:
        """All determined columns, in terms of fixed columns and integers alone."""
        size = fixed.size
        known = fixed | integer
        barred = np.isin(np.arange(size), problem.outputs)
        matrix, constant = sp.csr_array(sp.diags_array(known.astype(float))), np.zeros(size)
        for level in Equations(problem.mip).define(known, barred):
            place = sp.csr_array(
                (np.ones(level.columns.size), (level.columns, np.arange(level.columns.size))),
                shape=(size, level.columns.size),
            )
            constant[level.columns] = level.constant + level.matrix @ constant
            matrix = sp.csr_array(matrix + place @ (level.matrix @ matrix))
        return cls(known, matrix, constant)


@dataclass(frozen=True)
class Tables:
    """Replaces samples with few input combinations by tables."""

    seconds: float = 0.0
    """Time for the answers of each block's long tables; without, tables are short (`answers_within`)."""
    refused: Callable[[str], None] = lambda why: None
    """Called with the reason if there is no long table."""

    name = "tables"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with its tables written, or None if no sample has few combinations."""
        kept, blocks = self._tabulated(given.problem, given.box)
        if not kept:
            return None
        return _with_tables(given, kept, blocks)

    def _tabulated(self, problem: Problem, box: Box) -> tuple[list[_Written], tuple[Block, ...]]:
        """The tables of a problem with the answers of its predictors, and the remaining blocks."""
        lower, upper, integer = limits_within(problem, box.lower, box.upper)
        kept: list[_Written] = []
        blocks = []
        planned = 0
        fixed = upper <= lower
        determined = _Determined.of(problem, fixed, integer)
        for block in problem.blocks:
            whole = determined.known if _is_continuous(block) else fixed | integer
            few = np.flatnonzero(np.all(whole[block.inputs], axis=1))
            longest = longest_table(block, self.seconds)
            tables = {int(i): _table(block.inputs[i], lower, upper, longest, determined) for i in few}
            chosen: dict[int, _Table] = {}
            long_rows = 0
            for i, table in tables.items():
                if table is None or planned + table.weights > MOST_COLUMNS:
                    continue
                if table.is_long and long_rows + len(table.points) > longest:
                    continue
                chosen[i] = table
                planned += table.weights
                long_rows += len(table.points) if table.is_long else 0
            chosen, values = self._fitting(block, chosen)
            rows = np.array(list(chosen), dtype=np.int64)
            if chosen:
                kept += _answered(problem, block, list(chosen.values()), values, block.outputs[rows])
            if len(chosen) < block.samples:
                blocks.append(_without_samples(block, rows))
        return kept, tuple(blocks)

    def _fitting(self, block: Block, tables: dict[int, _Table]) -> tuple[dict[int, _Table], FloatArray]:
        """The tables of a block that rows can hold, with the predictor's answers. Short ones are evaluated
        in one batch; with a long one, all in growing batches if time allows."""
        if not tables:
            return {}, np.empty((0, block.outputs.shape[1]))
        X = np.concatenate([table.inputs for table in tables.values()])
        if any(table.is_long for table in tables.values()):
            values = answers_within(block.predictor, X, self.seconds)
            if values is None:
                self.refused(
                    f"evaluating {several(len(X), 'sample')} of {block.description.name} would take more "
                    f"than {self.seconds:.1f} s"
                )
                return self._fitting(block, {i: table for i, table in tables.items() if not table.is_long})
        else:
            values = block.predictor.predict(X)
        ends = np.cumsum([len(table.inputs) for table in tables.values()])
        answers = zip(tables.items(), np.split(values, ends[:-1]), strict=True)
        fitting = [(i, table, said) for (i, table), said in answers if _writable(table, said)]
        said = np.concatenate([np.empty((0, values.shape[1])), *(part for _, _, part in fitting)])
        return {i: table for i, table, _ in fitting}, said


@dataclass(frozen=True, eq=False)
class _Written:
    """A table with its outputs row by row: as answered, least and largest."""

    table: _Table
    outputs: IntArray
    seen: FloatArray
    least: FloatArray
    most: FloatArray
    slack: FloatArray
    """Per output, the uncertainty left to the rows that read it."""


def _answered(
    problem: Problem, block: Block, tables: list[_Table], values: FloatArray, outputs: IntArray
) -> Iterator[_Written]:
    """The predictor's answers for the rows of its tables, and their possible change in another batch."""
    X = np.concatenate([table.inputs for table in tables])
    spread = batch_spread(block.predictor, block.description, X, values)
    if not block.classifies:
        spread = np.where(spread <= SMALL * np.maximum(1.0, np.max(np.abs(values), axis=0)), 0.0, spread)
    least, seen, most = _outcomes(block, X, values, spread)
    fed = np.isin(outputs, problem.inputs)  # outputs that another network reads must be the exact answers
    ends = np.cumsum([0, *(len(table.inputs) for table in tables)])
    for k, table in enumerate(tables):
        rows = slice(ends[k], ends[k + 1])
        open_ones = fed[k] | block.classifies
        yield _Written(
            table,
            outputs[k],
            seen[rows],
            np.where(open_ones, least[rows], seen[rows]),
            np.where(open_ones, most[rows], seen[rows]),
            np.where(open_ones, 0.0, spread),
        )


def _outcomes(
    block: Block, X: FloatArray, values: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The smallest possible output for each row, the answer, and the largest."""
    seen = block.decode(values)
    if not block.classifies:
        return values - spread, seen, values + spread
    room = _answer_spread(block, X)
    if values.shape[1] == 1:
        room = np.maximum(room.max(axis=1, keepdims=True), spread)
        return block.decode(values - room), seen, block.decode(values + room)
    ahead = values[:, :, None] - values[:, None, :]
    may_win = np.all(ahead >= -np.maximum(room, spread[:, None] + spread), axis=2)
    alone = may_win & (may_win.sum(axis=1, keepdims=True) == 1)
    return alone.astype(np.float64), seen, may_win.astype(np.float64)


def _answer_spread(block: Block, X: FloatArray) -> FloatArray:
    """How far apart two answers for one row may be where a class is decided, shaped as `slack_of` says.

    Each value may be off by the slack of the network's arithmetic in both directions. An activation after the
    logits (a sigmoid, for example) has slopes of at most 1, so that the slack of the logits also covers its
    values. If the arithmetic is unknown, the measured differences are used instead.
    """
    slack = block_slack(block, X, X)
    return 2.0 * slack if np.any(np.isfinite(slack)) else np.zeros(slack.shape)


def _with_tables(given: Reformulated, kept: list[_Written], blocks: tuple[Block, ...]) -> Reformulated:
    """The problem with the tables written, and a relaxed one if answers may change."""
    problem = given.problem
    writer = Writer(problem.mip.n_columns)
    fills: list[FillColumns] = []
    for one in kept:
        fills += _write(writer, one.table, one.outputs, one.seen, one.seen)
    note = (
        f"samples with few combinations of inputs became constraints: {len(kept)} (+{writer.size} variables)"
    )
    written = problem.derived(writer.extend(problem.mip), blocks)
    return Reformulated(written, given, tuple(fills), relaxed=_relaxed(given, kept, blocks), note=note)


def _relaxed(given: Reformulated, kept: list[_Written], blocks: tuple[Block, ...]) -> Reformulated | None:
    """The same columns with rows that hold for every possible answer of the predictors; None: the same."""
    problem = given.problem
    slack = np.zeros(problem.mip.n_columns)
    for one in kept:
        slack[one.outputs] = one.slack
    if not np.any(slack) and all(np.array_equal(one.least, one.most) for one in kept):
        return None
    writer = Writer(problem.mip.n_columns)
    fills: list[FillColumns] = []
    for one in kept:
        fills += _write(writer, one.table, one.outputs, one.least, one.most)
    relaxed = problem.derived(writer.extend(_loosened(problem.mip, slack)), blocks)
    return Reformulated(relaxed, given, tuple(fills), slack=slack)


def _loosened(mip: Mip, slack: FloatArray) -> Mip:
    """The program relaxed so that it holds for all points whose columns differ by so much."""
    moved = abs(mip.A) @ slack
    return replace(
        mip,
        row_lower=mip.row_lower - moved,
        row_upper=mip.row_upper + moved,
        lower=mip.lower - slack,
        upper=mip.upper + slack,
        integer=mip.integer & (slack == 0.0),
        offset=mip.offset - mip.sign * float(np.abs(mip.cost) @ slack),
    )


def _writable(table: _Table, values: FloatArray) -> bool:
    """Whether rows can hold a table: finite, and within the range of engines."""
    reach = np.max(np.abs(table.points), initial=1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.max(np.abs(values)) * (reach if table.weights == 0 else 1.0)
    return bool(np.isfinite(largest) and max(largest, reach) <= LARGEST)


def _without_samples(block: Block, written: IntArray) -> Block:
    if written.size == 0:
        return block
    left = np.delete(np.arange(block.samples), written)
    return replace(block, inputs=block.inputs[left], outputs=block.outputs[left])


def _table(
    inputs: IntArray, lower: FloatArray, upper: FloatArray, most: int, determined: _Determined
) -> _Table | None:
    """The table of one sample with fixed inputs, integers and what these determine; None if it has too many
    rows."""
    says = sp.csr_array(determined.matrix[inputs])
    read = np.unique(says.indices)
    columns = read[upper[read] > lower[read]]
    points = grid(columns, lower, upper, most)
    if points is None:
        return None
    counts = np.floor(upper[columns]) - np.ceil(lower[columns]) + 1
    Z = np.tile(lower[read], (len(points), 1))
    Z[:, np.searchsorted(read, columns)] = points
    rows = Z @ says[:, read].T + determined.constant[inputs]
    return _Table(columns, points, rows, bool(np.all(counts == 2)))


def _write(
    writer: Writer, table: _Table, outputs: IntArray, least: FloatArray, most: FloatArray
) -> list[FillColumns]:
    """Rows that keep each output between the two, for the chosen row of the table."""
    if table.weights == 0:
        for o, y in enumerate(outputs):
            for values, sides in _sides(least[:, o], most[:, o]):
                rise = values[-1] - values[0]
                if len(values) == 1 or abs(rise) < 1e-9:
                    writer.row([y], np.ones(1), *sides(values[0]))
                else:
                    base = values[0] - rise * table.points[0, 0]
                    writer.row([y, table.columns[0]], np.array([1.0, -rise]), *sides(base))
        return []
    count = len(least)
    theta = writer.columns(np.zeros(count), np.ones(count), integer=not table.binary)
    writer.row(theta, np.ones(count), 1.0, 1.0)
    for place, j in enumerate(table.columns):
        writer.row([j, *theta], np.concatenate([[1.0], -table.points[:, place]]), 0.0, 0.0)
    for o, y in enumerate(outputs):
        for values, sides in _sides(least[:, o], most[:, o]):
            writer.row([y, *theta], np.concatenate([[1.0], -values]), *sides(0.0))

    def fill(x: FloatArray) -> FloatArray:
        same: BoolArray = np.all(np.round(x[table.columns]) == table.points, axis=1)
        return same.astype(np.float64)

    return [fill]


Sides = Callable[[float], tuple[float, float]]
"""The limits of a row, as a function of its base."""


def _sides(least: FloatArray, most: FloatArray) -> list[tuple[FloatArray, Sides]]:
    """One equation if both limits are equal, otherwise two inequalities."""
    if np.array_equal(least, most):
        return [(least, lambda base: (base, base))]
    return [(least, lambda base: (base, np.inf)), (most, lambda base: (-np.inf, base))]


def longest_table(block: Block, seconds: float) -> int:
    """The largest number of table rows for this block in the given seconds. Trees have better methods."""
    left = block.predictor.evaluations_left if isinstance(block.predictor, LimitedPredictor) else None
    longest = _longest(block.description, seconds)
    return longest if left is None else min(longest, left)


def _longest(description: Description, seconds: float) -> int:
    if description.quadratic is not None:
        return QUADRATIC_ROWS
    if seconds <= 0.0 or description.trees is not None:
        return SHORT_ROWS
    known = description.layers is not None or description.program is not None
    return NETWORK_ROWS if known else FUNCTION_ROWS


def answers_within(predictor: Predictor, X: FloatArray, seconds: float) -> FloatArray | None:
    """The answers to all rows, or None if that would take longer. Rows are evaluated in growing batches, so
    that little is lost on a slow predictor, and overhead per call is not mistaken for time per row."""
    answers: list[FloatArray] = []
    begin, asked, size = time.perf_counter(), 0, 1
    while asked < len(X):
        begun = time.perf_counter()
        answers.append(predictor.predict(X[asked : asked + size]))
        asked, ended = asked + size, time.perf_counter()
        rest = (len(X) - asked) * (ended - begun) / size
        if ended - begin > TRIED * seconds and ended - begin + rest > seconds:
            return None
        size *= GROWTH
    return np.concatenate(answers) if answers else None


ALONE = 32
"""Number of rows that are evaluated again, each alone."""
PATIENCE = 0.2
"""Seconds after which no more are evaluated."""


def batch_spread(
    predictor: Predictor, description: Description, X: FloatArray, values: FloatArray
) -> FloatArray:
    """Per output, the largest difference of `values`, the answer for `X`, from answers in other batches."""
    largest = np.max(np.abs(values), axis=0, initial=0.0)
    known = description.quadratic is not None  # its arithmetic is known
    if description.is_float64 and (known or not _is_float32(values)):
        return np.asarray(DOUBLE * np.maximum(1.0, largest))
    floor = _last_digit(description, values) * largest
    return np.asarray(floor + _measured_spread(predictor, X, values))


def _last_digit(description: Description, values: FloatArray) -> float:
    """The roundoff of one operation in the predictor's precision."""
    if description.is_float64:
        short = np.all(values.astype(np.float32).view(np.uint32) & 0xFFFF == 0)  # for example integers
        return FLOAT32.roundoff if _is_float32(values) and not short else FLOAT64.roundoff
    coarse = description.rounding
    return coarse if coarse > FORMATS["float16"].roundoff else FLOAT32.roundoff


def _is_float32(values: FloatArray) -> bool:
    """Whether all values are float32 numbers, as of a function that computes in float32 without saying so."""
    with np.errstate(over="ignore"):
        return bool(np.all(values.astype(np.float32) == values))


def _measured_spread(predictor: Predictor, X: FloatArray, values: FloatArray) -> FloatArray:
    begin = time.perf_counter()
    half = slice(0, None, 2)
    worst = np.max(np.abs(predictor.predict(X[half]) - values[half]), axis=0, initial=0.0)
    for i in np.unique(np.linspace(0, len(X) - 1, ALONE).astype(int)):
        if time.perf_counter() - begin > PATIENCE:
            break
        worst = np.maximum(worst, np.abs(predictor.predict(X[i : i + 1]) - values[i : i + 1])[0])
    return np.asarray(worst)
