"""Random single predictors and chains of two and three whose outputs have bounds that some cannot meet.

Networks of three precisions, plain functions and trees, classes among them; numbers from 1e-3 to 1e9; bounds
and rows on outputs that are met with room to spare, only just, not quite, or not at all. Ranges that are
computed of these problems cross, are infinite, or are no numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

import dovetail as dt

from . import proof_modules
from .proof_case import Case, Link, Tied, state
from .proof_points import EXACT

NETWORKS = ("relu", "relu", "tanh", "sigmoid", "gelu", "norm", "softmax")
PRECISIONS = (torch.float64, torch.float64, torch.float32, torch.float16)
SCALES = (1e-3, 1.0, 1e3, 1e6, 1e9)
MARGINS = (-0.3, -1e-3, -1e-7, 0.0, 5e-7, 2e-6, 1e-3, 0.3, 30.0)
"""How far beyond all values met a bound lies, relative to their spread but for the smallest, which are of the
size of the check's tolerance: negative ones are met by some point."""
LARGE = 6e4
"""Nearly the largest number of float16."""
SEARCH_ROUNDS, SEARCH_CHILDREN = 40, 60


@dataclass(frozen=True)
class TiedFunction(Tied):
    """A predictor that is no module, asked as its owner would ask it."""

    ask: Callable[[np.ndarray], np.ndarray] = lambda X: X

    def answers(self, U: np.ndarray) -> np.ndarray:
        """What it says of each row; NaN of those that hold no finite numbers."""
        finite = np.isfinite(U).all(axis=1)
        said = np.asarray(self.ask(np.where(finite[:, None], U, 0.0)), dtype=float).reshape(len(U), -1)
        return np.where(finite[:, None], said, np.nan)


def make(seed: int) -> Case:
    """Case number `seed`. Raises what dovetail raises at a predictor that gives no finite numbers."""
    rng = np.random.default_rng((seed, 32))
    case = Case(seed, "reach", sense=str(rng.choice(["min", "max"])))
    _add_inputs(case, rng)
    for stage in range(int(rng.choice([1, 2, 3], p=[0.35, 0.4, 0.25]))):
        _add_predictor(case, stage, rng)
    _state_bounded(case, rng)
    if rng.random() < 0.4:
        _add_row(case, rng)
    state(case)
    return case


def _add_inputs(case: Case, rng: np.random.Generator) -> None:
    many = rng.random() < 0.07
    scale = float(rng.choice(SCALES)) if rng.random() < 0.3 else 1.0
    share = float(rng.choice([0.0, 0.5, 1.0]))
    for _ in range(int(rng.integers(9, 20)) if many else int(rng.integers(1, 4))):
        whole = bool(rng.random() < share)
        low = float(rng.integers(-2, 1)) if whole else -scale * rng.uniform(0.5, 2.0)
        high = low + float(rng.integers(1, 4)) if whole else scale * rng.uniform(0.5, 2.0)
        cost = float(rng.normal()) / (1.0 if whole else scale) if rng.random() < 0.5 else 0.0
        case.free.append(case.column(low, high, cost=cost, integer=whole))
    case.inputs = list(case.free)


def _add_predictor(case: Case, stage: int, rng: np.random.Generator) -> None:
    """It reads what the last one gives, or a state that a row makes of that; perhaps inputs as well."""
    read = list(case.inputs)
    if stage:
        handed_on = case.tied[-1].outputs[0].tolist()
        if rng.random() < 0.3:
            handed_on = [_linked(case, int(handed_on[0]), rng)]
        own = [j for j in case.inputs if rng.random() < 0.4]
        read = handed_on + own
    state(case)
    points = _numbers(case.completed(case.sample(300, rng))[:, read])
    q = int(rng.choice([1, 2], p=[0.8, 0.2]))
    drawn = rng.random()
    if drawn < 0.12:
        tied = _function(points, rng)
    elif drawn < 0.24:
        tied = _trees(points, rng)
    else:
        tied = _network(case, points, q, rng)
    q = tied.answers(points[:1]).shape[1]
    size = float(np.ptp(_numbers(tied.answers(points)), axis=0).max()) or 1.0
    outputs = [
        case.column(0.0, 1.0, cost=float(rng.normal()), integer=True)
        if tied.classifies
        else case.column(-np.inf, np.inf, cost=float(rng.normal()) / size)
        for _ in range(q)
    ]
    case.tied.append(_at(tied, np.array([read]), np.array([outputs])))


def _numbers(values: np.ndarray) -> np.ndarray:
    """The rows that are numbers: float16 has none beyond 65504. A row of 0 where none is."""
    numbers = values[np.isfinite(values).all(axis=1)]
    return numbers if len(numbers) else np.zeros((1, values.shape[1]))


def _at(tied: Tied, inputs: np.ndarray, outputs: np.ndarray) -> Tied:
    if isinstance(tied, TiedFunction):
        return TiedFunction(tied.module, tied.dtype, inputs, outputs, False, tied.ask)
    return Tied(tied.module, tied.dtype, inputs, outputs, tied.classifies)


NOWHERE = np.empty((1, 0), dtype=np.int64)


def _network(case: Case, points: np.ndarray, q: int, rng: np.random.Generator) -> Tied:
    kind, dtype = str(rng.choice(NETWORKS)), PRECISIONS[int(rng.integers(len(PRECISIONS)))]
    classifies = bool(rng.random() < 0.2)
    module = proof_modules.make(kind, points, q, torch.float64, rng)
    if rng.random() < 0.3 and not classifies:
        factor = float(rng.choice(SCALES))
        with torch.no_grad():
            module[-1].weight.mul_(factor)
            module[-1].bias.mul_(factor)
    if dtype is torch.float16:  # what it computes may be too large for it, its weights are not
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.clamp_(-LARGE, LARGE)
    case.kinds.append(f"{kind} {str(dtype)[6:]}")
    return Tied(module.to(dtype).eval(), dtype, NOWHERE, NOWHERE, classifies)


def _function(points: np.ndarray, rng: np.random.Generator) -> Tied:
    weight = rng.normal(size=points.shape[1]) / (np.abs(points).max() + 1e-9)

    def wave(X: np.ndarray) -> np.ndarray:
        return np.sin(2.0 * X @ weight)[:, None] + 0.3 * np.abs(X @ weight)[:, None]

    function: Any = wave
    return TiedFunction(function, torch.float64, NOWHERE, NOWHERE, False, wave)


def _trees(points: np.ndarray, rng: np.random.Generator) -> Tied:
    """Boosted trees of scikit-learn, or rules where it is not installed."""
    y = np.sin(points @ rng.normal(size=points.shape[1]) / (points.std() + 1e-9)) * 2.0
    if find_spec("sklearn") is not None:
        from sklearn.ensemble import GradientBoostingRegressor

        model: Any = GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=0).fit(points, y)
        return TiedFunction(model, torch.float64, NOWHERE, NOWHERE, False, model.predict)
    cut, last = float(np.median(points[:, 0])), points.shape[1] - 1
    rules = [
        ([(0, "<=", cut), (last, ">", float(points[0, last]))], float(y[0])),
        ([(0, ">", cut)], float(y[1])),
    ]

    def listed(X: np.ndarray) -> np.ndarray:
        first = (X[:, 0] <= cut) & (X[:, last] > points[0, last])
        return np.where(first, y[0], np.where(X[:, 0] > cut, y[1], y[2]))[:, None]

    made: Any = dt.RuleList(rules, float(y[2]), points.shape[1])
    return TiedFunction(made, torch.float64, NOWHERE, NOWHERE, False, listed)


def _linked(case: Case, output: int, rng: np.random.Generator) -> int:
    """A state, without bounds or with some, that a row makes of an output and an input."""
    far = np.inf if rng.random() < 0.6 else 1e4
    column = case.column(-far, far)
    entries = {
        output: float(np.round(rng.uniform(0.3, 1.0), 2)),
        case.free[0]: float(np.round(rng.normal(), 2)),
    }
    constant = float(np.round(0.3 * rng.normal(), 2))
    case.links.append(Link(column, entries, constant))
    case.rows.append(({column: 1.0, **{j: -a for j, a in entries.items()}}, constant, constant))
    return column


def _state_bounded(case: Case, rng: np.random.Generator) -> None:
    """Bounds on some outputs, of the middle and of the end, by what many points give."""
    state(case)
    z = _numbers(case.completed(case.sample(1000, rng)))
    for tied in case.tied:
        for j in tied.outputs.ravel().tolist():
            if rng.random() < 0.6:
                continue
            if tied.classifies:
                value = float(rng.integers(2))
                case.lower[j], case.upper[j] = value, value
            elif rng.random() < 0.5:
                case.lower[j] = _level(z[:, j], rng)
            else:
                case.upper[j] = -_level(-z[:, j], rng)


def _level(values: np.ndarray, rng: np.random.Generator) -> float:
    """A lower bound somewhere about the largest value, or far from it."""
    most, spread = float(values.max()), float(np.ptp(values)) + 1e-9
    if rng.random() < 0.4:
        return float(np.quantile(values, rng.uniform(0.1, 0.9)))
    margin = float(rng.choice(MARGINS))
    return most + (margin if abs(margin) < 1e-5 else margin * spread)


def _add_row(case: Case, rng: np.random.Generator) -> None:
    """A row on outputs, and perhaps inputs; now and then two sides."""
    state(case)
    z = _numbers(case.completed(case.sample(1000, rng)))
    row = np.zeros(len(case.cost))
    for j in (*(j for tied in case.tied for j in tied.outputs.ravel().tolist()), *case.free):
        size = float(np.ptp(z[:, j]))
        if rng.random() < 0.6 and size > 0.0:
            row[j] = rng.normal() / min(max(size, 1e-6), 1e6)
    row[np.abs(row) < 1e-8] = 0.0
    if not np.any(row):
        return
    least = _level(z @ row, rng)
    most = least + float(rng.choice([0.0, 1e-3, 1.0])) if rng.random() < 0.3 else np.inf
    case.rows.append(({int(j): float(row[j]) for j in np.flatnonzero(row)}, least, most))


def least_missed(case: Case, seed: int) -> tuple[float, np.ndarray]:
    """A point that misses rows and bounds by as little as random steps find, and by how much.

    `good_points` looks for good ones among those that meet everything, and finds none where few do.
    """
    rng = np.random.default_rng((seed, case.seed, 33))
    whole = np.array(case.integer)[case.free]
    width = np.array(case.upper)[case.free] - np.array(case.lower)[case.free]
    points = case.sample(1500, rng)
    amount = _missed(case, points)
    best, least = points[np.argmin(amount)], float(amount.min())
    for sigma in np.geomspace(0.5, 1e-9, SEARCH_ROUNDS):
        if least <= EXACT:
            break
        noise = rng.normal(size=(SEARCH_CHILDREN, best.size)) * (
            rng.random((SEARCH_CHILDREN, best.size)) < 0.6
        )
        children = case.projected(best + np.where(whole, np.round(noise), sigma * width * noise))
        amount = _missed(case, children)
        if amount.min() < least:
            best, least = children[np.argmin(amount)], float(amount.min())
    z = case.problem.predict(case.completed(best[None])[0])
    return float(np.nan_to_num(case.missed(z[None])[0], nan=np.inf)), z


def _missed(case: Case, points: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.nan_to_num(case.missed(case.completed(points)), nan=np.inf)
