"""A `Mip` with predictors: the whole problem.

min or max cost'[x; y] over the rows, bounds and integers of the `Mip`, with y_b = f_b(x_b) for each block b.
`stages` orders the predictors: a sample that reads an output of another one is evaluated after it.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from dovetail.core import probe
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block, TrainingData
from dovetail.core.domain import Region, regions_of
from dovetail.core.errors import ModelError, PredictorError
from dovetail.core.family_arrays import Family, FamilyRow
from dovetail.core.mip import Mip
from dovetail.core.names import free_name, in_short, labels_of, require_feature_order
from dovetail.core.options import require_choice
from dovetail.core.predictor import Measure, Predictor, as_predictor, with_risk
from dovetail.core.sparse import joined_ranges
from dovetail.core.stated_program import StatedProgram
from dovetail.core.template import FamilyColumns, Template, few_blocks, read_template, whole_families
from dovetail.core.words import facts

OutputType = Literal["regression", "classification"]

NOBODY = -1
MANY = 100
"""Number of samples above which limits of single inputs are bounds, which have no slack on the page: 2,000
blocks with a box as constraints have no bound after 10 CPU s, and with bounds a gap of 2e-6 after 3."""
MOST_SHOWN, MOST_LISTED = 3, 20
"""Number of blocks that are shown in one line, and in a table."""


@dataclass
class Confined:
    """What the validity domains of a block added to a problem."""

    scores: list[str] = field(default_factory=list)
    """Predictors, by name."""
    rows: set[str] = field(default_factory=set)
    """Constraints, by name."""
    bounds: list[tuple[IntArray, FloatArray, FloatArray]] = field(default_factory=list)
    """Columns with the bounds that they had before."""
    fills: list[tuple[IntArray, IntArray, Callable[[FloatArray], FloatArray]]] = field(default_factory=list)
    """Inputs, variables, and the function that finds values of these for inputs."""


class Problem:
    """A `Mip` with predictors that connect its variables.

    >>> import numpy as np, dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, 1.0, -1.0], upper=[3.0, 3.0, 99.0], names=["a", "b", "y"]))
    >>> block = problem.add_predictor(lambda X: X[:, 0] * X[:, 1], inputs=["a", "b"], outputs=["y"])
    >>> problem.predict(np.array([2.0, 3.0, 0.0]))
    array([2., 3., 6.])
    """

    def __init__(self, mip: Mip | None = None, *, sense: Literal["min", "max"] | None = None) -> None:
        """A problem over the variables of `mip`; with `sense` alone, over those of its templates."""
        if not isinstance(mip, Mip) and (mip is not None or sense is None):
            raise ModelError(
                f"Problem takes a dovetail.Mip, not {type(mip).__module__}.{type(mip).__qualname__}; "
                "build one from arrays with dovetail.Mip(...), or read a file with dovetail.read(path). A "
                'problem of templates alone has a sense instead: Problem(sense="max").'
            )
        if mip is not None and sense is not None:
            raise ModelError("sense= is for a problem without a Mip: a Mip has its own.")
        require_choice("sense", sense or "min", ("min", "max"))
        self._program = StatedProgram(mip, sense or "min")
        self.templates: tuple[Template, ...] = ()
        self.blocks: tuple[Block, ...] = ()
        self._predictors: dict[int, tuple[object, Predictor]] = {}
        """Predictors by the object given to `add_predictor`: one object, added n times, is one predictor."""
        self._families: dict[str, tuple[FamilyColumns, FamilyColumns]] = {}
        """Inputs and outputs by block name, if the block connects whole families of a template."""
        self._confined: dict[str, Confined] = {}
        """What validity domains added, by block name."""
        self._writer = np.full(self._program.n_columns, NOBODY, dtype=np.int32)
        """(columns,) the number of the block that writes each column."""
        self._read = np.zeros(self._program.n_columns, dtype=bool)
        self._shared = False
        """Whether another problem shares the two arrays, which are then copied before a change."""

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_predictors": {}}

    def __repr__(self) -> str:
        what = "maximise" if self._maximises else "minimise"
        templates = "".join(f", {template!r}" for template in self.templates[:MOST_SHOWN])
        blocks = "; ".join(f"{in_short(b.name)}: {b.in_words}" for b in self.blocks[:MOST_SHOWN])
        more = len(self.blocks) - MOST_SHOWN
        tail = f"; and {more} more predictors" if more > 0 else ""
        return f"<Problem: {what} over {self._size()}{templates}; {blocks or 'no predictor'}{tail}>"

    def _repr_html_(self) -> str:
        rows = [("columns and rows", self._size())]
        rows += [("template", repr(template)) for template in self.templates]
        rows += [(block.name, block.in_words) for block in self.blocks[:MOST_LISTED]]
        if len(self.blocks) > MOST_LISTED:
            rows.append(("...", f"{len(self.blocks) - MOST_LISTED} more predictors"))
        return facts(f"Problem, {'maximised' if self._maximises else 'minimised'}", rows)

    @property
    def _maximises(self) -> bool:
        return self._program.sense == "max"

    def _size(self) -> str:
        """The number of columns; integers and rows only if the program exists already."""
        columns = f"{self._program.n_columns} columns"
        if self._program.waiting or self._program.host is None:
            return columns
        mip = self._program.mip
        return f"{columns} ({int(np.count_nonzero(mip.integer))} integer), {mip.n_rows} rows"

    @property
    def mip(self) -> Mip:
        """The whole program; that of templates is made on first access."""
        return self._program.mip

    @property
    def stated(self) -> StatedProgram:
        """The program as it was stated, with templates as arrays."""
        return self._program

    def add_template(
        self,
        count: int,
        families: Mapping[str, Family],
        *,
        rows: Iterable[FamilyRow] = (),
        coupling: Iterable[FamilyRow] = (),
        name: str = "",
    ) -> Template:
        """Add `count` equal blocks: families of variables, constraints within each block, and over all
        blocks.

        The full matrix is made only when `mip` is asked for. The template that is returned addresses
        variables: ``add_predictor(net, template["discount", "age"], template["buys"])`` connects them in
        every block. Messages call the variables ``buys[17]``, or ``customers.buys[17]`` with
        ``name="customers"``.
        """
        first = self._program.n_columns
        template = read_template(name, count, families, rows, coupling, first, self._program.column)
        self._program = self._program.with_template(template)
        self.templates = (*self.templates, template)
        self._add_unread(template.n_columns)
        return template

    def families_of(self, block: Block) -> tuple[FamilyColumns, FamilyColumns] | None:
        """The families that a predictor connects, if it connects whole families of a template."""
        return self._families.get(block.name)

    def add_predictor(
        self,
        predictor: Any,
        inputs: Any,
        outputs: Any,
        *,
        output_type: OutputType = "regression",
        threshold: float | None = None,
        epsilon: float = 1e-4,
        name: str = "",
        data: Any = None,
        risk: Measure | None = None,
        within: Any = None,
    ) -> Block:
        """Connect variables by a predictor: `outputs` = predictor(`inputs`), sample by sample.

        The predictor is evaluated at a few points within the bounds of its inputs before it is accepted.

        Args:
            predictor: A torch module, a trained estimator, trees, the path of a file, or a function of numpy
                batches (docs/predictors.md).
            inputs: Indices or names of variables, of shape (n_samples, n_features), or a vector for one
                sample; or families of a template.
            outputs: The same, of shape (n_samples, n_outputs).
            output_type: "regression", or "classification": one output is 1 if the value is at least
                `threshold`, k outputs are the one-hot of the largest value.
            threshold: Of a classification with one output; by default 0.5 if the predictor ends in a
                sigmoid, otherwise 0 (a logit).
            epsilon: The margin that searches keep from a class boundary. The check and bounds ignore it.
            name: For messages and the log.
            data: The training inputs, of shape (m, n_features); the result then lists inputs outside their
                range.
            risk: A measure of risk, for predictors of several opinions (docs/trust.md): the outputs are the
                mean less some spreads (`dt.MeanSpread`), or the worst opinions (`dt.CVaR`, `dt.Worst`).
            within: Where the predictor is trusted: "box", "hull" or "near" of `data`, a `dt.Box`, `dt.Hull`,
                `dt.Near` or `dt.Score`, or a list of these, which all hold (docs/trust.md). The constraints
                that this adds are named after the predictor.
        """
        name = self._new_name(name)
        if not isinstance(output_type, str) or output_type not in ("regression", "classification"):
            raise PredictorError(
                f"{name}: output_type is {output_type!r}; give 'regression' or 'classification'."
            )
        into = self._samples(f"{name}: inputs", inputs)
        out = self._samples(f"{name}: outputs", outputs)
        if len(into) != len(out):
            raise PredictorError(
                f"{name}: inputs has {len(into)} samples (shape {into.shape}) but outputs has "
                f"{len(out)} (shape {out.shape}); give one row of each per sample."
            )
        families = whole_families(inputs, outputs)
        mip, seen = (self.mip, (into, out)) if families is None else few_blocks(*families)
        block = probe.accept(
            name=name,
            predictor=self._predictor(with_risk(predictor, risk)),
            mip=mip,
            inputs=seen[0],
            outputs=seen[1],
            classifies=output_type == "classification",
            threshold=threshold,
            epsilon=epsilon,
        )
        block = replace(block, inputs=into, outputs=out)
        self._require_feature_order(block, data)
        known = None if data is None else TrainingData.of(name, data, into.shape[1])
        if known is not None:
            block = replace(block, training_range=known.range)
        regions = regions_of(name, within, known, into.shape[1], len(into))
        self._require_single_writer(block)
        blocks = (*self.blocks, block)
        if self._may_close_a_cycle(block):
            stages(self.stated, blocks)  # raises an error for a cycle before the block is kept
        self.blocks = blocks
        if families is not None:
            self._families[name] = families
        self._note_columns(block, len(blocks) - 1)
        self.__dict__.pop("stages", None)
        for region in regions:
            self._confine(block, region)
        return block

    def _confine(self, block: Block, region: Region) -> None:
        """Add the constraints of a validity domain, with its variables and its score, one more predictor."""
        name, samples = f"{block.name} within {region.name}", block.samples
        confined = self._confined.setdefault(block.name, Confined())
        more = np.empty((samples, 0), dtype=np.int64)
        if region.weights is not None and region.fill is not None:
            labels = [f"{name}[{i},{j}]" for i in range(samples) for j in range(region.weights.shape[1])]
            nothing = np.zeros(len(labels))
            more = self.add_columns(nothing, nothing + np.inf, nothing > 0.0, labels).reshape(samples, -1)
            confined.fills.append((block.inputs, more, region.fill))
        parts, names = [], list[str]()
        limited = np.isfinite(region.lower) | np.isfinite(region.upper)
        for k, weights in ((k, region.A[k]) for k in np.flatnonzero(limited)):
            own = np.flatnonzero(weights)
            columns, entries = block.inputs[:, own], weights[own]
            if region.weights is not None and np.any(region.weights[k]):
                new = np.flatnonzero(region.weights[k])
                columns = np.concatenate([columns, more[:, new]], axis=1)
                entries = np.concatenate([entries, region.weights[k, new]])
            columns = np.unique(columns, axis=0)  # samples may read the same columns
            parts.append((columns, entries, region.lower[k], region.upper[k]))
            alone = columns.shape[1] == 1
            if alone and samples > MANY and self._tightened(confined, columns[:, 0], entries[0], parts[-1]):
                parts.pop()
                continue
            label = self.stated.column_name if alone else str
            numbers = columns[:, 0].tolist() if alone else range(len(columns))
            names += [f"{name}: {label(j)}" if alone else f"{name} {k}[{label(j)}]" for j in numbers]
        if region.score is None and not parts:
            return
        if region.score is not None:
            names += [name] if samples == 1 else [f"{name}[{i}]" for i in range(samples)]
            free, taken = np.full(samples, np.inf), {one.name for one in self.blocks}
            made = self.add_columns(-free, free, np.zeros(samples, dtype=bool), names[-samples:])[:, None]
            confined.scores.append(name if name not in taken else free_name(name, taken, first=2))
            self.add_predictor(region.score, block.inputs, made, name=confined.scores[-1])
            parts.append((made, np.ones(1), region.least, region.most))
        matrix = sp.vstack([_row_matrix(*part[:2], self.mip.n_columns) for part in parts], format="csr")
        lower, upper = (np.concatenate([np.full(len(p[0]), p[k]) for p in parts]) for k in (2, 3))
        self._program = self._program.with_mip(self.mip.with_rows(matrix, lower, upper, names))
        confined.rows.update((self.mip.row_names or ())[-len(names) :])

    def _tightened(self, confined: Confined, columns: IntArray, entry: float, part: tuple[Any, ...]) -> bool:
        """Turn a limit of single columns into bounds; False leaves it to constraints."""
        mip, sides = self.mip, np.sort([part[2] / entry, part[3] / entry])
        lower, upper = mip.lower.copy(), mip.upper.copy()
        lower[columns] = np.maximum(lower[columns], sides[0])
        upper[columns] = np.minimum(upper[columns], sides[1])
        if np.any(lower > upper):
            return False
        confined.bounds.append((columns, mip.lower[columns], mip.upper[columns]))
        self._program = self._program.with_mip(replace(mip, lower=lower, upper=upper))
        return True

    @property
    def confining(self) -> IntArray:
        """The variables that validity domains added, besides outputs of scores."""
        made = [columns.ravel() for one in self._confined.values() for _, columns, _ in one.fills]
        return np.concatenate([np.empty(0, dtype=np.int64), *made])

    def filled(self, x: FloatArray) -> FloatArray:
        """`x` with the variables that validity domains added set to fit the inputs."""
        x = x.copy()
        for confined in self._confined.values():
            for inputs, columns, fill in confined.fills:
                x[columns] = fill(x[inputs])
        return x

    def _predictor(self, given: object) -> Predictor:
        known = self._predictors.get(id(given))
        if known is None:
            known = self._predictors[id(given)] = (given, as_predictor(given))
        return known[1]

    def _note_columns(self, block: Block, number: int) -> None:
        if self._shared:
            self._writer, self._read, self._shared = self._writer.copy(), self._read.copy(), False
        self._writer[block.outputs] = number
        self._read[block.inputs] = True

    def _require_feature_order(self, block: Block, data: Any) -> None:
        """Refuse inputs and training data whose names are the features, in another order."""
        trained, labels = block.description.feature_names, labels_of(data)
        if labels is not None:
            require_feature_order(block.name, "data", [str(label) for label in labels], trained)
        if trained is not None and len(block.inputs) and self.stated.names is not None:
            names = [self.stated.column_name(j) for j in block.inputs[0].tolist()]
            require_feature_order(block.name, "inputs", names, trained)

    def _new_name(self, said: Any) -> str:
        if not isinstance(said, str):
            raise PredictorError(f"name is {said!r}; give a string.")
        taken = {block.name for block in self.blocks}
        if said in taken:
            raise PredictorError(f"there is already a block called {said!r}; give another name=.")
        return said or free_name("block", taken, first=len(taken))

    def add_columns(
        self, lower: FloatArray, upper: FloatArray, integer: BoolArray, names: Sequence[str]
    ) -> IntArray:
        """Add variables without costs and constraints; returns their indices."""
        first = self.mip.n_columns
        self._program = self._program.with_mip(self.mip.with_columns(lower, upper, integer, names))
        self._add_unread(len(names))
        return np.arange(first, self.mip.n_columns)

    def _add_unread(self, columns: int) -> None:
        self._read = np.concatenate([self._read, np.zeros(columns, dtype=bool)])
        self._writer = np.concatenate([self._writer, np.full(columns, NOBODY, dtype=np.int32)])

    def remove_predictor(self, name: str) -> None:
        """Remove a predictor by its name, with its validity domain; its variables stay."""
        if name not in (block.name for block in self.blocks):
            raise PredictorError(f"there is no block called {name!r}.")
        confined = self._confined.pop(name, Confined())
        for columns, *before in reversed(confined.bounds):
            lower, upper = self.mip.lower.copy(), self.mip.upper.copy()
            lower[columns], upper[columns] = before
            self._program = self._program.with_mip(replace(self.mip, lower=lower, upper=upper))
        if confined.rows:
            mip = self.mip
            kept = [i for i in range(mip.n_rows) if mip.row_name(i) not in confined.rows]
            sides = mip.row_lower[kept], mip.row_upper[kept]
            names = [mip.row_name(i) for i in kept]
            bare = replace(mip, A=mip.A[kept], row_lower=sides[0], row_upper=sides[1], row_names=names)
            self._program = self._program.with_mip(bare)
        gone = {name, *confined.scores}
        rest = self.derived(self.mip, tuple(block for block in self.blocks if block.name not in gone))
        self.blocks, self._writer, self._read = rest.blocks, rest._writer, rest._read
        self._shared = False
        self._families.pop(name, None)
        self.__dict__.pop("stages", None)

    def derived(self, mip: Mip, blocks: tuple[Block, ...]) -> Problem:
        """Another problem over some of the blocks that were accepted here, without templates."""
        other = Problem(mip)
        other.blocks, other._confined = blocks, dict(self._confined)
        for number, block in enumerate(blocks):
            other._note_columns(block, number)
        return other

    def renewed(self, over: Callable[[], object] = lambda: False) -> Problem:
        """The same problem with the current descriptions of its predictors; the same object if nothing
        changed. A predictor that no longer fits is refused. When it is `over`, the remaining predictors stay
        as they were."""
        blocks = tuple(block if over() else self._renewed(block) for block in self.blocks)
        return self if all(map(operator.is_, blocks, self.blocks)) else self.with_predictors(blocks)

    def _renewed(self, block: Block) -> Block:
        families = self.families_of(block)
        if families is None:
            return probe.renewed(self.mip, block)
        mip, (inputs, outputs) = few_blocks(*families)
        few = replace(block, inputs=inputs, outputs=outputs)
        again = probe.renewed(mip, few)
        return block if again is few else replace(again, inputs=block.inputs, outputs=block.outputs)

    def with_predictors(self, blocks: tuple[Block, ...]) -> Problem:
        """The same problem, templates included, with other predictors for its blocks."""
        other = copy.copy(self)
        other.blocks, other._families, other._confined = blocks, dict(self._families), dict(self._confined)
        other._shared = self._shared = True
        other.__dict__.pop("stages", None)
        return other

    def uncoupled(self) -> Problem:
        """The problem without limits on its coupling rows, to check a part of the blocks by itself."""
        other = self.with_predictors(self.blocks)
        other._program = self._program.uncoupled()
        return other

    def _may_close_a_cycle(self, block: Block) -> bool:
        """Whether a block may close a cycle: only if it writes a column that is read, by itself or by an
        earlier block."""
        read = self._read.copy()
        read[block.inputs] = True
        return bool(read[block.outputs].any())

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The samples of all blocks in topological order."""
        if self.blocks and not any(np.any(self._read[block.outputs]) for block in self.blocks):
            return (tuple((block, np.arange(block.samples)) for block in self.blocks),)
        return stages(self.stated, self.blocks)

    @property
    def inputs(self) -> IntArray:
        """All columns that some block reads, sorted."""
        return np.flatnonzero(self._read)

    @property
    def outputs(self) -> IntArray:
        """All columns that some block writes, sorted."""
        return np.flatnonzero(self._writer != NOBODY)

    def predict(self, x: FloatArray) -> FloatArray:
        """`x` with every output column set to its predictor's answer, in topological order. If a predictor
        returns NaN, predictors that read this output are not called, and their outputs are NaN too."""
        x = x.copy()
        for stage in self.stages:
            for block, samples in stage:
                rows = x[block.inputs[samples]]
                known = np.isfinite(rows).all(axis=1)
                if not known.all():
                    x[block.outputs[samples[~known]]] = np.nan
                    rows, samples = rows[known], samples[known]
                if samples.size:
                    x[block.outputs[samples]] = block.decode(block.predictor.predict(rows))
        return x

    def _samples(self, what: str, references: Any) -> IntArray:
        if isinstance(references, FamilyColumns):
            if references.template not in self.templates:
                raise PredictorError(f"{what} are variables of a template of another problem.")
            return references.columns
        try:
            array = np.asarray(references)
        except ValueError as reason:
            raise PredictorError(f"{what} is no array ({reason}); give (n_samples, n_columns).") from None
        if array.ndim > 2 or array.size == 0:
            raise PredictorError(
                f"{what} has shape {array.shape}; give (n_samples, n_columns) or one sample as a vector."
            )
        return self.mip.resolve(what, np.atleast_2d(array))

    def _require_single_writer(self, block: Block) -> None:
        columns = block.outputs.ravel()
        _, place, count = np.unique(columns, return_inverse=True, return_counts=True)
        twice = np.flatnonzero((count[place] > 1) | (self._writer[columns] != NOBODY))
        if twice.size:
            j = int(columns[twice[0]])
            other = self._writer[j]
            where = (
                f"two places of {block.name}"
                if other == NOBODY
                else f"{block.name} and {self.blocks[other].name}"
            )
            raise PredictorError(
                f"variable {self.stated.column_name(j)} is an output of {where}; "
                "a variable can be the output of one predictor only."
            )


def _row_matrix(columns: IntArray, weights: FloatArray, width: int) -> sp.csr_array:
    """One row for each row of `columns`, all with the same weights."""
    rows, entries = columns.shape
    at = np.arange(rows + 1) * entries
    return sp.csr_array((np.tile(weights, rows), columns.ravel(), at), (rows, width))


Stage = tuple[tuple[Block, IntArray], ...]
"""Samples (by block) whose inputs depend on earlier stages only, so that they can be evaluated together."""


def stages(program: StatedProgram, blocks: tuple[Block, ...]) -> tuple[Stage, ...]:
    """Samples by the length of the longest chain of predictors that leads to them."""
    counts = np.array([block.samples for block in blocks], dtype=np.int64)
    block_of = np.repeat(np.arange(len(blocks)), counts)
    sample_of = np.arange(block_of.size) - np.repeat(np.cumsum(counts) - counts, counts)
    source, reader = _edges(program, blocks, counts)
    level = _levels(source, reader, block_of.size)
    if np.any(level < 0):
        stuck = _on_a_cycle(source, reader, level)
        block, i = blocks[block_of[stuck]], int(sample_of[stuck])
        column = program.column_name(int(block.outputs[i][0]))
        raise PredictorError(
            f"{block.name} (sample {i}, output {column}) depends on its own output through a "
            "cycle of predictors; break the cycle with a separate variable and a constraint that equates "
            "the two."
        )
    found: list[list[tuple[Block, IntArray]]] = [[] for _ in range(int(level.max(initial=-1)) + 1)]
    order = np.lexsort((block_of, level))  # of one level and block: in the order of the samples
    key = level[order] * len(blocks) + block_of[order]
    for part in np.split(order, np.flatnonzero(np.diff(key)) + 1) if order.size else []:
        found[level[part[0]]].append((blocks[block_of[part[0]]], sample_of[part]))
    return tuple(tuple(stage) for stage in found)


def _edges(program: StatedProgram, blocks: tuple[Block, ...], counts: IntArray) -> tuple[IntArray, IntArray]:
    """Writer and reader of each link; the samples of all blocks are numbered consecutively."""
    first = np.cumsum(counts) - counts
    writer = np.full(program.n_columns, -1, dtype=np.int64)
    for block, begin in zip(blocks, first, strict=True):
        writer[block.outputs] = (begin + np.arange(block.samples))[:, None]
    source, reader = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for block, begin in zip(blocks, first, strict=True):
        written_by = writer[block.inputs]
        i, k = np.nonzero(written_by >= 0)
        source.append(written_by[i, k])
        reader.append(begin + i)
    return np.concatenate(source), np.concatenate(reader)


def _levels(source: IntArray, reader: IntArray, count: int) -> IntArray:
    """(count,) the length of the longest chain of predictors that leads to each sample; -1 for samples on
    a cycle or after a cycle."""
    waiting = np.bincount(reader, minlength=count)
    order = np.argsort(source, kind="stable")
    readers = reader[order]
    ends = np.searchsorted(source[order], np.arange(count + 1))
    level = np.full(count, -1, dtype=np.int64)
    ready, depth = np.flatnonzero(waiting == 0), 0
    while ready.size:
        level[ready] = depth
        fed = readers[joined_ranges(ends[ready], ends[ready + 1])]
        np.subtract.at(waiting, fed, 1)
        fed = np.unique(fed)
        ready, depth = fed[waiting[fed] == 0], depth + 1
    return level


def _on_a_cycle(source: IntArray, reader: IntArray, level: IntArray) -> int:
    """A sample on a cycle, found by following writers back from a sample without a level until one
    repeats."""
    stuck = (level[source] < 0) & (level[reader] < 0)
    before = dict(zip(reader[stuck].tolist(), source[stuck].tolist(), strict=True))
    sample, seen = int(np.flatnonzero(level < 0)[0]), set[int]()
    while sample not in seen:
        seen.add(sample)
        sample = before[sample]
    return sample
