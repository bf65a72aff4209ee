"""A tensor without numbers that records the operations of a module.

The data of such a tensor are indices of numbers in a `Recording`. Code that needs a value (a branch, `item`,
numpy) is refused, so the record holds for every input. Views are views of the indices, and an in-place
change applies to all views, as with numbers. Operations that only move numbers are carried out on the
indices.

Operations that are not affine: functions of single numbers, maxima, softmax, normalisation, attention.
Piecewise linear functions are written with ReLUs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.program import LARGEST, NOTHING, Recording
from dovetail.predictors.torch.layers import DispatchMode


class Traced(Tensor):
    """Places of numbers, in the shape of a tensor."""

    places: Tensor
    """int64, on the CPU."""
    recording: Recording

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Same result as without the option. Its presence keeps modules from calling attention as a single
        operation."""
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @staticmethod
    def __new__(
        cls, places: Tensor, recording: Recording, dtype: torch.dtype, device: torch.device
    ) -> Traced:
        """A view with the strides of its places."""
        made: Traced = torch.Tensor._make_wrapper_subclass(
            cls, places.shape, strides=places.stride(), dtype=dtype, device=device
        )
        made.places, made.recording = places, recording
        recording.formats.add(str(dtype).removeprefix("torch."))
        return made

    def __init__(
        self, places: Tensor, recording: Recording, dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"Traced{tuple(self.shape)}"

    def like(self, places: Tensor, dtype: torch.dtype | None = None) -> Traced:
        """Other numbers of the same recording."""
        return Traced(places, self.recording, dtype or self.dtype, self.device)

    def new(self, places: IntArray, shape: Any) -> Traced:  # type: ignore[override]
        """New numbers in a given shape."""
        return self.like(torch.from_numpy(places).reshape(tuple(shape)))

    @property
    def flat(self) -> IntArray:
        """The places in one dimension."""
        return np.asarray(self.places.reshape(-1).numpy())

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Every torch operation passes through here."""
        name = func.overloadpacket.__name__
        rule = HANDLERS.get(name)
        if rule is not None:
            return rule(func, *args, **(kwargs or {}))
        if name.endswith("_") and name[:-1] in HANDLERS and name[:-1] not in VIEW_OPERATIONS:
            return changed_in_place(args[0], HANDLERS[name[:-1]](func, *args, **(kwargs or {})))
        return _taken_apart(func, args, kwargs or {})


class Constants(DispatchMode):
    """Inside, new tensors are traced: values that depend on the inputs may be written into them."""

    def __init__(self, like: Traced) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._like = like

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Every torch operation passes through here."""
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name == "empty" and made.is_floating_point():
            made.zero_()
        return (
            as_traced(made, self._like)
            if name in NEW_TENSOR_OPERATIONS and made.is_floating_point()
            else made
        )


NEW_TENSOR_OPERATIONS = ("zeros", "ones", "full", "empty")
"""Operations that make new tensors without inputs."""

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}
"""The recording function of each torch operation, by name; in-place variants have the same name without the
underscore."""


VIEW_OPERATIONS = (
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "unsqueeze", "squeeze", "expand",
    "slice", "select", "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk",
    "unbind", "alias", "detach", "clone", "as_strided", "flip", "index_select", "diagonal", "narrow",
    "unfold", "repeat", "roll", "gather", "_reshape_alias", "contiguous", "movedim", "lift_fresh", "rot90",
    "pixel_shuffle", "channel_shuffle",
)  # fmt: skip
"""Operations that only move numbers; their in-place forms act differently."""


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for operations of torch; it is called with the operation and its arguments."""

    def enter(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return enter


def changed_in_place(tensor: Any, made: Traced) -> Any:
    """The tensor with other numbers, for all its views."""
    if not isinstance(tensor, Traced):
        raise UnsupportedError("a value that depends on the inputs is written into a constant tensor")
    tensor.places.copy_(made.places)
    return tensor


def numbers(tensor: Tensor) -> FloatArray:
    """A constant tensor in float64."""
    if isinstance(tensor, Traced):
        raise UnsupportedError("an operation needs a constant, but its argument depends on the inputs")
    return np.asarray(tensor.detach().to(dtype=torch.float64, device="cpu").numpy())


def as_traced(value: Any, like: Traced) -> Traced:
    """Constants as numbers of the recording."""
    if isinstance(value, Traced):
        return value
    tensor = value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
    made = like.new(like.recording.constants(numbers(tensor).reshape(-1)), tensor.shape)
    return made.like(made.places, tensor.dtype if isinstance(value, Tensor) else None)


def _taken_apart(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch decomposes these operations itself; importing its table of further ones takes seconds."""
    made = func.decompose(*args, **kwargs)
    if made is NotImplemented:
        raise UnsupportedError(f"there is no bound for the operation {func} of torch")
    return made


@handles(*VIEW_OPERATIONS)
def _moved(func: Any, tensor: Traced, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(tensor, Traced):
        raise UnsupportedError(f"{func} selects entries by indices that depend on the inputs")
    made = func(tensor.places, *args, **kwargs)
    return tensor.like(made) if isinstance(made, Tensor) else [tensor.like(one) for one in made]


@handles("transpose_", "t_", "squeeze_", "unsqueeze_")
def _change_view(func: Any, tensor: Traced, *args: Any) -> Any:
    """From now on the tensor is another view of the same places."""
    tensor.places = getattr(tensor.places, func.overloadpacket.__name__.rstrip("_"))(*args)
    with torch._C._DisableTorchDispatch():
        func(tensor, *args)
    return tensor


@handles("index")
def _index(func: Any, tensor: Traced, indices: Any) -> Any:
    if not isinstance(tensor, Traced) or any(isinstance(one, Traced) for one in indices):
        raise UnsupportedError(f"{func} selects entries by indices that depend on the inputs")
    return tensor.like(func(tensor.places, [None if i is None else i.cpu() for i in indices]))


@handles("cat", "stack")
def _joined(func: Any, tensors: Any, dim: int = 0) -> Any:
    first = next(one for one in tensors if isinstance(one, Traced))
    return first.like(func([as_traced(one, first).places for one in tensors], dim))


@handles("_to_copy")
def _cast(func: Any, tensor: Traced, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """To another float format: the numbers are rounded, like a product with 1."""
    if dtype is not None and not dtype.is_floating_point:
        raise UnsupportedError(f"the module casts values that depend on its inputs to {dtype}")
    if dtype in (None, tensor.dtype):
        return tensor.like(tensor.places.clone(memory_format=kwargs.get("memory_format")))
    return HANDLERS["mul"](func, tensor.like(tensor.places.clone(), dtype), 1.0)


@handles("copy_")
def _copied(func: Any, tensor: Any, source: Any, non_blocking: bool = False) -> Any:
    like = source if isinstance(source, Traced) else tensor
    if isinstance(source, Traced) and source.dtype != tensor.dtype:
        source = HANDLERS["mul"](func, source, 1.0)  # the result is rounded
    return changed_in_place(tensor, like.like(as_traced(source, like).places.expand(tensor.shape)))


@handles("fill", "zero")
def _filled(func: Any, tensor: Traced, value: Any = 0.0) -> Any:
    return tensor.like(as_traced(value, tensor).places.expand(tensor.shape))


@handles("constant_pad_nd")
def _padded(func: Any, tensor: Traced, pad: Any, value: float = 0.0) -> Any:
    filler = NOTHING if value == -math.inf else int(as_traced(value, tensor).places)
    return tensor.like(func(tensor.places, pad, filler))


@handles(
    "zeros_like", "ones_like", "new_zeros", "new_ones", "new_full", "full_like", "new_empty", "empty_like"
)
def _constant(func: Any, tensor: Traced, *args: Any, **kwargs: Any) -> Any:
    kwargs.pop("memory_format", None)
    dtype, device = kwargs.pop("dtype", None) or tensor.dtype, kwargs.pop("device", None) or tensor.device
    made = func(torch.zeros_like(tensor.places, dtype=dtype, device=device), *args, **kwargs)
    made = made.zero_() if func.overloadpacket.__name__ in ("new_empty", "empty_like") else made
    return as_traced(made, tensor) if made.is_floating_point() else made


@handles("where")
def _where(func: Any, mask: Any, left: Any, right: Any) -> Any:
    if isinstance(mask, Traced):
        raise UnsupportedError("the condition of torch.where depends on the inputs")
    like = left if isinstance(left, Traced) else right
    if not isinstance(like, Traced):
        raise UnsupportedError("the condition of torch.where depends on the inputs")
    return like.like(torch.where(mask.cpu(), as_traced(left, like).places, as_traced(right, like).places))


@handles("masked_fill")
def _masked_fill(func: Any, tensor: Any, mask: Any, value: Any) -> Any:
    return _where(func, mask, value, tensor)


@handles("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "item")
def _refuse_branching(func: Any, *args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError("its code branches on a computed value and may take another path for other inputs")


SHARED_ROUNDING = 4.0
"""Number of operations in a scale that is itself a root and a quotient of rounded numbers."""


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
    """The traced tensor, or a constant."""
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
    """Operations that are affine in one tensor, sample by sample: the result for each unit vector is a column
    of the matrix."""
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
    """Batch normalisation after training, with the learned statistics. The subtracted mean is rounded,
    too."""
    training, eps = (False, options[-1]) if len(options) == 2 else (options[0], options[-1])
    if training or mean is None:
        raise UnsupportedError("a batch normalisation over the batch itself has no bound")
    shape = (1, -1, *(1,) * (tensor.ndim - 2))
    scale = (1.0 if weight is None else numbers(weight)) / np.sqrt(numbers(variance) + eps)
    taken, added = numbers(mean) * scale, 0.0 if bias is None else numbers(bias)
    full = tuple(tensor.shape)
    factors = np.broadcast_to(scale.reshape(shape), full).reshape(-1)
    moved = np.broadcast_to((added - taken).reshape(shape), full).reshape(-1)
    bulk = np.broadcast_to((SHARED_ROUNDING * (np.abs(taken) + np.abs(added))).reshape(shape), full).reshape(
        -1
    )
    size = tensor.numel()
    made = tensor.recording.sums(np.arange(size), tensor.flat, factors, moved, bulk=bulk)
    empty = torch.empty(0)
    return tensor.new(made, full), empty, empty


def function(kind: str, tensor: Traced) -> Traced:
    """An entry of `networks/functions.FUNCTIONS`."""
    return tensor.new(tensor.recording.functions(kind, tensor.flat.copy()), tensor.shape)


_NAMES = {known.operation: name for name, known in FUNCTIONS.items()}


@handles(*_NAMES)
def _elementwise(func: Any, tensor: Traced) -> Traced:
    """torch's operations with one tensor and no options; operations with options follow below."""
    return function(_NAMES[func.overloadpacket.__name__.rstrip("_")], tensor)


@handles("softplus")
def _softplus(func: Any, tensor: Traced, beta: float = 1.0, threshold: float = 20.0) -> Traced:
    if beta <= 0.0 or threshold < 20.0:
        raise UnsupportedError(f"softplus with beta {beta} and threshold {threshold} has no bound")
    return scaled(function("softplus", scaled(tensor, beta)), 1.0 / beta)


def scaled(tensor: Traced, factor: float) -> Traced:
    """A tensor times a number."""
    return tensor if factor == 1.0 else weighted([(tensor, factor)])


@handles("prelu", "_prelu_kernel")
def _prelu(func: Any, tensor: Traced, weight: Any) -> Traced:
    slope = weight.detach().double().cpu()
    if slope.numel() > 1 and slope.ndim == 1:
        slope = slope.reshape(1, -1, *(1,) * (tensor.ndim - 2))
    return weighted([(tensor, slope.numpy()), (function("relu", tensor), 1.0 - slope.numpy())])


@handles("elu")
def _elu(
    func: Any, tensor: Traced, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> Traced:
    """scale times x, or alpha (exp(input_scale x) - 1) left of 0."""
    if alpha == input_scale == 1.0:
        return scaled(function("elu", tensor), scale)
    left = function("relu", weighted([(tensor, -1.0)]))
    power = function("exp", weighted([(left, -input_scale)]))
    return weighted([(function("relu", tensor), scale), (power, scale * alpha)], -scale * alpha)


@handles("clamp", "hardtanh", "clip")
def _clamp(func: Any, tensor: Traced, low: Any = None, high: Any = None) -> Traced:
    if func.overloadpacket.__name__.startswith("hardtanh"):
        low, high = -1.0 if low is None else low, 1.0 if high is None else high
    return clamped(tensor, low, high)


@handles("threshold")
def _threshold(func: Any, tensor: Traced, threshold: float, value: float) -> Traced:
    if threshold != value:
        raise UnsupportedError("nn.Threshold jumps, and has no bound")
    return clamped(tensor, threshold, None)


def clamped(tensor: Traced, low: Any, high: Any) -> Traced:
    """Clamp between two numbers, one of which may be missing."""
    if isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor):
        raise UnsupportedError("a clamp between tensors has no bound")
    if low is not None:
        tensor = weighted([(_relu(tensor, 1.0, -low), 1.0)], low)
    if high is not None:
        tensor = weighted([(_relu(tensor, -1.0, high), -1.0)], high)
    return tensor


def _relu(tensor: Traced, sign: float = 1.0, shift: float = 0.0) -> Traced:
    return function("relu", weighted([(tensor, sign)], shift))


HANDLERS.update(
    {
        "gelu": lambda func, x, approximate="none": function(
            "gelu" if approximate == "none" else "gelu_tanh", x
        ),
        "leaky_relu": lambda func, x, slope=0.01: weighted([(x, slope), (function("relu", x), 1.0 - slope)]),
        "celu": lambda func, x, alpha=1.0: scaled(function("elu", scaled(x, 1.0 / alpha)), alpha),
        "expm1": lambda func, x: weighted([(function("exp", x), 1.0)], -1.0),
        "softshrink": lambda func, x, reach=0.5: weighted(
            [(_relu(x, 1.0, -reach), 1.0), (_relu(x, -1.0, -reach), -1.0)]
        ),
        "abs": lambda func, x: weighted(
            [(function("relu", x), 1.0), (_relu(x, -1.0), 1.0)]
        ),  # known to be >= 0
        "clamp_min": lambda func, x, low: clamped(x, low, None),
        "clamp_max": lambda func, x, high: clamped(x, None, high),
        "hardsigmoid": lambda func, x: clamped(weighted([(x, 1.0 / 6.0)], 0.5), 0.0, 1.0),
        "hardswish": lambda func, x: x * clamped(weighted([(x, 1.0 / 6.0)], 0.5), 0.0, 1.0),
        "log_sigmoid_forward": lambda func, x: (
            scaled(function("softplus", scaled(x, -1.0)), -1.0),
            torch.empty(0),
        ),
        "addcmul": lambda func, x, left, right, value=1.0: x + value * (left * right),
        "glu": lambda func, x, dim=-1: (lambda left, right: left * torch.sigmoid(right))(*x.chunk(2, dim)),
        "_fused_sdp_choice": lambda func, *args, **kwargs: 0,
    }
)


@handles("div")
def _div(func: Any, left: Any, right: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is not None:
        raise UnsupportedError("a division that rounds to whole numbers has no bound")
    if isinstance(right, Traced):
        return left * function("reciprocal", right)
    return weighted([(left, 1.0 / (numbers(right) if isinstance(right, torch.Tensor) else right))])


@handles("pow")
def _pow(func: Any, tensor: Any, power: Any) -> Any:
    if isinstance(power, torch.Tensor) and not isinstance(power, Traced) and power.numel() == 1:
        power = power.item()
    if not isinstance(tensor, Traced) or isinstance(power, torch.Tensor):
        raise UnsupportedError("a power with an exponent that is no number has no bound")
    kinds = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if power in kinds:
        return function(kinds[power], tensor)
    if power in (3, 4):
        square = function("square", tensor)
        return {3: tensor * square, 4: function("square", square)}[int(power)]
    raise UnsupportedError(f"the power {power} has no bound")


LSTM = 2
"""oneDNN's number for this kind of layer; torch uses no other kind."""


@handles("maximum", "minimum")
def _maximum(func: Any, left: Any, right: Any) -> Any:
    like = left if isinstance(left, Traced) else right
    rivals = as_traced(left, like).places, as_traced(right, like).places
    table = torch.stack(torch.broadcast_tensors(*rivals), dim=-1)  # type: ignore[no-untyped-call]
    sign = -1.0 if func.overloadpacket.__name__.startswith("min") else 1.0
    return _largest(like.like(table), sign)


def _largest(table: Traced, sign: float = 1.0) -> Traced:
    """The maximum along the last dimension; the minimum for a sign of -1."""
    table = scaled(table, sign)
    rows = table.places.reshape(-1, table.shape[-1]).numpy().copy()
    return scaled(table.new(table.recording.maxima(rows), table.shape[:-1]), sign)


@handles("amax", "amin")
def _amax(func: Any, tensor: Traced, dim: Any = (), keepdim: bool = False) -> Any:
    given = [dim] if isinstance(dim, int) else dim
    dims = sorted(d % tensor.ndim for d in given) or list(range(tensor.ndim))
    kept = [d for d in range(tensor.ndim) if d not in dims]
    table = tensor.places.permute(*kept, *dims).reshape(*(tensor.shape[d] for d in kept), -1)
    made = _largest(tensor.like(table), -1.0 if func.overloadpacket.__name__ == "amin" else 1.0)
    shape = [1 if d in dims else tensor.shape[d] for d in range(tensor.ndim)]
    return made.reshape(shape) if keepdim else made


@handles("max_pool2d_with_indices")
def _max_pool(
    func: Any,
    tensor: Traced,
    size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """Windows of places; place 0 stands for the padding outside the image, so all places are moved by one."""
    if ceil_mode:
        raise UnsupportedError("max pooling with ceil_mode has no bound")
    window, step, pad, apart = (_pair(one) for one in (size, stride or size, padding, dilation))
    height, width = tensor.shape[-2:]
    images = tensor.places.reshape(-1, 1, height, width).to(torch.float64) - NOTHING
    windows = torch.nn.functional.unfold(images, window, dilation=apart, padding=pad, stride=step)
    rows = windows.transpose(1, 2).reshape(-1, math.prod(window)).to(torch.int64).numpy() + NOTHING
    high = (height + 2 * pad[0] - apart[0] * (window[0] - 1) - 1) // step[0] + 1
    shape = (*tensor.shape[:-2], high, windows.shape[2] // high)
    return tensor.new(tensor.recording.maxima(rows), shape), torch.zeros(shape, dtype=torch.int64)


def _pair(value: Any) -> tuple[int, int]:
    values = [value] if isinstance(value, int) else list(value)
    return values[0], values[-1]


@handles("_softmax", "_log_softmax", "_safe_softmax", "softmax", "log_softmax")
def _softmax(func: Any, tensor: Traced, dim: int, *args: Any, **kwargs: Any) -> Any:
    last = tensor.places.movedim(dim, -1)
    logarithm = "log" in func.overloadpacket.__name__
    rows = last.reshape(-1, last.shape[-1]).numpy().copy()
    made = tensor.new(tensor.recording.shares(rows, logarithm=logarithm), last.shape)
    return tensor.like(made.places.movedim(-1, dim))


@handles("native_layer_norm")
def _layer_norm(func: Any, tensor: Traced, shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, ...]:
    rows = tensor.places.reshape(-1, math.prod(shape)).numpy().copy()
    made: Any = tensor.new(tensor.recording.normalised(rows, eps), tensor.shape)
    if weight is not None:
        made = made * weight.detach()
    if bias is not None:
        made = made + bias.detach()
    return made, torch.empty(0), torch.empty(0)


@handles("native_group_norm")
def _group_norm(
    func: Any,
    tensor: Traced,
    weight: Any,
    bias: Any,
    samples: int,
    channels: int,
    size: int,
    groups: int,
    eps: float,
) -> tuple[Any, ...]:
    rows = tensor.reshape(samples, groups, -1)
    made, mean, rate = _layer_norm(None, rows, rows.shape[2:], None, None, eps)
    made = made.reshape(tensor.shape)
    shape = (1, channels, *(1,) * (tensor.ndim - 2))
    made = made if weight is None else made * weight.detach().reshape(shape)
    return made if bias is None else made + bias.detach().reshape(shape), mean, rate


@handles("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math")
def _attention(func: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs.get("dropout_p") or kwargs.get("is_causal") or kwargs.get("attn_mask") is not None:
        raise UnsupportedError("attention with a mask has no bound")
    scale = kwargs.get("scale") or 1.0 / math.sqrt(query.shape[-1])
    shape = query.shape
    q, k, v = (one.reshape(-1, *one.shape[-2:]) for one in (query, key, value))
    shares: Any = torch.softmax(torch.bmm(q, k.transpose(1, 2)) * scale, dim=-1)
    return torch.bmm(shares, v).reshape(*shape[:-1], value.shape[-1]), torch.empty(0)


@handles("var", "std")
def _var(
    func: Any, tensor: Traced, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Any:
    dims = list(range(tensor.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    count = math.prod(tensor.shape[d] for d in dims)
    centred: Any = tensor - tensor.mean(dims, keepdim=True)
    total: Any = function("square", centred).sum(dims, keepdim=keepdim)
    made = scaled(total, 1.0 / (count - (1.0 if correction is None else correction)))
    return made if func.overloadpacket.__name__ == "var" else function("sqrt", made)


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
    """One layer in one direction; without biases the places of the weights are repeated."""
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
