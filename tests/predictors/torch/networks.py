"""Small networks of all kinds that read six features: what a bound must be able to follow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

FEATURES = 6


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.last = nn.Linear(8, 1)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = x + torch.relu(self.second(x))
        x = x + self.third(x).relu_()
        return self.last(x)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cells = kind(2, 4, batch_first=True)
        self.last = nn.Linear(8 if self.cells.bidirectional else 4, 1)

    def forward(self, x):
        return self.last(self.cells(x.view(-1, 3, 2))[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(2, 4), nn.Linear(12, 1)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        z = self.first(x.view(-1, 3, 2))
        return self.last(self.attention(z, z, z)[0].flatten(1))


class Written(nn.Module):
    """Views, slices, joins, in-place changes and arithmetic, by hand."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 4), nn.Linear(3, 4)

    def forward(self, x):
        left, right = x.chunk(2, dim=1)
        both = torch.stack([self.one(left), self.two(right)], dim=1).transpose(1, 2)
        both = both.contiguous()
        both[:, 0] *= 2.0
        room = torch.zeros(len(x), 4, dtype=x.dtype)
        room[:, 1:3] = both[:, :2].amax(dim=2)
        room += both.mean(dim=2).clamp(-0.5, 0.5)
        room = torch.addcmul(room, room, x[:, :4]) / (1.0 + x.var(dim=1, keepdim=True))
        return torch.cat([room.abs(), torch.maximum(left, right) / 3.0 - 1.0], dim=1).sum(dim=1, keepdim=True)


def activated(*activation: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), *activation, nn.Linear(8, 2))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "flatten": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid()
    ),
    "conv1d": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 3, 3, padding=1), nn.ReLU(), nn.AvgPool1d(2), nn.Flatten(),
        nn.Linear(9, 1),
    ),
    "conv2d": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 3, 2, padding=1), nn.BatchNorm2d(3), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6, 1),
    ),
    "max_pool1d": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.MaxPool1d(2, padding=1), nn.Flatten(), nn.Linear(4, 1)
    ),
    "transposed": lambda: nn.Sequential(
        nn.Unflatten(1, (2, 3)), nn.ConvTranspose1d(2, 2, 2), nn.AdaptiveAvgPool1d(2), nn.Flatten(),
        nn.Linear(4, 1),
    ),
    "batch_norm": lambda: activated(nn.BatchNorm1d(8), nn.GELU()),
    "residual": Residual,
    "written": Written,
    **{
        kind.__name__: lambda kind=kind: activated(kind())
        for kind in (
            nn.LeakyReLU, nn.PReLU, nn.GELU, nn.SiLU, nn.Softplus, nn.ELU, nn.SELU, nn.CELU, nn.Tanh,
            nn.Sigmoid, nn.ReLU6, nn.Hardtanh, nn.Hardsigmoid, nn.Hardswish, nn.Mish, nn.Softsign,
            nn.LogSigmoid, nn.Softshrink, nn.Tanhshrink,
        )
    },
    "gelu_tanh": lambda: activated(nn.GELU("tanh")),
    "glu": lambda: nn.Sequential(nn.Linear(6, 8), nn.GLU(), nn.Linear(4, 2)),
    "softmax": lambda: nn.Sequential(activated(nn.ReLU()), nn.Linear(2, 3), nn.Softmax(dim=1)),
    "softmax_of_two": lambda: nn.Sequential(activated(nn.ReLU()), nn.Softmax(dim=1), nn.Linear(2, 1)),
    "log_softmax": lambda: nn.Sequential(activated(nn.ReLU()), nn.Linear(2, 3), nn.LogSoftmax(dim=1)),
    "layer_norm": lambda: activated(nn.LayerNorm(8), nn.ReLU()),
    "group_norm": lambda: activated(nn.GroupNorm(2, 8), nn.ReLU()),
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(nn.GRU),
    "rnn": lambda: Recurrent(nn.RNN),
    "lstm_both_ways": lambda: Recurrent(partial(nn.LSTM, num_layers=2, bidirectional=True, bias=False)),
    "attention": Attention,
    "transformer": lambda: nn.Sequential(
        nn.Unflatten(1, (3, 2)), nn.Linear(2, 4), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
        nn.Flatten(), nn.Linear(12, 1),
    ),
}  # fmt: skip


def network(name: str, seed: int = 0) -> nn.Module:
    """One of them, in float32, with weights and statistics of its own, after training."""
    torch.manual_seed(seed)
    module = NETWORKS[name]().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
        for buffer in module.buffers():
            if buffer.is_floating_point():
                buffer.add_(torch.rand_like(buffer))
    return module
