"""A network from its weights alone: a chain of dense layers with one activation between them.

A state dict says how large each layer is and not what stands between them; with the name of the activation
that is all there is to know of the commonest network, and no code of its owner is needed to build it.
"""

from __future__ import annotations

from pathlib import Path

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
    size = None
    for name, weight in weights.items():
        if not name.endswith("weight"):
            continue
        bias = f"{name.removesuffix('weight')}bias"
        if weight.ndim != 2 or size not in (None, weight.shape[1]):
            raise _no_chain(file, f"{name} has the shape {tuple(weight.shape)}")
        size = weight.shape[0]
        layers += [ACTIVATIONS[activation]()] if layers else []
        layers.append(nn.Linear(weight.shape[1], weight.shape[0], bias=bias in weights, dtype=weight.dtype))
    network = nn.Sequential(*layers)
    if not layers or len(network.state_dict()) != len(weights):
        raise _no_chain(file, f"it has {', '.join([*weights][:6]) or 'nothing'}")
    try:
        network.load_state_dict(dict(zip(network.state_dict(), weights.values(), strict=True)))
    except RuntimeError as reason:
        raise _no_chain(file, str(reason).splitlines()[-1].strip()) from reason
    return network.eval()


def _no_chain(file: Path, why: str) -> PredictorError:
    return PredictorError(
        f"{file} holds no chain of dense layers ({why}); export the network to ONNX, which says what it is."
    )
