"""Functions in a model's constraints as blocks: out = f(in), with exact derivatives and, like layers of a
network, bounds of their ranges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import log

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.foreign import FunctionTerm
from dovetail.core.names import free_name
from dovetail.core.problem import Problem

KINDS = {
    "exp": torch.exp,
    "log": torch.log,
    "log10": lambda values: torch.log(values) * (1.0 / log(10.0)),
    "sqrt": torch.sqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
}


class Elementary(nn.Module):
    """One function of each value; `power` is the exponent of a power."""

    def __init__(self, kind: str, power: float) -> None:
        super().__init__()
        self._kind, self._power = kind, power

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        return _raised(values, self._power) if self._kind == "power" else KINDS[self._kind](values)


def _raised(values: Tensor, power: float) -> Tensor:
    """A power in operations that bounds are known of."""
    if power in (2.0, 3.0, 4.0):
        return values**power
    if power < 0.0:
        return torch.reciprocal(_raised(values, -power))
    if power == 1.0:
        return values
    if power == round(power):
        half = torch.square(_raised(values, power // 2.0))
        return half * values if power % 2.0 else half
    return torch.exp(power * torch.log(values))


def with_functions(problem: Problem, terms: Sequence[FunctionTerm]) -> Problem:
    """The problem with the functions, a block for each kind."""
    kinds: dict[tuple[str, float], list[tuple[int, int]]] = defaultdict(list)
    for term in terms:
        kinds[term.kind, term.power].append((term.read, term.written))
    for (kind, power), columns in kinds.items():
        name = f"power {power:g}" if kind == "power" else kind
        taken = {block.name for block in problem.blocks}
        read, written = np.array(columns).T
        name = name if name not in taken else free_name(f"{name} ", taken, 2)
        problem.add_predictor(Elementary(kind, power), read[:, None], written[:, None], name=name)
    return problem
