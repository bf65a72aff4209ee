"""A random problem under construction, and what a point of it is worth.

Nothing of dovetail is used but its public names, to state the problem. What a point is, and whether it
counts, is computed from the arrays and the modules themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

import dovetail as dt


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


@dataclass(frozen=True)
class Link:
    """A host column that a row makes of others: column = entries'z + constant."""

    column: int
    entries: dict[int, float]
    constant: float


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
    links: list[Link] = field(default_factory=list)
    """Between networks, in the order of the chain."""
    given: dict[int, float] = field(default_factory=dict)
    """Columns that are fixed."""
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
        for column, value in self.given.items():
            z[:, column] = value
        for tied in self.tied:
            for i in range(len(tied.inputs)):
                z[:, tied.outputs[i]] = tied.answers(z[:, tied.inputs[i]])
                for link in self.links:
                    z[:, link.column] = z[:, list(link.entries)] @ [*link.entries.values()] + link.constant
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
