"""The smooth functions that there are lines for, by name."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dovetail.bounds.planes.curve import Curve

ROOT = math.sqrt(2.0 / math.pi)
CUBIC = 0.044715
"""Of the tanh form of GELU."""


def _right_or_left(z: Tensor, piece: int) -> Tensor:
    """Of two points as far from 0, that in the convex piece left of it or that in the concave right."""
    return -z if piece == 0 else z


def _sigmoid_slope(z: Tensor) -> Tensor:
    return torch.sigmoid(z) * torch.sigmoid(-z)


def _where_sigmoid(slope: Tensor, piece: int) -> Tensor:
    root = torch.sqrt((1.0 - 4.0 * slope).clamp(min=0.0))  # p (1 - p) = slope
    return _right_or_left((2.0 * torch.log1p(root) - torch.log(4.0 * slope)).clamp(min=0.0), piece)


def _where_tanh(slope: Tensor, piece: int) -> Tensor:
    return _right_or_left(torch.atanh(torch.sqrt((1.0 - slope).clamp(min=0.0))), piece)


def _erf_slope(z: Tensor) -> Tensor:
    return (2.0 / math.sqrt(math.pi)) * torch.exp(-z * z)


def _where_erf(slope: Tensor, piece: int) -> Tensor:
    return _right_or_left(torch.sqrt(-torch.log(slope * (math.sqrt(math.pi) / 2.0)).clamp(max=0.0)), piece)


def _where_atan(slope: Tensor, piece: int) -> Tensor:
    return _right_or_left(torch.sqrt((1.0 / slope - 1.0).clamp(min=0.0)), piece)


def _normal(z: Tensor) -> Tensor:
    """The share of the normal distribution left of z; small ones as exactly as large ones."""
    share: Tensor = torch.special.erfc(-z / math.sqrt(2.0))
    return 0.5 * share


def _gelu(z: Tensor) -> Tensor:
    return z * _normal(z)


def _gelu_slope(z: Tensor) -> Tensor:
    density = torch.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return _normal(z) + z * density


def _tanh_gelu(z: Tensor) -> Tensor:
    return z * torch.sigmoid(2.0 * ROOT * (z + CUBIC * z * z * z))


def _tanh_gelu_slope(z: Tensor) -> Tensor:
    inner = 2.0 * ROOT * (z + CUBIC * z * z * z)
    rise = 2.0 * ROOT * (1.0 + 3.0 * CUBIC * z * z)
    return torch.sigmoid(inner) + z * _sigmoid_slope(inner) * rise


def _silu(z: Tensor) -> Tensor:
    return z * torch.sigmoid(z)


def _silu_slope(z: Tensor) -> Tensor:
    return torch.sigmoid(z) + z * _sigmoid_slope(z)


def _softplus(z: Tensor) -> Tensor:
    return torch.logaddexp(z, torch.zeros_like(z))


def _elu(z: Tensor) -> Tensor:
    return torch.where(z > 0.0, z, torch.expm1(z))


CURVES: dict[str, Curve] = {
    "sigmoid": Curve(torch.sigmoid, _sigmoid_slope, (0.0,), stationary=_where_sigmoid, least=0.0, most=1.0),
    "tanh": Curve(
        torch.tanh, lambda z: 1.0 / torch.cosh(z) ** 2, (0.0,), stationary=_where_tanh, least=-1.0, most=1.0
    ),
    "erf": Curve(torch.erf, _erf_slope, (0.0,), stationary=_where_erf, least=-1.0, most=1.0),
    "atan": Curve(
        torch.atan, lambda z: 1.0 / (1.0 + z * z), (0.0,), stationary=_where_atan, least=-0.5 * math.pi,
        most=0.5 * math.pi,
    ),
    "gelu": Curve(
        _gelu, _gelu_slope, (-math.sqrt(2.0), math.sqrt(2.0)), convex_first=False,
        lowest_at=-0.7517915246935645,
    ),
    "gelu_tanh": Curve(
        _tanh_gelu, _tanh_gelu_slope, (-1.4185040087908284, 1.4185040087908284), convex_first=False,
        lowest_at=-0.7524614220710163,
    ),
    "silu": Curve(
        _silu, _silu_slope, (-2.3993572805154677, 2.3993572805154677), convex_first=False,
        lowest_at=-1.2784645427610738,
    ),
    "softplus": Curve(
        _softplus, torch.sigmoid, stationary=lambda s, _: torch.log(s) - torch.log1p(-s), least=0.0
    ),
    "elu": Curve(
        _elu, lambda z: torch.exp(z.clamp(max=0.0)), stationary=lambda s, _: torch.log(s).clamp(max=0.0),
        least=-1.0,
    ),
    "exp": Curve(torch.exp, torch.exp, stationary=lambda s, _: torch.log(s), least=0.0),
    "square": Curve(
        torch.square, lambda z: 2.0 * z, stationary=lambda s, _: 0.5 * s, lowest_at=0.0, least=0.0
    ),
    "log": Curve(
        torch.log, torch.reciprocal, convex_first=False, stationary=lambda s, _: 1.0 / s, above=0.0
    ),
    "sqrt": Curve(
        torch.sqrt, lambda z: 0.5 / torch.sqrt(z), convex_first=False,
        stationary=lambda s, _: 0.25 / (s * s), least=0.0, above=0.0,
    ),
    "reciprocal": Curve(
        torch.reciprocal, lambda z: -1.0 / (z * z), stationary=lambda s, _: torch.rsqrt(-s), above=0.0
    ),
    "rsqrt": Curve(
        torch.rsqrt, lambda z: -0.5 * z**-1.5, stationary=lambda s, _: (-2.0 * s) ** (-2.0 / 3.0),
        least=0.0, above=0.0,
    ),
}  # fmt: skip
"""reciprocal, sqrt, rsqrt and log of what is not known to be positive: nothing is known."""
