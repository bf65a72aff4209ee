"""What every sub-solver for the network step has to pass."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dovetail.core.predictor import as_predictor
from dovetail.run.budget import Budget
from dovetail.run.network_step import AugmentedTerms, NetworkAnswer, NetworkBlock, NnSolver, Rows
from dovetail.testing.problems import FEATURES, KINDS, Parabola, linear_net, make

SAMPLES = 6


class SubSolverSuite:
    """Network steps on every kind of network: points stay within bounds, the objective decreases, and known
    minima are found.

    Derive a class and set the sub-solver, and if its default options are not accurate enough a more accurate
    version::

        from dovetail.testing import SubSolverSuite

        class TestMySubSolver(SubSolverSuite):
            solver = MySubSolver()
            accurate = MySubSolver(steps=1000)
    """

    solver: NnSolver
    """The tested sub-solver with its default options."""
    accurate: ClassVar[NnSolver | None] = None
    """The same sub-solver with options under which a known minimum is found to 2e-3."""
    separates_samples: bool = True
    """False if samples influence each other, for example by a common step length."""

    def solved(self, block: NetworkBlock, terms: AugmentedTerms, start: Tensor) -> NetworkAnswer:
        """The answer to a step that the sub-solver has to take."""
        assert self.solver.refuses(block) is None
        return self.solver.solve(block, terms, start, Budget())

    def test_finds_a_minimum_known_in_closed_form(self) -> None:
        """A linear network: each input ends at x - (lambda + nu w) / W, cut to the box."""
        w = torch.tensor([1.0, -2.0, 0.5, 3.0, 0.0], dtype=torch.float64)
        block, terms = network_block(linear_net(w.numpy())), augmented_terms()
        answer = (self.accurate or self.solver).solve(block, terms, _zeros(), Budget())
        exact = (terms.x - (terms.multiplier + w) / 2.0).clamp(-1.0, 1.0)
        assert torch.allclose(answer.u, exact, atol=2e-3)
        assert torch.allclose(answer.value, step_value(block, terms, answer.u))

    def test_finds_a_minimum_with_stiff_outputs(self) -> None:
        """A parabola drawn to a value: the first-order condition holds, by finite differences."""
        block = network_block(Parabola([0.2, -0.1, 0.4, 0.0, 0.3]))
        terms = augmented_terms(stiffness=3.0, weight=4.0)
        answer = (self.accurate or self.solver).solve(block, terms, terms.x.clone(), Budget())
        step = 1e-6
        for j in range(FEATURES):
            move = _zeros()
            move[:, j] = step
            ahead = torch.minimum(answer.u + move, block.upper)
            behind = torch.maximum(answer.u - move, block.lower)
            inner = (answer.u[:, j] > -0.99) & (answer.u[:, j] < 0.99)
            slope = (step_value(block, terms, ahead) - step_value(block, terms, behind)) / (2 * step)
            assert torch.all(slope[inner].abs() < 0.05)

    @pytest.mark.parametrize("kind", KINDS)
    def test_goes_down_and_stays_inside_on_every_network(self, kind: str) -> None:
        """The reported values of the point are correct, too."""
        block, terms, start = network_block(make(kind)), augmented_terms(), _zeros()
        answer = self.solved(block, terms, start)
        assert torch.all(answer.u >= block.lower)
        assert torch.all(answer.u <= block.upper)
        assert torch.all(answer.value < step_value(block, terms, start) - 1e-4)
        assert torch.allclose(answer.value, step_value(block, terms, answer.u))
        with torch.no_grad():
            assert torch.allclose(answer.values, block.values(answer.u))

    def test_fixed_inputs_do_not_move(self) -> None:
        """Single inputs, and whole samples."""
        block = network_block(make("mlp"))
        block.lower[:, 2] = block.upper[:, 2] = 0.25
        block.lower[1, :] = block.upper[1, :] = -0.5
        answer = self.solved(block, augmented_terms(), _zeros())
        assert torch.all(answer.u[:, 2][torch.arange(SAMPLES) != 1] == 0.25)
        assert torch.all(answer.u[1] == -0.5)

    def test_boxes_may_be_infinite(self) -> None:
        """Nothing is scaled by an infinite width."""
        block, terms = (
            network_block(Parabola([0.0] * 5), lower=-torch.inf, upper=torch.inf),
            augmented_terms(),
        )
        answer = self.solved(block, terms, terms.x.clone())
        assert torch.isfinite(answer.u).all()
        assert torch.all(answer.value <= step_value(block, terms, terms.x) + 1e-12)

    @pytest.mark.parametrize("classes", [1, 3])
    def test_class_surrogates_are_pushed_the_wanted_way(self, classes: int) -> None:
        """A price on a class makes it more probable."""
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, classes))
        block = network_block(net, classifies=True, outputs=classes)
        terms = augmented_terms(outputs=classes, weight=0.05)
        price = torch.zeros(SAMPLES, classes, dtype=torch.float64)
        price[:, 0] = -1.0
        terms = replace(terms, multiplier=0 * terms.multiplier, y=0 * terms.y, output_multiplier=price)
        with torch.no_grad():
            before = block.outputs(block.values(terms.x))[:, 0]
        answer = self.solved(block, terms, terms.x.clone())
        assert torch.all(block.outputs(answer.values)[:, 0] > before)

    @pytest.mark.parametrize("kind", ["mlp", "gelu-layernorm", "lstm"])
    def test_rows_on_the_output_are_met(self, kind: str) -> None:
        """Where the objective wants the output up, against its limit."""
        net = make(kind)
        with torch.no_grad():
            values = network_block(net).values(augmented_terms(samples=40, seed=9).x)
        limit = float(values.quantile(0.3))
        block = network_block(net, rows=output_rows(-torch.inf, limit))
        terms = augmented_terms(price=-1.0)
        answer = self.solved(block, terms, terms.x.clone())
        assert torch.all(answer.violation <= 1e-6), answer.note
        assert torch.all(answer.values <= limit + 1e-6)
        assert torch.all(answer.u.abs() <= 1.0)

    def test_equalities_are_met_or_refused_by_name(self) -> None:
        """The name of the row that cannot be taken is in the reason."""
        net, terms = make("mlp"), augmented_terms()
        with torch.no_grad():
            level = float(network_block(net).values(augmented_terms(samples=40, seed=9).x).median())
        block = network_block(net, rows=output_rows(level, level))
        reason = self.solver.refuses(block)
        if reason is not None:
            assert "limit" in reason
            return
        answer = self.solver.solve(block, terms, terms.x.clone(), Budget())
        assert torch.all((answer.values - level).abs() < 1e-6)

    def test_rows_that_cannot_be_met_are_reported_not_hidden(self) -> None:
        """The loop continues with the remaining violation and has to know its size."""
        block, terms = network_block(make("mlp"), rows=output_rows(1e6, torch.inf)), augmented_terms()
        assert torch.all(self.solved(block, terms, terms.x.clone()).violation > 1e5)

    def test_samples_do_not_influence_each_other(self) -> None:
        """A sample alone ends where it ends among others."""
        if not self.separates_samples:
            return
        block, terms = network_block(make("mlp")), augmented_terms()
        first = torch.arange(SAMPLES) == 0
        together = self.solved(block, terms, _zeros()).u[0]
        alone = self.solved(block.take(first), terms.take(first), _zeros()[first]).u[0]
        assert torch.allclose(together, alone, atol=1e-12)

    def test_scaling_the_inputs_changes_nothing(self) -> None:
        """The same problem in other units, with scales to match: the same steps in those units."""
        factor = torch.tensor([1.0, 1e3, 1e-3, 50.0, 0.2], dtype=torch.float64)
        net = make("mlp", dtype=torch.float64)
        plain, terms = network_block(net), augmented_terms()
        other = replace(
            network_block(_Rescaled(net, factor)),
            lower=plain.lower * factor,
            upper=plain.upper * factor,
            scale=plain.scale * factor,
        )
        other_terms = replace(
            terms,
            x=terms.x * factor,
            multiplier=terms.multiplier / factor,
            weight=terms.weight / factor**2,
        )
        a = self.solved(plain, terms, _zeros()).u
        b = self.solved(other, other_terms, _zeros()).u / factor
        assert torch.allclose(a, b, atol=1e-4)


class _Rescaled(nn.Module):
    factor: Tensor

    def __init__(self, inner: nn.Module, factor: Tensor) -> None:
        super().__init__()
        self.inner = inner
        self.register_buffer("factor", factor)

    def forward(self, x: Tensor) -> Tensor:
        scaled: Tensor = self.inner(x / self.factor)
        return scaled


def _zeros() -> Tensor:
    return torch.zeros(SAMPLES, FEATURES, dtype=torch.float64)


def network_block(
    net: nn.Module,
    *,
    samples: int = SAMPLES,
    features: int = FEATURES,
    outputs: int = 1,
    rows: Rows | None = None,
    classifies: bool = False,
    lower: float = -1.0,
    upper: float = 1.0,
) -> NetworkBlock:
    """Samples of one network, each input between `lower` and `upper`."""
    predictor = as_predictor(net)
    probe = np.random.default_rng(0).uniform(-1, 1, (16, features))
    forward = predictor.snapshot("cpu")
    spread = forward(torch.tensor(probe)).std(dim=0).detach()
    shape = (samples, features)
    return NetworkBlock(
        name="net",
        forward=forward,
        smooth=predictor.describe(probe).smooth,
        classifies=classifies,
        probability=False,
        threshold=0.0,
        spread=spread if not classifies else spread.mean().expand(outputs),
        lower=torch.full(shape, lower, dtype=torch.float64),
        upper=torch.full(shape, upper, dtype=torch.float64),
        scale=torch.ones(shape, dtype=torch.float64),
        rows=rows,
    )


def augmented_terms(
    *,
    samples: int = SAMPLES,
    features: int = FEATURES,
    outputs: int = 1,
    seed: int = 0,
    weight: float = 2.0,
    price: float = 1.0,
    stiffness: float = 0.0,
) -> AugmentedTerms:
    """Points to be drawn to at random, with a price on outputs and a weight on how far they are off."""
    generator = torch.Generator().manual_seed(seed)

    def draw(columns: int) -> Tensor:
        return torch.rand((samples, columns), generator=generator, dtype=torch.float64) * 2 - 1

    return AugmentedTerms(
        x=draw(features),
        multiplier=0.3 * draw(features),
        weight=torch.full((samples, features), weight, dtype=torch.float64),
        y=draw(outputs),
        output_multiplier=torch.full((samples, outputs), price, dtype=torch.float64),
        output_weight=torch.full((samples, outputs), stiffness, dtype=torch.float64),
    )


def output_rows(lower: float, upper: float, *, samples: int = SAMPLES, features: int = FEATURES) -> Rows:
    """One row for each sample, named "limit", that holds its first output between two values."""
    return Rows(
        torch.zeros(samples, 1, features, dtype=torch.float64),
        torch.ones(samples, 1, 1, dtype=torch.float64),
        torch.full((samples, 1), lower, dtype=torch.float64),
        torch.full((samples, 1), upper, dtype=torch.float64),
        (("limit",),) * samples,
    )


def step_value(block: NetworkBlock, terms: AugmentedTerms, u: Tensor) -> Tensor:
    """(n,) the step's objective at `u`, evaluated here and not by a sub-solver."""
    with torch.no_grad():
        return terms.value(u, block.outputs(block.values(u)))
