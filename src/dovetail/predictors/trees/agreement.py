"""A reading counts only where the live predictor agrees: on every cut, and one number to each side of it.

For every threshold of every feature a row is made that reaches a split with that threshold, and asked about
three times: with the threshold itself, with the next float64 below and with the next above. A wrong < for <=,
a cast that was forgotten, a learning rate or base score misread all show here, before anything rests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.tree_ensemble import TreeEnsemble

CHUNK = 4096
"""Cuts whose rows are made and asked about together."""
RANDOM = 256
"""Rows beside those at cuts, anywhere between the outermost ones."""


Answer = Callable[[FloatArray], FloatArray]
Answerable = Callable[[FloatArray], FloatArray]
"""Of any rows, rows near them that have an answer."""


def agreeing(
    name: str, ensemble: TreeEnsemble, answer: Answer, answerable: Answerable = lambda rows: rows
) -> TreeEnsemble:
    """The reading, if it says the same as `answer`; in which order a library adds up may be another."""
    if ensemble.in_order:
        try:
            _require_agreement(name, ensemble, answer, answerable)
        except UnsupportedError:
            ensemble = replace(ensemble, in_order=False)
    if not ensemble.in_order:
        _require_agreement(name, ensemble, answer, answerable)
    return ensemble


def _require_agreement(
    name: str, ensemble: TreeEnsemble, answer: Answer, answerable: Answerable, seed: int = 0
) -> None:
    """Refuse a reading that says otherwise than `answer` somewhere, by more than the library rounds."""
    for rows in map(answerable, probe_rows(ensemble, np.random.default_rng(seed))):
        scores = ensemble.scores(rows)
        least, most = ensemble.output_range(scores, scores)
        said = answer(rows)
        if said.shape != least.shape:
            raise UnsupportedError(
                f"{name} gives {said.shape[1]} outputs, its trees {least.shape[1]}: they cannot be read."
            )
        with np.errstate(invalid="ignore"):
            endless = np.isinf(said) & (said == ensemble.linked(scores))  # a link that runs over
            wrong = ~((said >= least) & (said <= most) | endless)
        if np.any(wrong):
            i, o = np.argwhere(wrong)[0]
            raise UnsupportedError(
                f"{name} cannot be written out: it says {said[i, o]!r} where its trees, as dovetail reads "
                f"them, say {ensemble.linked(scores)[i, o]!r}."
            )


def probe_rows(ensemble: TreeEnsemble, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Rows at all cuts, many at a time; then some anywhere. Numbers of categories are whole."""
    for rows in _rows_anywhere(ensemble, rng):
        yield at_categories(ensemble, rows)


def at_categories(ensemble: TreeEnsemble, rows: FloatArray) -> FloatArray:
    """The rows, each number of a category rounded to the nearest."""
    if not ensemble.categories:
        return rows
    rows = rows.copy()
    rows[:, ensemble.categories] = np.round(rows[:, ensemble.categories])
    return rows


def _rows_anywhere(ensemble: TreeEnsemble, rng: np.random.Generator) -> Iterator[FloatArray]:
    low, high = _outermost(ensemble)
    is_left = np.zeros(ensemble.feature.size, dtype=bool)
    is_left[ensemble.left[~ensemble.is_leaf]] = True
    nodes = _one_per_cut(ensemble)
    for begin in range(0, nodes.size, CHUNK):
        chosen = nodes[begin : begin + CHUNK]
        rows = _reaching(ensemble, chosen, is_left, rng.uniform(size=(chosen.size, low.size)), low, high)
        at = np.arange(chosen.size), ensemble.feature[chosen]
        cut = ensemble.threshold[chosen]
        for number in (np.nextafter(cut, -np.inf), cut, np.nextafter(cut, np.inf)):
            asked = rows.copy()
            asked[at] = number
            yield asked
    yield rng.uniform(low, high, (RANDOM, low.size))


def _outermost(ensemble: TreeEnsemble) -> tuple[FloatArray, FloatArray]:
    """A little beyond the first and the last cut of each feature."""
    low = np.array([cuts[0] if cuts.size else 0.0 for cuts in ensemble.cuts])
    high = np.array([cuts[-1] if cuts.size else 0.0 for cuts in ensemble.cuts])
    room = 0.1 * (high - low) + np.where(high > low, 0.0, 1.0)
    return low - room, high + room


def _one_per_cut(ensemble: TreeEnsemble) -> IntArray:
    """A split for every threshold of every feature."""
    splits = np.flatnonzero(~ensemble.is_leaf & np.isfinite(ensemble.threshold))
    keys = np.stack([ensemble.feature[splits].astype(np.float64), ensemble.threshold[splits]])
    _, first = np.unique(keys, axis=1, return_index=True)
    return splits[first]


def _reaching(
    ensemble: TreeEnsemble,
    nodes: IntArray,
    is_left: np.ndarray,
    where: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """A row for each node that arrives there: `where` says how far between its limits each feature is."""
    lower, upper = np.tile(low, (nodes.size, 1)), np.tile(high, (nodes.size, 1))
    above = np.full(lower.shape, -np.inf)
    each, node = np.arange(nodes.size), nodes
    for _ in range(ensemble.depth):
        up = ensemble.parent[node]
        inner = up != node
        at = each[inner], ensemble.feature[up[inner]]
        cut, left = ensemble.threshold[up[inner]], is_left[node[inner]]
        upper[at] = np.where(left, np.minimum(upper[at], cut), upper[at])
        above[at] = np.where(left, above[at], np.maximum(above[at], cut))
        node = up
    lower = np.minimum(np.maximum(lower, np.nextafter(above, np.inf)), upper)
    return np.asarray(np.clip(lower + where * (upper - lower), lower, upper))
