"""Wine blending: the model in plain numpy, the folded scaling, seeds, real or look-alike data."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail_study.problems import networks
from dovetail_study.problems.training import Regression
from dovetail_study.problems.wine import draw, formulate, look_alike, wine
from tests.small import random_mlp

TRAINED = Regression(1.0, 0.0, 1.0, 1)


@pytest.fixture(scope="module")
def instance():
    return wine(2, 12, "2x8", seed=1, epochs=15)


def a_point(instance, seed=0):
    """A random mixture, its features by hand and the network's own word, within the stock and the money."""
    market, rng = instance.market, np.random.default_rng(seed)
    wines, vineyards = instance.mix.shape
    mix = np.full((wines, vineyards), 1.0 / vineyards) * rng.uniform(0.9, 1.1, (wines, vineyards))
    mix /= mix.sum(axis=1, keepdims=True)
    x = np.zeros(instance.problem.mip.n_columns)
    x[instance.mix] = mix
    x[instance.blend] = mix @ market.features
    with torch.no_grad():
        x[instance.quality] = instance.network(torch.tensor(mix @ market.features)).numpy()[:, 0]
    return x, mix


def test_the_rows_say_what_the_docstring_says(instance):
    """dt.check agrees with plain numpy: at a feasible point, and at points that break one thing each."""
    market = instance.market
    x, mix = a_point(instance)
    assert (mix <= market.limit).all() and (mix.sum(axis=0) <= market.limit).all()
    assert (mix * market.price).sum() <= 1.7 * 2
    assert (x[instance.quality] >= market.least).all()
    assert dt.check(instance.problem, x).within()
    assert instance.problem.mip.objective(x) == pytest.approx(x[instance.quality].mean())

    for columns, change, row in (
        (instance.blend[1, 3], 0.5, "blend[1,residual.sugar]"),
        (instance.mix[0, 2], 0.02, None),
        (instance.quality[0], 0.1, "quality, sample 0, output 0"),
    ):
        worse = x.copy()
        worse[columns] += change
        worst = dt.check(instance.problem, worse).worst
        assert worst.amount > 1e-3
        assert row is None or worst.name == row


def test_stock_and_money_bind(instance):
    mip, market = instance.problem.mip, instance.market
    x, mix = a_point(instance)
    activity = dict(zip(mip.row_names, mip.A @ x, strict=True))
    assert activity["money"] == pytest.approx((mix * market.price).sum())
    assert activity["stock[4]"] == pytest.approx(mix[:, 4].sum())
    upper = dict(zip(mip.row_names, mip.row_upper, strict=True))
    assert upper["money"] == pytest.approx(3.4)
    assert upper["stock[4]"] == market.limit[4]
    assert not mip.integer.any()


def test_a_solve_is_at_least_as_good_as_a_random_mixture(instance):
    start, _ = a_point(instance)
    result = dt.solve(instance.problem, dt.Auto(effort=1, exact=False), log=False)
    assert dt.check(instance.problem, result.x).within()
    assert result.objective >= instance.problem.mip.objective(start) - 1e-6
    assert result.value(instance.quality).mean() == pytest.approx(result.objective)


def test_vineyards_are_modest(instance):
    X, quality = look_alike(1)
    modest = {row.tobytes() for row in X[quality <= 5]}
    assert all(row.tobytes() in modest for row in instance.market.features)


def test_bad_sizes_are_refused():
    with pytest.raises(dt.OptionError, match="vineyards is 0"):
        wine(2, 0)
    with pytest.raises(dt.OptionError, match="wines is 9; these 10 vineyards have enough for 1 to"):
        wine(9, 10)
    with pytest.raises(dt.OptionError, match="cannot be folded"):
        wine(2, 12, "conv1d")


def test_any_network_can_be_put_in():
    X, quality = look_alike(0)
    market = replace(draw(X, quality, 8, 0), least=-np.inf)
    assert formulate(market, 2, random_mlp(11), TRAINED).problem.blocks[0].samples == 2


@pytest.mark.parametrize("kind", ["2x16", "residual-2x8"])
def test_folding_changes_units_and_nothing_else(kind):
    X, quality = look_alike(0, 50)
    torch.manual_seed(0)
    net = networks.build(kind, 11)
    into, out = networks.Scale.of(X), networks.Scale.of(quality)
    with torch.no_grad():
        standard = net.double()(torch.tensor((X - X.mean(axis=0)) / X.std(axis=0))).numpy()
        networks.fold(net, into, out)
        raw = net(torch.tensor(X)).numpy()
    assert raw == pytest.approx(standard * quality.std() + quality.mean(), rel=1e-9)


def test_a_constant_feature_is_shifted_and_not_divided():
    values = np.column_stack([np.full(9, 0.05), np.arange(9.0)])
    scale = networks.Scale.of(values)
    assert scale.deviation[0] == 1.0
    assert scale.standard(values)[:, 0] == pytest.approx(np.zeros(9))
