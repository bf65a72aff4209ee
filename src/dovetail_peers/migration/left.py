"""What a program reads of its solver that dovetail's result has instead, by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Left:
    """One line that is left to its owner."""

    line: int
    what: str
    instead: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what} -> {self.instead}"


START = "not heard: dovetail.solve(..., start=) takes an earlier result, or a value for every column"

REFUSED = "as it is, a model with predictors refuses it when the program runs"

READS = {
    "Status": "result.status (a word: 'optimal', 'feasible', ...)",
    "status": "result.status (a word: 'optimal', 'feasible', ...)",
    "ObjBound": "result.bound",
    "ObjBoundC": "result.bound",
    "MIPGap": "result.gap",
    "Runtime": "result.seconds",
    "NodeCount": "result.iterations",
    "SolCount": "result.x is not None",
    "getStatus": "result.status",
    "getDualbound": "result.bound",
    "getPrimalbound": "result.objective",
    "getGap": "result.gap",
    "getSolvingTime": "result.seconds",
    "getNNodes": "result.iterations",
    "getNSols": "result.x is not None",
    "addSol": START,
    "trySol": START,
    "computeIIS": "result.message and result.hints, which name the rows that have to give way",
    "cbGet": "dovetail.solve(..., callback=function)",
    "getTransformedVar": "the variable itself",
    "writeProblem": "the model without its predictors: nothing of them is written into it",
    "write": "the model without its predictors: nothing of them is written into it",
}
"""Attributes and methods of a model with predictors that speak of the solver's own run."""
