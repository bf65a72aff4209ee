"""Forward and backward passes of dense ReLU networks without autograd, for network steps on a GPU in
float64.

A step evaluates a few hundred rows, so that the launch of kernels takes most of the time of a deep network.
Without autograd there are fewer kernels and no graph to record. A pass that is repeated with the same number
of rows is recorded as a CUDA graph, which launches all its kernels at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dovetail.core.block import Block
from dovetail.networks.layers import Activation, Dense
from dovetail.run.guard import counter

if TYPE_CHECKING:
    from dovetail.core.predictor import Forward

Layers = list[tuple[Tensor, Tensor, bool]]
"""Weight, bias, and whether a ReLU follows."""
REQUESTS_BEFORE_RECORDING = 3
"""Number of requests for the same number of rows after which a recording pays."""
RECORDINGS, MOST_ROWS = 4, 4096
"""Largest number of recordings per network, and of rows in one: beyond that kernels take longer than their
start."""


def network_forward(block: Block, device: str) -> Forward:
    """A block's network in differentiable form: by hand if that is faster, otherwise the float64 copy."""
    by_hand = dense_forward(block, device) if torch.device(device).type == "cuda" else None
    return block.predictor.snapshot(device) if by_hand is None else by_hand


def dense_forward(block: Block, device: str) -> Forward | None:
    """None unless the network is dense layers with ReLUs between them."""
    layers = dense_layers(block, device, torch.float64)
    if layers is None:
        return None
    count, passes = counter(block.predictor), Passes(layers)

    def forward(u: Tensor) -> Tensor:
        count(len(u))
        values: Tensor = _RecordedNetwork.apply(u, passes)  # type: ignore[no-untyped-call]
        return values

    return forward


def dense_layers(block: Block, device: str, dtype: torch.dtype) -> Layers | None:
    """The layers of a block's network; None unless it is dense layers with ReLUs between them."""
    found: Layers = []
    for layer in block.description.layers_if_known() or ():
        if isinstance(layer, Dense):
            weight, bias = (
                torch.as_tensor(a, dtype=dtype, device=device) for a in (layer.weight, layer.bias)
            )
            found.append((weight, bias, False))
        elif isinstance(layer, Activation) and layer.kind == "relu" and found:
            found[-1] = (*found[-1][:2], True)
        else:
            return None
    return found or None


def forward_pass(layers: Layers, u: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The values, and the outputs of every ReLU."""
    after, x = [], u
    for weight, bias, rectified in layers:
        x = torch.addmm(bias, x, weight.T)
        if rectified:
            x = x.clamp_(min=0.0)
            after.append(x)
    return x, after


def backward_pass(
    layers: Layers, gradient: Tensor, after: list[Tensor], some: Tensor | None = None
) -> Tensor:
    """Gradients by inputs for all rows or for `some`; `after` are the outputs of every ReLU."""
    left = list(after)
    for weight, _, rectified in reversed(layers):
        if rectified:
            passed = left.pop() if some is None else left.pop().index_select(0, some)
            # compared by the results in one pass
            gradient = torch.ops.aten.threshold_backward(gradient, passed, 0.0)
        gradient = gradient @ weight
    return gradient


class Passes:
    """Forward and backward passes through one network, recorded if that pays and works."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self._asked: dict[int, int] = {}
        self._recordings: dict[int, _Recording] = {}
        self.records = layers[0][0].device.type == "cuda"
        """Whether recordings are made; not after one failed."""

    def recording(self, u: Tensor) -> _Recording | None:
        """The recording for as many rows; None if there is none."""
        rows = len(u)
        if rows in self._recordings:
            return self._recordings[rows]
        self._asked[rows] = self._asked.get(rows, 0) + 1
        room = len(self._recordings) < RECORDINGS and 0 < rows <= MOST_ROWS
        if not (self.records and room) or self._asked[rows] < REQUESTS_BEFORE_RECORDING:
            return None
        try:
            self._recordings[rows] = _Recording(self.layers, u)
        except Exception:  # out of memory, or an error in a library: the kernels then run one by one
            self.records = False
            return None
        return self._recordings[rows]


class _Recording:
    """Both passes for one number of rows, in the same memory each time."""

    def __init__(self, layers: Layers, u: Tensor) -> None:
        self._u = u.detach().clone()
        self._gradient = u.new_ones((len(u), len(layers[-1][1])))
        self._last: object = None
        """The owner of the last forward pass in this memory."""
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # libraries allocate their memory before the recording
            backward_pass(layers, self._gradient, forward_pass(layers, self._u)[1])
        torch.cuda.current_stream().wait_stream(aside)
        self._forth, self._back = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._forth):
            self._values, after = forward_pass(layers, self._u)
        with torch.cuda.graph(self._back):
            self._slope = backward_pass(layers, self._gradient, after)
        self._after = after

    def forward(self, u: Tensor, asker: object) -> Tensor:
        """Values of rows."""
        self._u.copy_(u)
        self._forth.replay()
        self._last = asker
        return self._values.clone()

    def backward(self, u: Tensor, gradient: Tensor, asker: object) -> Tensor:
        """Gradients of the rows that `asker` gave."""
        if self._last is not asker:  # another forward pass came in between
            self.forward(u, asker)
        self._gradient.copy_(gradient)
        self._back.replay()
        return self._slope.clone()


class _RecordedNetwork(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, passes: Passes) -> Tensor:
        ctx.layers, ctx.recording, ctx.u = passes.layers, passes.recording(u), u.detach()
        if ctx.recording is not None:
            ctx.asker, ctx.after = object(), None
            values: Tensor = ctx.recording.forward(ctx.u, ctx.asker)
            return values
        values, ctx.after = forward_pass(passes.layers, u)
        return values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        if ctx.recording is not None and not torch.is_grad_enabled():
            return ctx.recording.backward(ctx.u, gradients[0], ctx.asker), None
        if ctx.after is None:  # a second derivative is requested, which no recording contains
            with torch.no_grad():
                ctx.after = forward_pass(ctx.layers, ctx.u)[1]
        return backward_pass(ctx.layers, gradients[0], ctx.after), None
