"""What a validity domain saves and costs: promised and true value of decisions, where the truth is known.

    python -m benchmarks trust --jobs 16 [--data DIR]
    python -m benchmarks.trust furnace network        one case, a line of JSON for each variant

Three cases are simulators behind noisy data of a plant's history, in which settings moved together. Two are
public data; there the truth is a Gaussian process through all rows, of which the predictors see some. Values
are gains: 0 is the mean of the history, 1 its best decision, both by the truth.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, IsolationForest, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.neighbors import KernelDensity
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dovetail as dt
from benchmarks.parallel import each
from dovetail.core.arrays import FloatArray
from dovetail_study.experiment import ResultTable

SECONDS, MEMBERS = 8.0, 8
CASES = ("furnace", "reactor", "prices", "wine", "diabetes")
PREDICTORS = ("network", "boosting", "forest")
VARIANTS = ("plain", "box", "hull", "near", "isolation", "density", "worst of 8")


@dataclass(frozen=True)
class Case:
    """What was seen, what is true, and what may be chosen; more is better."""

    seen: FloatArray
    noisy: FloatArray
    truth: Callable[[FloatArray], FloatArray]
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class Decision:
    """One solve."""

    case: str
    predictor: str
    variant: str
    promised: float
    true: float
    status: str
    gap: float | None
    inside: bool
    """By `dt.check`, which knows the domain as constraints and predictors."""
    extrapolations: int


def furnace(rng: np.random.Generator, data: Path | None) -> Case:
    """Heat, flow, minutes, mix: the flow was always set by the heat."""

    def truth(X: FloatArray) -> FloatArray:
        heat, flow, minutes, mix = X.T
        balance = np.exp(-(((flow - 0.6 * heat) / 2.5) ** 2))
        return np.asarray(
            heat * balance * (1.0 - np.exp(-minutes / 4.0)) - 0.4 * minutes - (mix - 4.0) ** 2 / 8.0
        )

    heat, minutes = rng.uniform(3.0, 7.0, 400), rng.uniform(2.0, 8.0, 400)
    flow = 0.6 * heat + rng.normal(0.0, 0.5, 400)
    seen = np.column_stack([heat, flow, minutes, rng.uniform(2.0, 6.0, 400)])
    return _simulated(rng, seen, truth, 0.3, np.zeros(4), np.full(4, 12.0))


def reactor(rng: np.random.Generator, data: Path | None) -> Case:
    """A to B to C: temperature, hours, concentration; hot batches were always short ones."""

    def truth(X: FloatArray) -> FloatArray:
        kelvin, hours, strength = X.T
        first, second = np.exp(18.0 - 6500.0 / kelvin), np.exp(24.0 - 9000.0 / kelvin)
        made = first / (second - first) * (np.exp(-first * hours) - np.exp(-second * hours))
        return np.asarray(100.0 * strength * made - 0.1 * (kelvin - 300.0) - 2.0 * hours - 8.0 * strength**2)

    kelvin = rng.uniform(330.0, 360.0, 300)
    hours = np.exp((345.0 - kelvin) / 15.0 + rng.normal(0.0, 0.2, 300)) * 3.0
    seen = np.column_stack([kelvin, hours, rng.uniform(0.8, 2.0, 300)])
    return _simulated(rng, seen, truth, 3.0, np.array([300.0, 0.1, 0.2]), np.array([420.0, 24.0, 5.0]))


def prices(rng: np.random.Generator, data: Path | None) -> Case:
    """Revenue of five products whose prices always moved together; customers choose one or none."""

    def truth(X: FloatArray) -> FloatArray:
        wish = np.exp(np.array([3.0, 3.2, 3.4, 3.6, 3.8]) - 0.4 * X)
        return np.asarray(100.0 * np.sum(X * wish, axis=1) / (1.0 + wish.sum(axis=1)))

    level = rng.uniform(6.0, 12.0, (500, 1))
    seen = level + np.arange(5) * 0.4 + rng.normal(0.0, 0.6, (500, 5))
    return _simulated(rng, seen, truth, 25.0, np.full(5, 1.0), np.full(5, 25.0))


def wine(rng: np.random.Generator, data: Path | None) -> Case:
    """The quality of red wine by eleven measurements (Cortez et al., 2009)."""
    if data is None:
        raise SystemExit("wine needs --data")
    table = np.genfromtxt(data / "red_wine_quality.csv", delimiter=_delimiter(data), skip_header=1)
    return _refereed(rng, table[:, -12:-1], table[:, -1], 400)


def _delimiter(data: Path) -> str:
    return ";" if ";" in (data / "red_wine_quality.csv").open().readline() else ","


def diabetes(rng: np.random.Generator, data: Path | None) -> Case:
    """The progress of diabetes by ten measurements (Efron et al., 2004), as little as possible."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return _refereed(rng, X, -y, 220)


def _simulated(
    rng: np.random.Generator,
    seen: FloatArray,
    truth: Callable[[FloatArray], FloatArray],
    noise: float,
    lower: FloatArray,
    upper: FloatArray,
) -> Case:
    return Case(seen, truth(seen) + rng.normal(0.0, noise, len(seen)), truth, lower, upper)


def _refereed(rng: np.random.Generator, X: FloatArray, y: FloatArray, rows: int) -> Case:
    """Half as much again as the range of all rows may be chosen."""
    scaler = StandardScaler().fit(X)
    kernel = RBF(np.sqrt(X.shape[1]), "fixed") + WhiteKernel(0.5, "fixed")
    process = GaussianProcessRegressor(kernel, normalize_y=True, optimizer=None).fit(scaler.transform(X), y)
    chosen, room = rng.permutation(len(X))[:rows], 0.25 * np.ptp(X, axis=0)

    def truth(at: FloatArray) -> FloatArray:
        return np.asarray(process.predict(scaler.transform(at)))

    return Case(X[chosen], y[chosen], truth, X.min(axis=0) - room, X.max(axis=0) + room)


def learner(name: str, seed: int) -> Any:
    """An untrained predictor."""
    if name == "network":
        net = MLPRegressor(hidden_layer_sizes=(24, 24), alpha=1e-3, max_iter=800, random_state=seed)
        return make_pipeline(StandardScaler(), net)
    if name == "boosting":
        return GradientBoostingRegressor(n_estimators=60, subsample=0.8, random_state=seed)
    return RandomForestRegressor(n_estimators=40, min_samples_leaf=3, max_depth=8, random_state=seed)


def trained(name: str, X: FloatArray, y: FloatArray, seed: int = 0) -> Any:
    """Outputs of a network are trained in standard deviations."""
    found = learner(name, seed)
    return found.fit(X, y)


def domain(variant: str, seen: FloatArray) -> Any:
    """What `within=` gets."""
    if variant == "isolation":
        return dt.Score(IsolationForest(n_estimators=50, random_state=0).fit(seen))
    if variant == "density":
        return dt.Score(make_pipeline(StandardScaler(), KernelDensity(bandwidth=0.6)).fit(seen))
    return variant if variant in ("box", "hull", "near") else None


def decisions(task: tuple[str, str], data: Path | None, seconds: float = SECONDS) -> list[Decision]:
    """All variants of one case and one predictor."""
    warnings.filterwarnings("ignore")
    name, kind = task
    rng = np.random.default_rng(0)
    case: Case = globals()[name](rng, data)
    low, high = case.noisy.mean(), case.noisy.std()
    y = (case.noisy - low) / high
    one = trained(kind, case.seen, y)
    picks = [rng.integers(0, len(y), len(y)) for _ in range(MEMBERS)]
    several = [trained(kind, case.seen[some], y[some], seed) for seed, some in enumerate(picks)]
    history = case.truth(case.seen)
    zero, unit = history.mean(), history.max() - history.mean()
    d, found = case.seen.shape[1], []
    for variant in VARIANTS:
        predictor = dt.Ensemble(several, "min") if variant == VARIANTS[-1] else one
        limits = np.append(case.lower, -1e3), np.append(case.upper, 1e3)
        problem = dt.Problem(dt.Mip([0.0] * d + [1.0], lower=limits[0], upper=limits[1], sense="max"))
        inside = domain(variant, case.seen)
        problem.add_predictor(predictor, range(d), [d], data=case.seen, within=inside, name="gain")
        result = dt.solve(problem, time_limit=seconds, log=False)
        if result.x is None or result.objective is None:
            found.append(Decision(name, kind, variant, np.nan, np.nan, str(result.status), None, False, 0))
            continue
        true = float(case.truth(result.x[None, :d])[0])
        promised = (result.objective * high + low - zero) / unit
        found.append(
            Decision(
                name, kind, variant, round(promised, 3), round((true - zero) / unit, 3), str(result.status),
                result.gap, dt.check(problem, result.x).within(), len(result.extrapolations),
            )
        )  # fmt: skip
    return found


def run(data: Path | None, jobs: int) -> ResultTable:
    """All cases."""
    tasks = [(case, kind) for case in CASES if data or case != "wine" for kind in PREDICTORS]
    every = each(partial(decisions, data=data), tasks, jobs)
    return table([decision for some in every for decision in some])


def table(found: Sequence[Decision]) -> ResultTable:
    """One row for each case and predictor: promised and true by variant."""
    made = ResultTable("trust", "Gains promised / true", ["case", "predictor", *VARIANTS])
    by = {(one.case, one.predictor, one.variant): one for one in found}
    for case, kind in dict.fromkeys((one.case, one.predictor) for one in found):
        cells = [by[case, kind, variant] for variant in VARIANTS]
        made.add([case, kind, *(f"{one.promised:.2f} / {one.true:.2f}" for one in cells)])
    return made


if __name__ == "__main__":
    folder = os.environ.get("DOVETAIL_DATA")
    for decision in decisions((sys.argv[1], sys.argv[2]), Path(folder) if folder else None):
        print(json.dumps(decision.__dict__))
