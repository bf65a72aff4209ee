"""Affine operations: sums, products with constants, matrix products, convolutions, batch normalisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.networks.program import LARGEST
from dovetail.predictors.torch.traced import HANDLERS, Traced, handles, numbers

SHARED = 4.0
"""A scale that is itself a root and a quotient of rounded numbers, in these many operations."""


def weighted(terms: list[tuple[Traced, Any]], constant: FloatArray | float = 0.0) -> Traced:
    """The sum of tensors times constants (numbers or arrays), all broadcast, plus a constant."""
    like = terms[0][0]
    shapes = [tuple(tensor.shape) for tensor, _ in terms]
    shapes += [np.shape(factor) for _, factor in terms] + [np.shape(constant)]
    shape = np.broadcast_shapes(*shapes)
    size = math.prod(shape)
    places = [tensor.places.expand(shape).reshape(-1).numpy() for tensor, _ in terms]
    factors = [np.broadcast_to(factor, shape).reshape(-1) for _, factor in terms]
    rows = np.tile(np.arange(size), len(terms))
    bias = np.broadcast_to(constant, shape).reshape(-1)
    weights = np.concatenate(factors).astype(np.float64)
    return like.new(like.recording.sums(rows, np.concatenate(places), weights, bias), shape)


def _split(value: Any) -> tuple[Traced | None, Any]:
    """What depends on the inputs, or a constant."""
    if isinstance(value, Traced):
        return value, None
    return None, numbers(value) if isinstance(value, Tensor) else float(value)


@handles("add", "sub")
def _add(func: Any, left: Any, right: Any, alpha: float = 1.0) -> Traced:
    sign = -1.0 if func.overloadpacket.__name__.startswith("sub") else 1.0
    return _combined(left, right, 1.0, sign * alpha)


def _combined(left: Any, right: Any, of_left: float, of_right: float) -> Traced:
    parts = [(*_split(left), of_left), (*_split(right), of_right)]
    terms = [(tensor, factor) for tensor, _, factor in parts if tensor is not None]
    constant = sum(factor * value for tensor, value, factor in parts if tensor is None)
    return weighted(terms, constant)


@handles("mul")
def _mul(func: Any, left: Any, right: Any) -> Traced:
    if isinstance(left, Traced) and isinstance(right, Traced):
        a, b = torch.broadcast_tensors(left.places, right.places)  # type: ignore[no-untyped-call]
        made = left.recording.products(a.reshape(-1).numpy().copy(), b.reshape(-1).numpy().copy())
        return left.new(made, a.shape)
    tensor, factor = (left, right) if isinstance(left, Traced) else (right, left)
    return weighted([(tensor, _split(factor)[1])])


@handles("sum", "mean")
def _sum(func: Any, tensor: Traced, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Traced:
    dims = sorted(d % tensor.ndim for d in ([dim] if isinstance(dim, int) else dim or range(tensor.ndim)))
    kept = [d for d in range(tensor.ndim) if d not in dims]
    table = tensor.places.permute(*kept, *dims).reshape(math.prod(tensor.shape[d] for d in kept), -1)
    size, terms = table.shape
    weight = 1.0 / terms if func.overloadpacket.__name__.startswith("mean") else 1.0
    rows, weights = np.repeat(np.arange(size), terms), np.full(table.numel(), weight)
    made = tensor.recording.sums(rows, table.reshape(-1).numpy(), weights, np.zeros(size))
    shape = [1 if d in dims else tensor.shape[d] for d in range(tensor.ndim)]
    return tensor.new(made, shape if keepdim else [tensor.shape[d] for d in kept])


def _matrix_product(left: Any, right: Any) -> Traced:
    """(b, i, k) times (b, k, j); either side may be constant."""
    like = left if isinstance(left, Traced) else right
    batch, i, k = left.shape
    j = right.shape[2]
    if batch * i * k * j > LARGEST:
        raise UnsupportedError("a matrix product is too large to be bounded")
    grids = (
        one.places if isinstance(one, Traced) else torch.from_numpy(numbers(one)) for one in (left, right)
    )
    first, second = grids
    a = first[:, :, None, :].expand(batch, i, j, k).reshape(-1).numpy()
    b = second.transpose(1, 2)[:, None].expand(batch, i, j, k).reshape(-1).numpy()
    if isinstance(left, Traced) and isinstance(right, Traced):
        a, b = like.recording.products(a.copy(), b.copy()), np.ones(len(a))
    elif isinstance(right, Traced):
        a, b = b, a
    size = batch * i * j
    made = like.recording.sums(np.repeat(np.arange(size), k), a, b, np.zeros(size))
    return like.new(made, (batch, i, j))


HANDLERS.update(
    {
        "rsub": lambda func, left, right, alpha=1.0: _combined(left, right, -alpha, 1.0),
        "neg": lambda func, tensor: weighted([(tensor, -1.0)]),
        "mm": lambda func, left, right: _matrix_product(left[None], right[None])[0],
        "bmm": lambda func, left, right: _matrix_product(left, right),
        "mv": lambda func, left, right: _matrix_product(left[None], right[None, :, None])[0, :, 0],
        "dot": lambda func, left, right: _matrix_product(left[None, None], right[None, :, None])[0, 0, 0],
        "vdot": lambda func, left, right: _matrix_product(left[None, None], right[None, :, None])[0, 0, 0],
    }
)


@handles("addmm", "baddbmm", "addmv")
def _addmm(func: Any, bias: Any, left: Any, right: Any, beta: float = 1.0, alpha: float = 1.0) -> Any:
    product = {"addmm": "mm", "baddbmm": "bmm", "addmv": "mv"}[func.overloadpacket.__name__.rstrip("_")]
    return _combined(HANDLERS[product](None, left, right), bias, alpha, beta)


@handles(
    "convolution", "_convolution", "avg_pool1d", "avg_pool2d", "_adaptive_avg_pool2d",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_linear1d", "upsample_bilinear2d",
    "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d",
)  # fmt: skip
def _by_unit_vectors(func: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """Affine in one tensor, sample by sample: what it makes of each unit vector is a column of its matrix."""
    if not isinstance(tensor, Traced):
        raise UnsupportedError(f"{func} has weights that depend on the inputs")
    samples, *shape = tensor.shape
    size = math.prod(shape)
    constants = [torch.from_numpy(numbers(one)) if isinstance(one, Tensor) else one for one in args]
    nothing = func(torch.zeros(1, *shape, dtype=torch.float64), *constants, **kwargs)
    if size * nothing.numel() > LARGEST:
        raise UnsupportedError(f"{func} is too large to be bounded")
    if func.overloadpacket.__name__.endswith("convolution"):
        constants[1] = None  # the bias
        tensor.recording.convolves = True
    columns = func(torch.eye(size, dtype=torch.float64).reshape(size, *shape), *constants, **kwargs)
    structure, rows = np.nonzero(columns.reshape(size, -1).numpy())
    weights = columns.reshape(size, -1).numpy()[structure, rows]
    places, out = tensor.places.reshape(samples, size).numpy(), nothing.numel()
    made = tensor.recording.sums(
        (rows + out * np.arange(samples)[:, None]).reshape(-1),
        places[:, structure].reshape(-1),
        np.tile(weights, samples),
        np.tile(nothing.reshape(-1).numpy(), samples),
    )
    return tensor.new(made, (samples, *nothing.shape[1:]))


@handles("native_batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm")
def _batch_norm(
    func: Any, tensor: Traced, weight: Any, bias: Any, mean: Any, variance: Any, *options: Any
) -> tuple[Any, ...]:
    """After training: of what it learned. The mean that is taken off is rounded, too."""
    training, eps = (False, options[-1]) if len(options) == 2 else (options[0], options[-1])
    if training or mean is None:
        raise UnsupportedError("a batch normalisation that looks at the batch has no bound")
    shape = (1, -1, *(1,) * (tensor.ndim - 2))
    scale = (1.0 if weight is None else numbers(weight)) / np.sqrt(numbers(variance) + eps)
    taken, added = numbers(mean) * scale, 0.0 if bias is None else numbers(bias)
    full = tuple(tensor.shape)
    factors = np.broadcast_to(scale.reshape(shape), full).reshape(-1)
    moved = np.broadcast_to((added - taken).reshape(shape), full).reshape(-1)
    bulk = np.broadcast_to((SHARED * (np.abs(taken) + np.abs(added))).reshape(shape), full).reshape(-1)
    size = tensor.numel()
    made = tensor.recording.sums(np.arange(size), tensor.flat, factors, moved, bulk=bulk)
    empty = torch.empty(0)
    return tensor.new(made, full), empty, empty
