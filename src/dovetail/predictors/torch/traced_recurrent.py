"""A recurrent layer that torch hands to oneDNN as one operation, step by step."""

from __future__ import annotations

from typing import Any

import torch

from dovetail.core.errors import UnsupportedError
from dovetail.predictors.torch.traced import handles

LSTM = 2
"""oneDNN's number for it; torch gives it no other kind of layer."""


@handles("mkldnn_rnn_layer")
def _one_layer(
    func: Any,
    given: Any,
    input_weight: Any,
    hidden_weight: Any,
    input_bias: Any,
    hidden_bias: Any,
    hidden: Any,
    cell: Any,
    reverse: bool,
    batch_sizes: Any,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    *args: Any,
) -> tuple[Any, ...]:
    """One layer in one direction, times first; without biases their places hold the weights once more."""
    if mode != LSTM or batch_sizes:
        raise UnsupportedError("there is no bound for this recurrent layer of oneDNN")
    biases = (input_bias.detach(), hidden_bias.detach()) if has_biases else (None, None)
    outputs: list[Any] = [None] * len(given)
    for time in reversed(range(len(given))) if reverse else range(len(given)):
        gates = torch.nn.functional.linear(given[time], input_weight.detach(), biases[0])
        gates = gates + torch.nn.functional.linear(hidden, hidden_weight.detach(), biases[1])
        kept, forgotten, new, shown = gates.chunk(4, dim=-1)
        cell = torch.sigmoid(forgotten) * cell + torch.sigmoid(kept) * torch.tanh(new)
        outputs[time] = hidden = torch.sigmoid(shown) * torch.tanh(cell)
    return torch.stack(outputs), hidden, cell, torch.empty(0)
