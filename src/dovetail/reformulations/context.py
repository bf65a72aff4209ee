"""The context of a method that works on a reformulated problem: its points reach the same incumbent."""

from __future__ import annotations

from dataclasses import replace

from dovetail.analysis.boxes import tight_box
from dovetail.reformulations.reformulated import Reformulated
from dovetail.run.context import SolveContext, Start
from dovetail.run.lifted_incumbent import LiftedIncumbent


def context_of(context: SolveContext, reformulated: Reformulated) -> SolveContext:
    """The same solve over the reformulated problem; candidates are restricted before they are checked."""
    if reformulated.previous is None:
        return context
    x, relaxed = context.start.x, reformulated.relaxed
    there, back = reformulated.lift, reformulated.restrict
    return replace(
        context,
        problem=reformulated.problem,
        incumbent=LiftedIncumbent(context.incumbent, there, back, reformulated.carried),
        start=Start(None if x is None else there(x)),
        relaxed=None if relaxed is None else relaxed.problem,
        archive=context.archive.restricted(back),
        _kept={tight_box: reformulated.box} if reformulated.problem.blocks else {},
        _whole=None,
    )
