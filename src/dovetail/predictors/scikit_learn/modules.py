"""The torch modules of estimators; branches of plain layers become plain layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.linear import as_linear
from dovetail.predictors.function import ByNumpy
from dovetail.predictors.torch.traced import Traced


def dense(weight: Any, bias: Any) -> nn.Linear:
    """v -> weight v + bias."""
    weights = np.atleast_2d(np.asarray(weight, dtype=np.float64))
    return as_linear(weights, np.broadcast_to(bias, len(weights)))


def scale(by: Any) -> nn.Linear:
    """Multiply each value by its own factor."""
    return dense(np.diag(by), 0.0)


def shift(by: Any) -> nn.Linear:
    """Add its own constant to each value."""
    return dense(np.eye(len(by)), by)


def picked(columns: Any, features: int) -> nn.Linear:
    """Some of the values, in some order."""
    return dense(np.eye(features)[np.asarray(columns, dtype=np.int64)].reshape(-1, features), 0.0)


def clip(low: float, high: float, width: int) -> Iterator[nn.Module]:
    """min(max(v, low), high) by ReLUs, so that it can be written out."""
    yield shift(np.full(width, -low))
    yield nn.ReLU()
    yield dense(-np.eye(width), high - low)
    yield nn.ReLU()
    yield dense(-np.eye(width), high)


class Pointwise(nn.Module):
    """A function of (n, d) values that torch can differentiate."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._function = function

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        return self._function(values)


def row_shares(values: Tensor) -> Tensor:
    """Each value divided by the sum of its row."""
    return values / values.sum(dim=1, keepdim=True)


class Steps(nn.Module):
    """A piecewise constant function of rows, without slope and bound."""

    def __init__(self, function: Callable[[FloatArray], FloatArray]) -> None:
        super().__init__()
        self._function = function

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        if isinstance(values, Traced):
            raise UnsupportedError("a function with jumps has no bound")
        made: Tensor = ByNumpy.apply(values.double(), self._function, None).to(values.dtype)  # type: ignore[no-untyped-call]
        return made


Branch = tuple[Any, list[nn.Module]]
"""The columns that a branch reads, and its modules."""


def joined(branches: Sequence[Branch], features: int) -> Iterator[nn.Module]:
    """Branches side by side; linear layers and ReLUs remain layers, so that they can be written out."""
    kept = [(np.asarray(columns, dtype=np.int64), modules) for columns, modules in branches]
    if all(isinstance(module, (nn.Linear, nn.ReLU)) for _, modules in kept for module in modules):
        yield picked(np.concatenate([columns for columns, _ in kept]), features)
        yield from _side_by_side([_Sections(columns.size, modules) for columns, modules in kept])
    else:
        yield Joined([(columns, nn.Sequential(*modules)) for columns, modules in kept])


class Joined(nn.Module):
    """Branches that read some columns each, with their values side by side."""

    def __init__(self, branches: Sequence[tuple[IntArray, nn.Module]]) -> None:
        super().__init__()
        self._branches = nn.ModuleList([branch for _, branch in branches])
        for place, (columns, _) in enumerate(branches):
            self.register_buffer(f"_columns{place}", torch.tensor(columns, dtype=torch.int64))

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        columns = [getattr(self, f"_columns{place}") for place in range(len(self._branches))]
        parts = [branch(values[:, at]) for branch, at in zip(self._branches, columns, strict=True)]
        return torch.cat(parts, dim=1)


class _Sections:
    """A branch divided at its ReLUs into linear layers."""

    def __init__(self, width: int, modules: Sequence[nn.Module]) -> None:
        self.sections: list[list[nn.Linear]] = [[]]
        for module in modules:
            if isinstance(module, nn.Linear):
                self.sections[-1].append(module)
            else:
                self.sections.append([])
        self.width = width

    def with_relu_count(self, bends: int) -> None:
        """The branch with this number of ReLUs: v is relu(v) - relu(-v), exactly."""
        while len(self.sections) <= bends:
            layers = [layer for section in self.sections for layer in section]
            eye = np.eye(layers[-1].out_features if layers else self.width)
            self.sections[-1].append(dense(np.concatenate([eye, -eye]), 0.0))
            self.sections.append([dense(np.concatenate([eye, -eye], axis=1), 0.0)])


def _side_by_side(branches: Sequence[_Sections]) -> Iterator[nn.Module]:
    """Branches side by side, all with as many ReLUs as the longest."""
    bends = max(len(branch.sections) for branch in branches) - 1
    for branch in branches:
        branch.with_relu_count(bends)
    widths = [branch.width for branch in branches]
    for number in range(bends + 1):
        if number:
            yield nn.ReLU()
        yield from _linear_layers([branch.sections[number] for branch in branches], widths)


def _linear_layers(sections: Sequence[list[nn.Linear]], widths: list[int]) -> Iterator[nn.Module]:
    """The linear layers, padded to the longest branch, so that no matrices are multiplied; shorter branches
    pass their values on."""
    for depth in range(max(map(len, sections))):
        layers = [
            section[depth] if depth < len(section) else shift(np.zeros(width))
            for width, section in zip(widths, sections, strict=True)
        ]
        weights = [layer.weight.detach() for layer in layers]
        bias = torch.cat([layer.bias.detach() for layer in layers])
        yield dense(torch.block_diag(*weights).numpy(), bias.numpy())  # type: ignore[no-untyped-call]
        widths[:] = [layer.out_features for layer in layers]
