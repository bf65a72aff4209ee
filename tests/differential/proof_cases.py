"""Random small problems of all kinds for proofs: networks, hosts and domains of every sort we can bound.

Nothing of dovetail is used but its public names, to state the problem. What a point is, and whether it
counts, is computed from the arrays and the modules themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

import dovetail as dt

from . import proof_modules

DOMAINS = ("box", "box", "simplex", "ball", "priced ball", "integer", "mixed", "coupled")
RELU_SHARE = 0.6
"""Of the networks: the ones most proofs are about."""


@dataclass(frozen=True)
class Tied:
    """A network and the columns it ties, in the order of the chain."""

    module: nn.Module
    dtype: torch.dtype
    inputs: np.ndarray
    outputs: np.ndarray
    classifies: bool

    def answers(self, U: np.ndarray) -> np.ndarray:
        """What the module says of each row, decoded."""
        with torch.no_grad():
            values = self.module(torch.tensor(U, dtype=self.dtype)).double().numpy()
        if not self.classifies:
            return values
        if values.shape[1] == 1:
            return (values >= 0.0).astype(float)
        return np.eye(values.shape[1])[np.argmax(values, axis=1)]


@dataclass(frozen=True)
class Slack:
    """A host column that pays for an output above a level: y - reach h <= level."""

    column: int
    output: int
    level: float
    reach: float
    whole: bool


@dataclass
class Case:
    """A problem under construction, then done; columns are appended, `free` ones are chosen by a sampler."""

    seed: int
    domain: str
    kinds: list[str] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    centre: np.ndarray | None = None
    """Of a ball: inputs are centre + up - down, over free columns `up` and `down`."""
    weights: np.ndarray | None = None
    """Of a ball: what moves cost; they may cost `budget`."""
    budget: float = 0.0
    inputs: list[int] = field(default_factory=list)
    """Columns that networks may read from the beginning."""
    components: int = 1
    """Samples that share nothing but rows."""
    tied: list[Tied] = field(default_factory=list)
    slacks: list[Slack] = field(default_factory=list)
    equality: int | None = None
    """The row through networks that no sampler meets by chance."""
    sense: str = "min"
    problem: dt.Problem = field(init=False)

    def column(self, lower: float, upper: float, *, cost: float = 0.0, integer: bool = False) -> int:
        """One more column; its index."""
        for values, value in (
            (self.lower, lower), (self.upper, upper), (self.cost, cost), (self.integer, integer),
        ):  # fmt: skip
            values.append(value)  # type: ignore[attr-defined]
        return len(self.cost) - 1

    # ---- points

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """(count, free) random choices within the domain."""
        low, high = np.array(self.lower)[self.free], np.array(self.upper)[self.free]
        points = rng.uniform(low, high, (count, len(self.free)))
        if self.domain == "simplex":
            points = rng.dirichlet(np.full(len(self.free), 0.7), count)
        elif self.centre is not None:
            points *= rng.random(points.shape) < 0.4
        corners = rng.random(points.shape) < 0.15
        points = np.where(corners, np.where(rng.random(points.shape) < 0.5, low, high), points)
        return self.projected(points)

    def projected(self, points: np.ndarray) -> np.ndarray:
        """Moved into the domain, in some way."""
        low, high = np.array(self.lower)[self.free], np.array(self.upper)[self.free]
        points = np.clip(points, low, high)
        whole = np.array(self.integer)[self.free]
        points[:, whole] = np.round(points[:, whole])
        if self.domain == "simplex":
            total = points.sum(axis=1, keepdims=True)
            points = np.where(total > 0.0, points / np.where(total > 0.0, total, 1.0), 1.0 / len(self.free))
        elif self.weights is not None:
            spent = points @ self.weights
            points = points * np.minimum(1.0, self.budget / np.maximum(spent, 1e-12))[:, None]
        return points

    def completed(self, points: np.ndarray) -> np.ndarray:
        """(T, columns) whole points: inputs from moves, outputs by the networks, host columns last."""
        z = np.zeros((len(points), len(self.cost)))
        z[:, self.free] = points
        if self.centre is not None:
            d = len(self.centre)
            z[:, self.inputs] = self.centre + points[:, :d] - points[:, d : 2 * d]
        for tied in self.tied:
            for i in range(len(tied.inputs)):
                z[:, tied.outputs[i]] = tied.answers(z[:, tied.inputs[i]])
        for slack in self.slacks:
            need = np.maximum((z[:, slack.output] - slack.level) / slack.reach, 0.0)
            z[:, slack.column] = np.ceil(need - 1e-12) if slack.whole else need
        return z

    def missed(self, z: np.ndarray) -> np.ndarray:
        """(T,) by how much each point misses a row or a bound."""
        mip = self.problem.mip
        activity = z @ mip.A.toarray().T
        beyond = np.maximum(mip.row_lower - activity, activity - mip.row_upper).max(axis=1, initial=0.0)
        return np.maximum(beyond, np.maximum(mip.lower - z, z - mip.upper).max(axis=1))

    def worth(self, z: np.ndarray) -> np.ndarray:
        """(T,) objectives in minimisation form."""
        mip = self.problem.mip
        return mip.sign * (z @ mip.cost + mip.offset)


def make(seed: int) -> Case:
    """Case number `seed`."""
    rng = np.random.default_rng((seed, 15))
    case = Case(seed, DOMAINS[seed % len(DOMAINS)], sense=str(rng.choice(["min", "max"])))
    _add_domain(case, rng)
    dtype = torch.float32 if rng.random() < 0.35 else torch.float64
    most = 1 if case.domain == "coupled" else 4
    for _ in range(min(most, int(rng.choice([1, 2, 3, 4], p=[0.45, 0.3, 0.15, 0.1])))):
        _add_network(case, dtype, rng)
    state(case)
    if rng.random() < 0.5 or case.domain == "coupled":
        _add_row_on_choices(case, rng)
    if rng.random() < 0.6:
        _add_row_on_outputs(case, rng)
    if rng.random() < 0.3:
        _add_slack(case, rng)
    state(case)
    return case


def _add_domain(case: Case, rng: np.random.Generator) -> None:
    small = 0.5 * rng.normal()
    if case.domain in ("ball", "priced ball"):
        d = int(rng.integers(2, 6))
        case.centre = np.round(rng.normal(size=d), 2)
        case.weights = np.ones(2 * d) if case.domain == "ball" else np.round(rng.uniform(0.5, 2.0, 2 * d), 2)
        case.budget = float(np.round(rng.uniform(0.5, 2.5), 2))
        paid = small if rng.random() < 0.5 else 0.0
        case.free = [case.column(0.0, 2.0, cost=float(paid * w)) for w in case.weights]
        case.inputs = [case.column(c - 2.0, c + 2.0) for c in case.centre.tolist()]
        for i, (x, c) in enumerate(zip(case.inputs, case.centre.tolist(), strict=True)):
            case.rows.append(({x: 1.0, case.free[i]: -1.0, case.free[d + i]: 1.0}, c, c))
        moves = dict(zip(case.free, case.weights.tolist(), strict=True))
        case.rows.append((moves, -np.inf, case.budget))
        return
    d = int(rng.integers(1, 5))
    if case.domain == "coupled":
        case.components = int(rng.integers(2, 4))
        d = case.components * int(rng.integers(1, 3))
    if case.domain == "simplex":
        d += 2
        case.free = [case.column(0.0, 1.0, cost=0.5 * rng.normal()) for _ in range(d)]
        case.rows.append((dict.fromkeys(case.free, 1.0), 1.0, 1.0))
    else:
        for j in range(d):
            whole = case.domain == "integer" or (case.domain == "mixed" and j % 2 == 0)
            low = float(rng.integers(-2, 1)) if whole else -rng.uniform(0.5, 2.0)
            high = low + float(rng.integers(1, 5)) if whole else rng.uniform(0.5, 2.0)
            case.free.append(case.column(low, high, cost=0.5 * rng.normal(), integer=whole))
    case.inputs = list(case.free)


def _read(case: Case, rng: np.random.Generator) -> np.ndarray:
    """(samples, features) columns that a network reads."""
    read = list(case.inputs)
    if case.domain == "coupled":  # each sample has inputs of its own; rows couple them
        return np.array(read).reshape(case.components, -1)
    if case.tied and rng.random() < 0.4:  # chained
        before = case.tied[int(rng.integers(len(case.tied)))]
        read[int(rng.integers(len(read)))] = int(before.outputs[0, 0])
    more = rng.random() < 0.2 and len(read) > 1
    return np.array([read, rng.permutation(read)] if more else [read])


def _add_network(case: Case, dtype: torch.dtype, rng: np.random.Generator) -> None:
    kind = "relu" if rng.random() < RELU_SHARE else str(rng.choice(proof_modules.KINDS))
    inputs = _read(case, rng)
    samples = len(inputs)
    drawn = rng.random()
    classifies, q = drawn < 0.35, 3 if drawn < 0.1 or drawn > 0.9 else 1
    state(case)
    z = case.completed(case.sample(300, rng))
    points = np.concatenate([z[:, columns] for columns in inputs])
    module = proof_modules.make(kind, points, q, dtype, rng)
    outputs = np.array(
        [
            [
                case.column(0.0, 1.0, cost=rng.normal(), integer=True)
                if classifies
                else case.column(-np.inf, np.inf, cost=rng.normal())
                for _ in range(q)
            ]
            for _ in range(samples)
        ]
    )
    case.kinds.append(kind)
    case.tied.append(Tied(module, dtype, inputs, outputs, classifies))


def state(case: Case) -> None:
    """The problem as it is so far."""
    A = np.zeros((len(case.rows), len(case.cost)))
    for row, (entries, _, _) in zip(A, case.rows, strict=True):
        row[list(entries)] = list(entries.values())
    mip = dt.Mip(
        cost=case.cost,
        A=A if case.rows else None,
        row_lower=[low for _, low, _ in case.rows],
        row_upper=[high for _, _, high in case.rows],
        lower=case.lower,
        upper=case.upper,
        integer=case.integer,
        sense=case.sense,
    )
    case.problem = dt.Problem(mip)
    for tied in case.tied:
        case.problem.add_predictor(
            tied.module,
            tied.inputs,
            tied.outputs,
            output_type="classification" if tied.classifies else "regression",
        )


def _add_row_on_choices(case: Case, rng: np.random.Generator) -> None:
    z = case.completed(case.sample(200, rng))
    row = np.round(rng.normal(size=len(case.free)), 2) + 0.01
    level = float(np.round(np.quantile(z[:, case.free] @ row, rng.uniform(0.3, 0.9)), 3))
    entries = {j: float(a) for j, a in zip(case.free, row, strict=True) if a != 0.0}
    case.rows.append((entries, -np.inf, level))


def _add_row_on_outputs(case: Case, rng: np.random.Generator) -> None:
    """Cuts off the best of many points; or demands a value of a network exactly; now and then cuts all."""
    outputs = np.concatenate([tied.outputs.ravel() for tied in case.tied])
    z = case.completed(case.sample(2000, rng))
    z = z[case.missed(z) <= 1e-9]
    if len(z) == 0:
        return
    row = np.zeros(len(case.cost))
    row[outputs] = rng.normal(size=len(outputs))
    if rng.random() < 0.4:
        row[case.free] = 0.3 * rng.normal(size=len(case.free))
    activity = z @ row
    best = activity[np.argmin(case.worth(z))]
    level = best - rng.uniform(0.05, 0.8) * (activity.std() + 1e-3)
    drawn = rng.random()
    if drawn < 0.1:
        level = activity.min() - 0.6 * (activity.std() + 1e-3)
    regression = any(not tied.classifies for tied in case.tied)
    exactly = drawn > 0.75 and regression and not all(case.integer[j] for j in case.free)
    if exactly:
        case.equality = len(case.rows)
        level = float(np.quantile(activity, rng.uniform(0.3, 0.7)))
    entries = {int(j): float(row[j]) for j in np.flatnonzero(row)}
    case.rows.append((entries, float(level) if exactly else -np.inf, float(level)))


def _add_slack(case: Case, rng: np.random.Generator) -> None:
    """A host column, whole or not, that pays for an output above a level."""
    tied = case.tied[int(rng.integers(len(case.tied)))]
    if tied.classifies:
        return
    output, whole = int(tied.outputs[0, 0]), bool(rng.random() < 0.6)
    level, reach = float(np.round(0.5 * rng.normal(), 2)), float(np.round(rng.uniform(0.3, 2.0), 2))
    price = float(rng.uniform(0.2, 1.5)) * (1.0 if case.sense == "min" else -1.0)
    column = case.column(0.0, 50.0, cost=price, integer=whole)
    case.slacks.append(Slack(column, output, level, reach, whole))
    case.rows.append(({output: 1.0, column: -reach}, -np.inf, level))
