"""Good points of a case, without any solver: samples, all whole ones, then ever smaller steps from the best.

The least value of verified points is all that a bound is held against: it may lie above the optimum, never
below it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .proof_case import Case

EXACT, ACCEPTED = 1e-9, 0.95e-6
"""What a point may miss: hardly anything; or nearly all that the check accepts."""
MOST_WHOLE = 3000
ROUNDS, PARENTS, CHILDREN = 28, 6, 10
PARTS = 16
"""A way between two points is cut into so many at a time: networks take as long for one row as for these."""
CUTS, CUTS_TO_EQUALITY = 3, 13
"""Of a way out of the rows, down to a part in 4,000, as the next steps are smaller by themselves; and of one
through an equality, down to rounding."""


@dataclass(frozen=True)
class Point:
    """A verified point and its objective in minimisation form."""

    x: np.ndarray
    worth: float


def good_points(case: Case, seed: int, room: float = EXACT) -> list[Point]:
    """The best first, and a few of those that were met on the way."""
    rng = np.random.default_rng((seed, case.seed))
    search = _Search(case, room, rng)
    whole = _whole_points(case) if all(case.integer[j] for j in case.free) else None
    search.look(case.sample(1500, rng) if whole is None else whole)
    met = search.kept[:1] + search.kept[1::3]
    for sigma in np.geomspace(0.5, 1e-8, ROUNDS):
        search.step(float(sigma))
    found = [_alone(case, u, room) for u in [u for _, u in search.kept[:3] + met]]
    return sorted((point for point in found if point is not None), key=lambda point: point.worth)


def _whole_points(case: Case) -> np.ndarray | None:
    """All of them; None where they are too many."""
    ranges = [np.arange(case.lower[j], case.upper[j] + 1) for j in case.free]
    if np.prod([float(len(r)) for r in ranges]) > MOST_WHOLE:
        return None
    return np.array(list(itertools.product(*ranges)))


def _alone(case: Case, u: np.ndarray, room: float) -> Point | None:
    """As the problem evaluates it, not as one row of a large batch."""
    z = case.problem.predict(case.completed(u[None])[0])
    if case.missed(z[None])[0] > room:
        return None
    return Point(z, float(case.worth(z[None])[0]))


class _Search:
    """Keeps the best few choices and looks around them."""

    def __init__(self, case: Case, room: float, rng: np.random.Generator) -> None:
        self._case, self._room, self._rng = case, room, rng
        self.kept: list[tuple[float, np.ndarray]] = []
        low, high = np.array(case.lower)[case.free], np.array(case.upper)[case.free]
        self._width = high - low
        self._whole = np.array(case.integer)[case.free]

    def look(self, points: np.ndarray) -> None:
        """Keep the best of these that count; those that miss an equality are brought to it in pairs."""
        if self._case.equality is not None:
            points = np.concatenate([points, self._on_equality(points)])
        z = self._case.completed(points)
        counts = self._case.missed(z) <= self._room
        worth = self._case.worth(z)
        self.kept += [(float(worth[k]), points[k]) for k in np.flatnonzero(counts)]
        self.kept = sorted(self.kept, key=lambda pair: pair[0])[: 4 * PARENTS]

    def step(self, sigma: float) -> None:
        """Children of the best, and those that leave the rows brought back along their way."""
        if not self.kept:
            return
        parents = np.array([u for _, u in self.kept[:PARENTS]]).repeat(CHILDREN, axis=0)
        noise = self._rng.normal(size=parents.shape) * (self._rng.random(parents.shape) < 0.6)
        steps = np.where(self._whole, np.round(noise), sigma * self._width * noise)
        children = self._case.projected(parents + steps)
        self.look(children)
        out = self._case.missed(self._case.completed(children)) > self._room
        if self._case.equality is None and np.any(out):
            self.look(self._last_inside(parents[out], children[out]))

    def _last_inside(self, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
        outside = np.where(self._whole, inside, outside)

        def inside_rows(points: np.ndarray) -> np.ndarray:
            return self._case.missed(self._case.completed(points)) <= self._room

        return _last_where(inside_rows, inside, outside, CUTS)

    def _on_equality(self, points: np.ndarray) -> np.ndarray:
        """Between points on either side of the equality, where it is met."""
        row = self._case.problem.mip.A.toarray()[self._case.equality]
        level = self._case.problem.mip.row_lower[self._case.equality]
        side = self._case.completed(points) @ row - level
        above, below = points[side > 0.0], points[side <= 0.0]
        if len(above) == 0 or len(below) == 0:
            return points[:0]
        pairs = min(400, max(len(above), len(below)))
        one, other = above[np.arange(pairs) % len(above)], below[np.arange(pairs) % len(below)]
        other = np.where(self._whole, one, other)

        def above_it(points: np.ndarray) -> np.ndarray:
            return self._case.completed(points) @ row > level

        return _last_where(above_it, one, other, CUTS_TO_EQUALITY)


def _last_where(
    holds: Callable[[np.ndarray], np.ndarray], begin: np.ndarray, end: np.ndarray, cuts: int
) -> np.ndarray:
    """The last point on each way for which it `holds`, as it does at the beginning and not at the end."""
    at, width, ways = np.zeros((len(begin), 1)), 1.0, np.arange(len(begin))
    for _ in range(cuts):
        width /= PARTS
        tried = at + width * np.arange(1, PARTS)
        points = begin[:, None, :] + tried[:, :, None] * (end - begin)[:, None, :]
        good = holds(points.reshape(-1, begin.shape[1])).reshape(tried.shape)
        last = PARTS - 2 - np.argmax(good[:, ::-1], axis=1)
        at = np.where(good.any(axis=1), tried[ways, last], at[:, 0])[:, None]
    return begin + at * (end - begin)
