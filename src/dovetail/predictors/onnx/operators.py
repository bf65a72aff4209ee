"""ONNX operators as functions of torch tensors: what each does, not when.

Float tensors live where the module lives; whole numbers and booleans that do not come from the data
(shapes, axes, indices) stay on the CPU, where reading them costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor

from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.predictors.onnx.node import MANY, Node, Operator, Run, listed, require_room
from dovetail.predictors.onnx.recurrent import RECURRENT
from dovetail.predictors.onnx.windows import WINDOWS

Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Tensor, Tensor], Tensor]

SLOPED: dict[str, Unary] = {
    "Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh,
    "Atan": torch.atan, "Atanh": torch.atanh, "Cos": torch.cos, "Cosh": torch.cosh, "Erf": torch.erf,
    "Exp": torch.exp, "HardSwish": F.hardswish, "Identity": lambda x: x, "Log": torch.log, "Mish": F.mish,
    "Neg": torch.neg, "Reciprocal": torch.reciprocal, "Relu": torch.relu, "Sigmoid": torch.sigmoid,
    "Sin": torch.sin, "Sinh": torch.sinh, "Softplus": lambda x: F.softplus(x, threshold=40.0),
    "Softsign": F.softsign, "Sqrt": torch.sqrt, "Tan": torch.tan, "Tanh": torch.tanh,
}  # fmt: skip
"""One input, no attributes, and a gradient (almost everywhere)."""

STEPPED: dict[str, Unary] = {
    "Ceil": torch.ceil, "Floor": torch.floor, "IsNaN": torch.isnan, "Not": torch.logical_not,
    "Round": torch.round, "Sign": torch.sign,
    "Size": lambda x: torch.tensor(x.numel()),
}  # fmt: skip
"""One input, no attributes, and no gradient."""

COMPARISONS: dict[str, Binary] = {
    "And": torch.logical_and, "Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge,
    "Less": torch.lt, "LessOrEqual": torch.le, "Or": torch.logical_or, "Xor": torch.logical_xor,
}  # fmt: skip

SHAPES_ONLY = ("Shape", "Size")
"""Operators whose result depends on how many rows there are, never on what they hold."""


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    whole = not (a.is_floating_point() or b.is_floating_point())
    return torch.div(a, b, rounding_mode="trunc" if whole else None)


def _power(base: Tensor, exponent: Tensor) -> Tensor:
    return torch.pow(base, exponent).to(base.dtype)


def _compared(compare: Binary) -> Run:
    return lambda a, b: compare(a, b.to(a.device))


def _modulo(node: Node) -> Run:
    return torch.fmod if node.integer("fmod", 0) else torch.remainder


def _folded(combine: Binary) -> Callable[[Node], Run]:
    """An operator of any number of inputs, taken two by two."""
    return lambda node: lambda *values: reduce(combine, values)


def _mean(node: Node) -> Run:
    return lambda *values: reduce(torch.add, values) / len(values)


def _where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    device = a.device if a.device.type != "cpu" else b.device
    return torch.where(condition.to(device), a.to(device), b.to(device))


# Activations with parameters


def _leaky_relu(node: Node) -> Run:
    slope = node.number("alpha", 0.01)
    return lambda x: F.leaky_relu(x, slope)


def _prelu(x: Tensor, slope: Tensor) -> Tensor:
    return torch.where(x < 0, slope * x, x)


def _thresholded_relu(node: Node) -> Run:
    threshold = node.number("alpha", 1.0)
    return lambda x: F.threshold(x, threshold, 0.0)


def _elu(node: Node) -> Run:
    alpha = node.number("alpha", 1.0)
    return lambda x: F.elu(x, alpha)


def _selu(node: Node) -> Run:
    alpha = node.number("alpha", 1.67326319217681884765625)
    gamma = node.number("gamma", 1.05070102214813232421875)
    return lambda x: gamma * F.elu(x, alpha)


def _celu(node: Node) -> Run:
    alpha = node.number("alpha", 1.0)
    return lambda x: F.celu(x, alpha)


def _gelu(node: Node) -> Run:
    approximate = node.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.refused(f"approximate={approximate!r}")
    return lambda x: F.gelu(x, approximate=approximate)


def _swish(node: Node) -> Run:
    alpha = node.number("alpha", 1.0)
    return lambda x: x * torch.sigmoid(alpha * x)


def _hard_sigmoid(node: Node) -> Run:
    alpha, beta = node.number("alpha", 0.2), node.number("beta", 0.5)
    return lambda x: torch.clamp(alpha * x + beta, 0.0, 1.0)


def _softmax(node: Node) -> Run:
    axis = node.integer("axis", -1)
    return lambda x: torch.softmax(x, dim=axis)


def _log_softmax(node: Node) -> Run:
    axis = node.integer("axis", -1)
    return lambda x: torch.log_softmax(x, dim=axis)


def _clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    return x if low is None and high is None else torch.clamp(x, low, high)


# Products


def _gemm(node: Node) -> Run:
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    flips_a, flips_b = bool(node.integer("transA", 0)), bool(node.integer("transB", 0))

    def run(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
        a, b = a.t() if flips_a else a, b.t() if flips_b else b
        return alpha * torch.mm(a, b) if c is None else torch.addmm(c, a, b, beta=beta, alpha=alpha)

    return run


def _einsum(node: Node) -> Run:
    equation = node.text("equation")
    return lambda *values: torch.einsum(equation, *values)


def _attention(node: Node) -> Run:
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


# Normalisation


def _normalised(x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    centred = x - x.mean(dim=tuple(axes), keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(dim=tuple(axes), keepdim=True) + epsilon)


def _along_channels(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(-1, *(1,) * (x.ndim - 2))


def _batch_normalisation(node: Node) -> Run:
    epsilon = node.number("epsilon", 1e-5)
    node.passed_over("momentum")
    if node.integer("training_mode", 0):
        raise node.refused("training mode (export the network after .eval())")

    def run(x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        factor = scale * torch.rsqrt(variance + epsilon)
        return (x - _along_channels(mean, x)) * _along_channels(factor, x) + _along_channels(shift, x)

    return run


def _layer_normalisation(node: Node) -> Run:
    axis, epsilon = node.integer("axis", -1), node.number("epsilon", 1e-5)
    node.passed_over("stash_type")

    def run(x: Tensor, scale: Tensor, shift: Tensor | None = None) -> Tensor:
        y = _normalised(x, range(axis % x.ndim, x.ndim), epsilon) * scale
        return y if shift is None else y + shift

    return run


def _rms_normalisation(node: Node) -> Run:
    axis, epsilon = node.integer("axis", -1), node.number("epsilon", 1e-5)
    node.passed_over("stash_type")

    def run(x: Tensor, scale: Tensor) -> Tensor:
        axes = tuple(range(axis % x.ndim, x.ndim))
        return x * torch.rsqrt(x.square().mean(dim=axes, keepdim=True) + epsilon) * scale

    return run


def _instance_normalisation(node: Node) -> Run:
    epsilon = node.number("epsilon", 1e-5)

    def run(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        y = _normalised(x, range(2, x.ndim), epsilon)
        return y * _along_channels(scale, x) + _along_channels(shift, x)

    return run


def _group_normalisation(node: Node) -> Run:
    groups, epsilon = node.integer("num_groups"), node.number("epsilon", 1e-5)
    per_group = node.opset < 21  # scale and shift were one number per group then
    node.passed_over("stash_type")

    def run(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        y = torch.unflatten(x, 1, (groups, -1))
        y = _normalised(y, range(2, y.ndim), epsilon)
        if per_group:
            return (y * _along_channels(scale, y) + _along_channels(shift, y)).flatten(1, 2)
        return y.flatten(1, 2) * _along_channels(scale, x) + _along_channels(shift, x)

    return run


def _dropout(node: Node) -> Run:
    node.passed_over("seed")

    def run(x: Tensor, _ratio: Tensor | None = None, training: Tensor | None = None) -> Tensor:
        if training is not None and bool(training):
            raise node.refused("training mode (export the network after .eval())")
        return x

    return run


# Reductions


def _reduction(function: Callable[[Tensor, tuple[int, ...], bool], Tensor]) -> Callable[[Node], Run]:
    def make(node: Node) -> Run:
        keep = bool(node.integer("keepdims", 1))
        nothing_if_empty = bool(node.integer("noop_with_empty_axes", 0))
        fixed = node.integers("axes", ())

        def run(x: Tensor, axes: Tensor | None = None) -> Tensor:
            chosen = fixed if axes is None else tuple(listed(axes))
            if not chosen and nothing_if_empty:
                return x
            return function(x, chosen or tuple(range(x.ndim)), keep)

        return run

    return make


def _product(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = x.prod(dim=axis, keepdim=keep)
    return x


REDUCTIONS: dict[str, Callable[[Tensor, tuple[int, ...], bool], Tensor]] = {
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keep),
    "ReduceL2": lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: x.sum(axes, keep).log(),
    "ReduceLogSumExp": lambda x, axes, keep: torch.logsumexp(x, axes, keep),
    "ReduceMax": lambda x, axes, keep: x.amax(axes, keep),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keep),
    "ReduceMin": lambda x, axes, keep: x.amin(axes, keep),
    "ReduceProd": _product,
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keep, dtype=x.dtype),
    "ReduceSumSquare": lambda x, axes, keep: x.square().sum(axes, keep, dtype=x.dtype),
}


def _extreme_index(choose: Callable[..., Tensor]) -> Callable[[Node], Run]:
    def make(node: Node) -> Run:
        axis, keep = node.integer("axis", 0), bool(node.integer("keepdims", 1))
        last = bool(node.integer("select_last_index", 0))

        def run(x: Tensor) -> Tensor:
            if last:
                return x.shape[axis] - 1 - choose(x.flip(axis), dim=axis, keepdim=keep)
            return choose(x, dim=axis, keepdim=keep)

        return run

    return make


# Shapes


def _flatten(node: Node) -> Run:
    axis = node.integer("axis", 1)

    def run(x: Tensor) -> Tensor:
        split = axis + x.ndim if axis < 0 else axis
        return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))

    return run


def _reshape(node: Node) -> Run:
    keeps_zeros = bool(node.integer("allowzero", 0))

    def run(x: Tensor, shape: Tensor) -> Tensor:
        sizes = listed(shape)
        if not keeps_zeros and 0 in sizes:
            sizes = [size or x.shape[k] for k, size in enumerate(sizes)]
        return x.reshape(sizes)

    return run


def _squeeze(x: Tensor, axes: Tensor | None = None) -> Tensor:
    return x.squeeze() if axes is None else x.squeeze(tuple(listed(axes)))


def _unsqueeze(x: Tensor, axes: Tensor) -> Tensor:
    places = listed(axes)
    for axis in sorted(place % (x.ndim + len(places)) for place in places):
        x = x.unsqueeze(axis)
    return x


def _transpose(node: Node) -> Run:
    order = node.integers("perm", ())
    return lambda x: x.permute(order or tuple(reversed(range(x.ndim))))


def _concat(node: Node) -> Run:
    axis = node.integer("axis")
    return lambda *values: torch.cat(values, dim=axis)


def _split(node: Node) -> Run:
    axis, parts = node.integer("axis", 0), len(node.outputs)
    if node.integer("num_outputs", parts) != parts:
        raise PredictorError(f"{node} has {parts} outputs, not num_outputs; the file is damaged.")

    def run(x: Tensor, sizes: Tensor | None = None) -> tuple[Tensor, ...]:
        if sizes is not None:
            return torch.split(x, listed(sizes), dim=axis)
        return torch.split(x, -(-x.shape[axis] // parts), dim=axis)

    return run


def _slice(
    x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None = None, steps: Tensor | None = None
) -> Tensor:
    begins, stops = listed(starts), listed(ends)
    places = range(len(begins)) if axes is None else listed(axes)
    strides = [1] * len(begins) if steps is None else listed(steps)
    for begin, stop, axis, step in zip(begins, stops, places, strides, strict=True):
        chosen = range(*slice(begin, stop, step).indices(x.shape[axis]))
        if len(chosen) == x.shape[axis] and step == 1:
            continue
        low, high = (min(chosen), max(chosen) + 1) if chosen else (0, 0)
        part = x.narrow(axis, low, high - low)
        if abs(step) > 1 and chosen:
            part = part.index_select(axis, torch.arange(0, high - low, abs(step), device=x.device))
        x = part.flip(axis) if step < 0 else part
    return x


def _gather(node: Node) -> Run:
    axis = node.integer("axis", 0)

    def run(x: Tensor, indices: Tensor) -> Tensor:
        if indices.ndim == 0:
            return x.select(axis, int(indices))
        return x[(slice(None),) * (axis % x.ndim) + (indices.long(),)]

    return run


def _gather_elements(node: Node) -> Run:
    axis = node.integer("axis", 0)

    def run(x: Tensor, indices: Tensor) -> Tensor:
        chosen = indices.long().to(x.device)
        return x.gather(axis, torch.where(chosen < 0, chosen + x.shape[axis], chosen))

    return run


def _expand(x: Tensor, shape: Tensor) -> Tensor:
    wanted = listed(shape)
    extra = len(wanted) - x.ndim
    own = [1] * extra + list(x.shape)
    wanted = [1] * -extra + wanted
    sizes = [want if have == 1 else have for have, want in zip(own, wanted, strict=True)]
    require_room(sizes)
    if any(want not in (1, size) for want, size in zip(wanted, sizes, strict=True)):
        raise PredictorError(f"a tensor of shape {tuple(x.shape)} cannot be expanded to {tuple(wanted)}.")
    return x.expand(sizes)


def _tile(x: Tensor, repeats: Tensor) -> Tensor:
    counts = listed(repeats)
    require_room([size * count for size, count in zip(x.shape, counts, strict=True)])
    return x.repeat(counts)


def _trilu(node: Node) -> Run:
    cut = torch.triu if node.integer("upper", 1) else torch.tril
    return lambda x, k=None: cut(x, 0 if k is None else int(k))


def _pad(node: Node) -> Run:
    mode = node.text("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise node.refused(f"mode={mode!r}")

    def run(x: Tensor, pads: Tensor, value: Tensor | None = None, axes: Tensor | None = None) -> Tensor:
        amounts = listed(pads)
        places = range(x.ndim) if axes is None else listed(axes)
        half = len(amounts) // 2
        for axis, before, after in zip(places, amounts[:half], amounts[half:], strict=True):
            if before or after:
                x = _padded_axis(x, axis % x.ndim, before, after, mode, value)
        return x

    return run


def _padded_axis(x: Tensor, axis: int, before: int, after: int, mode: str, value: Tensor | None) -> Tensor:
    size = x.shape[axis]
    require_room([*x.shape[:axis], size + before + after, *x.shape[axis + 1 :]])
    if mode == "constant":
        amounts = [0, 0] * (x.ndim - axis - 1) + [before, after]
        return F.pad(x, amounts, value=0.0 if value is None else value.item())
    places = torch.arange(-before, size + after, device=x.device)
    if mode == "edge":
        places = places.clamp(0, size - 1)
    elif mode == "wrap":
        places = places % size
    elif size == 1:
        places = torch.zeros_like(places)
    else:  # reflect: ... 2 1 | 0 1 2 ... n-1 | n-2 n-3 ...
        places = (places % (2 * size - 2)) - (size - 1)
        places = size - 1 - places.abs()
    return x.index_select(axis, places)


def _shape(node: Node) -> Run:
    start, end = node.integer("start", 0), node.integer("end", MANY)
    return lambda x: torch.tensor(x.shape[start:end], dtype=torch.int64)


# Constants and types


def _constant(node: Node) -> Run:
    if node.has("value"):
        value = node.tensor("value")
    elif node.has("value_float"):
        value = torch.tensor(node.number("value_float"), dtype=torch.float32)
    elif node.has("value_floats"):
        value = torch.tensor(node.numbers("value_floats"), dtype=torch.float32)
    elif node.has("value_int"):
        value = torch.tensor(node.integer("value_int"), dtype=torch.int64)
    elif node.has("value_ints"):
        value = torch.tensor(node.integers("value_ints"), dtype=torch.int64)
    else:
        raise node.refused(f"a constant given as {', '.join(node.attributes) or 'nothing'}")
    return lambda: value


def _constant_of_shape(node: Node) -> Run:
    value = node.tensor("value", torch.zeros(1))
    number = value.flatten()[0].item()

    def run(grain: Tensor, shape: Tensor) -> Tensor:
        sizes = listed(shape)
        require_room(sizes)
        place = grain.device if value.is_floating_point() else None
        return torch.full(sizes, number, dtype=node.here(value.dtype, grain), device=place)

    return run


def _range(grain: Tensor, start: Tensor, limit: Tensor, step: Tensor) -> Tensor:
    first, last, by = start.item(), limit.item(), step.item()
    require_room([max(math.ceil((last - first) / by), 0)])
    place = grain.device if start.is_floating_point() else None
    return torch.arange(first, last, by, dtype=start.dtype, device=place)


def _cast(node: Node) -> Run:
    declared = node.dtype("to")
    node.passed_over("saturate", "round_mode")  # they concern 8-bit floats

    def run(grain: Tensor, x: Tensor) -> Tensor:
        dtype = node.here(declared, grain)
        becomes_float = dtype.is_floating_point and not x.is_floating_point()
        return x.to(dtype=dtype, device=grain.device) if becomes_float else x.to(dtype)

    return run


def _cast_like(x: Tensor, like: Tensor) -> Tensor:
    return x.to(like.dtype)


def _always(function: Run) -> Callable[[Node], Run]:
    """A maker for an operator without attributes."""
    return lambda node: function


OPERATORS: dict[str, Operator] = {
    **{name: Operator(_always(function), 1, 1) for name, function in SLOPED.items()},
    **{name: Operator(_always(function), 1, 1, slope=False) for name, function in STEPPED.items()},
    **{name: Operator(_always(_compared(f)), 2, 2, slope=False) for name, f in COMPARISONS.items()},
    **{name: Operator(_reduction(function), 1, 2) for name, function in REDUCTIONS.items()},
    **WINDOWS,
    **RECURRENT,
    "Add": Operator(_always(torch.add), 2, 2),
    "Sub": Operator(_always(torch.sub), 2, 2),
    "Mul": Operator(_always(torch.mul), 2, 2),
    "Div": Operator(_always(_quotient), 2, 2),
    "Pow": Operator(_always(_power), 2, 2),
    "Mod": Operator(_modulo, 2, 2),
    "Min": Operator(_folded(torch.minimum), 1, MANY),
    "Max": Operator(_folded(torch.maximum), 1, MANY),
    "Sum": Operator(_folded(torch.add), 1, MANY),
    "Mean": Operator(_mean, 1, MANY),
    "Where": Operator(_always(_where), 3, 3),
    "LeakyRelu": Operator(_leaky_relu, 1, 1),
    "PRelu": Operator(_always(_prelu), 2, 2),
    "ThresholdedRelu": Operator(_thresholded_relu, 1, 1),
    "Elu": Operator(_elu, 1, 1),
    "Selu": Operator(_selu, 1, 1),
    "Celu": Operator(_celu, 1, 1),
    "Gelu": Operator(_gelu, 1, 1),
    "Swish": Operator(_swish, 1, 1),
    "HardSigmoid": Operator(_hard_sigmoid, 1, 1),
    "Softmax": Operator(_softmax, 1, 1),
    "LogSoftmax": Operator(_log_softmax, 1, 1),
    "Clip": Operator(_always(_clip), 1, 3),
    "Gemm": Operator(_gemm, 2, 3),
    "MatMul": Operator(_always(torch.matmul), 2, 2),
    "Einsum": Operator(_einsum, 1, MANY),
    "Attention": Operator(_attention, 3, 7),
    "BatchNormalization": Operator(_batch_normalisation, 5, 5),
    "LayerNormalization": Operator(_layer_normalisation, 2, 3),
    "RMSNormalization": Operator(_rms_normalisation, 2, 2),
    "InstanceNormalization": Operator(_instance_normalisation, 3, 3),
    "GroupNormalization": Operator(_group_normalisation, 3, 3),
    "Dropout": Operator(_dropout, 1, 3),
    "ArgMax": Operator(_extreme_index(torch.argmax), 1, 1, slope=False),
    "ArgMin": Operator(_extreme_index(torch.argmin), 1, 1, slope=False),
    "Flatten": Operator(_flatten, 1, 1),
    "Reshape": Operator(_reshape, 2, 2),
    "Squeeze": Operator(_always(_squeeze), 1, 2),
    "Unsqueeze": Operator(_always(_unsqueeze), 2, 2),
    "Transpose": Operator(_transpose, 1, 1),
    "Concat": Operator(_concat, 1, MANY),
    "Split": Operator(_split, 1, 2, outputs=MANY),
    "Slice": Operator(_always(_slice), 3, 5),
    "Gather": Operator(_gather, 2, 2),
    "GatherElements": Operator(_gather_elements, 2, 2),
    "Expand": Operator(_always(_expand), 2, 2),
    "Tile": Operator(_always(_tile), 2, 2),
    "Trilu": Operator(_trilu, 1, 2),
    "Pad": Operator(_pad, 2, 4),
    "Shape": Operator(_shape, 1, 1, slope=False),
    "Constant": Operator(_constant, 0, 0, slope=False),
    "ConstantOfShape": Operator(_constant_of_shape, 1, 1, slope=False, grain=True),
    "Range": Operator(_always(_range), 3, 3, slope=False, grain=True),
    "Cast": Operator(_cast, 1, 1, grain=True),
    "CastLike": Operator(_always(_cast_like), 2, 2),
}

QUANTISED = ("Quantize", "QLinear", "DequantizeLinear", "DynamicQuantize", "MatMulInteger", "ConvInteger")
BRANCHING = ("If", "Loop", "Scan", "SequenceMap")


def compiled(node: Node) -> Run:
    """The function a node stands for, or an error that names the node; nothing is evaluated yet."""
    operator = operator_of(node)
    required = node.inputs[: operator.fewest]
    if len(required) < operator.fewest or "" in required or len(node.inputs) > operator.most:
        raise PredictorError(f"{node} has {len(node.inputs)} inputs, which cannot be; the file is damaged.")
    if any(node.outputs[operator.outputs :]):
        raise node.refused(f"output number {operator.outputs + 1}")
    run = operator.make(node)
    for name in node.attributes.keys() - node.asked:
        raise node.refused(f"attribute {name!r}")
    return run


def operator_of(node: Node) -> Operator:
    """What is known of a node's operator."""
    if node.domain == "" and node.operator in OPERATORS:
        return OPERATORS[node.operator]
    if node.domain == "ai.onnx.ml":
        hint = "the converted scikit-learn model can be given to dovetail itself, without ONNX."
    elif node.domain:
        hint = "only standard ONNX operators are; export without operators of your own."
    elif node.operator.startswith(QUANTISED):
        hint = "a quantised network has no gradient; export the float network."
    elif node.operator in BRANCHING:
        hint = "export the network without control flow (torch.onnx.export of an unrolled forward)."
    else:
        hint = "export the network with other operators, or give the torch.nn.Module itself."
    domain = f" of domain {node.domain!r}" if node.domain else ""
    raise UnsupportedError(
        f"ONNX operator {node.operator}{domain} (node {node.name!r}) is not supported: {hint}"
    )


def has_slope(node: Node) -> bool:
    """Whether a gradient passes through a node."""
    if node.operator == "Cast":
        return node.dtype("to").is_floating_point
    return operator_of(node).slope
