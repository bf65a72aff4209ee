"""Every sub-solver on every kind of network: stays inside, goes down, ends where it should."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.nn.passes import gradient, values_only
from dovetail.run.budget import Budget
from dovetail.run.network_step import AugmentedTerms, NetworkBlock, Rows
from tests.conformance import nets
from tests.small import Parabola, linear_net

SOLVERS = {
    "adam": dt.ProjectedGradient(steps=300, lr=0.05),
    "gradient": dt.ProjectedGradient(steps=300, lr=0.02, rule="gradient", decay=False),
    "newton-cg": dt.LogBarrier(newton_steps=15, smallest_mu=1e-9),
    "l-bfgs-b": dt.LogBarrier(newton_steps=15, smallest_mu=1e-9, variant="l-bfgs-b"),
}
SETTINGS = {
    "adam": dt.ProjectedGradient(),
    "paper": dt.ProjectedGradient.paper(),
    "gradient": dt.ProjectedGradient(rule="gradient", lr=0.005),
    "newton-cg": dt.LogBarrier(),
    "l-bfgs-b": dt.LogBarrier(variant="l-bfgs-b"),
}
N = 6


def block_of(
    net, features=nets.FEATURES, rows=None, classifies=False, samples=N, outputs=1, lower=-1.0, upper=1.0
):
    predictor = as_predictor(net)
    probe = np.random.default_rng(0).uniform(-1, 1, (16, features))
    description = predictor.describe(probe)
    shape = (samples, features)
    forward = predictor.snapshot("cpu")
    spread = forward(torch.tensor(probe)).std(dim=0).detach()
    return NetworkBlock(
        name="net",
        forward=forward,
        smooth=description.smooth,
        classifies=classifies,
        probability=False,
        threshold=0.0,
        spread=spread if not classifies else spread.mean().expand(outputs),
        lower=torch.full(shape, lower, dtype=torch.float64),
        upper=torch.full(shape, upper, dtype=torch.float64),
        scale=torch.ones(shape, dtype=torch.float64),
        rows=rows,
    )


def pull_of(samples=N, features=nets.FEATURES, outputs=1, seed=0, weight=2.0, price=1.0, stiffness=0.0):
    generator = torch.Generator().manual_seed(seed)

    def draw(columns):
        return torch.rand((samples, columns), generator=generator, dtype=torch.float64) * 2 - 1

    return AugmentedTerms(
        x=draw(features),
        multiplier=0.3 * draw(features),
        weight=torch.full((samples, features), weight, dtype=torch.float64),
        y=draw(outputs),
        output_multiplier=torch.full((samples, outputs), price, dtype=torch.float64),
        output_weight=torch.full((samples, outputs), stiffness, dtype=torch.float64),
    )


def objective(block, pull, u):
    return pull.value(u, block.outputs(values_only(block, u)))


@pytest.mark.parametrize("name", SOLVERS)
def test_finds_a_minimum_known_in_closed_form(name):
    """A linear network: each input ends at x - (lambda + nu w) / W, cut to the box."""
    w = torch.tensor([1.0, -2.0, 0.5, 3.0, 0.0], dtype=torch.float64)
    block, pull = block_of(linear_net(w.numpy())), pull_of()
    answer = SOLVERS[name].solve(block, pull, torch.zeros(N, 5, dtype=torch.float64), Budget())
    exact = (pull.x - (pull.multiplier + w) / 2.0).clamp(-1.0, 1.0)
    assert torch.allclose(answer.u, exact, atol=2e-3)
    assert torch.allclose(answer.value, objective(block, pull, answer.u))


@pytest.mark.parametrize("name", SOLVERS)
def test_finds_a_minimum_with_stiff_outputs(name):
    """A parabola drawn to a value: the first-order condition holds, by finite differences."""
    net = Parabola([0.2, -0.1, 0.4, 0.0, 0.3])
    block, pull = block_of(net), pull_of(stiffness=3.0, weight=4.0)
    answer = SOLVERS[name].solve(block, pull, pull.x.clone(), Budget())
    step = 1e-6
    for j in range(5):
        move = torch.zeros(N, 5, dtype=torch.float64)
        move[:, j] = step
        ahead = torch.minimum(answer.u + move, block.upper)
        behind = torch.maximum(answer.u - move, block.lower)
        inner = (answer.u[:, j] > -0.99) & (answer.u[:, j] < 0.99)
        slope = (objective(block, pull, ahead) - objective(block, pull, behind)) / (2 * step)
        assert torch.all(slope[inner].abs() < 0.05)


@pytest.mark.parametrize("kind", nets.KINDS)
@pytest.mark.parametrize("name", SETTINGS)
def test_goes_down_and_stays_inside_on_every_network(name, kind):
    block, pull = block_of(nets.make(kind)), pull_of()
    start = torch.zeros(N, 5, dtype=torch.float64)
    answer = SETTINGS[name].solve(block, pull, start, Budget())
    assert torch.all(answer.u >= block.lower)
    assert torch.all(answer.u <= block.upper)
    assert torch.all(answer.value <= objective(block, pull, start) + 1e-9)
    assert torch.all(answer.value < objective(block, pull, start) - 1e-4)
    assert torch.allclose(answer.values, values_only(block, answer.u))


@pytest.mark.parametrize("name", SETTINGS)
def test_fixed_inputs_do_not_move(name):
    block = block_of(nets.make("mlp"))
    block.lower[:, 2] = block.upper[:, 2] = 0.25
    block.lower[1, :] = block.upper[1, :] = -0.5
    answer = SETTINGS[name].solve(block, pull_of(), torch.zeros(N, 5, dtype=torch.float64), Budget())
    assert torch.all(answer.u[:, 2][torch.arange(N) != 1] == 0.25)
    assert torch.all(answer.u[1] == -0.5)


@pytest.mark.parametrize("name", SETTINGS)
def test_boxes_may_be_infinite(name):
    block, pull = block_of(Parabola([0.0] * 5), lower=-torch.inf, upper=torch.inf), pull_of()
    answer = SETTINGS[name].solve(block, pull, pull.x.clone(), Budget())
    assert torch.isfinite(answer.u).all()
    assert torch.all(answer.value <= objective(block, pull, pull.x) + 1e-12)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("classes", [1, 3])
def test_class_surrogates_are_pushed_the_wanted_way(name, classes):
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, classes))
    block = block_of(net, classifies=True, outputs=classes)
    pull = pull_of(outputs=classes, weight=0.05)
    price = torch.zeros(N, classes, dtype=torch.float64)
    price[:, 0] = -1.0
    pull = AugmentedTerms(pull.x, 0 * pull.multiplier, pull.weight, 0 * pull.y, price, pull.output_weight)
    start = pull.x.clone()
    before = block.outputs(values_only(block, start))[:, 0]
    answer = SETTINGS[name].solve(block, pull, start, Budget())
    assert torch.all(block.outputs(answer.values)[:, 0] > before)


def output_rows(lower, upper, samples=N, features=nets.FEATURES):
    shape = (samples, 1)
    return Rows(
        torch.zeros(samples, 1, features, dtype=torch.float64),
        torch.ones(samples, 1, 1, dtype=torch.float64),
        torch.full(shape, lower, dtype=torch.float64),
        torch.full(shape, upper, dtype=torch.float64),
        (("limit",),) * samples,
    )


@pytest.mark.parametrize("kind", ["mlp", "gelu-layernorm", "lstm"])
@pytest.mark.parametrize("name", SETTINGS)
def test_rows_on_the_output_are_met(name, kind):
    net = nets.make(kind)
    values = values_only(block_of(net), pull_of(40, seed=9).x)
    limit = float(values.quantile(0.3))
    block = block_of(net, rows=output_rows(-torch.inf, limit))
    pull = pull_of(price=-1.0)  # wants the output up, against the limit
    answer = SETTINGS[name].solve(block, pull, pull.x.clone(), Budget())
    assert torch.all(answer.violation <= 1e-6), answer.note
    assert torch.all(answer.values <= limit + 1e-6)
    assert torch.all(answer.u.abs() <= 1.0)


def test_equalities_by_projection_and_refused_by_name_by_the_barrier():
    net = nets.make("mlp")
    level = float(values_only(block_of(net), pull_of(40, seed=9).x).median())
    block = block_of(net, rows=output_rows(level, level))
    answer = dt.ProjectedGradient().solve(block, pull_of(), pull_of().x.clone(), Budget())
    assert torch.all((answer.values - level).abs() < 1e-6)
    for variant in ("newton-cg", "l-bfgs-b"):
        assert "limit is an equality" in dt.LogBarrier(variant=variant).refuses(block)
    assert dt.ProjectedGradient().refuses(block) is None


def test_rows_that_cannot_be_met_are_reported_not_hidden():
    block = block_of(nets.make("mlp"), rows=output_rows(1e6, torch.inf))
    for solver in SETTINGS.values():
        answer = solver.solve(block, pull_of(), pull_of().x.clone(), Budget())
        assert torch.all(answer.violation > 1e5)
    assert (
        "no interior point"
        in SETTINGS["newton-cg"].solve(block, pull_of(), pull_of().x.clone(), Budget()).note
    )


def test_some_samples_without_an_interior_do_not_stop_the_others():
    net = nets.make("mlp")
    rows = output_rows(-torch.inf, 100.0)
    rows.upper[2, 0] = -1e6
    block = block_of(net, rows=rows)
    answer = dt.LogBarrier().solve(block, pull_of(), pull_of().x.clone(), Budget())
    assert "1 samples" in answer.note
    assert torch.all(answer.violation[torch.arange(N) != 2] == 0.0)


def test_the_barrier_s_curvature_is_right():
    """Exact products on a smooth network against differences of the gradient."""
    from dovetail.nn.barrier_function import Barrier

    net = nets.make("gelu-layernorm", dtype=torch.float64)
    block, pull = block_of(net, rows=output_rows(-50.0, 50.0)), pull_of(stiffness=1.0)
    barrier = Barrier(block, pull)
    u = 0.5 * pull.x
    direction = pull_of(seed=5).x
    slope, product = barrier.expand(u, 0.1)
    step = 1e-6
    ahead, _ = barrier.expand(u + step * direction, 0.1)
    behind, _ = barrier.expand(u - step * direction, 0.1)
    assert torch.allclose(product(direction), (ahead - behind) / (2 * step), atol=1e-5)
    numeric = torch.zeros_like(u)
    for j in range(5):
        move = torch.zeros_like(u)
        move[:, j] = step
        numeric[:, j] = (barrier.value(u + move, 0.1) - barrier.value(u - move, 0.1)) / (2 * step)
    assert torch.allclose(slope, numeric, atol=1e-5)


@pytest.mark.parametrize("classes", [1, 3])
def test_gauss_newton_slopes_are_right(classes):
    """The hand-written first derivatives of the barrier on a ReLU network, through the class surrogate."""
    from dovetail.nn.barrier_function import Barrier

    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, classes)).double()
    block = block_of(net, classifies=True, outputs=classes)
    pull = pull_of(outputs=classes, stiffness=0.7)
    barrier = Barrier(block, pull)
    assert not block.smooth
    u = 0.5 * pull.x
    slope, _ = barrier.expand(u, 0.05)
    step = 1e-7
    for j in range(5):
        move = torch.zeros_like(u)
        move[:, j] = step
        numeric = (barrier.value(u + move, 0.05) - barrier.value(u - move, 0.05)) / (2 * step)
        assert torch.allclose(slope[:, j], numeric, atol=1e-5)


def test_samples_do_not_influence_each_other():
    block, pull = block_of(nets.make("mlp")), pull_of()
    start = torch.zeros(N, 5, dtype=torch.float64)
    first = torch.arange(N) == 0
    for name, solver in SETTINGS.items():
        if name == "l-bfgs-b":
            continue  # one run over all samples together: its step lengths are shared
        together = solver.solve(block, pull, start, Budget()).u[0]
        alone = solver.solve(block.take(first), pull.take(first), start[first], Budget()).u[0]
        assert torch.allclose(together, alone, atol=1e-12), name


def test_scaling_the_inputs_changes_nothing():
    """The same problem in other units, with scales to match: the same steps in those units."""
    factor = torch.tensor([1.0, 1e3, 1e-3, 50.0, 0.2], dtype=torch.float64)
    inner = nets.make("mlp", dtype=torch.float64)

    class Rescaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner
            self.register_buffer("factor", factor)

        def forward(self, x):
            return self.inner(x / self.factor)

    plain, pull = block_of(inner), pull_of()
    other = block_of(Rescaled())
    from dataclasses import replace

    other = replace(other, lower=plain.lower * factor, upper=plain.upper * factor, scale=plain.scale * factor)
    other_pull = AugmentedTerms(
        pull.x * factor,
        pull.multiplier / factor,
        pull.weight / factor**2,
        pull.y,
        pull.output_multiplier,
        pull.output_weight,
    )
    start = torch.zeros(N, 5, dtype=torch.float64)
    for name, solver in SETTINGS.items():
        a = solver.solve(plain, pull, start, Budget()).u
        b = solver.solve(other, other_pull, start, Budget()).u / factor
        assert torch.allclose(a, b, atol=1e-4), name


def test_gradient_pass_matches_finite_differences():
    block, pull = block_of(nets.make("gelu-layernorm", dtype=torch.float64)), pull_of(stiffness=2.0)
    u = 0.3 * pull.x
    _, slope, _ = gradient(block, pull, u)
    for j in range(5):
        move = torch.zeros_like(u)
        move[:, j] = 1e-6
        numeric = (objective(block, pull, u + move) - objective(block, pull, u - move)) / 2e-6
        assert torch.allclose(slope[:, j], numeric, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        (lambda: dt.ProjectedGradient(steps=0), "steps is 0"),
        (lambda: dt.ProjectedGradient(lr=-1.0), "lr is -1"),
        (lambda: dt.ProjectedGradient(lr=float("nan")), "lr is nan"),
        (lambda: dt.ProjectedGradient(rule="lion"), "lion"),
        (lambda: dt.LogBarrier(variant="bfgs"), "bfgs"),
        (lambda: dt.LogBarrier(mu=0.0), "mu is 0.0"),
        (lambda: dt.LogBarrier(mu=float("inf")), "mu is inf"),
        (lambda: dt.LogBarrier(newton_steps=1.5), "newton_steps is 1.5"),
        (lambda: dt.ProjectedGradient(lr="0.1"), "lr is '0.1'"),
        (lambda: dt.LogBarrier(shrink=1.5), "shrink is 1.5"),
        (lambda: dt.LogBarrier(cg_steps=0), "cg_steps"),
    ],
)
def test_options_are_checked(make, culprit):
    with pytest.raises(dt.OptionError, match=culprit):
        make()
