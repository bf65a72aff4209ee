"""Verification of a certificate, by code that shares nothing with the provers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction

import numpy as np

from dovetail.certificates.certificate import Certificate
from dovetail.certificates.checker.leaf_values import PartValues, take
from dovetail.certificates.checker.region import Boxes, gamma
from dovetail.certificates.checker.root_box import root_box
from dovetail.certificates.fingerprint import fingerprint
from dovetail.certificates.proof import CertificateKind, Leaves, ProofPart, ProofTree
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.check import Violation
from dovetail.core.errors import UnsupportedError
from dovetail.core.problem import Problem
from dovetail.networks.graph import Graph

CLOSE = 1e-9
"""Relative: a value this close below the claim equals it, computed in another order."""
BATCH = 256
"""Number of leaves at a time."""
MOST_HALVINGS = 6
"""Number of times that an insufficient leaf is halved before it fails, because planes differ slightly."""


@dataclass(frozen=True)
class Verification:
    """The result of a verification. The bound is in the user's sense.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, 2.0], A=[[1.0, 1.0]], row_lower=[3.0], row_upper=[9.0]))
    >>> result = dt.solve(problem, log=False)
    >>> found = dt.check(problem, result.x, certificate=result.certificate)
    >>> found.verification.holds, str(found.verification)
    (True, 'the bound 2.999... holds: 1 leaf looked at')
    """

    bound: float | None
    """The proved bound, if any: below the claim for an insufficient certificate."""
    holds: bool
    """Whether the claim is proved."""
    message: str

    def __str__(self) -> str:
        return self.message


class _Failure(Exception):
    """An error in a certificate."""


def verify(problem: Problem, certificate: Certificate, graphs: Mapping[str, Graph | None]) -> Verification:
    """Verify every leaf; the graphs of networks are given by block name."""
    if certificate.kind is not CertificateKind.CHECKED:
        return Verification(None, False, f"not re-verified (solver: {certificate.source})")
    if certificate.problem != fingerprint(problem):
        return Verification(None, False, "it belongs to another problem, or the networks have changed")
    try:
        value = Verifier(problem, certificate, graphs).value()
    except (_Failure, BrokenTree, UnsupportedError) as reason:
        return Verification(None, False, f"not verified: {reason}")
    bound = problem.mip.sign * value
    if not np.isfinite(value):
        return Verification(None, False, "not verified: its multipliers give no bound")
    if value < certificate.bound - CLOSE * (1.0 + abs(certificate.bound)):
        claimed = problem.mip.sign * certificate.bound
        return Verification(bound, False, f"only the bound {bound:.10g} holds, not {claimed:.10g}")
    number = certificate.leaves
    leaves = "1 leaf" if number == 1 else f"{number:,} leaves"
    return Verification(bound, True, f"the bound {bound:.10g} holds: {leaves} looked at")


class Verifier:
    """Verifies one certificate; the graphs of networks are given by block name."""

    def __init__(
        self, problem: Problem, certificate: Certificate, graphs: Mapping[str, Graph | None]
    ) -> None:
        self._certificate, self._graphs = certificate, dict(graphs)
        self._problem = problem.derived(problem.mip.minimised().loosened(), problem.blocks)
        self._mip = self._problem.mip
        self._lower, self._upper = root_box(self._mip)

    def value(self) -> float:
        """The total value of all parts, prices and free columns."""
        mip, certificate = self._mip, self._certificate
        prices = certificate.prices if certificate.prices.size else np.zeros(mip.n_rows)
        if prices.shape != (mip.n_rows,) or not np.all(np.isfinite(prices)):
            raise _Failure("the number of prices is not the number of rows")
        if np.any(self._lower > self._upper):
            raise _Failure("the rows and bounds exclude every point")
        free = self._outside(prices)
        prices, cost, noise = self._priced(prices)
        side = np.where(prices > 0.0, mip.row_lower, np.where(prices < 0.0, mip.row_upper, 0.0))
        terms = [prices * side, _columns(cost - noise, cost + noise, self._lower, self._upper)[free]]
        parts = [self._part(part, cost, noise) for part in certificate.parts]
        total = np.concatenate([*terms, np.array([*parts, mip.offset])])
        if np.any(np.isneginf(total)):
            return -np.inf
        value = float(total.sum() - gamma(total.size) * np.abs(total).sum())
        return next_whole(value, mip.cost, mip.offset, self._whole_columns)

    def _priced(self, prices: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The usable prices, the costs of columns at these, and their rounding."""
        mip = self._mip
        none = ((prices > 0.0) & np.isneginf(mip.row_lower)) | ((prices < 0.0) & np.isposinf(mip.row_upper))
        prices = np.where(none, 0.0, prices)
        moved = abs(mip.A).T @ np.abs(prices)
        noise = np.where(moved > 0.0, gamma(mip.n_rows) * (np.abs(mip.cost) + moved), 0.0)
        return prices, mip.cost - mip.A.T @ prices, noise

    def one_by_one(self) -> list[FloatArray]:
        """The value of each leaf of each part, without halving."""
        _, cost, noise = self._priced(self._certificate.prices)
        return [
            np.concatenate(
                [
                    proved_values(leaves, values.values(boxes, leaves).value)
                    for values, boxes, leaves in self._leaf_batches(part, cost, noise)
                ]
            )
            for part in self._certificate.parts
        ]

    @property
    def _whole_columns(self) -> BoolArray:
        """Columns that are whole in every accepted point: integers and classes."""
        whole = self._mip.integer.copy()
        for block in self._problem.blocks:
            if block.classifies:
                whole[block.outputs.ravel()] = True
        return whole

    def _outside(self, prices: FloatArray) -> BoolArray:
        """Columns in no part, after a check of how the parts divide columns and rows."""
        mip = self._mip
        columns, rows = np.zeros(mip.n_columns, dtype=int), np.zeros(mip.n_rows, dtype=int)
        for part in self._certificate.parts:
            for places, count in ((part.columns, columns), (part.rows, rows)):
                if np.any(places < 0) or np.any(places >= count.size):
                    raise _Failure("a part has columns or rows that the problem does not have")
                np.add.at(count, places, 1)
            inside = np.zeros(mip.n_columns, dtype=bool)
            inside[part.columns] = True
            if not np.all(inside[mip.A[part.rows].indices]):
                raise _Failure("a row of a part has columns of another")
        if np.any(columns > 1) or np.any(rows > 1):
            raise _Failure("parts share columns or rows")
        if np.any(prices[rows > 0] != 0.0):
            raise _Failure("a row is priced as shared and also belongs to a part")
        return np.asarray(columns == 0)

    def _leaf_batches(
        self, part: ProofPart, cost: FloatArray, noise: FloatArray
    ) -> Iterator[tuple[PartValues, Boxes, Leaves]]:
        values = PartValues(
            self._problem, self._graphs, part.columns, part.rows, cost=cost, noise=noise,
            lower=self._lower, upper=self._upper, defined=part.defined, row=part.row, most=part.value,
        )  # fmt: skip
        _require_shapes(part, values)
        boxes = leaf_boxes(
            part.tree, part.columns, values.integer, values.lower, values.upper, values.neurons,
            self._mip.n_columns,
        )  # fmt: skip
        used = part.tree.used
        for first in range(0, used.size, BATCH):
            chosen = np.arange(first, min(first + BATCH, used.size))
            yield values, boxes.take(chosen), take(part.tree.leaves, used[chosen])

    def _part(self, part: ProofPart, cost: FloatArray, noise: FloatArray) -> float:
        least = np.inf
        for turn, (values, boxes, leaves) in enumerate(self._leaf_batches(part, cost, noise)):
            found = looked_at(values, boxes, leaves, part.value)
            if np.any(np.isneginf(found)):
                leaf = turn * BATCH + int(np.argmin(found))
                number = next(k for k, other in enumerate(self._certificate.parts) if other is part)
                raise _Failure(f"leaf {leaf} of part {number} gives no bound")
            least = min(least, float(found.min()))
        return min(least, part.value)


def looked_at(
    values: PartValues, boxes: Boxes, leaves: Leaves, target: float, depth: int = MOST_HALVINGS
) -> FloatArray:
    """(N,) the value of each leaf; insufficient ones are halved and evaluated again."""
    found = values.values(boxes, leaves)
    proved = proved_values(leaves, found.value)
    if not np.all((leaves.objective == 1.0) | (leaves.objective == 0.0)):
        raise _Failure("the objective of a leaf has a weight that is neither 0 nor 1")
    short = np.flatnonzero(proved < target - CLOSE * (1.0 + abs(target)))
    if depth == 0 or short.size == 0:
        return proved
    at = values.variables
    with np.errstate(invalid="ignore"):
        width = boxes.upper[short][:, at] - boxes.lower[short][:, at]
    score = np.where(np.isfinite(width), width, 0.0) * (np.abs(found.slopes[short]) + 1e-12)
    best = at[np.argmax(score, axis=1)]
    halves, twice = _halves(values, boxes.take(short), best), np.tile(short, 2)
    some = range(0, twice.size, BATCH)
    parts = [(halves.take(slice(k, k + BATCH)), take(leaves, twice[k : k + BATCH])) for k in some]
    found_in = np.concatenate([looked_at(values, *part, target, depth - 1) for part in parts])
    proved[short] = np.maximum(proved[short], found_in.reshape(2, -1).min(axis=0))
    return proved


def proved_values(leaves: Leaves, value: FloatArray) -> FloatArray:
    """(N,) the proved value of the objective; for leaves with objective weight 0 infinity if empty,
    otherwise minus infinity."""
    return np.where(leaves.objective == 1.0, value, np.where(value > 0.0, np.inf, -np.inf))


def _halves(values: PartValues, boxes: Boxes, column: np.ndarray) -> Boxes:
    k = np.arange(len(column))
    middle = 0.5 * (boxes.lower[k, column] + boxes.upper[k, column])
    whole = values.integer[column]
    upper, lower = boxes.upper.copy(), boxes.lower.copy()
    upper[k, column] = np.where(whole, np.floor(middle), middle)
    lower[k, column] = np.where(whole, np.floor(middle) + 1.0, middle)
    return Boxes(np.concatenate([boxes.lower, lower]), np.concatenate([upper, boxes.upper]))


def _require_shapes(part: ProofPart, values: PartValues) -> None:
    leaves, joint = part.tree.leaves, values.joint
    wanted = {
        "rows": part.rows.size, "bounds": joint.graph.outputs, "conditions": joint.classes.size,
        "slopes": values.neurons, "neurons": values.neurons,
    }  # fmt: skip
    for name, size in wanted.items():
        array = getattr(leaves, name)
        if array.shape != (len(leaves), size) and not (array.size == 0 and name != "rows"):
            raise _Failure(f"{name} of the leaves has the shape {array.shape}")


def _columns(low: FloatArray, high: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The least contribution of each column, with its cost between two numbers; 0 times infinity is 0."""
    parts = [np.where(c > 0.0, lower, np.where(c < 0.0, upper, 0.0)) for c in (low, high)]
    products = [np.where(c == 0.0, 0.0, c * p) for c, p in zip((low, high), parts, strict=True)]
    return np.minimum(*products)


def next_whole(value: float, cost: FloatArray, offset: float, whole: BoolArray) -> float:
    """The least possible objective offset + cost'x at or above `value`, in exact arithmetic. Steps are known
    if only columns that are `whole` have costs."""
    paying = cost != 0.0
    if not math.isfinite(value) or not np.any(paying) or np.any(paying & ~whole):
        return value
    costs = [Fraction(abs(c)) for c in np.unique(cost[paying]).tolist()]
    common = math.lcm(*(c.denominator for c in costs))
    step = Fraction(math.gcd(*(int(c * common) for c in costs)), common)
    start = Fraction(offset)
    reached = start + math.ceil((Fraction(value) - start) / step) * step
    return max(value, math.nextafter(float(reached), -math.inf))


class BrokenTree(ValueError):
    """The tree does not cover the problem."""


def leaf_boxes(
    tree: ProofTree,
    columns: IntArray,
    integer: BoolArray,
    lower: FloatArray,
    upper: FloatArray,
    neurons: int,
    total: int,
) -> Boxes:
    """The boxes of all leaves, in order; together they cover the part, which makes them a proof. Columns,
    integrality and bounds are those of the part. `total` is the number of columns of the problem: variables
    from there on are neurons."""
    _require_sound(tree)
    place = {int(j): k for k, j in enumerate(columns)}
    if np.any(tree.variable >= total):
        place |= {total + k: columns.size + k for k in range(neurons)}
        endless = np.full(neurons, np.inf)
        lower, upper = np.append(lower, -endless), np.append(upper, endless)
        integer = np.append(integer, np.zeros(neurons, dtype=bool))
    boxes = Boxes(*(np.empty((tree.used.size, len(lower))) for _ in range(2)))
    waiting = [(0 if len(tree.variable) else -1, lower, upper)]
    while waiting:
        node, low, high = waiting.pop()
        if node < 0:
            boxes.lower[-1 - node], boxes.upper[-1 - node] = low, high
            continue
        variable, at = int(tree.variable[node]), float(tree.at[node])
        if variable not in place:
            raise BrokenTree(f"split {node} is of column {variable}, which is not among the part's")
        k = place[variable]
        for child, side in zip(tree.children[node].tolist(), (-1.0, 1.0), strict=True):
            waiting.append((child, *_cut(low, high, k, at, side, bool(integer[k]))))
    return boxes


def _require_sound(tree: ProofTree) -> None:
    """Require that every split and every leaf is reached once, from an earlier split."""
    splits, leaves = len(tree.variable), tree.used.size
    if tree.uses.ndim != 1 or np.any(tree.uses < 0) or np.any(tree.uses >= len(tree.leaves)):
        raise BrokenTree("a leaf refers to multipliers that the certificate does not contain")
    if tree.children.shape != (splits, 2) or len(tree.at) != splits:
        raise BrokenTree("its arrays have inconsistent shapes")
    if splits == 0:
        if leaves != 1:
            raise BrokenTree(f"there is no split, but {leaves} leaves")
        return
    if np.any(tree.children[tree.children >= 0] >= splits) or np.any(-1 - tree.children >= leaves):
        raise BrokenTree("a split leads nowhere")
    later = np.where(tree.children >= 0, tree.children > np.arange(splits)[:, None], True)
    if not np.all(later):
        raise BrokenTree("a split leads back")
    once = np.sort(tree.children.ravel())
    if not np.array_equal(once, np.concatenate([np.arange(-leaves, 0), np.arange(1, splits)])):
        raise BrokenTree("a leaf or a split is missing or repeated")
    if not np.all(np.isfinite(tree.at)):
        raise BrokenTree("the value of a split is not a finite number")


def _cut(
    lower: FloatArray, upper: FloatArray, k: int, at: float, side: float, whole: bool
) -> tuple[FloatArray, FloatArray]:
    """One half of a box: both contain the cut itself, but an integer is in one only."""
    if side < 0.0:
        upper = upper.copy()
        upper[k] = min(upper[k], np.floor(at) if whole else at)
    else:
        lower = lower.copy()
        lower[k] = max(lower[k], np.floor(at) + 1.0 if whole else at)
    return lower, upper


@dataclass(frozen=True, repr=False)
class CertifiedViolation(Violation):
    """The violation of a point, with the verification of a certificate."""

    verification: Verification = field(kw_only=True)

    @classmethod
    def of(cls, violation: Violation, verification: Verification) -> CertifiedViolation:
        """Both together."""
        kinds = {place.name: getattr(violation, place.name) for place in fields(Violation)}
        return cls(**kinds, verification=verification)
