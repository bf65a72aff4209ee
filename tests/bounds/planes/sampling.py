"""Whether planes and ranges hold, at many points of their boxes."""

from __future__ import annotations

import numpy as np
import torch

from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes, Planes
from dovetail.networks.graph import Graph
from tests.networks.graph_values import vectors


def boxes(centres: np.ndarray, reach: np.ndarray | float) -> Boxes:
    """Around centres (N, d)."""
    return Boxes(torch.as_tensor(centres - reach), torch.as_tensor(centres + reach))


def points_of(box: Boxes, each: int, rng: np.random.Generator) -> np.ndarray:
    """(N, each, d): random ones, and random corners."""
    low, high = box.lower.numpy()[:, None], box.upper.numpy()[:, None]
    share = rng.uniform(size=(len(low), each, low.shape[2]))
    share[:, ::3] = np.round(share[:, ::3])
    return np.clip(low + share * (high - low), low, high)


def violation(planes: Planes, rows: np.ndarray, points: np.ndarray, values: np.ndarray) -> float:
    """By how much a plane is above the values at most: points (N, each, d), values (N, each, q)."""
    under = np.einsum("npd,nsd->nps", points, planes.slopes.numpy()) + planes.offset.numpy()[:, None]
    over = under - values @ rows.T
    return float(np.max(np.where(np.isnan(over), -np.inf, over)))  # NaN says nothing


def outside(graph: Graph, box: Boxes, points: np.ndarray) -> float:
    """By how much a vector of the graph leaves its range at most."""
    ranges = NetworkPlanes(graph).ranges(box)
    count, each, _ = points.shape
    worst = -np.inf
    for place, vector in enumerate(vectors(graph, points.reshape(count * each, -1))):
        vector = vector.reshape(count, each, -1)
        low, high = ranges.lower[place].numpy()[:, None], ranges.upper[place].numpy()[:, None]
        worst = max(
            worst, float(np.max(low - vector, initial=-np.inf)), float(np.max(vector - high, initial=-np.inf))
        )
    return worst
