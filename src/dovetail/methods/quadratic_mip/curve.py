"""A quadratic function of a few columns, and planes below and above it.

    f(x) = |F x + e|^2 - |G x + h|^2 + linear'x + constant

A square lies above its tangents and, between two limits, below its chord. So a tangent to the first part plus
chords over the second are below f; with exchanged roles they are above. For a convex f these planes are
exact; a product also has its four planes (McCormick).

Planes hold for the output of the deployed block: they are relaxed by the rounding of its arithmetic and of
ours. A single square needs no limits for this: its rounding is relative to its value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import UNIT
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.deadline import require_time
from dovetail.core.mip import SMALLEST
from dovetail.core.quadratic import QuadraticFunction

ROUNDINGS = 32
"""Number of operations for a plane, in addition to those that grow with the number of columns."""
RELATIVE = 1e-14
"""Relative: numbers that are 0 up to rounding: ninety roundings."""


@dataclass(frozen=True, eq=False)
class Plane:
    """sign * y >= slopes'x + constant."""

    output: int
    inputs: IntArray
    sign: float
    slopes: FloatArray
    constant: float

    def missed(self, z: FloatArray) -> float:
        """The violation at a point."""
        return float(self.slopes @ z[self.inputs] + self.constant - self.sign * z[self.output])


@dataclass(frozen=True, eq=False)
class QuadCurve:
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
    """The largest difference of the deployed block from f; infinite if not known."""
    rounded: tuple[float, float] = (0.0, 0.0)
    """The relative and the absolute rounding of |F x + e| if it is one number; e sums fixed terms that may
    be much larger than the result."""

    @classmethod
    def of(
        cls,
        output: int,
        inputs: IntArray,
        function: QuadraticFunction,
        box: tuple[FloatArray, FloatArray],
        slack: float,
    ) -> QuadCurve:
        """f of a sample's input columns; fixed columns are numbers in it."""
        (F, G), linear, places = function.factors, function.linear, function.places
        lower, upper = (limits[places] for limits in box)
        fixed = lower == upper
        free = ~fixed & (np.any(F, axis=0) | np.any(G, axis=0) | (linear != 0.0))
        at = np.where(fixed, lower, 0.0)
        moved = at - function.centre
        relative = 8.0 * (ROUNDINGS + len(places)) * UNIT
        curve = cls(
            output,
            inputs[places][free],
            F[:, free],
            F @ moved,
            G[:, free],
            G @ moved,
            linear[free],
            float(linear @ at),
            lower[free],
            upper[free],
            slack,
            (relative, relative * float(np.max(np.abs(F) @ np.abs(moved), initial=0.0))),
        )
        if not curve._limited:
            return replace(curve, slack=min(curve.slack, curve._own_slack))
        off = relative * float(np.abs(linear) @ np.abs(at))
        for M, size in zip((F, G), curve._sizes, strict=True):
            off += float(np.sum(_squared_error(size, relative * (np.abs(M) @ np.abs(moved)))))
        return replace(curve, slack=slack + off)

    @property
    def convex(self) -> bool:
        """Whether tangents describe f completely from below."""
        return not (np.any(self.G) or np.any(self.h))

    @property
    def single(self) -> bool:
        """Whether f is one square of one column."""
        return self.squares and self.F.shape == (1, 1)

    @property
    def squares(self) -> bool:
        """Whether f is computed as a sum of squares, so that it is never negative."""
        return not len(self.G) and not np.any(self.linear) and self.constant == 0.0

    @property
    def handed_on(self) -> bool:
        """Whether f is one column unchanged, without rounding."""
        return not len(self.F) and not len(self.G) and self.linear.size == 1 and abs(self.linear[0]) == 1.0

    @property
    def _limited(self) -> bool:
        """Whether chords and rounding are bounded."""
        return bool(np.isfinite(self.slack) and np.all(np.isfinite(self.lower) & np.isfinite(self.upper)))

    @property
    def _most(self) -> FloatArray:
        """The largest absolute value of each column."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    @property
    def _sizes(self) -> tuple[FloatArray, FloatArray]:
        """The largest sizes of F x + e and G x + h."""
        F, G = np.abs(self.F) @ self._most, np.abs(self.G) @ self._most
        return F + np.abs(self.e), G + np.abs(self.h)

    def value(self, z: FloatArray) -> float:
        """At a point of all columns."""
        x = z[self.inputs]
        up, down = self.F @ x + self.e, self.G @ x + self.h
        return float(up @ up - down @ down + self.linear @ x) + self.constant

    def within(self, lower: FloatArray, upper: FloatArray) -> QuadCurve:
        """The same within tighter bounds of all columns."""
        low, high = np.maximum(self.lower, lower[self.inputs]), np.minimum(self.upper, upper[self.inputs])
        fine = low <= high  # an empty box is reported by the rows
        low, high = np.where(fine, low, self.lower), np.where(fine, high, self.upper)
        inside = replace(self, lower=low, upper=high)
        return replace(inside, slack=min(self.slack, inside._own_slack))

    @property
    def _own_slack(self) -> float:
        """The rounding of the deployed block, without a description of its arithmetic: one square of one
        column, or of none, is rounded relative to itself."""
        if self.handed_on:
            return 0.0
        if not self.squares or len(self.F) != 1 or self.F.shape[1] > 1:
            return np.inf
        (relative, beside), size = self.rounded, float(self._sizes[0][0])
        return float(_squared_error(size, relative * size + beside))

    def below(self, z: FloatArray) -> Plane | None:
        """A plane below f, close to it at a point of all columns; None if nothing is known."""
        require_time()
        if self.single:
            return self._tangent(float(z[self.inputs[0]]))
        return self._plane(1.0, z)

    def above(self, z: FloatArray) -> Plane | None:
        """A plane above f."""
        turned = replace(
            self, F=self.G, e=self.h, G=self.F, h=self.e, linear=-self.linear, constant=-self.constant
        )
        return turned._plane(-1.0, z)

    def _tangent(self, x: float) -> Plane:
        """A tangent of one square (a x + e)^2, without limits: g t - g^2/4 is below t^2."""
        a, e = float(self.F[0, 0]), float(self.e[0])
        slope = 2.0 * (a * x + e)
        if abs(slope * a) < SMALLEST:
            return Plane(self.output, self.inputs, 1.0, np.zeros(1), 0.0)
        square, (relative, beside) = 0.25 * slope * slope, self.rounded
        pad = relative * (square + abs(slope * e)) + abs(slope) * beside
        return Plane(self.output, self.inputs, 1.0, np.array([slope * a]), slope * e - square - pad)

    def _plane(self, sign: float, z: FloatArray) -> Plane | None:
        if self.handed_on:
            return Plane(self.output, self.inputs, sign, self.linear, 0.0)
        if not self._limited:
            return None
        size = float(sum(np.sum(part**2) for part in self._sizes))
        size += float(np.abs(self.linear) @ self._most) + abs(self.constant)
        at = self.F @ np.clip(z[self.inputs], self.lower, self.upper) + self.e
        up, down = np.maximum(self.G, 0.0), np.minimum(self.G, 0.0)
        low = up @ self.lower + down @ self.upper + self.h
        high = up @ self.upper + down @ self.lower + self.h
        slopes = 2.0 * at @ self.F - (low + high) @ self.G + self.linear
        constant = 2.0 * at @ self.e - at @ at - (low + high) @ self.h + low @ high + self.constant
        return self._padded(sign, slopes, float(constant), size)

    def _padded(self, sign: float, slopes: FloatArray, constant: float, size: float) -> Plane:
        """A plane relaxed by rounding, and by entries that engines drop."""
        dropped = np.abs(slopes) < SMALLEST
        pad = float(np.abs(slopes[dropped]) @ self._most[dropped]) + self.slack
        pad += 8.0 * (ROUNDINGS + len(slopes) + len(self.F) + len(self.G)) * UNIT * size
        return Plane(self.output, self.inputs, sign, np.where(dropped, 0.0, slopes), constant - pad)

    def envelope(self) -> list[Plane]:
        """First planes: those of a product, or one on either side over the middle of the box."""
        low, high = self.lower, self.upper
        middle = np.zeros(int(np.max(self.inputs, initial=0)) + 1)
        middle[self.inputs] = 0.5 * (low + high) if self._limited else np.clip(0.0, low, high)
        planes = [self.below(middle), self.above(middle)]
        return [plane for plane in planes if plane is not None] + self._mccormick()

    def _mccormick(self) -> list[Plane]:
        """(x - a)(y - b) has a sign at each corner (a, b) of the box."""
        Q = self.F.T @ self.F - self.G.T @ self.G
        low, high = self.lower, self.upper
        squares = np.abs(np.diag(Q))
        if not self._limited or len(Q) != 2 or np.any(squares > RELATIVE * abs(Q[0, 1])):
            return []
        if np.any(self.e) or np.any(self.h):
            return []
        weight, most = 2.0 * float(Q[0, 1]), self._most
        left_out = float(squares @ most**2)
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
            constant = sign * (self.constant - weight * a * b) - left_out
            planes.append(self._padded(sign, slopes, float(constant), 4.0 * size))
        return planes


def _squared_error(size: FloatArray | float, error: FloatArray | float) -> FloatArray | float:
    """The rounding of squares of numbers of some size that are off by `error`."""
    return (2.0 * size + error) * error
