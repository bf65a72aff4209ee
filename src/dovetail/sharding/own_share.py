"""A shard with its data source: the blocks that it states, and its share of the run.

The blocks are made on the first call, so that a data error is an answer and not a lost worker; after a loss
they are made again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Checker, Violation, check
from dovetail.core.errors import DovetailError, ModelError, OptionError
from dovetail.core.files import write_file
from dovetail.core.problem import Problem
from dovetail.core.row_part import CouplingRows
from dovetail.decomposition.plan import FEWEST_BLOCKS, TemplatePlan, plan_of
from dovetail.decomposition.shard import PricingOptions, usual_spread
from dovetail.decomposition.share import Range, Share, make_share
from dovetail.decomposition.shares import point_of
from dovetail.structure.structure import Structure

Build = Callable[[Any], Problem]


@dataclass(frozen=True)
class ShardSource:
    """The data of one shard: a number, an array in a file, or a file of its own."""

    build: Build
    item: int | Path
    number: int

    @classmethod
    def of(cls, build: Build, item: Any, number: int) -> ShardSource:
        """The source for an item of the list of shards."""
        if isinstance(item, Integral) and not isinstance(item, bool):
            return cls(build, int(item), number)
        if isinstance(item, (str, os.PathLike)):
            return cls(build, Path(item), number)
        raise OptionError(f"shards[{number}] is {item!r}; give the path of a file, or a number.")

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"shard {self.number} ({self.item})" if isinstance(self.item, Path) else f"shard {self.item}"

    def data(self) -> Any:
        """The number itself, a .npy file as a memory-mapped array, any other file by its path."""
        if not isinstance(self.item, Path):
            return self.item
        try:
            if self.item.stat().st_size == 0:
                raise ValueError("it is empty")
            return np.load(self.item, mmap_mode="r") if self.item.suffix == ".npy" else self.item
        except (OSError, ValueError, EOFError) as reason:
            raise ModelError(
                f"{self.name}: the file cannot be read ({reason}); write it again, or leave it out of shards."
            ) from None

    def problem(self) -> Problem:
        """The problem that `build` returns; its exceptions name the shard."""
        data = self.data()
        try:
            made = self.build(data)
        except DovetailError as reason:
            raise type(reason)(f"{self.name}: {reason}") from reason
        except Exception as reason:
            reason.add_note(f"raised by build for {self.name}")
            raise
        if not isinstance(made, Problem):
            raise ModelError(f"{self.name}: build returned {type(made).__name__}; return a dovetail.Problem.")
        return made


@dataclass(frozen=True, eq=False)
class ShardFacts:
    """What shards must agree in, and their use of the rows at rest."""

    name: str
    blocks: int
    stated: dict[str, str]
    """A description that must be equal for all: sense, families, rows, predictors."""
    rows: tuple[str, ...]
    """Names of the coupling rows."""
    lower: FloatArray
    """(rows,) lower limits for all shards together."""
    upper: FloatArray
    sign: FloatArray
    """(sides,) as `CouplingSides` has them."""
    row: tuple[int, ...]
    """(sides,) the row of each side."""
    limit: FloatArray
    """(sides,) the limit less the use of data."""


@dataclass(frozen=True, eq=False)
class ShardAnswer:
    """A shard's part of the answer, checked by its own predictors."""

    objective: float
    activity: FloatArray
    """(rows,) its part of the coupling rows."""
    violation: Violation
    """The violation without coupling rows."""


class OwnShare:
    """A shard with its source; other calls go to the share itself."""

    def __init__(self, source: ShardSource, options: PricingOptions, device: str) -> None:
        self._source, self._options, self._device = source, options, device
        self._point: FloatArray | None = None

    def __getattr__(self, call: str) -> Any:
        if call.startswith("_"):  # nothing of its own is missing, but for copies and pickles that ask
            raise AttributeError(call)
        return getattr(self._share, call)

    @cached_property
    def _problem(self) -> Problem:
        problem, name = self._source.problem(), self._source.name
        if problem.stated.host is not None or len(problem.templates) != 1:
            has = f"{len(problem.templates)} templates" if problem.stated.host is None else "a Mip"
            raise ModelError(
                f'{name}: its problem has {has}; state one template in a dovetail.Problem(sense="...") and '
                "nothing else."
            )
        return problem

    @cached_property
    def _plan(self) -> TemplatePlan:
        plan = plan_of(Structure(self._problem))
        if plan is None or len(plan.programs) != 1:
            raise ModelError(
                f"{self._source.name}: its blocks cannot be priced all at once; there must be at least "
                f"{FEWEST_BLOCKS} of them, constraints over all blocks, and networks over whole families, "
                "none of which reads another's outputs."
            )
        return plan

    @cached_property
    def _where(self) -> Range:
        count = self._plan.count
        return Range(0, 0, count, count)

    @cached_property
    def _share(self) -> Share:
        (program,), blocks = self._plan.programs, list(self._problem.blocks)
        spread = usual_spread(program, blocks, self._device)
        return make_share(program, self._where, blocks, self._options, self._device, spread)

    @cached_property
    def _coupling(self) -> list[CouplingRows]:
        return [part for part in self._problem.stated.rows if isinstance(part, CouplingRows)]

    def facts(self) -> ShardFacts:
        """Read the data, state the blocks, and return the facts."""
        problem, sides = self._problem, self._plan.sides
        lower, upper = (
            np.concatenate(
                [np.broadcast_to(part.sides[k], (1, part.size)).ravel() for part in self._coupling]
            )
            for k in (0, 1)
        )
        first = problem.stated.n_rows - len(lower)  # they are the last rows of a template
        return ShardFacts(
            self._source.name, self._plan.count, _stated(problem),
            tuple(problem.stated.row_name(first + k) for k in range(len(lower))),
            lower, upper, sides.sign, tuple((sides.row - first).tolist()), sides.limit,
        )  # fmt: skip

    def answer(self) -> ShardAnswer:
        """The choice as a point with outputs by its own predictors, and its check."""
        alone = self._problem.uncoupled()
        point = point_of(self._plan, [self._where], [self._share.chosen()])
        point, _ = Checker(alone).completed(alone.stated.clipped(point))
        activity = np.concatenate([part.activity(point) for part in self._coupling])
        self._point = point
        return ShardAnswer(alone.stated.objective(point), activity, check(alone, point))

    def write(self, path: Path) -> None:
        """The values of the last answer, by family."""
        assert self._point is not None
        values = self._problem.templates[0].values(self._point)
        letter = BytesIO()
        with ZipFile(letter, "w") as file:  # as np.savez has it, which takes no family called "file"
            for name, array in values.items():
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(array))
        write_file(path, letter.getvalue())


def _stated(problem: Problem) -> dict[str, str]:
    """A description of each aspect that must be equal in all shards."""
    template = problem.templates[0]
    families = [
        f"{f.label} ({f.width}{', integer' if f.integer else ''})" for f in template.families.values()
    ]
    said = {
        "sense": problem.stated.sense,
        "families": ", ".join(families),
        "rows": ", ".join(f"{row.label} ({row.width})" for row in template.rows),
        "coupling rows": ", ".join(f"{row.label} ({row.width})" for row in template.coupling),
    }
    for block in problem.blocks:
        kind = f"classes from {block.threshold:g}" if block.classifies else "values"
        said[f"predictor {block.name}"] = f"{block.inputs.shape[1]} -> {block.outputs.shape[1]}, {kind}"
    return said
