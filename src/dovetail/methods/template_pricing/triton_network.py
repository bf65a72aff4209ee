"""Values and gradients of a dense network of ReLUs in one kernel, for GPUs: layers of up to 128 units.

Layer by layer every product of matrices is written to memory, read, cut off at 0 and written again. Here rows
stay in a processor while the layers pass by; what leaves it is where the ReLUs were open, a byte each, and it
stays in the cache. A number is two in bfloat16, its first digits and its next, and a product of matrices is
three: that is float32 but for its last two digits, and several times as fast.
"""
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call,valid-type,misc,unused-ignore"

from __future__ import annotations

from functools import cached_property

import torch
import triton
import triton.language as tl
from torch import Tensor

from dovetail.methods.template_pricing.padded_network import PaddedNetwork

MOST_SIDE, MOST_ENTRY = 128, 128
"""Units of a layer, and inputs: more of them do not stay in a processor."""
ROWS, WARPS, STAGES = 128, 8, 2
"""Of a program; layers that are on their way at a time."""
HALF = torch.bfloat16
"""It has the range of float32: no activation is too large."""
PROGRAMS = 2
"""For each processor of the GPU: one is at work, by what it has of its registers, and one waits."""


@triton.jit
def _times(x, high, low):
    """x times a matrix that comes as its first digits and its next; what is beyond both is left out."""
    first = x.to(high.dtype)
    after = (x - first.to(tl.float32)).to(high.dtype)
    return tl.dot(first, high, tl.dot(first, low, tl.dot(after, high)))


@triton.jit(do_not_specialize=["count"])
def _kernel(
    rows_in, first, first_back, inner, inner_back, biases, last, last_bias, open_units, values, gradients,
    count,
    HIDDEN: tl.constexpr, INPUTS: tl.constexpr, ENTRY: tl.constexpr, SIDE: tl.constexpr,
    ROWS: tl.constexpr, STAGES: tl.constexpr, GRADIENT: tl.constexpr,
):  # fmt: skip
    """Some rows after others. `first` is (in, out), and so is each layer of `inner`; those to go `_back` are
    (out, in). All but `first` come as their first digits, then their next."""
    unit, column, within = tl.arange(0, SIDE), tl.arange(0, ENTRY), tl.arange(0, ROWS)
    square = unit[:, None] * SIDE + unit[None, :]
    mine = open_units + tl.program_id(0).to(tl.int64) * (HIDDEN * ROWS * SIDE)
    mine = mine + within[:, None] * SIDE + unit[None, :]
    end = tl.load(last + unit)
    begin = tl.program_id(0).to(tl.int64) * ROWS
    while begin < count:
        row = begin + within
        seen = (row < count)[:, None] & (column < INPUTS)[None, :]
        u = tl.load(rows_in + row[:, None] * INPUTS + column[None, :], mask=seen, other=0.0)
        entry = tl.load(first + column[:, None] * SIDE + unit[None, :])
        x = tl.dot(u, entry, input_precision="tf32x3") + tl.load(biases + unit)[None, :]
        x = tl.maximum(x, 0.0)
        for layer in tl.range(0, HIDDEN - 1, num_stages=STAGES):
            if GRADIENT:
                tl.store(mine + layer * ROWS * SIDE, (x > 0.0).to(tl.int8))
            at = inner + layer * 2 * SIDE * SIDE + square
            bias = tl.load(biases + (layer + 1) * SIDE + unit)
            x = tl.maximum(_times(x, tl.load(at), tl.load(at + SIDE * SIDE)) + bias[None, :], 0.0)
        value = tl.sum(x * end[None, :], axis=1) + tl.load(last_bias)
        tl.store(values + row, value, mask=row < count)
        if GRADIENT:
            tl.debug_barrier()  # what one thread has written another may read
            back = tl.where(x > 0.0, end[None, :], 0.0)
            for passed in tl.range(0, HIDDEN - 1, num_stages=STAGES):
                below = HIDDEN - 2 - passed
                where = inner_back + below * 2 * SIDE * SIDE + square
                lets_pass = tl.load(mine + below * ROWS * SIDE) > 0
                back = _times(back, tl.load(where), tl.load(where + SIDE * SIDE))
                back = tl.where(lets_pass, back, 0.0)
            leaves = first_back + unit[:, None] * ENTRY + column[None, :]
            slope = _times(back, tl.load(leaves), tl.load(leaves + SIDE * ENTRY))
            tl.store(gradients + row[:, None] * INPUTS + column[None, :], slope, mask=seen)
            tl.debug_barrier()  # before the next rows write there
        begin += tl.num_programs(0) * ROWS


class KernelNetwork:
    """A network whose rows go through the kernel."""

    def __init__(self, network: PaddedNetwork) -> None:
        self._network = network
        self._first = network.first.T.contiguous()
        self._back = _in_two(network.first[None])
        self._inner, self._inner_back = _in_two(network.inner.transpose(1, 2)), _in_two(network.inner)

    @cached_property
    def _programs(self) -> int:
        device = self._first.device
        if device.type != "cuda":  # Triton's interpreter
            return 2
        return PROGRAMS * torch.cuda.get_device_properties(device).multi_processor_count

    def linearised(self, u: Tensor, *, gradients: bool) -> tuple[Tensor, Tensor]:
        """(n,) values, and (n, d) gradients; these are of no use where nobody asked for them."""
        net, n, u = self._network, len(u), u.contiguous()
        programs = max(1, min(self._programs, triton.cdiv(n, ROWS)))
        units = (programs, net.hidden, ROWS, net.side) if gradients else (1,)
        open_units = torch.empty(units, dtype=torch.int8, device=u.device)
        values, slopes = u.new_empty(n), torch.empty_like(u)
        _kernel[(programs,)](
            u, self._first, self._back, self._inner, self._inner_back, net.biases, net.last, net.last_bias,
            open_units, values, slopes, n, HIDDEN=net.hidden, INPUTS=net.inputs, ENTRY=net.entry,
            SIDE=net.side, ROWS=ROWS, STAGES=STAGES, GRADIENT=gradients, num_warps=WARPS,
        )  # fmt: skip
        return values, slopes


def _in_two(matrices: Tensor) -> Tensor:
    """(m, 2, rows, columns) of (m, rows, columns): their first digits, and their next."""
    high = matrices.to(HALF)
    return torch.stack([high, (matrices - high.float()).to(HALF)], dim=1).contiguous()
