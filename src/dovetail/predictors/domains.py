"""The validity domains that `within=` takes: box, hull, distance to the data, and any score.

Distances are measured in standard deviations of each feature. Numbers that stand for categories have no
distances: every domain takes the range of the categories in the data instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.spatial import ConvexHull, QhullError

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import TrainingData
from dovetail.core.domain import Region
from dovetail.core.errors import OptionError, PredictorError
from dovetail.core.mip import SMALLEST
from dovetail.core.options import require_count, require_number
from dovetail.core.predictor import Predictor, as_predictor
from dovetail.predictors.domain_scores import Distance, Gauge, Whitened, spread_of

MOST_ROWS = 20_000
"""Number of constraints up to which all facets of a hull are written out; above, they are found lazily."""
MOST_WEIGHTS = 10_000
"""Number of points, times samples, up to which each point has a weight as a variable: then every LP knows the
hull, and proofs do too."""
WRITTEN_DIMENSIONS = 4
"""Dimensions up to which all facets are computed: 2,000 normal points have 30 facets in two dimensions,
2,600 in four, 20,000 in five."""


class Box:
    """The inputs between the least and the largest value of each feature in the training data.

    `margin` widens each range by a fraction of its width on both sides. `data` is that of the predictor
    (``data=``) unless it is given here.

    >>> import dovetail as dt, numpy as np
    >>> problem = dt.Problem(dt.Mip([0.0, -1.0], upper=[9.0, 99.0], names=["x", "y"]))
    >>> seen = np.array([[1.0], [4.0]])
    >>> block = problem.add_predictor(lambda X: X**2, ["x"], ["y"], name="square", within=dt.Box(seen))
    >>> result = dt.solve(problem, log=False, time_limit=5)
    >>> round(float(result.objective), 4), result.constraint_table["square within box: x"].binding
    (-16.0, True)
    """

    def __init__(self, data: Any = None, *, margin: float = 0.0) -> None:
        self._data, self._margin = data, _at_least_zero("Box: margin", margin)

    def region(self, data: TrainingData | None, features: int, samples: int) -> Region:
        """Two limits for each feature."""
        known = _known("Box", self._data, data, features)
        return Region("box", np.eye(features), *_widened(known, self._margin))


class Hull:
    """The convex hull of the training data: the inputs that are means of training points.

    `margin` enlarges the hull from the mean of the data, by 0.1 to 1.1 times its size. In up to four
    dimensions the facets are constraints. In more dimensions, training points have weights, which are more
    variables. For many samples the hull is a predictor with one output, whose facets are found as they are
    needed: the factor by which the hull must be scaled to reach the input.

    >>> import dovetail as dt, numpy as np
    >>> problem = dt.Problem(dt.Mip([-1.0, -1.0, 0.0], upper=[9.0, 9.0, 99.0]))
    >>> corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    >>> block = problem.add_predictor(lambda X: X.sum(axis=1), [0, 1], [2], within=dt.Hull(corners))
    >>> round(float(dt.solve(problem, log=False, time_limit=5).objective), 4)
    -4.0
    """

    def __init__(self, data: Any = None, *, margin: float = 0.0) -> None:
        self._data, self._margin = data, _at_least_zero("Hull: margin", margin)

    def region(self, data: TrainingData | None, features: int, samples: int) -> Region:
        """The box, which helps bounds; then facets, weights or a gauge; equations if the data are flat."""
        known = _known("Hull", self._data, data, features)
        reads, size, box = _numbers(known), 1.0 + self._margin, np.eye(features)
        lower, upper = _widened(known, self._margin)
        points = np.unique(known.complete[:, reads], axis=0)
        white = Whitened(points)
        facets = _facets(white)
        if facets is None and len(points) * samples <= MOST_WEIGHTS:
            scale = spread_of(points)
            mixed = size * (points - white.centre) / scale
            mixed = np.vstack([np.where(np.abs(mixed) < SMALLEST, 0.0, mixed).T, np.ones(len(points))])
            A, weights = np.zeros((len(mixed), features)), np.zeros((features, len(points)))
            A[np.arange(len(reads)), reads] = -1.0 / scale
            level = np.append(-white.centre / scale, 1.0)

            def fill(X: FloatArray) -> FloatArray:
                return np.array([nnls(mixed, level - A @ x)[0] for x in X])

            lower, upper = np.append(lower, level), np.append(upper, level)
            weights = np.vstack([weights, mixed])
            return Region("hull", np.vstack([box, A]), lower, upper, weights=weights, fill=fill)
        levels = points @ white.flat.T
        lower, upper = np.append(lower, levels.min(axis=0)), np.append(upper, levels.max(axis=0))
        rows, gauge = white.flat, None
        if facets is None or len(facets) * samples > MOST_ROWS:
            gauge = Gauge(white, reads, features)
        else:
            rows = np.vstack([rows, facets])
            lower = np.append(lower, np.full(len(facets), -np.inf))
            upper = np.append(upper, size + facets @ white.centre)
        A = np.zeros((len(rows), features))
        A[:, reads] = rows
        return _scaled(Region("hull", np.vstack([box, A]), lower, upper, gauge, most=size), features)


class Near:
    """The inputs whose distance to the nearest training point is at most `distance`.

    The distance is Euclidean, in standard deviations of each feature. With `neighbours=k` it is that to the
    k-th nearest point. Without `distance`, the share `keep` of the training points lies within the distance
    of its neighbours. Features that do not vary in the data are fixed.

    >>> import dovetail as dt, numpy as np
    >>> problem = dt.Problem(dt.Mip([0.0, -1.0], upper=[9.0, 9.0]))
    >>> seen = np.array([[1.0], [3.0]])  # one standard deviation is 1
    >>> block = problem.add_predictor(lambda X: X, [0], [1], within=dt.Near(seen, distance=0.5))
    >>> round(float(dt.solve(problem, log=False, time_limit=5).objective), 4)
    -3.5
    """

    def __init__(
        self, data: Any = None, *, distance: float | None = None, neighbours: int = 1, keep: float = 0.95
    ) -> None:
        if distance is not None:
            require_number("Near: distance", distance, above=0.0)
        require_count("Near: neighbours", neighbours, at_least=1)
        self._data, self._distance, self._neighbours, self._keep = data, distance, neighbours, _share(keep)

    def region(self, data: TrainingData | None, features: int, samples: int) -> Region:
        """The distance as a score, and the box around all points within it, which helps bounds."""
        known = _known("Near", self._data, data, features)
        reads = _numbers(known)
        points = known.complete
        if len(points) <= self._neighbours:
            raise PredictorError(f"Near: data has {len(points)} rows for {self._neighbours} neighbours.")
        reads = reads[np.ptp(points[:, reads], axis=0) > 0.0]
        points, scale = points[:, reads], np.std(points[:, reads], axis=0)
        score = Distance(points, scale, self._neighbours, reads, features)
        distance = score.kept(self._keep) if self._distance is None else self._distance
        room = np.zeros(features)
        room[reads] = distance * scale
        lower, upper = known.range.lower - room, known.range.upper + room
        return Region("near", np.eye(features), lower, upper, score, most=distance)


class Score:
    """The inputs to which a predictor of yours gives at least, or at most, a score.

    `predictor` is anything that `add_predictor` takes, with one output, of the same features: an
    `IsolationForest`, a `KernelDensity`, a `GaussianMixture`, a function. Without limits, `keep` is the share
    of the training data whose score suffices; larger scores are better.

    >>> import dovetail as dt
    >>> def confidence(X):
    ...     return 1.0 - 0.1 * (X[:, 0] - 2.0) ** 2
    >>> problem = dt.Problem(dt.Mip([0.0, -1.0], upper=[9.0, 9.0]))
    >>> within = dt.Score(confidence, at_least=0.6)
    >>> block = problem.add_predictor(lambda X: X, [0], [1], within=within)
    >>> round(float(dt.solve(problem, log=False, time_limit=5).objective), 4)
    -4.0
    """

    def __init__(
        self,
        predictor: Any,
        data: Any = None,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        keep: float = 0.95,
    ) -> None:
        for name, limit in (("at_least", at_least), ("at_most", at_most)):
            if limit is not None:
                require_number(f"Score: {name}", limit)
        self._predictor, self._data, self._least, self._most = predictor, data, at_least, at_most
        self._keep = _share(keep)

    def region(self, data: TrainingData | None, features: int, samples: int) -> Region:
        """The score alone."""
        least, most, score = self._least, self._most, self._score()
        if least is None and most is None:
            known = _known("Score", self._data, data, features)
            if np.any(known.text):
                raise PredictorError("Score: data has text; give its numbers, or a limit (at_least=).")
            least = float(np.quantile(score.predict(known.complete), 1.0 - self._keep))
        nothing = np.empty(0)
        limits = -np.inf if least is None else least, np.inf if most is None else most
        return Region("score", np.empty((0, features)), nothing, nothing, score, *limits)

    def _score(self) -> Predictor:
        """The predictor, or the `score_samples` of an estimator that predicts nothing, as densities."""
        try:
            return as_predictor(self._predictor)
        except PredictorError:
            samples = getattr(self._predictor, "score_samples", None)
            if samples is None:
                raise
            return as_predictor(samples)


def _known(what: str, own: Any, data: TrainingData | None, features: int) -> TrainingData:
    """The domain's own data, or those of the predictor."""
    if own is not None:
        return TrainingData.of(what, own, features, () if data is None else data.categories)
    if data is None:
        raise PredictorError(f"{what} needs the training inputs: give data=.")
    return data


def _numbers(data: TrainingData) -> IntArray:
    """The features that have distances."""
    return np.array([k for k in range(data.rows.shape[1]) if k not in data.categories], dtype=np.int64)


def _widened(data: TrainingData, margin: float) -> tuple[FloatArray, FloatArray]:
    """Ranges, on both sides larger by a fraction of their widths; those of categories as they are."""
    lower, upper = data.range.lower, data.range.upper
    room = np.zeros(len(lower))
    reads = _numbers(data)
    room[reads] = margin * (upper - lower)[reads]
    return lower - room, upper + room


def _facets(white: Whitened) -> FloatArray | None:
    """(facets, d) weights of all facets, with limits of 1 from the centre; None if they are too many."""
    points = white.points
    if points.shape[1] > WRITTEN_DIMENSIONS:
        return None
    if points.shape[1] <= 1:
        facets = 1.0 / np.stack([points.min(axis=0), points.max(axis=0)])[: 2 * points.shape[1]]
    else:
        try:
            planes = ConvexHull(points).equations
        except QhullError:
            return None
        facets = np.unique(np.round(planes[:, :-1] / -planes[:, -1:], 12), axis=0)
    return np.asarray(facets @ white.matrix.T)


def _scaled(region: Region, features: int) -> Region:
    """The same region with a largest weight of 1 in each constraint. Weights that are too small for a MIP are
    left out, and the limits are moved by as much as they can amount to within the box."""
    size = np.abs(region.A).max(axis=1)
    A, lower, upper = region.A / size[:, None], region.lower / size, region.upper / size
    small = np.where(np.abs(A) < SMALLEST, A, 0.0)
    reach = np.maximum(np.abs(lower[:features]), np.abs(upper[:features]))
    room = np.abs(small) @ reach
    return replace(region, A=A - small, lower=lower - room, upper=upper + room)


def _at_least_zero(what: str, value: float) -> float:
    require_number(what, value, at_least=0.0)
    return float(value)


def _share(keep: float) -> float:
    require_number("keep", keep, above=0.0)
    if keep > 1.0:
        raise OptionError(f"keep is {keep!r}; give a share of the training data, at most 1.")
    return float(keep)
