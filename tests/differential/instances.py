"""Random small problems for the differential tests, with networks given as plain weights.

Nothing of dovetail is used to make them, and the weights are what the truth is computed from.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

KINDS = ("binary", "integer", "continuous", "mixed")


@dataclass(frozen=True)
class Net:
    """A ReLU network as arrays: y = W_L relu(... relu(W_1 x + b_1) ...) + b_L."""

    weights: list[np.ndarray]
    biases: list[np.ndarray]
    inputs: np.ndarray  # (n, d) columns
    outputs: np.ndarray  # (n, q) columns
    classifies: bool

    def values(self, X: np.ndarray) -> np.ndarray:
        for k, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            X = X @ W.T + b
            if k < len(self.weights) - 1:
                X = np.maximum(X, 0.0)
        return X

    def decode(self, values: np.ndarray) -> np.ndarray:
        if not self.classifies:
            return values
        if values.shape[1] == 1:
            return (values >= 0.0).astype(float)
        return np.eye(values.shape[1])[np.argmax(values, axis=1)]

    def pieces(self, X: np.ndarray) -> int:
        """How many linear pieces the points X fall into."""
        patterns = []
        for W, b in list(zip(self.weights, self.biases, strict=True))[:-1]:
            X = X @ W.T + b
            patterns.append(X > 0)
            X = np.maximum(X, 0.0)
        return len(np.unique(np.hstack(patterns), axis=0))


@dataclass(frozen=True)
class Instance:
    """A whole problem as arrays; `on_outputs` marks the rows that limit a network's output."""

    seed: int
    kind: str
    sense: str
    cost: np.ndarray
    A: np.ndarray
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray
    nets: list[Net]
    decisions: np.ndarray  # columns that are free to choose; all others are outputs
    on_outputs: np.ndarray
    notes: dict[str, bool] = field(default_factory=dict)

    def without_output_rows(self) -> Instance:
        keep = ~self.on_outputs
        return replace(
            self,
            A=self.A[keep],
            row_lower=self.row_lower[keep],
            row_upper=self.row_upper[keep],
            on_outputs=self.on_outputs[keep],
        )

    def completed(self, points: np.ndarray) -> np.ndarray:
        """Whole points from values of the decisions: outputs by the networks, in order."""
        z = np.zeros((len(points), len(self.cost)))
        z[:, self.decisions] = points
        for net in self.nets:
            for i in range(len(net.inputs)):
                z[:, net.outputs[i]] = net.decode(net.values(z[:, net.inputs[i]]))
        return z

    def feasible(self, z: np.ndarray, tolerance: float = 1e-6) -> np.ndarray:
        activity = z @ self.A.T
        rows = np.all(
            (activity >= self.row_lower - tolerance) & (activity <= self.row_upper + tolerance), axis=1
        )
        return rows & np.all((z >= self.lower - tolerance) & (z <= self.upper + tolerance), axis=1)

    def random_decisions(self, count: int, rng: np.random.Generator) -> np.ndarray:
        low, high = self.lower[self.decisions], self.upper[self.decisions]
        points = rng.uniform(low, high, (count, len(low)))
        whole = self.integer[self.decisions]
        points[:, whole] = rng.integers(low[whole], high[whole] + 1, (count, int(whole.sum())))
        return points


def make(seed: int) -> Instance:
    """Instance number `seed`; the kinds take turns."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    lower, upper, integer = _decisions(kind, rng)
    k = len(lower)
    nets, columns = _networks(k, lower, upper, integer, rng)
    outputs = columns - k
    free = np.full(outputs, np.inf)
    instance = Instance(
        seed=seed,
        kind=kind,
        sense="max" if rng.random() < 0.5 else "min",
        cost=np.concatenate([rng.normal(0, 0.5, k), rng.normal(0, 1.0, outputs)]),
        A=np.empty((0, columns)),
        row_lower=np.empty(0),
        row_upper=np.empty(0),
        lower=np.concatenate([lower, -free]),
        upper=np.concatenate([upper, free]),
        integer=np.concatenate([integer, np.zeros(outputs, bool)]),
        nets=nets,
        decisions=np.arange(k),
        on_outputs=np.empty(0, bool),
    )
    if rng.random() < 0.6:
        instance = _host_row(instance, rng)
    if rng.random() < 0.9:
        instance = _output_row(instance, rng)
    return instance


def _decisions(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if kind == "binary":
        k = int(rng.integers(4, 9))
        return np.zeros(k), np.ones(k), np.ones(k, bool)
    if kind == "integer":
        k = int(rng.integers(2, 5))
        lower = rng.integers(-3, 1, k).astype(float)
        return lower, lower + rng.integers(2, 6, k), np.ones(k, bool)
    lower, upper = -rng.uniform(1, 2, 2), rng.uniform(1, 2, 2)
    if kind == "continuous":
        return lower, upper, np.zeros(2, bool)
    k = int(rng.integers(2, 5))
    some = int(rng.integers(1, 3))
    return (
        np.concatenate([lower[:some], np.zeros(k)]),
        np.concatenate([upper[:some], rng.integers(1, 4, k).astype(float)]),
        np.concatenate([np.zeros(some, bool), np.ones(k, bool)]),
    )


def _networks(
    k: int, lower: np.ndarray, upper: np.ndarray, integer: np.ndarray, rng: np.random.Generator
) -> tuple[list[Net], int]:
    nets: list[Net] = []
    columns = k
    chained: int | None = None
    for b in range(int(rng.integers(1, 4))):
        d = min(k, int(rng.integers(2, 4)))
        samples = 2 if rng.random() < 0.25 else 1
        draw = rng.random()
        classifies = draw < 0.35
        q = 3 if draw < 0.08 else 1
        inputs = np.array([rng.choice(k, d, replace=False) for _ in range(samples)])
        if b == 1 and chained is not None and rng.random() < 0.3:
            inputs[:, -1] = chained
        low = np.concatenate([lower, np.full(columns - k, -1.5)])
        high = np.concatenate([upper, np.full(columns - k, 1.5)])
        net = _network(low[inputs[0]], high[inputs[0]], q, classifies, rng)
        outputs = columns + np.arange(samples * q).reshape(samples, q)
        net = replace(net, inputs=inputs, outputs=outputs)
        if b == 0 and not classifies:
            chained = int(outputs[0, 0])
        columns += samples * q
        nets.append(net)
    return nets, columns


def _network(low: np.ndarray, high: np.ndarray, q: int, classifies: bool, rng: np.random.Generator) -> Net:
    """A small network whose kinks pass through the box: drawn again until it has several pieces there."""
    d, points = len(low), rng.uniform(low, high, (300, len(low)))
    while True:
        sizes = [d, *[int(rng.integers(4, 8)) for _ in range(int(rng.integers(1, 3)))], q]
        weights, biases, X = [], [], points
        for layer, (into, out) in enumerate(itertools.pairwise(sizes)):
            W = rng.normal(0, 1, (out, into)) / np.sqrt(into)
            b = -(X[rng.integers(len(X), size=out)] * W).sum(axis=1)
            X = X @ W.T + b
            if layer < len(sizes) - 2:
                X = np.maximum(X, 0.0)
            weights.append(W)
            biases.append(b)
        spread = X.std(axis=0)
        if np.all(spread > 1e-2):
            weights[-1] = weights[-1] / spread[:, None]
            biases[-1] = (biases[-1] - np.median(X, axis=0)) / spread
            net = Net(weights, biases, np.empty(0), np.empty(0), classifies)
            if net.pieces(points) >= 4:
                return net


def _add_row(instance: Instance, row: np.ndarray, low: float, high: float, on_outputs: bool) -> Instance:
    return replace(
        instance,
        A=np.vstack([instance.A, row]),
        row_lower=np.append(instance.row_lower, low),
        row_upper=np.append(instance.row_upper, high),
        on_outputs=np.append(instance.on_outputs, on_outputs),
    )


def _host_row(instance: Instance, rng: np.random.Generator) -> Instance:
    """A row on the decisions alone; now and then one that nothing meets."""
    row = np.zeros(len(instance.cost))
    row[instance.decisions] = rng.normal(0, 1, len(instance.decisions))
    activity = instance.random_decisions(200, rng) @ row[instance.decisions]
    high = float(np.quantile(activity, rng.uniform(0.3, 0.9)))
    if rng.random() < 0.08:
        j = instance.decisions
        least = np.where(row[j] > 0, row[j] * instance.lower[j], row[j] * instance.upper[j])
        high = float(np.sum(least)) - 0.5
    return _add_row(instance, row, -np.inf, high, False)


def _output_row(instance: Instance, rng: np.random.Generator) -> Instance:
    """A row on outputs that cuts off the best of many points; now and then all of them."""
    row = np.zeros(len(instance.cost))
    outputs = np.setdiff1d(np.arange(len(row)), instance.decisions)
    row[outputs] = rng.normal(0, 1, len(outputs))
    if rng.random() < 0.5:
        row[instance.decisions] = rng.normal(0, 0.3, len(instance.decisions))
    z = instance.completed(instance.random_decisions(2000, rng))
    z = z[instance.feasible(z)]
    if len(z) == 0:
        return instance
    activity = z @ row
    spread = float(activity.std()) + 1e-3
    if rng.random() < 0.2:  # beyond everything seen: nearly always infeasible
        return _add_row(instance, row, -np.inf, float(activity.min()) - 0.6 * spread, True)
    worth = z @ instance.cost * (1.0 if instance.sense == "min" else -1.0)
    best = activity[np.argmin(worth)]
    if instance.kind == "continuous" and rng.random() < 0.15:
        level = float(np.quantile(activity, rng.uniform(0.2, 0.8)))
        return _add_row(instance, row, level, level, True)
    return _add_row(instance, row, -np.inf, float(best - rng.uniform(0.05, 0.8) * spread), True)
