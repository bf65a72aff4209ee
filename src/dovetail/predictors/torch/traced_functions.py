"""Functions of single numbers; what is made of straight pieces is written with ReLUs."""

from __future__ import annotations

from typing import Any

import torch

from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import FUNCTIONS
from dovetail.predictors.torch.traced import Traced, handles, numbers
from dovetail.predictors.torch.traced_affine import weighted


def function(kind: str, tensor: Traced) -> Traced:
    """One of `networks/functions.FUNCTIONS`."""
    return tensor.new(tensor.recording.functions(kind, tensor.flat.copy()), tensor.shape)


_NAMES = {known.operation: name for name, known in FUNCTIONS.items()}


@handles(*_NAMES)
def _plain(func: Any, tensor: Traced) -> Traced:
    """torch's operations of one tensor and nothing else; those with options of their own follow below."""
    return function(_NAMES[func.overloadpacket.__name__.rstrip("_")], tensor)


@handles("gelu")
def _gelu(func: Any, tensor: Traced, approximate: str = "none") -> Traced:
    return function("gelu" if approximate == "none" else "gelu_tanh", tensor)


@handles("softplus")
def _softplus(func: Any, tensor: Traced, beta: float = 1.0, threshold: float = 20.0) -> Traced:
    if beta <= 0.0 or threshold < 20.0:
        raise UnsupportedError(f"softplus with beta {beta} and threshold {threshold} has no bound")
    return scaled(function("softplus", scaled(tensor, beta)), 1.0 / beta)


def scaled(tensor: Traced, factor: float) -> Traced:
    """Times a number."""
    return tensor if factor == 1.0 else weighted([(tensor, factor)])


@handles("leaky_relu")
def _leaky_relu(func: Any, tensor: Traced, slope: float = 0.01) -> Traced:
    return weighted([(tensor, slope), (function("relu", tensor), 1.0 - slope)])


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


@handles("celu")
def _celu(func: Any, tensor: Traced, alpha: float = 1.0) -> Traced:
    return scaled(function("elu", scaled(tensor, 1.0 / alpha)), alpha)


@handles("expm1")
def _expm1(func: Any, tensor: Traced) -> Traced:
    return weighted([(function("exp", tensor), 1.0)], -1.0)


@handles("softshrink")
def _softshrink(func: Any, tensor: Traced, reach: float = 0.5) -> Traced:
    right, left = (function("relu", weighted([(tensor, sign)], -reach)) for sign in (1.0, -1.0))
    return weighted([(right, 1.0), (left, -1.0)])


@handles("abs")
def _abs(func: Any, tensor: Traced) -> Traced:
    right, left = function("relu", tensor), function("relu", scaled(tensor, -1.0))
    return weighted([(right, 1.0), (left, 1.0)])  # which is seen to be no less than 0


@handles("clamp", "hardtanh", "clip")
def _clamp(func: Any, tensor: Traced, low: Any = None, high: Any = None) -> Traced:
    if func.overloadpacket.__name__.startswith("hardtanh"):
        low, high = -1.0 if low is None else low, 1.0 if high is None else high
    return clamped(tensor, low, high)


def clamped(tensor: Traced, low: Any, high: Any) -> Traced:
    """Between two numbers, of which one may be missing."""
    if isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor):
        raise UnsupportedError("a clamp between tensors has no bound")
    if low is not None:
        tensor = weighted([(function("relu", weighted([(tensor, 1.0)], -low)), 1.0)], low)
    if high is not None:
        tensor = weighted([(function("relu", weighted([(tensor, -1.0)], high)), -1.0)], high)
    return tensor


@handles("clamp_min")
def _clamp_min(func: Any, tensor: Traced, low: Any) -> Traced:
    return clamped(tensor, low, None)


@handles("clamp_max")
def _clamp_max(func: Any, tensor: Traced, high: Any) -> Traced:
    return clamped(tensor, None, high)


@handles("threshold")
def _threshold(func: Any, tensor: Traced, threshold: float, value: float) -> Traced:
    if threshold != value:
        raise UnsupportedError("nn.Threshold jumps, and has no bound")
    return clamped(tensor, threshold, None)


@handles("hardsigmoid")
def _hardsigmoid(func: Any, tensor: Traced) -> Traced:
    return clamped(weighted([(tensor, 1.0 / 6.0)], 0.5), 0.0, 1.0)


@handles("hardswish")
def _hardswish(func: Any, tensor: Traced) -> Any:
    return tensor * _hardsigmoid(None, tensor)


@handles("log_sigmoid_forward")
def _log_sigmoid(func: Any, tensor: Traced) -> tuple[Any, ...]:
    return scaled(function("softplus", scaled(tensor, -1.0)), -1.0), torch.empty(0)


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


@handles("addcmul")
def _addcmul(func: Any, tensor: Any, left: Any, right: Any, value: float = 1.0) -> Any:
    return tensor + value * (left * right)
