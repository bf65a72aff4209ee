"""The data of a network step, from a part of the split problem: frozen networks, box, rows, scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray
from dovetail.coupling.dense_forward import network_forward
from dovetail.coupling.split import CoupledBatch, SampleRow
from dovetail.run.network_step import NetworkBlock, Rows, Surrogate, ends_in_probability
from dovetail.run.work import Stopwatch

if TYPE_CHECKING:
    from dovetail.core.predictor import Forward

SMALLEST_SPREAD = 1e-3
"""Relative to the largest value: a nearly constant output still gets a unit."""
DECIDED = 0.5
"""A class's logits are divided by this part of their typical distance from the threshold. Over 28 water
instances 0.25, 0.5, 1 and 2 found 97, 97, 87 and 73 % of the best of the four with budgets in total, and 82,
97, 100 and 98 % with budgets per sample."""

ToTensor = Callable[[FloatArray], Tensor]


def network_block(
    part: CoupledBatch,
    lower: FloatArray,
    upper: FloatArray,
    width: FloatArray,
    points: Mapping[str, FloatArray],
    device: str | None,
    stopwatch: Stopwatch,
    surrogate: Surrogate = "scaled-probability",
) -> NetworkBlock:
    """The static side of one part's network step.

    `lower`, `upper` and `width` are per column: box and length of a unit step. `points` are, block by
    block, sample inputs over which the spread of the networks' values is measured. Where outputs are coupled,
    a class is compared with 0 or 1, so that its surrogate is a probability.
    """
    block = part.block
    own_device = device if device is not None else block.description.device

    def tensor(array: FloatArray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(array, dtype=np.float64), device=own_device)

    forwards = [network_forward(member.block, own_device) for member in part.members]
    network = NetworkBlock(
        name=part.name,
        forward=_joint_forward(part, forwards, own_device),
        smooth=all(member.block.description.smooth for member in part.members),
        classifies=block.classifies,
        probability=ends_in_probability(block),
        threshold=block.threshold,
        spread=tensor(np.ones(part.outputs.shape[1])),
        lower=tensor(lower[part.columns]),
        upper=tensor(upper[part.columns]),
        scale=tensor(width[part.columns]),
        rows=_rows(part, tensor),
        surrogate="scaled-probability" if part.couples_outputs else surrogate,
        stopwatch=stopwatch,
    )
    spreads = []
    for member, forward in zip(part.members, forwards, strict=True):
        with torch.no_grad():
            values = replace(network, forward=forward).values(tensor(points[member.block.name]))
        spreads.append(_spread(values, block.classifies).repeat(len(member.positions)))
    return replace(network, spread=torch.cat(spreads))


def _joint_forward(part: CoupledBatch, forwards: Sequence[Forward], device: str) -> Forward:
    """Maps a sample's copies to its members' values, one after the other; one call per member."""
    if part.is_alone:
        return forwards[0]
    places = [torch.as_tensor(member.positions, device=device) for member in part.members]

    def forward(u: Tensor) -> Tensor:
        values = []
        for own, place in zip(forwards, places, strict=True):
            each = own(u[:, place].flatten(0, 1))
            values.append(each.reshape(len(u), -1))
        return torch.cat(values, dim=1)

    return forward


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


def _rows(part: CoupledBatch, tensor: ToTensor) -> Rows | None:
    """The samples' limits as padded arrays."""
    samples = [(*limits, *_class_rows(part, i)) for i, limits in enumerate(part.rows)]
    most = max(len(rows) for rows in samples)
    if most == 0:
        return None
    n, d, q = len(samples), part.columns.shape[1], part.outputs.shape[1]
    on_inputs, on_values = np.zeros((n, most, d)), np.zeros((n, most, q))
    lower, upper = np.full((n, most), -np.inf), np.full((n, most), np.inf)
    for i, rows in enumerate(samples):
        for k, row in enumerate(rows):
            on_inputs[i, k], on_values[i, k] = row.on_inputs, row.on_outputs
            lower[i, k], upper[i, k] = row.lower, row.upper
    names = tuple(tuple(row.name for row in rows) + ("",) * (most - len(rows)) for rows in samples)
    return Rows(tensor(on_inputs), tensor(on_values), tensor(lower), tensor(upper), names)


def _class_rows(part: CoupledBatch, i: int) -> list[SampleRow]:
    """Limits on logits that make a sample have a required class, with the block's margin."""
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
