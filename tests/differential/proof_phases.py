"""The phases of `auto` that prove, one after the other and nothing else: quick, and each of them alone."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.methods.branching import Branching
from dovetail.methods.component_prices.prices import BlockPrices
from dovetail.methods.exact_mip import ExactMip
from dovetail.run.budget import StopReason
from dovetail.run.context import Method, MethodOutcome, SolveContext

PHASES: tuple[Method, ...] = (Branching(), BlockPrices(), ExactMip())


FIRST_SHARE = 0.5
"""Of the time, for the first phase: it takes problems of all kinds, the others few of them."""


@dataclass(frozen=True)
class ProofPhases:
    """All of them, or some."""

    phases: tuple[Method, ...] = PHASES

    name = "proof-phases"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Each has a share of the time, whether or not another one has closed the gap."""
        notes = []
        for left, phase in zip(range(len(self.phases), 0, -1), self.phases, strict=True):
            share = FIRST_SHARE if left == len(self.phases) > 1 else 1.0 / left
            outcome = phase.solve(context.part(share))
            notes.append(f"{phase.name}: {outcome.message}")
        return MethodOutcome(context.over or StopReason.STALLED, len(context.monitor.trace), "; ".join(notes))
