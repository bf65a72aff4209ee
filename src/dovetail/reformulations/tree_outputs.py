"""What a sample's output columns are, in rows over the weights of its leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.bounds.box import UNIT
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.class_rounding import logit
from dovetail.core.mip import SMALLEST
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.reformulations.writer import Writer
from dovetail.structure.trees import TreeSample


class Weights(NamedTuple):
    """The leaf weights of a sample: scores are base + value' z[columns]."""

    columns: IntArray
    value: FloatArray
    base: FloatArray
    starts: IntArray
    """The first leaf of each tree."""

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """(scores,) least and largest sums, of all entries or of those that engines keep, rounded outward."""
        least, most = (
            end.reduceat(self.value, self.starts, axis=0).sum(axis=0) for end in (np.minimum, np.maximum)
        )
        size = np.abs(self.base) + np.maximum.reduceat(np.abs(self.value), self.starts, axis=0).sum(axis=0)
        room = self.unsaid(self.value) + 2.0 * UNIT * (self.starts.size + 2) * size
        return self.base + least - room, self.base + most + room

    def unsaid(self, entries: FloatArray) -> FloatArray:
        """What those of (leaves, ...) entries that engines would drop can add up to."""
        small = np.where(np.abs(entries) < SMALLEST, np.abs(entries), 0.0)
        return np.asarray(np.maximum.reduceat(small, self.starts, axis=0).sum(axis=0))


def writable(sample: TreeSample) -> bool:
    """Whether its outputs are linear in the weights: sums of leaves, or classes read off them."""
    return sample.block.classifies or sample.boxes.ensemble.link == "identity"


def write_outputs(writer: Writer, sample: TreeSample, weights: Weights) -> None:
    """Rows that hold at every point the library can give, whatever it rounds."""
    ensemble, block = sample.boxes.ensemble, sample.block
    room = ensemble.score_error + weights.unsaid(weights.value)
    if not block.classifies:
        for o, y in enumerate(sample.outputs):
            columns, values = np.append(weights.columns, y), np.append(-weights.value[:, o], 1.0)
            writer.row(columns, values, weights.base[o] - room[o], weights.base[o] + room[o])
    elif sample.outputs.size == 1:
        _one_class(writer, weights, int(sample.outputs[0]), _cuts(ensemble, block.threshold), float(room[0]))
    elif ensemble.link == "both classes":
        writer.row(sample.outputs, np.ones(2), 1.0, 1.0)
        _one_class(writer, weights, int(sample.outputs[1]), _cuts(ensemble, 0.5), float(room[0]))
    else:
        # the largest of K probabilities is at least 1 / K: an error of it is K times as large, relative
        tie = 2.0 * ensemble.link_error * sample.outputs.size
        _largest(writer, weights, sample.outputs, ensemble.score_error + tie)


def _cuts(ensemble: TreeEnsemble, threshold: float) -> tuple[float, float]:
    """Scores below the first are short of the threshold, those from the second on reach it; rounding decides
    between them."""
    off = ensemble.link_error * (1.0 + abs(threshold))
    below, above = (_score_at(ensemble, value) for value in (threshold - off, threshold + off))
    return below - _hair(below), above + _hair(above)


def _hair(score: float) -> float:
    """More than what computing a finite score rounds."""
    return 4.0 * float(np.finfo(float).eps) * (1.0 + abs(score)) if np.isfinite(score) else 0.0


def _score_at(ensemble: TreeEnsemble, value: float) -> float:
    """The score whose output is the value; infinite for a value that no score has."""
    if ensemble.link == "identity":
        return value
    if ensemble.link == "minus exp":
        return -float(np.log(-value)) if value < 0.0 else np.inf
    if ensemble.link == "exp":
        return float(np.log(value)) if value > 0.0 else -np.inf
    return logit(value)


def _one_class(writer: Writer, weights: Weights, y: int, cuts: tuple[float, float], room: float) -> None:
    """y = 1 where the score reaches the cuts, 0 where it stays below; either where rounding may decide."""
    (low, high), base = (float(end[0]) for end in weights.ranges()), float(weights.base[0])
    below, above = cuts[0] - room, cuts[1] + room
    if low >= above or high < below:
        known = 1.0 if low >= above else 0.0
        writer.row([y], np.ones(1), known, known)
        return
    least, most = max(low, min(below, high)), min(high, max(above, low))
    if high - most < SMALLEST:  # an entry that engines would drop, and scores above `most` with it
        most = high
    columns, score = np.append(weights.columns, y), weights.value[:, 0]
    # score >= low (1 - y) + least y,   score <= high y + most (1 - y)
    writer.row(columns, np.append(score, low - least), low - base, np.inf)
    writer.row(columns, np.append(score, most - high), -np.inf, most - base)


def _largest(writer: Writer, weights: Weights, outputs: IntArray, room: FloatArray) -> None:
    """One of them is 1, and no score is ahead of its."""
    low, high = weights.ranges()
    writer.row(outputs, np.ones(outputs.size), 1.0, 1.0)
    for k, y in enumerate(outputs):
        for j in range(outputs.size):
            if j != k:
                entries = weights.value[:, k] - weights.value[:, j]
                unsaid = float(weights.unsaid(entries))
                ahead = -(room[k] + room[j] + unsaid)
                least = min(low[k] - high[j] - unsaid, ahead)
                # score_k - score_j >= least (1 - y) + ahead y
                writer.row(
                    np.append(weights.columns, y),
                    np.append(entries, least - ahead),
                    least - weights.base[k] + weights.base[j],
                    np.inf,
                )
