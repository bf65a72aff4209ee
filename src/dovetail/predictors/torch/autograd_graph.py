"""What the autograd graph of one evaluation shows of a map: whether it is smooth, and what it ends in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

KINKED = (
    "Relu", "LeakyRelu", "Prelu", "Threshold", "Hardtanh", "Clamp", "Abs", "Max", "Amax", "Min", "Amin",
    "Where", "Sort", "Topk", "Hardswish", "Hardsigmoid", "AdaptiveMax", "_Flat", "_Steps", "_Differences",
)  # fmt: skip
"""Autograd nodes whose second derivative carries nothing, by the beginning of their names; the last are our
own: steps, and functions known by their differences."""

PASSING = ("Squeeze", "Unsqueeze", "View", "Reshape", "Alias", "Clone", "ToCopy", "Select", "Slice")
"""Autograd nodes that hand a value on unchanged: looked through to find the last real operation."""

LINEAR = ("Addmm", "Mm", "Linear", "Convolution")
"""Autograd nodes that a logit comes from and a probability does not (a sum may be a mean of sigmoids)."""

MOST_NODES = 10_000
"""Nodes that are looked at: a network of more says nothing new in the rest, and each costs time."""


def is_smooth(outputs: Tensor) -> bool:
    """Whether second derivatives carry something: no node on the way to `outputs` has a kink."""
    return not any(node.name().startswith(KINKED) for node in _nodes(outputs))


def ends_in_sigmoid(outputs: Tensor) -> bool | None:
    """True for a sigmoid, False for a linear map, None where the last operation tells neither."""
    last = _last_operation(outputs)
    if last.startswith("Sigmoid"):
        return True
    return False if last.startswith(LINEAR) else None


def _last_operation(outputs: Tensor) -> str:
    """The last real operation; adding a constant to a linear map (a bias) is looked through."""
    for node in _nodes(outputs):
        name: str = node.name()
        if name.startswith("Add") and not name.startswith("Addmm"):
            varying = [source.name() for source, _ in node.next_functions if source is not None]
            return str(varying[0]) if len(varying) == 1 and varying[0].startswith(LINEAR) else name
        if not name.startswith(PASSING):
            return name
    return ""


def _nodes(outputs: Tensor) -> Iterator[Any]:
    """The autograd nodes behind `outputs`, nearest first."""
    waiting: list[Any] = [outputs.grad_fn]
    seen: set[Any] = set()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        waiting.extend(next_node for next_node, _ in node.next_functions)
