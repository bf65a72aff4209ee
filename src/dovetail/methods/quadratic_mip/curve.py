"""A quadratic function of a few columns, and planes below and above it.

    f(x) = |F x + e|^2 - |G x + h|^2 + linear'x + constant

A square lies above its tangents and, between two limits, below its chord. So a tangent to the first part and
chords over the second are below f; the other way round they are above. For a convex f nothing is lost by
that; a product has its four planes (McCormick) beside.

Planes hold for what the deployed block says: they give way by what its arithmetic and ours can round. A
single square needs no limits for that: its rounding is relative to itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import SMALLEST
from dovetail.core.quadratic import QuadraticFunction

UNIT = 2.0**-53
ROUNDINGS = 32
"""Operations on the way to a plane, beside those that grow with the number of columns."""
RELATIVE = 1e-14
"""What the square of one sum of two numbers is off by at most, relative to itself: ten roundings or so."""


@dataclass(frozen=True, eq=False)
class Plane:
    """sign * y >= slopes'x + constant."""

    output: int
    inputs: IntArray
    sign: float
    slopes: FloatArray
    constant: float

    def missed(self, z: FloatArray) -> float:
        """By how much a point is on the wrong side."""
        return float(self.slopes @ z[self.inputs] + self.constant - self.sign * z[self.output])


@dataclass(frozen=True, eq=False)
class Curve:
    """Column `output` is f of columns `inputs`, which are between `lower` and `upper`."""

    output: int
    inputs: IntArray
    F: FloatArray
    e: FloatArray
    G: FloatArray
    h: FloatArray
    linear: FloatArray
    constant: float
    lower: FloatArray
    upper: FloatArray
    slack: float
    """How far the deployed block may be from f; infinite where that is not known."""

    @classmethod
    def of(
        cls,
        output: int,
        inputs: IntArray,
        function: QuadraticFunction,
        box: tuple[FloatArray, FloatArray],
        slack: float,
    ) -> Curve:
        """A function of these columns; those that are fixed are numbers in it."""
        (F, G), (lower, upper) = function.factors, box
        fixed = lower == upper
        at, free = lower[fixed], ~fixed
        moved = np.where(fixed, np.where(fixed, lower, 0.0) - function.centre, -function.centre)
        return cls(
            output,
            inputs[free],
            F[:, free],
            F @ moved,
            G[:, free],
            G @ moved,
            function.linear[free],
            float(function.linear[fixed] @ at),
            lower[free],
            upper[free],
            slack,
        )

    @property
    def convex(self) -> bool:
        """Whether tangents are all there is to be known from below."""
        return not np.any(self.G)

    @property
    def single(self) -> bool:
        """Whether it is one square of one column, and nothing else."""
        return self.convex and self.F.shape == (1, 1) and not np.any(self.linear) and self.constant == 0.0

    @property
    def _limited(self) -> bool:
        """Whether chords and rounding have limits."""
        return bool(np.isfinite(self.slack) and np.all(np.isfinite(self.lower) & np.isfinite(self.upper)))

    def value(self, z: FloatArray) -> float:
        """At a point of all columns."""
        x = z[self.inputs]
        up, down = self.F @ x + self.e, self.G @ x + self.h
        return float(up @ up - down @ down + self.linear @ x) + self.constant

    def within(self, lower: FloatArray, upper: FloatArray) -> Curve:
        """The same within bounds of all columns, where these are tighter than its own."""
        low, high = np.maximum(self.lower, lower[self.inputs]), np.minimum(self.upper, upper[self.inputs])
        fine = low <= high  # where nothing is left, the rows will say so
        return replace(self, lower=np.where(fine, low, self.lower), upper=np.where(fine, high, self.upper))

    def below(self, z: FloatArray) -> Plane | None:
        """A plane that f is nowhere under, near it at a point of all columns; None where nothing is known."""
        if self.single:
            return self._tangent(float(z[self.inputs[0]]))
        return self._plane(1.0, z)

    def above(self, z: FloatArray) -> Plane | None:
        """A plane that f is nowhere over."""
        turned = replace(
            self, F=self.G, e=self.h, G=self.F, h=self.e, linear=-self.linear, constant=-self.constant
        )
        return turned._plane(-1.0, z)

    def _tangent(self, x: float) -> Plane:
        """Of one square a (x + e/a) squared, where no limits are needed: g t - g^2/4 is below t^2."""
        a, e = float(self.F[0, 0]), float(self.e[0])
        slope = 2.0 * (a * x + e)
        if abs(slope * a) < SMALLEST:
            return Plane(self.output, self.inputs, 1.0, np.zeros(1), 0.0)
        square = 0.25 * slope * slope
        pad = RELATIVE * (square + abs(slope * e))
        return Plane(self.output, self.inputs, 1.0, np.array([slope * a]), slope * e - square - pad)

    def _plane(self, sign: float, z: FloatArray) -> Plane | None:
        if not self._limited:
            return None
        most = np.maximum(np.abs(self.lower), np.abs(self.upper))
        sizes = [np.abs(M) @ most + np.abs(v) for M, v in ((self.F, self.e), (self.G, self.h))]
        size = float(sum(np.sum(part**2) for part in sizes) + np.abs(self.linear) @ most + abs(self.constant))
        at = self.F @ np.clip(z[self.inputs], self.lower, self.upper) + self.e
        up, down = np.maximum(self.G, 0.0), np.minimum(self.G, 0.0)
        low = up @ self.lower + down @ self.upper + self.h
        high = up @ self.upper + down @ self.lower + self.h
        slopes = 2.0 * at @ self.F - (low + high) @ self.G + self.linear
        constant = 2.0 * at @ self.e - at @ at - (low + high) @ self.h + low @ high + self.constant
        return self._padded(sign, slopes, float(constant), size)

    def _padded(self, sign: float, slopes: FloatArray, constant: float, size: float) -> Plane:
        """Given way to rounding, and to entries that engines drop."""
        most = np.maximum(np.abs(self.lower), np.abs(self.upper))
        dropped = np.abs(slopes) < SMALLEST
        pad = float(np.abs(slopes[dropped]) @ most[dropped]) + self.slack
        pad += 8.0 * (ROUNDINGS + len(slopes) + len(self.F) + len(self.G)) * UNIT * size
        return Plane(self.output, self.inputs, sign, np.where(dropped, 0.0, slopes), constant - pad)

    def envelope(self) -> list[Plane]:
        """Planes to begin with: those of a product, or one on either side over the middle of the box."""
        low, high = self.lower, self.upper
        middle = np.zeros(int(np.max(self.inputs, initial=0)) + 1)
        middle[self.inputs] = 0.5 * (low + high) if self._limited else np.clip(0.0, low, high)
        planes = [self.below(middle), self.above(middle)]
        return [plane for plane in planes if plane is not None] + self._mccormick()

    def _mccormick(self) -> list[Plane]:
        """(x - a)(y - b) has a sign at each corner (a, b) of the box."""
        Q = self.F.T @ self.F - self.G.T @ self.G
        low, high = self.lower, self.upper
        if not self._limited or len(Q) != 2 or np.any(np.abs(np.diag(Q)) > RELATIVE):
            return []
        if np.any(self.e) or np.any(self.h):
            return []
        weight, most = 2.0 * float(Q[0, 1]), np.maximum(np.abs(low), np.abs(high))
        size = abs(weight) * float(most[0] * most[1]) + float(np.abs(self.linear) @ most) + abs(self.constant)
        planes = []
        for a, b, sign in (
            (low[0], low[1], 1.0),
            (high[0], high[1], 1.0),
            (low[0], high[1], -1.0),
            (high[0], low[1], -1.0),
        ):
            sign = sign * float(np.sign(weight))
            slopes = sign * (weight * np.array([b, a]) + self.linear)
            constant = sign * (self.constant - weight * a * b)
            planes.append(self._padded(sign, slopes, float(constant), 4.0 * size))
        return planes
