"""Sums of kernel values, as in Gaussian processes, as one operation with planes of its own.

    mean       f(x) = sum of alpha_i k(x, x_i)
    deviation  s(x) = sqrt(w + k(x, x) - |L^-1 k(X, x)|^2)

Planes of each exponential by itself are useless: weights of thousands with alternating signs cancel out. As
an element of the kernel's Hilbert space the sum is bounded as a whole. With phi(x) the feature of x, c the
middle of a box and d = x - c,

    |f(x) - f(c) - f'(c) d|  <=  |f| P(d)         P(d)^2 = |phi(x) - phi(c) - phi'(c) d|^2
                                                         = 2 k(0) - 2 k(s) + 4 s k'(s) - 2 s k'(0)

for a kernel k(s) of the squared scaled distance s, and |f|^2 = alpha' K alpha. P^2 rises with s if k is
convex, and is at most 3 k''(0) s^2 if k'' falls. The posterior covariance is an inner product of features
with shorter ones, so that its square root s has, by the inequality of Cauchy and Schwarz,

    s(c) + s'(c) d - P  <=  s(x)  <=  s(c) + s'(c) d + P + g^2 / (2 s(c))       g^2 = -2 k'(0) s
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.linalg import solve_triangular
from torch import Tensor

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.arithmetic import FLOAT64, OURS, Arithmetic
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.graph import Enclosed, Enclosing, Expressions, GraphBuilder
from dovetail.networks.operation import Between, Operation
from dovetail.networks.program import Program


@dataclass(frozen=True)
class Profile:
    """A kernel as a convex falling function of the squared scaled distance, 1 at 0."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    steepest: float
    """-k'(0)."""
    bend: float
    """k''(0), which is the largest; infinity for Matern 3/2."""


def named(kind: str, steepest: float, bend: float) -> Profile:
    """The profile of a function of `functions.py`."""
    function = FUNCTIONS[kind]
    return Profile(
        lambda s: function.formula(torch, s), lambda s: function.derivative(torch, s), steepest, bend
    )


GAUSS = Profile(lambda s: torch.exp(-0.5 * s), lambda s: -0.5 * torch.exp(-0.5 * s), 0.5, 0.25)
MATERN32 = named("matern32", 1.5, np.inf)
MATERN52 = named("matern52", 5.0 / 6.0, 25.0 / 12.0)
CONSTANT = Profile(torch.ones_like, torch.zeros_like, 0.0, 0.0)


def rational(alpha: float) -> Profile:
    """(1 + s / (2 alpha))^-alpha."""
    return Profile(
        lambda s: torch.exp(-alpha * torch.log1p(s / (2.0 * alpha))),
        lambda s: -0.5 * torch.exp(-(alpha + 1.0) * torch.log1p(s / (2.0 * alpha))),
        0.5,
        0.25 * (1.0 + 1.0 / alpha),
    )


@dataclass(frozen=True, eq=False)
class Term:
    """size profile(|(x - x') / scale|^2)."""

    size: float
    profile: Profile
    scale: FloatArray


OPERATIONS = 64
"""Roundings of one kernel value, with room."""


@dataclass(frozen=True, eq=False)
class KernelLines:
    """Lines of means and deviations over boxes."""

    terms: tuple[Term, ...]
    points: FloatArray
    """(n, d)."""
    alpha: FloatArray
    """(n, q)."""
    spread: FloatArray
    centre: FloatArray
    """(q,) the mean is spread f + centre, the deviation spread s."""
    lower: FloatArray | None = None
    """(n, n) L; None without deviations."""
    noise: float = 0.0

    @property
    def size(self) -> float:
        """k(x, x)."""
        return sum(term.size for term in self.terms)

    @property
    def room(self) -> float:
        """The rounding of sums over all points, relative to their terms."""
        far = max(float(np.abs(self.points / term.scale).max()) for term in self.terms)
        return 4.0 * (len(self.points) + OPERATIONS + 2.0 * far) * OURS

    @cached_property
    def norms(self) -> FloatArray:
        """(q,) upper bounds of |f|."""
        K, _ = self.kernel(torch.tensor(self.points))
        squares = np.einsum("iq,ij,jq->q", self.alpha, K.numpy(), self.alpha)
        rounding = self.room * self.size * np.abs(self.alpha).sum(axis=0) ** 2
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) + rounding))

    @cached_property
    def errors(self) -> tuple[float, FloatArray]:
        """Errors of a computed variance, and of its derivative by feature."""
        assert self.lower is not None
        inverse = np.abs(solve_triangular(self.lower, np.eye(len(self.lower)), lower=True))
        amplified = inverse @ np.abs(self.lower) @ inverse
        of_v = self.room * self.size * (inverse + amplified).sum(axis=1)
        of_w = inverse.T @ of_v + self.room * np.sqrt(self.size) * (
            amplified.T.sum(axis=1) + inverse.T.sum(axis=1)
        )
        variance = (
            2.0 * np.sqrt(self.size) * np.linalg.norm(of_v) + float(of_v @ of_v) + self.room * self.size
        )
        return variance, np.asarray(self.steep * of_w.sum())

    def kernel(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """(N, n) kernel values at N points, and their (N, n, d) derivatives."""
        apart = c[:, None, :] - torch.as_tensor(self.points, device=c.device)
        K, G = torch.zeros_like(apart[..., 0]), torch.zeros_like(apart)
        for term in self.terms:
            scaled = apart / torch.as_tensor(term.scale, device=c.device)
            s = scaled.square().sum(2)
            K = K + term.size * term.profile.value(s)
            G = G + (2.0 * term.size * term.profile.slope(s))[..., None] * scaled / torch.as_tensor(
                term.scale, device=c.device
            )
        return K, G

    def _reach(self, half: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(N,) bounds of P, of |phi(x) - phi(c)| and of g, for boxes of these half widths."""
        squares = [torch.zeros_like(half[:, 0]) for _ in range(3)]
        for term in self.terms:
            s, profile = (
                (half / torch.as_tensor(term.scale, device=half.device)).square().sum(1),
                term.profile,
            )
            value, slope = profile.value(s), profile.slope(s)
            first = 2.0 - 2.0 * value + 1e-15
            second = first + 4.0 * s * slope + 2.0 * s * profile.steepest + 1e-15 * s
            bend = torch.where(s == 0.0, 0.0, 3.0 * profile.bend * s * s)
            squares[0] = squares[0] + term.size * torch.minimum(second, bend)
            squares[1] = squares[1] + term.size * torch.minimum(first, 2.0 * profile.steepest * s)
            squares[2] = squares[2] + term.size * 2.0 * profile.steepest * s
        p, whole, g = (torch.sqrt(one.clamp(min=0.0)) * (1.0 + 1e-12) for one in squares)
        return p, whole, g

    def __call__(self, low: Tensor, high: Tensor) -> Enclosing:
        """The lines between (N, d) bounds."""
        c = 0.5 * low + 0.5 * high
        half = torch.maximum(high - c, c - low)
        K, G = self.kernel(c)
        p, whole, g = self._reach(half)

        def like(array: FloatArray) -> Tensor:
            return torch.as_tensor(array, device=c.device)

        alpha, norms, spread = like(self.alpha), like(self.norms), like(self.spread)
        slopes = torch.einsum("bid,iq->bqd", G, alpha)
        weight = like(self.room * np.abs(self.alpha).sum(axis=0))
        error = weight * (self.size + half @ like(self.steep))[:, None]
        off, limit = norms * p[:, None] + error, norms * np.sqrt(self.size) + error
        mean = _Bent(K @ alpha, slopes, off, off, -limit, limit)
        found = [mean.lines(spread, like(self.centre), c)]
        if self.lower is not None:
            bent = self._deviation(K, G, half, p, whole, g)
            found.append(bent.lines(spread, torch.zeros_like(spread), c))
        return Enclosing(*(torch.cat(parts, dim=1) for parts in zip(*found, strict=True)))

    @property
    def steep(self) -> FloatArray:
        """(d,) the largest slope of the kernel, by feature."""
        each = (t.size * np.sqrt(2.0 * t.profile.steepest) / t.scale for t in self.terms)
        return np.asarray(sum(each))

    def _deviation(self, K: Tensor, G: Tensor, half: Tensor, p: Tensor, whole: Tensor, g: Tensor) -> _Bent:
        assert self.lower is not None
        lower = torch.as_tensor(self.lower, device=K.device)
        V = torch.linalg.solve_triangular(lower, K.T, upper=False)
        W = torch.linalg.solve_triangular(lower.T, V, upper=True)
        wrong, of_slope = self.errors
        square = self.size + self.noise - V.square().sum(0)
        s = torch.sqrt(square.clamp(min=100.0 * wrong + 1e-300))
        endless = torch.where(square > 100.0 * wrong, 0.0, torch.inf)
        slope = -torch.einsum("bid,ib->bd", G, W) / s[:, None]
        error = (1.0 + g / s) * wrong / s + half @ torch.as_tensor(of_slope, device=K.device) / s + endless
        above = torch.minimum(p + 0.5 * g * g / s, whole + (slope.abs() * half).sum(1))
        least = np.sqrt(self.noise) * (1.0 - self.room)
        most = np.sqrt(self.size + self.noise) * (1.0 + self.room)
        ends = torch.full_like(s, least)[:, None], torch.full_like(s, most)[:, None]
        return _Bent(s[:, None], slope[:, None], (p + error)[:, None], (above + error)[:, None], *ends)


@dataclass(frozen=True, eq=False)
class _Bent:
    """Values in the middle of boxes, slopes, how far the function may be below and above its tangent, and
    constants below and above it."""

    value: Tensor
    slopes: Tensor
    below: Tensor
    above: Tensor
    least: Tensor
    most: Tensor

    def lines(self, spread: Tensor, centre: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The lines of spread v + centre: on either side the tangent, or the constant if that is better in
        the middle."""
        found: list[Tensor] = []
        for sign, distance, constant in ((-1.0, self.below, self.least), (1.0, self.above, self.most)):
            tangent = self.value + sign * distance
            flat = ~(sign * tangent < sign * constant)  # NaN is no line
            slopes = spread[:, None] * torch.where(flat[..., None], 0.0, self.slopes)
            height = spread * torch.where(flat, constant, tangent) + centre
            size = (slopes.abs() * c.abs()[:, None]).sum(2) + height.abs() + centre.abs()
            found += [slopes, height - (slopes * c[:, None]).sum(2) + sign * 64.0 * OURS * size]
        return found[0], found[1], found[2], found[3]


@dataclass(frozen=True, eq=False)
class KernelExpansion(Operation):
    """Means, then deviations: values, ranges and rounding by a program, planes by `KernelLines`."""

    read: IntArray
    program: Program
    lines: KernelLines

    @property
    def size(self) -> int:
        """Number of results."""
        return len(self.program.outputs)

    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""
        return self.program.values(v[:, self.read])

    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """By the program."""
        low, high = self.program.ranges(low[:, self.read], high[:, self.read])
        return low[:, self.program.outputs], high[:, self.program.outputs]

    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """By the program. Its ranges suggest large errors of small roots, because it does not know that
        variances are at least the noise, and that V is no longer than a feature."""
        ends, given = (low[:, self.read], high[:, self.read]), error[:, self.read]
        found, lines = self.program.errors(arithmetic, *ends, given=given)[2], self.lines
        if lines.lower is not None and lines.noise > 0.0 and arithmetic.roundoff <= FLOAT64.roundoff:
            variance = lines.errors[0] + 2.0 * np.sqrt(lines.size) * (given @ lines.steep)
            own = 2.0 * variance / np.sqrt(lines.noise) + lines.room * np.sqrt(lines.size + lines.noise)
            deviations = found[:, len(lines.spread) :]
            np.minimum(deviations, own[:, None] * lines.spread, out=deviations)
        return found

    def write(self, graph: GraphBuilder) -> Expressions:
        """One step."""
        return graph.enclosed(Enclosed(self.program.values, self.lines), graph.read(self.read), self.size)

    def parts(self) -> Iterator[str | np.ndarray]:
        """Those of the program."""
        yield type(self).__name__
        yield self.read
        for one in self.program.operations:
            yield from one.parts()
