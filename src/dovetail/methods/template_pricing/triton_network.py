"""Values and gradients of a dense network of ReLUs in one kernel, for GPUs: layers of up to 128 units.

Layer by layer every product of matrices is written to memory, read, cut off at 0 and written again. Here rows
stay in a processor while the layers pass by; what leaves it is where the ReLUs were open, a byte each, and it
stays in the cache. Products of matrices are made of three in tf32, which is float32 but for its last digit.
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
ROWS, WARPS = 64, 4
"""Of a program."""
PROGRAMS = 4
"""For each processor of the GPU: as many as can be at work on it by their memory, or more."""
PRECISION = "tf32x3"


@triton.jit(do_not_specialize=["count"])
def _kernel(
    rows_in, first, first_back, inner, inner_back, biases, last, last_bias, open_units, values, gradients,
    count,
    HIDDEN: tl.constexpr, INPUTS: tl.constexpr, ENTRY: tl.constexpr, SIDE: tl.constexpr,
    ROWS: tl.constexpr, PRECISION: tl.constexpr, GRADIENT: tl.constexpr,
):  # fmt: skip
    """Some rows after others; `first` and `inner` are (in, out), their `_back` (out, in)."""
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
        weight = tl.load(first + column[:, None] * SIDE + unit[None, :])
        x = tl.dot(u, weight, input_precision=PRECISION) + tl.load(biases + unit)[None, :]
        x = tl.maximum(x, 0.0)
        for layer in range(HIDDEN - 1):
            if GRADIENT:
                tl.store(mine + layer * ROWS * SIDE, (x > 0.0).to(tl.int8))
            weight = tl.load(inner + layer * SIDE * SIDE + square)
            bias = tl.load(biases + (layer + 1) * SIDE + unit)
            x = tl.maximum(tl.dot(x, weight, input_precision=PRECISION) + bias[None, :], 0.0)
        value = tl.sum(x * end[None, :], axis=1) + tl.load(last_bias)
        tl.store(values + row, value, mask=row < count)
        if GRADIENT:
            tl.debug_barrier()  # what one thread has written another may read
            back = tl.where(x > 0.0, end[None, :], 0.0)
            for passed in range(HIDDEN - 1):
                layer = HIDDEN - 2 - passed
                weight = tl.load(inner_back + layer * SIDE * SIDE + square)
                lets_pass = tl.load(mine + layer * ROWS * SIDE) > 0
                back = tl.where(lets_pass, tl.dot(back, weight, input_precision=PRECISION), 0.0)
            weight = tl.load(first_back + unit[:, None] * ENTRY + column[None, :])
            slope = tl.dot(back, weight, input_precision=PRECISION)
            tl.store(gradients + row[:, None] * INPUTS + column[None, :], slope, mask=seen)
            tl.debug_barrier()  # before the next rows write there
        begin += tl.num_programs(0) * ROWS


class KernelNetwork:
    """A network whose rows go through the kernel."""

    def __init__(self, network: PaddedNetwork) -> None:
        self._network = network
        self._first, self._inner = (
            array.transpose(-1, -2).contiguous() for array in (network.first, network.inner)
        )

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
            u, self._first, net.first, self._inner, net.inner, net.biases, net.last, net.last_bias,
            open_units, values, slopes, n, HIDDEN=net.hidden, INPUTS=net.inputs, ENTRY=net.entry,
            SIDE=net.side, ROWS=ROWS, PRECISION=PRECISION, GRADIENT=gradients, num_warps=WARPS, num_stages=1,
        )  # fmt: skip
        return values, slopes
