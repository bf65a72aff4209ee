"""The same layers in float32 by several routes: whole batches, rows alone, numpy, sums in other orders."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from dovetail.core.arrays import FloatArray
from dovetail.networks.layers import Activation, Layer

Vectors = list[FloatArray]


def routes(layers: tuple[Layer, ...], X: FloatArray, seed: int = 0) -> Iterator[Vectors]:
    """All vectors of each route, the inputs as they were cast first; in float64, exactly as they came out."""
    start = X.astype(np.float32)
    rng = np.random.default_rng(seed)

    def one_by_one(W: np.ndarray, b: np.ndarray, v: np.ndarray) -> np.ndarray:
        total = np.broadcast_to(b, (len(v), len(b))).copy()
        for j in rng.permutation(W.shape[1]):
            total = total + W[:, j] * v[:, j : j + 1]
        return total

    def from_the_largest(W: np.ndarray, b: np.ndarray, v: np.ndarray) -> np.ndarray:
        terms = W[None] * v[:, None]
        terms = np.take_along_axis(terms, np.argsort(-np.abs(terms), axis=2), axis=2)
        return np.asarray(np.cumsum(terms, axis=2, dtype=np.float32)[:, :, -1] + b)

    def torch_alone(W: np.ndarray, b: np.ndarray, v: np.ndarray) -> np.ndarray:
        linear = torch.nn.functional.linear
        return np.concatenate([linear(*map(torch.from_numpy, (row[None], W, b))).numpy() for row in v])

    def torch_batch(W: np.ndarray, b: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.asarray(torch.nn.functional.linear(*map(torch.from_numpy, (v, W, b))).numpy())

    def numpy_product(W: np.ndarray, b: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.asarray(v @ W.T + b)

    for summed in (one_by_one, from_the_largest, torch_alone, torch_batch, numpy_product):
        vectors = [start]
        for layer in layers:
            if isinstance(layer, Activation):
                vectors.append(getattr(torch, layer.kind)(torch.from_numpy(vectors[-1])).numpy())
            else:
                W, b = layer.weight.astype(np.float32), layer.bias.astype(np.float32)
                vectors.append(summed(W, b, np.ascontiguousarray(vectors[-1])))
        assert all(vector.dtype == np.float32 for vector in vectors)
        yield [vector.astype(np.float64) for vector in vectors]
