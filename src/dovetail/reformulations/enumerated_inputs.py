"""Samples whose integer inputs have few combinations, with a binary for each combination.

    F(theta, x) = sum_c theta_c f(c, x)        theta binary, one of them 1, integers = sum_c theta_c c

is f itself wherever one theta is 1, and linear in theta: its slope along theta_c is what the network says
of combination c. A linear step then knows every jump exactly, where a derivative along an integer, or the
difference to a neighbour, says little about the others. Continuous inputs stay as they are; samples
without them become tables instead. Each evaluation costs as many network rows as there are combinations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.description import Description
from dovetail.core.predictor import Predictor
from dovetail.core.problem import Problem
from dovetail.reformulations.reformulated import Fill, Reformulated
from dovetail.reformulations.writer import Writer
from dovetail.structure.boxes import limits_within

if TYPE_CHECKING:
    from dovetail.core.predictor import Forward

FEWEST, MOST = 3, 32
"""Combinations of one sample: with two, the difference between them says all a step needs to know."""
MOST_COLUMNS = 5_000


@dataclass(frozen=True, eq=False)
class _ChosenInputs:
    """Which inputs of a sample are chosen, and among what."""

    places: IntArray
    """Of the integer inputs, among the sample's inputs."""
    points: FloatArray
    """(k, places)."""

    @property
    def kind(self) -> tuple[bytes, bytes]:
        """Samples of the same kind can be evaluated together."""
        return self.places.tobytes(), self.points.tobytes()


@dataclass(frozen=True)
class EnumeratedInputs:
    """A binary for each combination of a sample's integer inputs."""

    name = "enumerated inputs"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with the binaries, or None if no sample allows it. Good for points only."""
        problem, writer = given.problem, Writer(given.problem.mip.n_columns)
        blocks, fills = _enumerated(problem, given.box, writer)
        if not fills:
            return None
        note = f"integer inputs have few combinations: {writer.size} binaries choose among them in descents"
        written = problem.derived(writer.extend(problem.mip), tuple(blocks))
        return Reformulated(written, given, tuple(fills), proves=False, note=note)


def _enumerated(problem: Problem, box: Box, writer: Writer) -> tuple[list[Block], list[Fill]]:
    """Write the binaries; the blocks that read them, and what they are at a point."""
    lower, upper, integer = limits_within(problem, box.lower, box.upper)
    free_integer = integer & (upper - lower > 0.5)
    blocks: list[Block] = []
    fills: list[Fill] = []
    for block in problem.blocks:
        kinds: dict[tuple[bytes, bytes] | None, tuple[_ChosenInputs | None, list[int]]] = {}
        planned = writer.size
        for i, inputs in enumerate(block.inputs):
            choice = _choice(inputs, lower, upper, free_integer)
            if choice is not None and planned + len(choice.points) > MOST_COLUMNS:
                choice = None
            planned += 0 if choice is None else len(choice.points)
            kinds.setdefault(None if choice is None else choice.kind, (choice, []))[1].append(i)
        for number, (choice, samples) in enumerate(kinds.values()):
            part = replace(block, inputs=block.inputs[samples], outputs=block.outputs[samples])
            if choice is not None:
                part, more = _choose(writer, part, choice)
                fills += more
            blocks.append(replace(part, name=f"{block.name}:{number}"))
    return blocks, fills


def _choice(
    inputs: IntArray, lower: FloatArray, upper: FloatArray, free_integer: np.ndarray
) -> _ChosenInputs | None:
    places = np.flatnonzero(free_integer[inputs])
    columns = inputs[places]
    if places.size == 0 or np.unique(columns).size < columns.size:
        return None
    points = grid(columns, lower, upper, MOST)
    return None if points is None or len(points) < FEWEST else _ChosenInputs(places, points)


def _choose(writer: Writer, block: Block, choice: _ChosenInputs) -> tuple[Block, list[Fill]]:
    """Write the binaries of a block whose samples all have the same choice."""
    count = len(choice.points)
    others = np.setdiff1d(np.arange(block.inputs.shape[1]), choice.places)
    inputs, fills = [], list[Fill]()
    for sample in block.inputs:
        columns = sample[choice.places]
        theta = writer.columns(np.zeros(count), np.ones(count), integer=True)
        writer.row(theta, np.ones(count), 1.0, 1.0)
        for place, j in enumerate(columns):
            writer.row([j, *theta], np.concatenate([[1.0], -choice.points[:, place]]), 0.0, 0.0)
        inputs.append(np.concatenate([theta, sample[others]]))
        fills.append(partial(_which, columns, choice.points))
    mixture = EnumeratedPredictor(block.predictor, choice.points, choice.places, block.inputs.shape[1])
    description = mixture.described(block.description)
    return replace(block, predictor=mixture, description=description, inputs=np.array(inputs)), fills


def _which(columns: IntArray, points: FloatArray, x: FloatArray) -> FloatArray:
    return np.asarray(np.all(np.round(x[columns]) == points, axis=1), dtype=np.float64)


class EnumeratedPredictor:
    """sum_c theta_c f(c, x) as a predictor of rows (theta, x)."""

    def __init__(self, predictor: Predictor, points: FloatArray, places: IntArray, features: int) -> None:
        self._predictor, self._points, self._places = predictor, points.copy(), places
        self._others = np.setdiff1d(np.arange(features), places)

    def predict(self, X: FloatArray) -> FloatArray:
        """What the owner's predictor says of each combination, mixed."""
        rows = self._rows(torch.as_tensor(np.array(X))).numpy()
        values = _mixed(torch.as_tensor(np.array(X)), torch.as_tensor(self._predictor.predict(rows)))
        return np.asarray(values.numpy())

    def snapshot(self, device: str) -> Forward:
        """The owner's copy for gradients, mixed."""
        forward: Callable[[Tensor], Tensor] = self._predictor.snapshot(device)
        return lambda inputs: _mixed(inputs, forward(self._rows(inputs)))

    def describe(self, X: FloatArray) -> Description:
        """What the owner's predictor says of itself, as far as it holds for a mixture."""
        return self.described(self._predictor.describe(self._rows(torch.as_tensor(np.array(X))).numpy()))

    def described(self, inner: Description) -> Description:
        """A mixture of smooth maps is smooth; its layers nobody has written."""
        features = len(self._points) + self._others.size
        return replace(inner, features=features, feature_names=None, layers=None, program=None)

    def _rows(self, inputs: Tensor) -> Tensor:
        """Every combination for every row: (n k, features)."""
        n, k = len(inputs), len(self._points)
        points = torch.as_tensor(self._points, dtype=inputs.dtype, device=inputs.device)
        whole = points.expand(n, k, points.shape[1])
        rest = inputs[:, None, k:].expand(n, k, self._others.size)
        order = np.argsort(np.concatenate([self._places, self._others]))
        return torch.cat([whole, rest], dim=2)[:, :, order].reshape(n * k, order.size)


def _mixed(inputs: Tensor, values: Tensor) -> Tensor:
    """(n, q) the mean of (n k, q) values with the first k inputs of each row as weights."""
    n = len(inputs)
    table = values.reshape(n, len(values) // max(1, n), values.shape[1])
    return torch.einsum("nk,nkq->nq", inputs[:, : table.shape[1]], table)


def grid(columns: IntArray, lower: FloatArray, upper: FloatArray, most: int) -> FloatArray | None:
    """(k, columns) every combination within the bounds, or None if there are more than `most`."""
    low, high = np.ceil(lower[columns]), np.floor(upper[columns])
    counts = high - low + 1.0
    if not np.all(np.isfinite(counts)) or np.prod(counts) > most:
        return None
    ranges = [first + np.arange(int(count)) for first, count in zip(low, counts, strict=True)]
    return np.array(list(itertools.product(*ranges))).reshape(int(np.prod(counts)), columns.size)
