"""Modules that compute more than their layers: nothing is proved of them that they do not keep.

Each variant lets a plain network answer something else at one input, which no handful of probes will see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.utils import parametrize

import dovetail as dt
from tests.conftest import FULL
from tests.differential.deployed import TABLES, WRITTEN, Case, faults, grid_problem, network

PARTS, TOTAL = (20, 600) if FULL else (2, 6)
"""Every variant at least once."""


@dataclass(frozen=True)
class Hooked(Case):
    """A case whose variant may need something to stand while it is looked at."""

    around: Callable[[], object] | None = None
    note: str = ""


class Spot:
    """Where a network answers something else, and what: its first layer's values move there, or its input."""

    def __init__(self, at: np.ndarray, dtype: torch.dtype) -> None:
        self.at = torch.as_tensor(at, dtype=dtype)

    def here(self, x: torch.Tensor) -> torch.Tensor:
        return (x == self.at).all(dim=1, keepdim=True)

    def bump(self, x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return torch.where(self.here(x), 40.0 - 90.0 * (values < 0), values)

    def moved(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(self.here(x), 30.0 * x + 9.0, x)


def forward_hook(net: nn.Sequential, spot: Spot) -> nn.Module:
    net.register_forward_hook(lambda module, args, values: spot.bump(args[0], values))
    return net


def hook_with_kwargs(net: nn.Sequential, spot: Spot) -> nn.Module:
    net.register_forward_hook(lambda module, args, kw, values: spot.bump(args[0], values), with_kwargs=True)
    return net


def hook_inside(net: nn.Sequential, spot: Spot) -> nn.Module:
    net[0].register_forward_hook(lambda module, args, values: spot.bump(args[0], values))
    return net


def quiet_hook(net: nn.Sequential, spot: Spot) -> nn.Module:
    """Nothing of it shows in the graph of any other input."""

    def hook(module: nn.Module, args: tuple[torch.Tensor], values: torch.Tensor) -> torch.Tensor | None:
        there = np.all(args[0].detach().numpy() == spot.at.numpy(), axis=1)
        return spot.bump(args[0], values) if there.any() and len(there) != 3 else None

    net.register_forward_hook(hook)
    return net


def pre_hook(net: nn.Sequential, spot: Spot) -> nn.Module:
    net[0].register_forward_pre_hook(lambda module, args: (spot.moved(args[0]),))
    return net


def pre_hook_outside(net: nn.Sequential, spot: Spot) -> nn.Module:
    net.register_forward_pre_hook(lambda module, args: (spot.moved(args[0]),))
    return nn.Sequential(net)


def patched_forward(net: nn.Sequential, spot: Spot) -> nn.Module:
    plain = net[0].forward
    net[0].forward = lambda x: spot.bump(x, plain(x))
    return net


def patched_sequence(net: nn.Sequential, spot: Spot) -> nn.Module:
    plain = net.forward
    net.forward = lambda x: spot.bump(x, plain(x))
    return net


def patched_call(net: nn.Sequential, spot: Spot) -> nn.Module:
    plain = net[0]._call_impl
    net[0]._call_impl = lambda x: spot.bump(x, plain(x))
    return net


def linear_subclass(net: nn.Sequential, spot: Spot) -> nn.Module:
    class Linear(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return spot.bump(x, super().forward(x))

    net[0].__class__ = Linear
    return net


def subclass_that_calls(net: nn.Sequential, spot: Spot) -> nn.Module:
    class Linear(nn.Linear):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return spot.bump(x, super().__call__(x))

    net[0].__class__ = Linear
    return net


def first_identity(net: nn.Sequential, spot: Spot) -> nn.Module:
    class Identity(nn.Identity):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return spot.moved(x)

    return nn.Sequential(Identity(), *net)


def first_softplus(net: nn.Sequential, spot: Spot) -> nn.Module:
    class Softplus(nn.Softplus):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return spot.moved(x)

    return nn.Sequential(Softplus(), *net)


def sequence_that_iterates(net: nn.Sequential, spot: Spot) -> nn.Module:
    class Sequence(nn.Sequential):
        def __iter__(self) -> Iterator[nn.Module]:
            yield first_identity(nn.Sequential(), spot)
            yield from super().__iter__()

    return Sequence(*net)


def sequence_that_calls(net: nn.Sequential, spot: Spot) -> nn.Module:
    class Sequence(nn.Sequential):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return spot.bump(x, super().__call__(x))

    return Sequence(*net)


def parametrised(net: nn.Sequential, spot: Spot) -> nn.Module:
    """The weights are other ones than those that were set: what a reader of the originals would see."""

    class Twice(nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return 2.0 * weight

    parametrize.register_parametrization(net[0], "weight", Twice())
    return net


def on_all_modules(net: nn.Sequential, spot: Spot) -> Callable[[], object]:
    def hook(module: nn.Module, args: tuple[torch.Tensor], values: torch.Tensor) -> torch.Tensor | None:
        return spot.bump(args[0], values) if module is net else None

    return lambda: register_module_forward_hook(hook)


def before_all_modules(net: nn.Sequential, spot: Spot) -> Callable[[], object]:
    def hook(module: nn.Module, args: tuple[torch.Tensor]) -> tuple[torch.Tensor] | None:
        return (spot.moved(args[0]),) if module is net else None

    return lambda: register_module_forward_pre_hook(hook)


class _Patch:
    """nn.Linear.forward replaced, until it is removed."""

    def __init__(self, first: nn.Module, spot: Spot) -> None:
        self._plain = plain = nn.Linear.forward

        def forward(self: nn.Linear, x: torch.Tensor) -> torch.Tensor:
            return spot.bump(x, plain(self, x)) if self is first else plain(self, x)

        nn.Linear.forward = forward

    def remove(self) -> None:
        nn.Linear.forward = self._plain


def patched_class(net: nn.Sequential, spot: Spot) -> Callable[[], object]:
    return lambda: _Patch(net[0], spot)


STAYING = (
    forward_hook, hook_with_kwargs, hook_inside, quiet_hook, pre_hook, pre_hook_outside, patched_forward,
    patched_sequence, patched_call, linear_subclass, subclass_that_calls, first_identity, first_softplus,
    sequence_that_iterates, sequence_that_calls, parametrised,
)  # fmt: skip
PASSING = (on_all_modules, before_all_modules, patched_class)
VARIANTS = (*STAYING, *PASSING)


def make(seed: int) -> Hooked:
    """Instance number `seed`; the variants take turns."""
    rng = np.random.default_rng(seed)
    variant = VARIANTS[seed % len(VARIANTS)]
    dtype = torch.float32 if rng.random() < 0.5 else torch.float64
    problem = grid_problem(rng, 1, classes=False)
    mip, features = problem.mip, problem.mip.n_columns - 1
    net = network(rng, features, 1, dtype)
    spot = Spot(rng.integers(mip.lower[:features], mip.upper[:features] + 1), dtype)
    around = variant(net, spot) if variant in PASSING else None
    module = net if variant in PASSING else variant(net, spot)
    case = Hooked(problem, module, dtype, around=around, note=variant.__name__)
    with standing(case):
        problem.add_predictor(module, np.arange(features), [features])
    return case


@contextmanager
def standing(case: Hooked) -> Iterator[None]:
    """While the case is looked at, what it needs stands."""
    handle = case.around() if case.around is not None else None
    try:
        yield
    finally:
        if handle is not None:
            handle.remove()


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_nothing_is_proved_that_the_module_does_not_keep(part):
    said = []
    for seed in range(part, TOTAL, PARTS):
        case = make(seed)
        with standing(case):
            method = WRITTEN if seed % 4 else TABLES
            result = dt.solve(case.problem, method, log=False)
            said += faults(case, result, f"instance {seed} ({case.note})")
    assert said == []


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_the_module_is_not_written_out(variant):
    case = make(VARIANTS.index(variant))
    (block,) = case.problem.blocks
    with standing(case), pytest.raises(dt.UnsupportedError, match="cannot be written out"):
        block.predictor.layers()
