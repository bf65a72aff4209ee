"""Whether a problem is many blocks of few templates that share a few rows, and their programs if so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.analysis.components import NOBODY, Components, components
from dovetail.analysis.templates import TemplateArrays, templates
from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.methods.template_pricing.move_program import CouplingSides, MoveProgram
from dovetail.methods.template_pricing.reduction import move_program
from dovetail.run.context import SolveContext

FEWEST_BLOCKS = 50
"""With fewer of them column by column is quick, and the duality gap is no longer small."""
MOST_TEMPLATES = 8
"""Each is priced by calls of its own: with more the blocks are not the same in any useful sense."""


@dataclass(frozen=True, eq=False)
class TemplatePlan:
    """Templates, their programs over common sides, and what all other columns are."""

    templates: tuple[TemplateArrays, ...]
    programs: tuple[MoveProgram, ...]
    sides: CouplingSides
    others: FloatArray
    """(columns,) values of columns that belong to no block; they are fixed."""

    @property
    def count(self) -> int:
        """Blocks in all."""
        return sum(program.count for program in self.programs)


def template_plan(context: SolveContext) -> TemplatePlan | None:
    """Of a problem; None where it is of another kind."""
    problem = context.problem
    if sum(block.samples for block in problem.blocks) < FEWEST_BLOCKS:
        return None
    if all(block.description.trees is not None for block in problem.blocks):
        return None  # steps: no slope leads anywhere
    parts = components(problem)
    if parts.count < FEWEST_BLOCKS or not _others_fixed(problem, parts):
        return None
    found = templates(problem, parts)
    sides = coupling_sides(problem, parts)
    if len(found) > MOST_TEMPLATES or sides.count == 0:
        return None
    programs = [move_program(template, sides) for template in found]
    known = tuple(program for program in programs if program is not None)
    if len(known) < len(programs) or any(program.coordinates == 0 for program in known):
        return None
    return TemplatePlan(tuple(found), known, sides, problem.mip.lower)


def _others_fixed(problem: Problem, parts: Components) -> bool:
    """Columns that belong to no block have one value."""
    shared = parts.owner == NOBODY
    return bool(np.all(problem.mip.lower[shared] == problem.mip.upper[shared]))


def coupling_sides(problem: Problem, parts: Components) -> CouplingSides:
    """Of rows that belong to no block, with what fixed columns use of them taken off."""
    mip = problem.mip
    above, below = parts.coupling_sides(mip)
    fixed = np.asarray(mip.A @ np.where(parts.owner == NOBODY, mip.lower, 0.0))
    limit = np.concatenate([(mip.row_upper - fixed)[above], -(mip.row_lower - fixed)[below]])
    sign = np.repeat([1.0, -1.0], [len(above), len(below)])
    return CouplingSides(np.concatenate([above, below]), sign, limit)
