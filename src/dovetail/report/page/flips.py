"""The answers of classifiers before and after the decision: which samples changed class, and which changes of
features caused it.

*Before* means without any decision (`run/problem_facts.py`): the values that the constraints give to a
sample's inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.words import several
from dovetail.report.page.decision import split
from dovetail.report.page.number_text import NOTHING, change, number, numbers, visible

SEEN, SEEN_FLIPPED = 0.01, 1e-4
"""Fraction of a feature's spread over the samples: smaller changes are not shown. A sample that flipped may
have needed no more than the second fraction, and its changes are shown."""
MOST_SAMPLES = 100
"""Largest number of samples that are listed with their changes."""


@dataclass(frozen=True)
class ClassifiedSample:
    """One sample: its class before and after, and what was changed."""

    name: str
    before: str
    after: str
    flipped: bool
    changes: list[tuple[str, str, str]]
    """Feature, from and to, difference."""


@dataclass(frozen=True)
class Feature:
    """How much one feature was raised and lowered over all samples."""

    name: str
    touched: int
    raised: str
    lowered: str
    raised_share: float
    """Relative to the largest of all features, between 0 and 1."""
    lowered_share: float


@dataclass(frozen=True)
class Flips:
    """One block, before and after."""

    title: str
    sentence: str
    samples: list[ClassifiedSample]
    features: list[Feature]
    left_out: str


def flips(result: Any) -> list[Flips]:
    """For every classification block whose rows determine the samples' inputs before the decision."""
    if result.x is None or result.facts is None:
        return []
    return [_flips(result, block) for block in result.facts.blocks if block.untouched is not None]


def _flips(result: Any, block: Any) -> Flips:
    untouched = block.untouched
    before, after = _class_of(untouched.classes), _class_of(result.x[untouched.outputs])
    spread = _spread(untouched.values)
    moves = np.nan_to_num(result.x[untouched.inputs] - untouched.values)
    flipped = ~np.isnan(before) & (before != after)
    moves[np.abs(moves) <= np.where(flipped, SEEN_FLIPPED, SEEN)[:, None] * spread] = 0.0
    touched = np.any(moves != 0.0, axis=1)
    names = _feature_names(result.names, untouched.inputs, block.features)
    order = np.lexsort(
        (-(np.abs(moves) / spread).sum(axis=1), ~flipped)
    )  # samples that flipped first, then the largest changes
    told = [i for i in order.tolist() if flipped[i] or touched[i]]
    samples = []
    for i in told[:MOST_SAMPLES]:
        changes = [
            (names[k], f"{number(value, 4)} → {number(value + moves[i, k], 4)}", change(moves[i, k], 3))
            for k in np.flatnonzero(moves[i]).tolist()
            for value in [untouched.values[i, k]]
        ]
        said = "?" if np.isnan(before[i]) else f"{before[i]:.0f}"
        name = _sample_name(result.names, untouched, i)
        samples.append(ClassifiedSample(name, said, f"{after[i]:.0f}", bool(flipped[i]), changes))
    rest = len(told) - len(samples)
    left_out = f"The {len(samples)} with the largest changes; {rest:,} more were changed." if rest else ""
    sentence = _sentence(before, after, flipped, touched, yes_or_no=untouched.outputs.shape[1] == 1)
    return Flips(visible(block.name), sentence, samples, _features(names, moves), left_out)


def _class_of(one_hot: FloatArray) -> FloatArray:
    """(n,) the class: 0 or 1 for one output, the place of the 1 for several; NaN where unknown."""
    if one_hot.shape[1] == 1:
        return np.round(one_hot[:, 0])
    unknown = np.isnan(one_hot).any(axis=1)
    return np.where(unknown, np.nan, np.argmax(np.nan_to_num(one_hot), axis=1))


def _spread(values: FloatArray) -> FloatArray:
    """(d,) the unit of each feature: its deviation, or its size if that is 0."""
    known = np.where(np.isnan(values).all(axis=0), 0.0, values)
    deviation, size = np.nanstd(known, axis=0), np.nanmax(np.abs(known), axis=0)
    return np.where(deviation > 1e-9 * size, deviation, np.where(size > 0.0, size, 1.0))


def _sentence(
    before: FloatArray, after: FloatArray, flipped: BoolArray, touched: BoolArray, *, yes_or_no: bool
) -> str:
    total, unknown = len(after), int(np.isnan(before).sum())
    words = [f"{int(touched.sum()):,} of {several(total, 'sample')} changed"]
    if unknown < total:
        words.append(f"{int(flipped.sum()):,} flipped")
    if unknown < total and yes_or_no:
        words.append(f"class 1 before: {int((before == 1).sum()):,}, now: {int((after == 1).sum()):,}")
    if unknown:
        words.append(f"class before unknown for {unknown:,}")
    return "; ".join(words) + "."


def _features(names: Sequence[str], moves: FloatArray) -> list[Feature]:
    raised, lowered = np.maximum(moves, 0.0).sum(axis=0), np.maximum(-moves, 0.0).sum(axis=0)
    most = max(float(raised.max(initial=0.0)), float(lowered.max(initial=0.0)), 1e-300)
    touched = np.count_nonzero(moves, axis=0)
    texts = numbers(np.concatenate([raised, -lowered]))
    up, down = texts[: len(names)], texts[len(names) :]
    features = []
    for k in np.flatnonzero(touched).tolist():
        raised_by, lowered_by = f"+{up[k]}" if raised[k] else NOTHING, down[k] if lowered[k] else NOTHING
        shares = raised[k] / most, lowered[k] / most
        features.append(Feature(names[k], int(touched[k]), raised_by, lowered_by, *shares))
    return features


def _sample_name(names: Sequence[str] | None, untouched: Any, i: int) -> str:
    """The index of its first output, or its number."""
    if names is None or len(untouched.inputs) == 1:
        return str(i)
    _, index = split(names[untouched.outputs[i, 0]])
    return visible(index[0], 40) if index else str(i)


def _feature_names(names: Sequence[str] | None, inputs: IntArray, given: Sequence[str]) -> list[str]:
    """The predictor's name for a feature, or the common part of the columns' names."""
    d = inputs.shape[1]
    if len(given) == d:
        return [visible(name, 40) for name in given]
    if names is not None:
        first = [_parts(names[j]) for j in inputs[0].tolist()]
        other = [_parts(names[j]) for j in inputs[-1].tolist()]
        for place in range(min(map(len, first))):
            mine = [parts[place] for parts in first]
            theirs = [parts[place] if place < len(parts) else None for parts in other]
            if len(set(mine)) == d and mine == theirs:
                return [visible(name, 40) for name in mine]
    return [f"input {k}" for k in range(d)]


def _parts(name: str) -> tuple[str, ...]:
    label, index = split(name)
    return (label, *index)
