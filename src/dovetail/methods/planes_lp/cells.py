"""A network's few-input box cut into cells, with planes below and above each output on every cell.

Of a cell only its corners matter later: a plane that is above the cell's own plane at all corners is above
it on the cell, and so above the network. Corners are shared: each vertex of the grid has the largest value
of the cells around it. Cells that no output of interest can come from are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from dovetail.bounds.planes.domain import Boxes, gamma
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError

MORE = 8
"""Operations beside a sum itself, when a plane is evaluated."""


@dataclass(frozen=True, eq=False)
class Cells:
    """What is left of a sample's box, and values that its outputs are not beyond at the vertices."""

    vertices: FloatArray
    """(V, d)."""
    above: FloatArray
    """(V, q) for any cell at the vertex, its plane above each output is at most this here."""
    below: FloatArray
    """(V, q)."""
    lower: FloatArray
    """(d,) of the box around the cells."""
    upper: FloatArray


def cut(
    planes: NetworkPlanes,
    box: tuple[FloatArray, FloatArray],
    splits: IntArray,
    outputs: tuple[FloatArray, FloatArray],
) -> Cells | None:
    """Cut a box into splits[0] x splits[1] x ... cells; `outputs` are limits that every point has to meet.

    None where no cell is left; `UnsupportedError` where planes are no numbers.
    """
    edges = [
        np.append(np.linspace(low, high, count + 1)[:-1], high)
        for low, high, count in zip(*box, splits, strict=True)
    ]
    places = np.stack(np.meshgrid(*(np.arange(count) for count in splits), indexing="ij"), -1)
    places = places.reshape(-1, len(splits))
    low = np.stack([edge[place] for edge, place in zip(edges, places.T, strict=True)], 1)
    high = np.stack([edge[place + 1] for edge, place in zip(edges, places.T, strict=True)], 1)
    slopes, offset = _planes(planes, low, high)
    turns = np.stack(np.meshgrid(*([np.arange(2)] * len(splits)), indexing="ij"), -1).reshape(-1, len(splits))
    corners = np.where(turns[None] == 1, high[:, None], low[:, None])  # (cells, corners, d)
    values = np.einsum("ksd,kcd->kcs", slopes, corners) + offset[:, None]
    size = np.einsum("ksd,kcd->kcs", np.abs(slopes), np.abs(corners)) + np.abs(offset)[:, None]
    values -= gamma(len(splits) + MORE) * size
    count = len(outputs[0])
    below, above = values[:, :, :count], -values[:, :, count:]
    kept = ~np.any((above.max(1) < outputs[0]) | (below.min(1) > outputs[1]), axis=1)  # NaN says nothing
    if not np.any(kept):
        return None
    if not np.all(np.isfinite(values[kept])):
        raise UnsupportedError("numbers in a network grow too large for planes")
    shape = splits + 1
    number = np.ravel_multi_index(
        tuple((places[kept][:, None] + turns[None]).reshape(-1, len(splits)).T), shape
    )
    used, inverse = np.unique(number, return_inverse=True)
    top, bottom = np.full((used.size, count), -np.inf), np.full((used.size, count), np.inf)
    np.maximum.at(top, inverse.ravel(), above[kept].reshape(-1, count))
    np.minimum.at(bottom, inverse.ravel(), below[kept].reshape(-1, count))
    vertices = np.empty((used.size, len(splits)))
    vertices[inverse.ravel()] = corners[kept].reshape(-1, len(splits))
    return Cells(vertices, top, bottom, low[kept].min(0), high[kept].max(0))


def _planes(planes: NetworkPlanes, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(cells, 2q, d) slopes and (cells, 2q) offsets below the outputs, then below their negatives."""
    ranges = planes.ranges(Boxes(torch.from_numpy(low), torch.from_numpy(high)))
    one = torch.eye(planes.graph.outputs, dtype=torch.float64)
    found = planes.planes(torch.cat([one, -one]), ranges)
    return found.slopes.numpy(), found.offset.numpy()
