"""Small random networks over sets in closed form, and their optima by an LP for every pattern of signs."""

import itertools
from functools import cache

import numpy as np
import torch
from scipy.optimize import linprog

from dovetail.bounds.planes.moves import Moves
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.targets import Targets
from dovetail.networks.layers import Activation, Dense, program_of

KINDS = ("box", "simplex", "ball", "priced")


class Instance:
    """A small random network over K sets of one kind, with costs of moves."""

    def __init__(self, seed, kind, hidden=(4, 3), inputs=4, count=1, condition=False):
        rng = np.random.default_rng(seed)
        sizes = [inputs, *hidden, 1]
        self.weights = [rng.normal(size=(b, a)) / np.sqrt(a) for a, b in itertools.pairwise(sizes)]
        self.biases = [0.5 * rng.normal(size=b) for b in sizes[1:]]
        eye = np.eye(inputs)
        self.directions = eye if kind in ("box", "simplex") else np.hstack([eye, -eye])
        m = self.directions.shape[1]
        self.origin = rng.normal(size=(count, inputs))
        self.limit = rng.uniform(0.5, 2.0, (count, m))
        self.most = np.full(count, np.inf) if kind == "box" else rng.uniform(0.7, 1.5, count)
        self.least = self.most if kind == "simplex" else np.full(count, -np.inf)
        self.costs = rng.uniform(0.0, 0.7, (count, m))
        self.row = {"box": np.zeros((count, m)), "priced": self.costs}.get(kind, np.ones((count, m)))
        self.condition = condition
        self.sign = float(rng.choice([-1.0, 1.0]))
        middle = [float(self.values(self.origin[k])) for k in range(count)]
        self.shift = np.array([-self.sign * v + 0.3 for v in middle]) if condition else np.zeros(count)

    def values(self, x):
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = np.maximum(W @ x + b, 0.0)
        return (self.weights[-1] @ x + self.biases[-1])[0]

    def layers(self):
        layers = [Dense(self.weights[0], self.biases[0])]
        for W, b in zip(self.weights[1:], self.biases[1:], strict=True):
            layers += [Activation("relu"), Dense(W, b)]
        return tuple(layers)

    def float32_layers(self):
        """With weights and biases as float32 holds them."""
        held = lambda array: array.astype(np.float32).astype(float)  # noqa: E731
        self.weights, self.biases = [held(W) for W in self.weights], [held(b) for b in self.biases]
        return self.layers()

    def targets(self, cutoff=np.inf):
        graph = program_of(self.layers(), self.origin.shape[1]).graph()
        count = len(self.origin)
        arrays = (self.directions, self.origin, self.limit, self.row, self.least, self.most)
        domain = Moves.of(*map(torch.as_tensor, arrays), torch.zeros(self.origin.shape, dtype=torch.float64))
        return Targets(
            NetworkPlanes(graph),
            domain,
            torch.as_tensor(self.costs),
            torch.full((count, 1), self.sign, dtype=torch.float64),
            torch.as_tensor(self.shift),
            self.condition,
            torch.full((count,), cutoff, dtype=torch.float64),
        )

    def optimum(self, k):
        """By an LP for every pattern of signs."""
        best = np.inf
        hidden = [len(b) for b in self.biases[:-1]]
        for signs in itertools.product((0.0, 1.0), repeat=sum(hidden)):
            best = min(best, self._piece(k, np.split(np.array(signs), np.cumsum(hidden)[:-1])))
        return best

    def _piece(self, k, patterns):
        """One LP: where each neuron has its sign, the network is M t + c."""
        M, c = self.directions, self.origin[k]
        rows, sides = [], []
        for W, b, on in zip(self.weights[:-1], self.biases[:-1], patterns, strict=True):
            M, c = W @ M, W @ c + b
            flip = np.where(on > 0.5, -1.0, 1.0)
            rows.append(flip[:, None] * M)
            sides.append(-flip * c)
            M, c = on[:, None] * M, on * c
        M, c = self.sign * (self.weights[-1] @ M)[0], self.sign * (self.weights[-1] @ c + self.biases[-1])[0]
        if np.isfinite(self.most[k]):
            rows.append(self.row[k][None])
            sides.append([self.most[k]])
        if np.isfinite(self.least[k]):
            rows.append(-self.row[k][None])
            sides.append([-self.least[k]])
        if self.condition:
            rows.append(M[None])
            sides.append([-c - self.shift[k]])
        cost = self.costs[k] + (0.0 if self.condition else M)
        found = linprog(
            cost,
            A_ub=np.concatenate(rows),
            b_ub=np.concatenate(sides),
            bounds=[(0.0, u) for u in self.limit[k]],
        )
        return found.fun + (0.0 if self.condition else c) if found.success else np.inf


@cache
def optimum_of(seed):
    """Of `Instance(seed, KINDS[seed % 4])`: 128 LPs, and several tests ask for it."""
    return Instance(seed, KINDS[seed % 4]).optimum(0)
