"""Whether a problem is many blocks of few templates that share a few rows, and their programs if so.

Not all columns of a template are left to choose: some are defined by equations, some are sides of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dovetail.core.column_part import ColumnPart
from dovetail.core.stated_program import StatedProgram
from dovetail.methods.template_pricing.assembly import Assembly, same
from dovetail.methods.template_pricing.move_program import MoveProgram, one_row
from dovetail.run.context import SolveContext
from dovetail.structure.components import CouplingSides
from dovetail.structure.structure import Structure, structure_of
from dovetail.structure.templates import FIXED, Strided, TemplateArrays, Templates

FEWEST_BLOCKS = 50
"""With fewer of them column by column is quick, and the duality gap is no longer small."""
MOST_TEMPLATES = 8
"""Each is priced by calls of its own: with more the blocks are not the same in any useful sense."""


@dataclass(frozen=True, eq=False)
class TemplatePlan(Templates):
    """Templates with their programs over common sides, and what all other columns are."""

    programs: tuple[MoveProgram, ...]
    program: StatedProgram
    """Whose columns that belong to no block are fixed."""

    @cached_property
    def uncovered(self) -> tuple[ColumnPart, ...]:
        """Parts of the program that may have columns which belong to no block."""
        return tuple(part for part in self.program.columns if not any(_covers(t, part) for t in self.arrays))


def template_plan(context: SolveContext) -> TemplatePlan | None:
    """Of the problem that is being solved (see `SolveContext.once`)."""
    return plan_of(context.once(structure_of))


def plan_of(structure: Structure) -> TemplatePlan | None:
    """Of a problem; None where it is of another kind: there is nothing to share, or a block is none that can
    be priced at once."""
    if structure.samples < FEWEST_BLOCKS:
        return None
    if all(block.description.trees is not None for block in structure.problem.blocks):
        return None  # steps: no slope leads anywhere
    found = structure.templates
    if found is None or found.count < FEWEST_BLOCKS:
        return None
    if len(found.arrays) > MOST_TEMPLATES or found.sides.count == 0:
        return None
    programs = [move_program(template, found.sides) for template in found.arrays]
    known = tuple(program for program in programs if program is not None)
    if len(known) < len(programs) or any(program.coordinates == 0 for program in known):
        return None
    return TemplatePlan(**vars(found), programs=known, program=structure.problem.stated)


def _covers(template: TemplateArrays, part: ColumnPart) -> bool:
    """Whether every column of a part is one of a template's blocks, as they are where both were stated."""
    places = template.places
    if not isinstance(places, Strided) or places.count != part.shape[0]:
        return False
    mine = (places.step == part.shape[1]) & (places.start >= part.first)
    return int(np.count_nonzero(mine & (places.start < part.first + part.shape[1]))) == part.shape[1]


def move_program(template: TemplateArrays, sides: CouplingSides) -> MoveProgram | None:
    """The program of a template; None where some column has no place in it."""
    return _Reduction(template, sides).program()


class _Reduction:
    """Which columns are defined, and which are two sides of one coordinate."""

    def __init__(self, template: TemplateArrays, sides: CouplingSides) -> None:
        self._template, self._sides = template, sides
        rows, c = template.row_lower.shape[1], template.places.shape[1]
        private = template.private
        self._entry = {
            (int(row), int(column)): one_row(private.entry[:, number])
            for number, (row, column) in enumerate(zip(private.row, private.column, strict=True))
        }
        self._members = [[j for i, j in self._entry if i == row] for row in range(rows)]
        self._output, self._read = np.zeros(c, dtype=bool), np.zeros(c, dtype=bool)
        for network in template.networks:
            self._output[network.outputs] = True
            self._read[network.inputs[network.inputs != FIXED]] = True

    def program(self) -> MoveProgram | None:
        """All of it."""
        if np.any(self._read & self._output):
            return None  # chained networks: a move goes through two of them
        defined = self._definitions()
        pairs = self._pairs(defined)
        return Assembly(self._template, self._sides, self._entry, self._output, defined, pairs).program()

    def _definitions(self) -> dict[int, int]:
        """Column -> the equation that defines it; no defined column is in another's."""
        template, defined, spoken_for = self._template, dict[int, int](), set[int]()
        lower, upper = template.row_lower, template.row_upper
        equal = np.ones(lower.shape[1], bool) if lower is upper else np.all(lower == upper, axis=0)
        for row in np.flatnonzero(equal).tolist():
            members = self._members[row]
            if any(j in defined for j in members):
                continue
            found = next(
                (j for j in sorted(members, key=self._rank) if self._may_be(j, row, spoken_for)), None
            )
            if found is not None:
                defined[found] = row
                spoken_for |= set(members)
        return defined

    def _rank(self, column: int) -> int:
        """What a network reads is defined before what nobody reads."""
        return 0 if self._read[column] else 1

    def _may_be(self, column: int, row: int, spoken_for: set[int]) -> bool:
        """A network's input must follow from moves alone, by the same numbers in every block."""
        if self._output[column] or self._template.integer[column] or column in spoken_for:
            return False
        if not np.all(self._entry[row, column]):
            return False
        if not self._read[column]:
            return True
        return all(not self._output[j] and same(self._entry[row, j]) for j in self._members[row])

    def _pairs(self, defined: dict[int, int]) -> dict[int, int]:
        """Column -> its opposite in a definition: both rest at a bound below, and no other row has them."""
        template, pairs = self._template, dict[int, int]()
        rows_of = np.zeros(len(self._output), dtype=int)
        for _, j in self._entry:
            rows_of[j] += 1
        for column, row in defined.items():
            others = [j for j in self._members[row] if j != column]
            if len(others) != 2 or template.integer[others].any() or np.any(rows_of[others] != 1):
                continue
            if (self._read | self._output)[others].any() or not np.isfinite(
                one_row(template.lower)[:, others]
            ).all():
                continue
            one, other = sorted(others)
            if np.array_equal(self._entry[row, one], -self._entry[row, other]):
                pairs[one] = other
        return pairs
