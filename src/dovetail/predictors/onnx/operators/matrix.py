"""Matrix products, attention as one operator (opset 23), normalisation and dropout. Operators that behave
differently in training are refused in training mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from dovetail.predictors.onnx.node import MANY, Kernel, OnnxNode, Operator, plain


def _gemm(node: OnnxNode) -> Kernel:
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    flips_a, flips_b = bool(node.integer("transA", 0)), bool(node.integer("transB", 0))

    def run(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
        a, b = a.t() if flips_a else a, b.t() if flips_b else b
        return alpha * torch.mm(a, b) if c is None else torch.addmm(c, a, b, beta=beta, alpha=alpha)

    return run


MATRIX: dict[str, Operator] = {
    "Gemm": Operator(_gemm, 2, 3),
    "MatMul": plain(torch.matmul, 2, 2),
    "Einsum": Operator(lambda node: partial(torch.einsum, node.text("equation")), 1, MANY),
}


def _attention(node: OnnxNode) -> Kernel:
    """Scaled dot products, for (samples, heads, tokens, width) or (samples, tokens, heads * width)."""
    heads, key_heads = node.integer("q_num_heads", 0), node.integer("kv_num_heads", 0)
    causal, cap = bool(node.integer("is_causal", 0)), node.number("softcap", 0.0)
    scale = node.number("scale") if node.has("scale") else None
    for name in ("qk_matmul_output_mode", "softmax_precision", "left_window_size", "right_window_size"):
        if node.has(name):
            raise node.refused(f"{name}=")
    if any(node.inputs[4:]):
        raise node.refused("a cache of past keys")

    def split(x: Tensor, count: int) -> Tensor:
        return torch.unflatten(x, -1, (count, -1)).transpose(1, 2) if x.ndim == 3 else x

    def run(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *_past: None) -> Tensor:
        flat = q.ndim == 3
        q, k, v = split(q, heads), split(k, key_heads), split(v, key_heads)
        repeats = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(repeats, dim=1), v.repeat_interleave(repeats, dim=1)
        scores = (q @ k.transpose(-1, -2)) * (scale or 1.0 / math.sqrt(q.shape[-1]))
        if causal:
            seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
            scores = scores.masked_fill(~seen, -math.inf)
        if mask is not None and mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask.to(scores.device), -math.inf)
        elif mask is not None:
            scores = scores + mask
        if cap:
            scores = cap * torch.tanh(scores / cap)
        y = torch.softmax(scores, dim=-1) @ v
        return y.transpose(1, 2).flatten(2) if flat else y

    return run


ATTENTION: dict[str, Operator] = {"Attention": Operator(_attention, 3, 7)}


def _normalised(x: Tensor, axes: Sequence[int], epsilon: float, *, centred: bool = True) -> Tensor:
    x = x - x.mean(dim=tuple(axes), keepdim=True) if centred else x
    return x * torch.rsqrt(x.square().mean(dim=tuple(axes), keepdim=True) + epsilon)


def _along_channels(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(-1, *(1,) * (x.ndim - 2))


def _batch_normalisation(node: OnnxNode) -> Kernel:
    epsilon = node.number("epsilon", 1e-5)
    node.passed_over("momentum")
    if node.opset < 9 and not node.integer("spatial", 1):
        raise node.refused("spatial=0")
    if node.integer("training_mode", 0):
        raise node.refused("training mode (export the network after .eval())")

    def run(x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        factor = scale * torch.rsqrt(variance + epsilon)
        return (x - _along_channels(mean, x)) * _along_channels(factor, x) + _along_channels(shift, x)

    return run


def _layer_normalisation(node: OnnxNode) -> Kernel:
    """LayerNormalization; RMSNormalization does not subtract the mean."""
    axis, epsilon = node.integer("axis", -1), node.number("epsilon", 1e-5)
    node.passed_over("stash_type")
    centred = node.operator == "LayerNormalization"

    def run(x: Tensor, scale: Tensor, shift: Tensor | None = None) -> Tensor:
        y = _normalised(x, range(axis % x.ndim, x.ndim), epsilon, centred=centred) * scale
        return y if shift is None else y + shift

    return run


def _instance_normalisation(node: OnnxNode) -> Kernel:
    epsilon = node.number("epsilon", 1e-5)

    def run(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        y = _normalised(x, range(2, x.ndim), epsilon)
        return y * _along_channels(scale, x) + _along_channels(shift, x)

    return run


def _group_normalisation(node: OnnxNode) -> Kernel:
    groups, epsilon = node.integer("num_groups"), node.number("epsilon", 1e-5)
    per_group = node.opset < 21  # in older versions scale and shift were one number per group
    node.passed_over("stash_type")

    def run(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        y = torch.unflatten(x, 1, (groups, -1))
        y = _normalised(y, range(2, y.ndim), epsilon)
        if per_group:
            return (y * _along_channels(scale, y) + _along_channels(shift, y)).flatten(1, 2)
        return y.flatten(1, 2) * _along_channels(scale, x) + _along_channels(shift, x)

    return run


def _dropout(node: OnnxNode) -> Kernel:
    node.passed_over("seed", *(("ratio",) if node.opset < 12 else ()))

    def run(x: Tensor, _ratio: Tensor | None = None, training: Tensor | None = None) -> Tensor:
        if training is not None and bool(training):
            raise node.refused("training mode (export the network after .eval())")
        return x

    return run


NORMALISATION: dict[str, Operator] = {
    "BatchNormalization": Operator(_batch_normalisation, 5, 5),
    "LayerNormalization": Operator(_layer_normalisation, 2, 3),
    "RMSNormalization": Operator(_layer_normalisation, 2, 2),
    "InstanceNormalization": Operator(_instance_normalisation, 3, 3),
    "GroupNormalization": Operator(_group_normalisation, 3, 3),
    "Dropout": Operator(_dropout, 1, 3),
}
