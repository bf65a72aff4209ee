"""A template's networks for many blocks at once: values, and gradients of any combination of them by moves.

Dense networks of ReLUs are carried out by hand in float32 (forward, then backward through the masks, no
autograd: three times faster for small ones); all others by their owners' float64 copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from dovetail.core.block import Block
from dovetail.coupling.dense_forward import Layers, backward_pass, dense_layers, forward_pass
from dovetail.decomposition.move_program import MoveProgram, NetworkReading
from dovetail.decomposition.owners import uploaded
from dovetail.run.guard import counter
from dovetail.run.network_step import decision_values, ends_in_probability

if TYPE_CHECKING:
    from dovetail.core.predictor import Forward

WIDE = 512
"""Width of layers from which bfloat16 products are four times as fast on an H200; with 128 they are hardly
faster."""
Pull = Callable[[Tensor, Tensor | None], Tensor]
"""(m, q) weights of values of m rows, and their numbers (None: all) -> (m, d) gradients of weighted sums."""


LEAST_SIDE = 16
"""Smallest side of a matrix for tensor cores."""


class TemplateNetworks:
    """All networks of a template: raw decision values (logits relative to their threshold, or numbers)."""

    def __init__(
        self,
        program: MoveProgram,
        blocks: list[Block],
        device: str,
        dtype: torch.dtype,
        rests: list[Tensor] | None = None,
    ) -> None:
        """`rests`: the inputs of networks at rest, if they are on the device already."""
        if rests is None:
            rests = [uploaded(reading.at_rest, device) for reading in program.networks]
        self._readings = [
            _NetworkValues(blocks[r.block], r, rest.to(dtype), device, dtype)
            for r, rest in zip(program.networks, rests, strict=True)
        ]
        self._places = [torch.as_tensor(r.outputs, device=device) for r in program.networks]
        self._outputs, self._dtype = len(program.output_columns), dtype
        self._alone = len(program.networks) == 1 and np.array_equal(
            program.networks[0].outputs, np.arange(self._outputs)
        )
        """Whether there is one network whose values are the outputs."""
        self._on_gpu = torch.device(device).type == "cuda"

    @property
    def gains_by_rough(self) -> bool:
        """Whether bfloat16 makes the networks faster: on GPUs, for wide layers."""
        return self._on_gpu and all(reading.wide for reading in self._readings)

    @property
    def only(self) -> tuple[PaddedNetwork, Tensor] | None:
        """The only small network that reads moves directly, and its inputs at rest."""
        return self._readings[0].as_it_is if self._alone else None

    def count(self, rows: int) -> None:
        """Count rows that were evaluated through `only` elsewhere."""
        self._readings[0].count(rows)

    def values(self, which: Tensor, moves: Tensor) -> Tensor:
        """(n, q) values of blocks `which` at their moves."""
        return self.linearised(self.rests(which), moves, gradients=False)[0]

    def rests(self, which: Tensor) -> list[Tensor]:
        """(n, d) inputs of each network at rest, constant during a descent."""
        return [reading.rest(which) for reading in self._readings]

    def linearised(
        self, rests: list[Tensor], moves: Tensor, *, gradients: bool = True, rough: bool = False
    ) -> tuple[Tensor, Pull]:
        """Values (n, q), and a function for gradients by moves; in bfloat16 if `rough`."""
        if self._alone:
            return self._readings[0].linearised(rests[0], moves, gradients, rough)
        values = moves.new_empty((len(moves), self._outputs))
        pulls = []
        for reading, places, rest in zip(self._readings, self._places, rests, strict=True):
            values[:, places], pull = reading.linearised(rest, moves, gradients, rough)
            pulls.append((places, pull))

        def pulled(weights: Tensor, some: Tensor | None) -> Tensor:
            gradient = moves.new_zeros((len(weights), moves.shape[1]))
            for places, pull in pulls:
                gradient += pull(weights[:, places], some)
            return gradient

        return values, pulled


class _NetworkValues:
    def __init__(
        self, block: Block, reading: NetworkReading, at_rest: Tensor, device: str, dtype: torch.dtype
    ) -> None:
        self._block, self.count = block, counter(block.predictor)
        self._at_rest = at_rest
        by_moves = torch.as_tensor(reading.by_moves, dtype=dtype, device=device)
        self._by_moves = None if _is_eye(by_moves) else by_moves
        self._layers = _decision_layers(block, device, dtype)
        self._forward: Forward | None = None if self._layers else block.predictor.snapshot(device)
        self._padded = padded_network(self._layers) if self._layers and dtype == torch.float32 else None

    @property
    def as_it_is(self) -> tuple[PaddedNetwork, Tensor] | None:
        """The network of `TemplateNetworks.only`."""
        if self._padded is None or self._by_moves is not None:
            return None
        return self._padded, self._at_rest

    @property
    def wide(self) -> bool:
        """Whether most of its work is products of wide layers."""
        layers = self._layers or []
        return bool(layers) and max(min(weight.shape) for weight, _, _ in layers) >= WIDE

    def rest(self, which: Tensor) -> Tensor:
        """Its inputs at rest."""
        return self._at_rest[which]

    def linearised(self, rest: Tensor, moves: Tensor, gradients: bool, rough: bool) -> tuple[Tensor, Pull]:
        """Values of one network, and its function for gradients."""
        moved = moves if self._by_moves is None else moves @ self._by_moves.T
        u = rest + moved
        values, pull = self._by_hand(u, rough) if self._layers else self._by_autograd(u, gradients)

        def pulled(weights: Tensor, some: Tensor | None) -> Tensor:
            gradient = pull(weights, some)
            return gradient if self._by_moves is None else gradient @ self._by_moves

        return values, pulled

    @cached_property
    def _rough_layers(self) -> Layers:
        """In bfloat16, which has the range of float32 and a third of its digits."""
        return [
            (weight.bfloat16(), bias.bfloat16(), rectified) for weight, bias, rectified in self._layers or []
        ]

    def _by_hand(self, u: Tensor, rough: bool) -> tuple[Tensor, Pull]:
        assert self._layers is not None
        self.count(len(u))
        layers = self._rough_layers if rough else self._layers
        dtype = layers[0][0].dtype
        values, after = forward_pass(layers, u.to(dtype))

        def pull(weights: Tensor, some: Tensor | None) -> Tensor:
            return backward_pass(layers, weights.to(dtype), after, some).to(u.dtype)

        return values.to(u.dtype), pull

    def _by_autograd(self, u: Tensor, gradients: bool) -> tuple[Tensor, Pull]:
        assert self._forward is not None
        forward, block, dtype = self._forward, self._block, u.dtype
        with torch.set_grad_enabled(gradients):
            inputs = u.double().requires_grad_(gradients)
            values = decision_values(block, forward(inputs))

        def pull(weights: Tensor, some: Tensor | None) -> Tensor:
            if not values.requires_grad:
                return u.new_zeros((len(weights), u.shape[1]))
            of_all = weights.double()
            if some is not None:
                of_all = torch.zeros_like(values).index_copy_(0, some, of_all)
            (gradient,) = torch.autograd.grad(values, inputs, of_all, retain_graph=True, allow_unused=True)
            gradient = torch.zeros_like(u) if gradient is None else gradient.to(dtype)
            return gradient if some is None else gradient[some]

        return values.detach().to(dtype), pull


def _decision_layers(block: Block, device: str, dtype: torch.dtype) -> Layers | None:
    """The layers of raw decision values, with the threshold subtracted; None if there are none."""
    found = dense_layers(block, device, dtype)
    if found is None or (block.classifies and (found[-1][2] or ends_in_probability(block))):
        return None
    if block.classifies and block.outputs.shape[1] == 1:
        weight, bias, rectified = found[-1]
        found[-1] = (weight, bias - block.threshold, rectified)
    return found


def _is_eye(matrix: Tensor) -> bool:
    return matrix.shape[0] == matrix.shape[1] and bool(torch.equal(matrix, torch.eye(len(matrix)).to(matrix)))


@dataclass(frozen=True, eq=False)
class PaddedNetwork:
    """A network with one output: `hidden` layers with a ReLU after each, and a last one without, padded."""

    first: Tensor
    """(side, inputs), padded."""
    inner: Tensor
    """(hidden - 1, side, side), each as (out, in); zeros if there is none."""
    biases: Tensor
    """(hidden, side)."""
    last: Tensor
    """(side,)."""
    last_bias: Tensor
    """(1,)."""
    inputs: int
    """Number of inputs."""
    hidden: int

    @property
    def side(self) -> int:
        """Units of a hidden layer, padded."""
        return int(self.biases.shape[1])

    @property
    def entry(self) -> int:
        """Number of inputs, padded."""
        return int(self.first.shape[1])


def padded_network(layers: Layers) -> PaddedNetwork | None:
    """The padded network from weights, biases and whether a ReLU follows: after all layers except the last,
    which has one output. None for any other network. Padding with zeros does not change the values."""
    *hidden, (last, last_bias, rectified) = layers
    if not hidden or rectified or len(last) != 1 or not all(follows for _, _, follows in hidden):
        return None
    inputs = int(hidden[0][0].shape[1])
    side, entry = _padded_size(max(len(weight) for weight, _, _ in hidden)), _padded_size(inputs)
    first = _padded(hidden[0][0], side, entry)
    inner = [_padded(weight, side, side) for weight, _, _ in hidden[1:]]
    biases = [_padded(bias[None], 1, side)[0] for _, bias, _ in hidden]
    return PaddedNetwork(
        first, torch.stack(inner or [first.new_zeros((side, side))]), torch.stack(biases),
        _padded(last, 1, side)[0], last_bias, inputs, len(hidden),
    )  # fmt: skip


def _padded_size(size: int) -> int:
    """The next power of two."""
    return max(LEAST_SIDE, 1 << (size - 1).bit_length())


def _padded(matrix: Tensor, rows: int, columns: int) -> Tensor:
    whole = matrix.new_zeros((rows, columns))
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return whole
