"""Columns and a proof at their prices, one after the other, for longer and longer.

    repeat
        columns  so many rounds, twice as many each time
        proof    every component's least cost at the prices of these columns, for as long as the columns took

A proof at the prices of a few columns is worth nothing and takes longer than one at good prices, so that one
that is cut short is not gone on with: the next one has better prices, and twice the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.methods.component_prices.column_generation import ColumnGeneration
from dovetail.methods.component_prices.prices import CertifiedPrices
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext

FIRST_ROUNDS = 12
"""Of columns before the first proof: three restricted masters, each with columns of its own (water, 4x32: the
first two bring nothing where the third one does)."""


@dataclass(frozen=True)
class ColumnsAndProof:
    """Column generation and certified prices of the same components."""

    columns: ColumnGeneration = field(default_factory=ColumnGeneration)
    name = "columns-and-proof"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Until the problem is closed, the time is over, or neither has anything left to do."""
        run, rounds, columns_ended, said = self.columns.begun(context), FIRST_ROUNDS, False, ""
        while True:
            most = rounds if self.columns.rounds is None else self.columns.rounds
            began = context.budget.seconds
            columns = self.columns.go_on(context, run, most)
            if context.over:
                return replace(columns, message=said)
            columns_ended = columns.stop_reason is StopReason.STALLED or self.columns.rounds is not None
            spent = context.budget.left if columns_ended else context.budget.seconds - began
            proof = CertifiedPrices().solve(context.turn(spent))
            said = proof.message
            if context.over or columns_ended:
                return proof
            rounds *= 2
