"""Random networks of many kinds, as torch's exporters write them."""

from __future__ import annotations

import io
import logging
import warnings

import numpy as np
import onnx
import torch
from torch import nn

ACTIVATIONS = [
    nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.SELU, nn.CELU, nn.Softplus, nn.LeakyReLU,
    nn.PReLU, nn.Mish, nn.Hardswish, nn.Hardsigmoid, nn.Softsign, nn.ReLU6, nn.Hardtanh, nn.LogSigmoid,
    nn.Tanhshrink, lambda: nn.GELU(approximate="tanh"), lambda: nn.Softmax(dim=1),
]  # fmt: skip
IN_FLOAT32 = (nn.SELU, nn.CELU, nn.LeakyReLU, nn.Hardswish, nn.Hardsigmoid, ACTIVATIONS[-2])
"""Activations that ONNX, its exporter or the oracle compute partly in float32: not for float64 networks."""


class Residual(nn.Module):
    def __init__(self, width, act):
        super().__init__()
        self.into, self.inner, self.out = nn.Linear(5, width), nn.Linear(width, width), nn.Linear(width, 2)
        self.norm, self.act = nn.LayerNorm(width), act()

    def forward(self, x):
        h = self.into(x)
        return self.out(h + self.act(self.inner(self.norm(h))))


class Recurrent(nn.Module):
    def __init__(self, kind, width, bidirectional, layers):
        super().__init__()
        self.net = kind(3, width, layers, batch_first=True, bidirectional=bidirectional)
        self.out = nn.Linear(width * (2 if bidirectional else 1), 2)

    def forward(self, x):
        return self.out(self.net(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.embed, self.out = nn.Linear(3, 4 * heads), nn.Linear(4 * heads, 2)
        self.attend = nn.MultiheadAttention(4 * heads, heads, batch_first=True)

    def forward(self, x):
        h = self.embed(x)
        return self.out((h + self.attend(h, h, h, need_weights=False)[0]).mean(dim=1))


class Transformer(nn.Module):
    def __init__(self, heads, activation, norm_first):
        super().__init__()
        self.embed, self.out = nn.Linear(3, 4 * heads), nn.Linear(4 * heads * 4, 2)
        self.layer = nn.TransformerEncoderLayer(
            4 * heads, heads, 8, activation=activation, batch_first=True, norm_first=norm_first
        )

    def forward(self, x):
        return self.out(self.layer(self.embed(x)).flatten(1))


class Causal(nn.Module):
    """Attention with a mask of minus infinity."""

    def __init__(self, heads):
        super().__init__()
        self.embed, self.out, self.heads = nn.Linear(3, 12 * heads), nn.Linear(16 * heads, 2), heads

    def forward(self, x):
        q, k, v = self.embed(x).unflatten(2, (3, self.heads, 4)).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(1))


def random_network(seed, dtype=torch.float32):
    """A network with random weights, and the shape of one of its samples."""
    draw = np.random.default_rng(seed)
    torch.manual_seed(seed)
    acts = [act for act in ACTIVATIONS if dtype == torch.float32 or act not in IN_FLOAT32]
    act = acts[int(draw.integers(len(acts)))]
    width = int(draw.integers(4, 13))
    kind = seed % 10
    if kind == 0:
        parts = [nn.Linear(5, width), act()]
        for _ in range(int(draw.integers(3))):
            parts += [nn.Linear(width, width), acts[int(draw.integers(len(acts)))]()]
        net, shape = nn.Sequential(*parts, nn.Linear(width, 2)), (5,)
    elif kind == 1:
        net, shape = Residual(width, act), (5,)
    elif kind == 2:
        pad, dilation = int(draw.integers(3)), int(draw.integers(1, 3))
        pool = [nn.AvgPool1d(2), nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(1)][int(draw.integers(3))]
        net = nn.Sequential(nn.Conv1d(2, width, 3, padding=pad, dilation=dilation), act(), pool, nn.Flatten())
        shape = (2, 9)
    elif kind == 3:
        net = nn.Sequential(
            nn.Conv2d(2, 4, 3, int(draw.integers(1, 3)), 1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 2, groups=2, padding="same"), nn.InstanceNorm2d(4, affine=True), act(),
            nn.Flatten(),
        )  # fmt: skip
        shape = (2, 8, 8)
    elif kind == 4:
        net, shape = Recurrent(nn.LSTM, width, False, int(draw.integers(1, 3))), (4, 3)
    elif kind == 5:
        net, shape = Recurrent(nn.GRU, width, False, int(draw.integers(1, 3))), (4, 3)
    elif kind == 6:
        cell = [nn.LSTM, nn.GRU, nn.RNN][int(draw.integers(3))]
        net, shape = Recurrent(cell, width, True, int(draw.integers(1, 3))), (4, 3)
    elif kind == 7:
        heads = int(draw.integers(1, 4))
        net, shape = (Attention(heads) if draw.integers(2) else Causal(heads)), (4, 3)
    elif kind == 8:
        how = ["relu", "gelu"][int(draw.integers(2))]
        net, shape = Transformer(int(draw.integers(1, 4)), how, bool(draw.integers(2))), (4, 3)
    else:
        norm = [nn.BatchNorm1d(8), nn.LayerNorm(8), nn.GroupNorm(2, 8)][int(draw.integers(3))]
        net = nn.Sequential(nn.Linear(5, 8), norm, act(), nn.Dropout(0.4), nn.Linear(8, 2))
        shape = (5,)
    for part in net.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
        if hasattr(part, "eps"):
            part.eps = 2.0**-17  # about 1e-5, and the same number in float32, as ONNX keeps it
    return net.eval().to(dtype), shape


def exported(net, shape, dtype, *, dynamo=False, batch=2, fixed=False):
    """The network as torch's exporter writes it."""
    net, sample = net.to(dtype), torch.randn(batch, *shape, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            if dynamo:
                open_axis = None if fixed else ({0: torch.export.Dim("n")},)
                program = torch.onnx.export(
                    net, (sample,), dynamo=True, dynamic_shapes=open_axis, verbose=False
                )
                return program.model_proto
            content = io.BytesIO()
            axes = None if fixed else {"x": {0: "n"}, "y": {0: "n"}}
            torch.onnx.export(
                net,
                (sample,),
                content,
                dynamo=False,
                input_names=["x"],
                output_names=["y"],
                dynamic_axes=axes,
            )
            return onnx.load_from_string(content.getvalue())
        finally:
            logging.disable(logging.NOTSET)
