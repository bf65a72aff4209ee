"""Columns as long as they improve, then a proof at their prices, then columns once more.

A proof at prices of the first few columns is worth nothing, and takes as long as one at good prices.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.methods.component_prices.column_generation import ColumnGeneration
from dovetail.methods.component_prices.prices import CertifiedPrices
from dovetail.run.context import MethodOutcome, SolveContext


@dataclass(frozen=True)
class ColumnsAndProof:
    """Column generation and certified prices of the same components."""

    columns: ColumnGeneration = field(default_factory=ColumnGeneration)
    name = "columns-and-proof"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """One after the other; what the proof comes to is what is said."""
        replace(self.columns, yields=True).solve(context)
        if context.over:
            return MethodOutcome(context.over, len(context.monitor.trace))
        proof = CertifiedPrices().solve(context)
        if context.over or proof.closed or proof.infeasible:
            return proof
        again = self.columns.solve(context)
        return replace(proof, stop_reason=again.stop_reason)
