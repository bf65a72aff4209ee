"""A network from its weights alone: a chain of dense layers with one activation between them.

A state dict says how large each layer is and not what stands between them; with the name of the activation
that is all there is to know of the commonest network, and no code of its owner is needed to build it.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import nn

from dovetail.core.errors import PredictorError
from dovetail.core.suggestion import did_you_mean
from dovetail.predictors.files import load_weights

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU,
    "gelu": nn.GELU, "silu": nn.SiLU, "softplus": nn.Softplus,
}  # fmt: skip
"""With torch's own settings: what is left where nothing is said."""


def require_activation(name: str) -> None:
    """Refuse a name that is not known."""
    if name not in ACTIVATIONS:
        meant = did_you_mean(name, ACTIVATIONS) or f"; choose {', '.join(ACTIVATIONS)}."
        raise PredictorError(f"activation is {name!r}{meant}")


def dense_network(file: Path, activation: str) -> nn.Module:
    """The chain of dense layers whose weights a `.pt`, `.pth` or `.safetensors` file holds."""
    weights = load_weights(file)
    layers: list[nn.Module] = []
    for name in _in_order(file, [key for key in weights if key.endswith("weight")]):
        weight, bias = weights[name], weights.get(f"{name.removesuffix('weight')}bias")
        before = layers[-1].out_features if layers else None
        if weight.ndim != 2 or before not in (None, weight.shape[1]):
            raise _no_chain(file, f"{name} has the shape {tuple(weight.shape)}")
        layers += [ACTIVATIONS[activation]()] if layers else []
        layers.append(_dense(file, name, weight, bias))
    network = nn.Sequential(*layers)
    if not layers or len(network.state_dict()) != len(weights):
        raise _no_chain(file, f"it has {', '.join([*weights][:6]) or 'nothing'}")
    return network.eval()


def _dense(file: Path, name: str, weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    try:
        layer.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
    except RuntimeError as reason:
        raise _no_chain(file, f"{name}: {str(reason).splitlines()[-1].strip()}") from reason
    return layer


def _in_order(file: Path, names: list[str]) -> list[str]:
    """The weights from the first layer to the last: a state dict keeps them so, `.safetensors` sorts them by
    their names, of which only numbers tell the order."""
    if file.suffix.lower() != ".safetensors" or len(names) < 2:
        return names
    places = {name: tuple(map(int, re.findall(r"\d+", name))) for name in names}
    if len(set(places.values())) < len(names):
        raise _no_chain(file, f"{', '.join(names[:6])}: no numbers say which layer comes first")
    return sorted(names, key=places.__getitem__)


def _no_chain(file: Path, why: str) -> PredictorError:
    return PredictorError(
        f"{file} holds no chain of dense layers ({why}); export the network to ONNX, which says what it is."
    )
