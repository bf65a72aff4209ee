"""From a part of the split problem to what its network step needs: frozen network, box, rows, lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray
from dovetail.coupling.split import Part, SampleRow
from dovetail.run.network_step import NetworkBlock, Rows, ends_in_probability
from dovetail.run.stopwatch import Stopwatch

SMALLEST_SPREAD = 1e-3
"""Relative to the largest value met: an output that hardly moves is still measured in something it sees."""
DECIDED = 0.25
"""A class's logits are divided by this part of their typical distance from the threshold: sigmoid(4) is 0.98,
decided, but with a gradient left."""

ToTensor = Callable[[FloatArray], Tensor]


def network_block(
    part: Part,
    lower: FloatArray,
    upper: FloatArray,
    width: FloatArray,
    points: FloatArray,
    device: str | None,
    stopwatch: Stopwatch,
) -> NetworkBlock:
    """The static side of one block's network step.

    `lower`, `upper` and `width` are per column: box and length of a unit step. `points` are
    sample inputs over which the spread of the network's values is measured.
    """
    block = part.block
    own_device = device if device is not None else block.description.device

    def tensor(array: FloatArray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(array, dtype=np.float64), device=own_device)

    network = NetworkBlock(
        name=block.name,
        forward=block.predictor.snapshot(own_device),
        smooth=block.description.smooth,
        classifies=block.classifies,
        probability=ends_in_probability(block),
        threshold=block.threshold,
        spread=tensor(np.ones(block.outputs.shape[1])),
        lower=tensor(lower[block.inputs]),
        upper=tensor(upper[block.inputs]),
        scale=tensor(width[block.inputs]),
        rows=_rows(part, tensor),
        stopwatch=stopwatch,
    )
    with torch.no_grad():
        values = network.values(tensor(points))
    return replace(network, spread=_spread(values, block.classifies))


def _spread(values: Tensor, classifies: bool) -> Tensor:
    """(q,) the length that network values are measured in.

    For a regression the standard deviation over the sample points. For a class a part of the
    typical distance from the threshold, the same for all logits, so that the sigmoid or softmax
    of a typical start is near 0.02 or 0.98.
    """
    if not classifies:
        spread = torch.maximum(values.std(dim=0), SMALLEST_SPREAD * values.abs().amax(dim=0))
    else:
        centred = values if values.shape[1] == 1 else values - values.mean(dim=1, keepdim=True)
        spread = (DECIDED * centred.abs().mean()).expand(values.shape[1])
    return torch.where(spread > 0, spread, torch.ones_like(spread))


def _rows(part: Part, tensor: ToTensor) -> Rows | None:
    """The samples' limits as padded arrays."""
    samples = [(*limits, *_class_rows(part, i)) for i, limits in enumerate(part.rows)]
    most = max(len(rows) for rows in samples)
    if most == 0:
        return None
    n, d, q = len(samples), part.block.inputs.shape[1], part.block.outputs.shape[1]
    on_inputs, on_values = np.zeros((n, most, d)), np.zeros((n, most, q))
    lower, upper = np.full((n, most), -np.inf), np.full((n, most), np.inf)
    for i, rows in enumerate(samples):
        for k, row in enumerate(rows):
            on_inputs[i, k], on_values[i, k] = row.on_inputs, row.on_outputs
            lower[i, k], upper[i, k] = row.lower, row.upper
    names = tuple(tuple(row.name for row in rows) + ("",) * (most - len(rows)) for rows in samples)
    return Rows(tensor(on_inputs), tensor(on_values), tensor(lower), tensor(upper), names)


def _class_rows(part: Part, i: int) -> list[SampleRow]:
    """A class that a sample must have, as limits on its logits, with the block's margin."""
    wanted = part.classes[i]
    if wanted is None:
        return []
    block = part.block
    outputs = block.outputs.shape[1]
    nothing = np.zeros(block.inputs.shape[1])
    name = f"the class of {block.name}, sample {i}"
    if outputs == 1:
        sign = np.array([1.0 if wanted == 1 else -1.0])
        return [SampleRow(nothing, sign, block.epsilon, np.inf, name)]
    rows = []
    for other in range(outputs):
        if other != wanted:
            lead = np.zeros(outputs)
            lead[wanted], lead[other] = 1.0, -1.0
            rows.append(SampleRow(nothing, lead, block.epsilon, np.inf, name))
    return rows
