"""Wine blending: mix the produce of modest vineyards into wines of the best mean quality.

    max  (1/I) sum_i q_i
    s.t. x_ij = sum_k m_ik F_kj,   sum_k m_ik = 1                 wine i is a mixture of the vineyards k
         sum_i m_ik <= l_k,   sum_ik c_k m_ik <= 1.7 I            stock of each vineyard, money for all
         q_i = f(x_i),   q <= q_i <= 10,   0 <= m_ik <= l_k

SurrogateLIB's wine problem. Its networks are trained on raw features (sulphur dioxide in the hundreds beside
a density that varies in its third decimal); here they are trained on standardised features, with the scaling
folded into the network, so that the model keeps its raw units. Every draw is seeded. The library minimises 10
minus the mean; the mean is maximised here. The host is linear without integers.

The real file repeats many wines, so that some held-out rows were also trained on; its quality is a taster's
whole number, of which a third or so can be learnt. Wines are alike: any two may change places.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import OptionError
from dovetail.core.problem import Problem
from dovetail_study.problems import data as files
from dovetail_study.problems import networks
from dovetail_study.problems.host import Host
from dovetail_study.problems.training import Regression, train_regressor

FEATURES = (
    "fixed.acidity", "volatile.acidity", "citric.acid", "residual.sugar", "chlorides", "free.sulfur.dioxide",
    "total.sulfur.dioxide", "density", "pH", "sulphates", "alcohol",
)  # fmt: skip
FILE = "red_wine_quality.csv"
MODEST = 5.0
"""Vineyards are wines of at most this quality."""
MONEY = 1.7
"""Per wine; a vineyard's price is between 1 and 2."""
BEST = 10.0
"""The end of the tasters' scale."""

# Rough mean and standard deviation of each feature in the public data set, for the look-alike.
_MARGINALS = (
    (8.3, 1.7), (0.53, 0.18), (0.27, 0.19), (2.5, 1.4), (0.088, 0.047), (16.0, 10.0),
    (46.0, 33.0), (0.997, 0.0019), (3.3, 0.15), (0.66, 0.17), (10.4, 1.1),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Wine:
    """One instance: the problem, its network, and the columns of its variables."""

    problem: Problem
    network: nn.Module
    training: Regression
    market: Market
    quality: IntArray
    """(wines,) columns of the predicted quality."""
    blend: IntArray
    """(wines, 11) columns of the features of each wine, in raw units."""
    mix: IntArray
    """(wines, vineyards) columns of the shares."""


@dataclass(frozen=True, eq=False)
class Market:
    """The vineyards' supply, and the requirements on a wine."""

    features: FloatArray
    """(vineyards, 11) in raw units."""
    limit: FloatArray
    """(vineyards,) the stock of each, in units of one wine."""
    price: FloatArray
    """(vineyards,) quality of one wine made of this vineyard alone."""
    least: float
    """Quality that every wine needs."""
    lower: FloatArray
    """(11,) of the features of a wine: the range of the data, a tenth of its maximum wider."""
    upper: FloatArray


def wine(
    wines: int = 4,
    vineyards: int = 30,
    network: str = "2x16",
    *,
    seed: int = 42,
    data: str | Path | None = None,
    epochs: int = 40,
    allow_constant: bool = False,
) -> Wine:
    """`wines` blends of `vineyards` and a trained network, from real or look-alike data."""
    path = files.find(FILE, data)
    X, quality = look_alike(seed) if path is None else files.complete_rows(path, FEATURES, "quality")
    market = draw(X, quality, vineyards, seed)
    if wines < 1 or wines > market.limit.sum():
        raise OptionError(
            f"wines is {wines}; these {vineyards} vineyards have enough for 1 to {int(market.limit.sum())}."
        )
    torch.manual_seed(seed)
    net = networks.build(network, len(FEATURES))
    training = train_regressor(net, X, quality, seed=seed, epochs=epochs, allow_constant=allow_constant)
    return formulate(market, wines, net, training)


def draw(X: FloatArray, quality: FloatArray, vineyards: int, seed: int) -> Market:
    """`vineyards` of the modest wines with stock, prices and the least quality, all drawn with `seed`."""
    rng = np.random.default_rng(seed)
    modest = np.flatnonzero(quality <= MODEST)
    if not 1 <= vineyards <= modest.size:
        raise OptionError(f"vineyards is {vineyards}; the data has {modest.size} of modest quality.")
    least, most = X.min(axis=0), X.max(axis=0)
    return Market(
        features=X[rng.choice(modest, vineyards, replace=False)],
        limit=rng.uniform(0.25, 0.35, vineyards),
        price=rng.uniform(1.0, 2.0, vineyards),
        least=float(rng.uniform(4.2, 4.5)),
        lower=np.maximum(0.0, least - 0.1 * most),
        upper=1.1 * most,
    )


def formulate(market: Market, wines: int, network: nn.Module, training: Regression) -> Wine:
    """The model for a given market and a network that takes raw features."""
    host = Host("max")
    each, stock = range(wines), range(len(market.limit))
    quality = host.variables("quality", each, lower=market.least, upper=BEST, cost=1.0 / wines)
    blend = host.variables("x", each, FEATURES, lower=market.lower, upper=market.upper)
    mix = host.variables("mix", each, stock, upper=market.limit)
    for i, j in np.ndindex(blend.shape):
        mixed = zip(market.features[:, j], mix[i], strict=True)
        host.row(f"blend[{i},{FEATURES[j]}]", [(-1.0, blend[i, j]), *mixed], 0.0, 0.0)
    for i in each:
        host.row(f"whole[{i}]", [(1.0, share) for share in mix[i]], 1.0, 1.0)
    for k in stock:
        host.row(f"stock[{k}]", [(1.0, share) for share in mix[:, k]], upper=market.limit[k])
    paid = zip(np.tile(market.price, wines), mix.ravel(), strict=True)
    host.row("money", paid, upper=MONEY * wines)
    problem = host.problem()
    problem.add_predictor(network, blend, quality[:, None], name="quality")
    return Wine(problem, network, training, market, quality, blend, mix)


def look_alike(seed: int, rows: int = 1599) -> tuple[FloatArray, FloatArray]:
    """Made-up data with the real columns: log-normal features, whole qualities that are mostly chance."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((rows, len(FEATURES)))
    z[:, 6] = 0.7 * z[:, 5] + 0.7 * z[:, 6]  # the total of sulphur dioxide holds the free part
    mean, deviation = np.array(_MARGINALS).T
    spread = np.sqrt(np.log1p((deviation / mean) ** 2))
    X = mean * np.exp(spread * z - 0.5 * spread**2)
    score = (
        5.5 + 0.4 * z[:, 10] - 0.3 * np.abs(z[:, 1] + 0.5) + 0.25 * np.minimum(z[:, 9], 0.8)
        - 0.15 * np.maximum(z[:, 6], 0.0) + 0.1 * z[:, 2] * z[:, 10] + 0.4
    )  # fmt: skip
    return X, np.clip(np.round(score + 0.5 * rng.standard_normal(rows)), 3.0, 8.0)
