"""What a sample's output columns are, in rows over the weights of its leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.analysis.tree_problem import TreeSample
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import SMALLEST
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.reformulations.writer import Writer


class Weights(NamedTuple):
    """The leaf weights of a sample: scores are base + value' z[columns]."""

    columns: IntArray
    value: FloatArray
    base: FloatArray
    starts: IntArray
    """The first leaf of each tree."""

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """(scores,) least and largest sums."""
        least = np.minimum.reduceat(self.value, self.starts, axis=0).sum(axis=0)
        most = np.maximum.reduceat(self.value, self.starts, axis=0).sum(axis=0)
        return self.base + least, self.base + most

    def unsaid(self) -> FloatArray:
        """(scores,) what entries that engines would drop can add up to."""
        small = np.where(np.abs(self.value) < SMALLEST, np.abs(self.value), 0.0)
        return np.asarray(np.maximum.reduceat(small, self.starts, axis=0).sum(axis=0))


def writable(sample: TreeSample) -> bool:
    """Whether its outputs are linear in the weights: sums of leaves, or classes read off them."""
    return sample.block.classifies or sample.boxes.ensemble.link == "identity"


def write_outputs(writer: Writer, sample: TreeSample, weights: Weights) -> None:
    """Rows that hold at every point the library can give, whatever it rounds."""
    room = sample.boxes.ensemble.score_error + weights.unsaid()
    if not sample.block.classifies:
        for o, y in enumerate(sample.outputs):
            columns, values = np.append(weights.columns, y), np.append(-weights.value[:, o], 1.0)
            writer.row(columns, values, weights.base[o] - room[o], weights.base[o] + room[o])
    elif sample.outputs.size == 1:
        cut = _score_at(sample.boxes.ensemble, sample.block.threshold)
        _one_class(writer, weights, int(sample.outputs[0]), cut, float(room[0]))
    elif sample.boxes.ensemble.link == "both classes":
        writer.row(sample.outputs, np.ones(2), 1.0, 1.0)
        _one_class(writer, weights, int(sample.outputs[1]), 0.0, float(room[0]) + TIE)
    else:
        _largest(writer, weights, sample.outputs, room + TIE)


TIE = 1e-12
"""Probabilities that differ by less may be equal when they are computed: the first of equal ones counts."""


def _score_at(ensemble: TreeEnsemble, threshold: float) -> float:
    """The score whose output is the threshold."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = {"identity": threshold, "sigmoid": -np.log(1.0 / threshold - 1.0), "exp": np.log(threshold)}
    found = float(inverse[ensemble.link])
    if np.isnan(found):
        return -np.inf if threshold <= 0.0 else np.inf
    return found


def _one_class(writer: Writer, weights: Weights, y: int, cut: float, room: float) -> None:
    """y = 1 where the score reaches the cut, 0 elsewhere; either where rounding may decide."""
    (low, high), base = (float(end[0]) for end in weights.ranges()), float(weights.base[0])
    room += 4.0 * np.finfo(float).eps * (1.0 + abs(cut))
    if low >= cut + room or high < cut - room or not np.isfinite(cut):
        known = 1.0 if low >= cut else 0.0
        writer.row([y], np.ones(1), known, known)
        return
    columns, score = np.append(weights.columns, y), weights.value[:, 0]
    # score >= low (1 - y) + (cut - room) y,   score <= high y + (cut + room) (1 - y)
    writer.row(columns, np.append(score, low - min(cut - room, high)), low - base, np.inf)
    writer.row(columns, np.append(score, max(cut + room, low) - high), -np.inf, max(cut + room, low) - base)


def _largest(writer: Writer, weights: Weights, outputs: IntArray, room: FloatArray) -> None:
    """One of them is 1, and no score is ahead of its."""
    low, high = weights.ranges()
    writer.row(outputs, np.ones(outputs.size), 1.0, 1.0)
    for k, y in enumerate(outputs):
        for j in range(outputs.size):
            if j != k:
                ahead = -(room[k] + room[j])
                least = min(low[k] - high[j], ahead)
                # score_k - score_j >= least (1 - y) + ahead y
                writer.row(
                    np.append(weights.columns, y),
                    np.append(weights.value[:, k] - weights.value[:, j], least - ahead),
                    least - weights.base[k] + weights.base[j],
                    np.inf,
                )
