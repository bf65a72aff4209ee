"""LSTM, GRU and RNN, step by step, because torch's layers lack some of ONNX's variants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from dovetail.core.errors import PredictorError
from dovetail.predictors.onnx.memory import LONGEST
from dovetail.predictors.onnx.node import Kernel, OnnxNode, Operator
from dovetail.predictors.onnx.operators.elementwise import softplus

Function = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Function] = {
    "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Relu": torch.relu, "Softsign": F.softsign,
    "Softplus": softplus,
}  # fmt: skip

State = tuple[Tensor, ...]
Cell = Callable[[Tensor, State, Tensor, Tensor], State]
"""Maps a step's projected input, the state, the recurrent weights and their bias to the next state."""


@dataclass(frozen=True)
class _Layer:
    """The common parts of the three operators: directions, layout, and a cell for each direction."""

    cells: list[Cell]
    reverses: tuple[bool, ...]
    batch_first: bool
    states: int
    gates: int

    def run(self, x: Tensor, W: Tensor, R: Tensor, B: Tensor | None, first: list[Tensor | None]) -> State:
        """All steps in all directions: every output, then the last states."""
        if self.batch_first:
            x = x.transpose(0, 1)
            first = [None if state is None else state.transpose(0, 1) for state in first]
        if len(x) > LONGEST:
            raise PredictorError(f"a sequence of {len(x)} steps; the limit is {LONGEST}.")
        hidden = R.shape[-1]
        if W.shape[0] != len(self.cells) or W.shape[1] != self.gates * hidden:
            raise PredictorError(f"recurrent weights of shape {tuple(W.shape)} do not fit the direction.")
        for given in first:
            if given is not None and tuple(given.shape) != (len(self.cells), x.shape[1], hidden):
                raise PredictorError(f"a first state of shape {tuple(given.shape)} does not fit the batch.")
        empty = x.new_zeros(x.shape[1], hidden)
        sequences, ends = [], []
        for d, (cell, backward) in enumerate(zip(self.cells, self.reverses, strict=True)):
            start = tuple(empty if state is None else state[d] for state in first)
            biases = x.new_zeros(2 * len(W[d])) if B is None else B[d]
            into, again = biases.chunk(2)
            steps = F.linear(x, W[d], into).unbind(0)
            outputs, state = [], start
            for step in reversed(steps) if backward else steps:
                state = cell(step, state, R[d], again)
                outputs.append(state[0])
            sequences.append(torch.stack(outputs[::-1] if backward else outputs))
            ends.append(state)
        Y = torch.stack(sequences, dim=1)  # (steps, directions, samples, hidden)
        last = [torch.stack([end[k] for end in ends]) for k in range(self.states)]
        if self.batch_first:
            return Y.permute(2, 0, 1, 3), *(state.transpose(0, 1) for state in last)
        return Y, *last


def _directions(node: OnnxNode) -> tuple[bool, ...]:
    known = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    direction = node.text("direction", "forward")
    if direction not in known:
        raise node.refused(f"direction={direction!r}")
    return known[direction]


def _activations(node: OnnxNode, defaults: tuple[str, ...], directions: int) -> list[list[Function]]:
    """The functions of each direction."""
    words = node.texts("activations", defaults * directions)
    for unknown in (word for word in words if word not in ACTIVATIONS):
        raise node.refused(f"activation {unknown!r}")
    if len(words) != len(defaults) * directions:
        raise PredictorError(
            f"{node}: {len(words)} activations for {directions} directions; the file is damaged."
        )
    functions = [ACTIVATIONS[word] for word in words]
    return [functions[d * len(defaults) : (d + 1) * len(defaults)] for d in range(directions)]


def _layer(node: OnnxNode, defaults: tuple[str, ...], gates: int, cell: Callable[..., Cell]) -> Kernel:
    if len(node.inputs) > 4 and node.inputs[4]:
        raise node.refused("sequence_lens (sequences of different length)")
    for name in ("clip", "activation_alpha", "activation_beta"):
        if node.has(name):
            raise node.refused(f"{name}=")
    node.passed_over("hidden_size")  # the shape of the weights shows the size
    reverses = _directions(node)
    cells = [cell(*functions) for functions in _activations(node, defaults, len(reverses))]
    states = 2 if node.operator == "LSTM" else 1
    layer = _Layer(cells, reverses, bool(node.integer("layout", 0)), states, gates)

    def run(
        x: Tensor, W: Tensor, R: Tensor, B: Tensor | None = None, _lengths: None = None, *rest: Tensor | None
    ) -> State:
        return layer.run(x, W, R, B, [rest[k] if k < len(rest) else None for k in range(states)])

    return run


def _lstm_cell(gate: Function, candidate: Function, out: Function) -> Cell:
    def cell(step: Tensor, state: State, R: Tensor, bias: Tensor) -> State:
        h, c = state
        i, o, f, g = (step + F.linear(h, R, bias)).chunk(4, dim=-1)
        c = gate(f) * c + gate(i) * candidate(g)
        return gate(o) * out(c), c

    return cell


def _gru_cell(gate: Function, candidate: Function, resets_after: bool) -> Cell:
    def cell(step: Tensor, state: State, R: Tensor, bias: Tensor) -> State:
        (h,) = state
        width = h.shape[-1]
        step_gates, step_candidate = torch.split(step, [2 * width, width], dim=-1)
        R_gates, R_candidate = torch.split(R, [2 * width, width])
        bias_gates, bias_candidate = torch.split(bias, [2 * width, width])
        z, r = gate(step_gates + F.linear(h, R_gates, bias_gates)).chunk(2, dim=-1)
        if resets_after:
            again = r * F.linear(h, R_candidate, bias_candidate)
        else:
            again = F.linear(r * h, R_candidate, bias_candidate)
        return ((1.0 - z) * candidate(step_candidate + again) + z * h,)

    return cell


def _rnn_cell(function: Function) -> Cell:
    return lambda step, state, R, bias: (function(step + F.linear(state[0], R, bias)),)


def _lstm(node: OnnxNode) -> Kernel:
    if len(node.inputs) > 7 and node.inputs[7]:
        raise node.refused("a peephole (input P)")
    if node.integer("input_forget", 0):
        raise node.refused("input_forget=1")
    return _layer(node, ("Sigmoid", "Tanh", "Tanh"), 4, _lstm_cell)


def _gru(node: OnnxNode) -> Kernel:
    resets_after = bool(node.integer("linear_before_reset", 0))
    return _layer(node, ("Sigmoid", "Tanh"), 3, partial(_gru_cell, resets_after=resets_after))


RECURRENT: dict[str, Operator] = {
    "LSTM": Operator(_lstm, 3, 8, outputs=3),
    "GRU": Operator(_gru, 3, 6, outputs=2),
    "RNN": Operator(lambda node: _layer(node, ("Tanh",), 1, _rnn_cell), 3, 6, outputs=2),
}
