"""Branch and bound over LPs whose bounds are our own: slow, small, and never wrong.

An engine's tree is faster by far, but its word rests on tolerances and on presolving that nobody sees. This
one confirms such words on small programs, corrects them where they are wrong, and gives what it has proved
so far where the program is too large for it.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np

from dovetail.bounds.safe_lp import LpAnswer, SafeLp
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import HAIR, TOLERANCE, Mip
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus

ROUNDING = 1e-12
"""Of the sizes that a row adds up: what sums of some thousand products may be off by."""


@dataclass(frozen=True, eq=False)
class Proof:
    """What a tree came to."""

    bound: float
    """No point costs less; infinity: there is no point."""
    x: FloatArray | None
    """The cheapest point met, whole in its integers; for the check to judge."""
    value: float = math.inf
    """What `x` costs."""
    unbounded: bool = False
    """The relaxation falls for ever, by the solver's word."""


@dataclass(order=True)
class _Node:
    bound: float
    number: int
    lower: FloatArray = field(compare=False)
    upper: FloatArray = field(compare=False)


def branch_and_bound(
    mip: Mip,
    budget: Budget,
    *,
    cutoff: float = math.inf,
    slack: float = 0.0,
    nodes: int = 1,
    seed: int = 0,
    threads: int = 1,
) -> Proof:
    """Bound `mip`, in minimisation form, by at most so many LPs.

    Parts that cannot beat `cutoff`, a known cost, by more than `slack` are pruned.
    """
    return _Tree(mip, cutoff, slack, seed, threads).grown(nodes, budget)


class _Tree:
    def __init__(self, mip: Mip, cutoff: float, slack: float, seed: int, threads: int) -> None:
        self._mip, self._slack = mip, slack
        self._lp = SafeLp(mip, seed=seed, threads=threads)
        self._x: FloatArray | None = None
        self._value = cutoff
        """What has to be beaten: the cost of `x`, or a known one."""
        self._closed = math.inf
        """The least bound of the parts that are done with."""
        self._open: list[_Node] = []
        self._unbounded = False

    def grown(self, nodes: int, budget: Budget) -> Proof:
        """Best first: the node with the least bound."""
        self._open = [_Node(-math.inf, 0, self._mip.lower, self._mip.upper)]
        for solved in range(nodes):
            while self._open and self._pruned(self._open[0].bound):
                self._closed = min(self._closed, heapq.heappop(self._open).bound)
            if not self._open or budget.over:
                break
            for child in self._children(heapq.heappop(self._open), budget, 2 * solved + 1):
                heapq.heappush(self._open, child)
        bound = min([self._closed, *(node.bound for node in self._open)])
        value = math.inf if self._x is None else self._value
        return Proof(bound, self._x, value, self._unbounded)

    def _pruned(self, bound: float) -> bool:
        return bound >= self._value - self._slack

    def _children(self, node: _Node, budget: Budget, number: int) -> list[_Node]:
        """Solve the node's LP and branch; nothing where it is pruned."""
        mip = self._mip
        answer = self._lp.minimise(mip.cost, mip.offset, budget, (node.lower, node.upper))
        if answer.status is MipStatus.UNBOUNDED:
            self._unbounded = True
        bound = max(node.bound, answer.bound)
        if answer.x is not None:
            self._keep_if_best(answer.x)
        j = None if self._pruned(bound) else self._column(answer, node)
        if j is None:
            self._closed = min(self._closed, bound)
            return []
        return self._split(node, bound, j, answer, number)

    def _keep_if_best(self, x: FloatArray) -> None:
        """Keep a point whose integers are whole but for rounding; the check will judge it."""
        whole = np.where(self._mip.integer, np.round(x), x)
        if np.max(np.abs(whole - x), initial=0.0) > TOLERANCE:
            return
        value = self._mip.objective(whole)
        if value < self._value and self._holds(whole):
            self._x, self._value = whole, value

    def _holds(self, x: FloatArray) -> bool:
        mip = self._mip
        room = HAIR + ROUNDING * (abs(mip.A) @ np.abs(x))
        return bool(np.all(mip.row_violation(x) <= room))

    def _column(self, answer: LpAnswer, node: _Node) -> int | None:
        """The integer column to split: the least whole one, else any that is not fixed yet."""
        free = self._mip.integer & (node.upper > node.lower)
        if not np.any(free):
            return None
        if answer.x is None:
            width = np.where(free & np.isfinite(node.upper - node.lower), node.upper - node.lower, -1.0)
            return int(np.argmax(width)) if np.max(width) > 0 else None
        apart = np.where(free, np.abs(answer.x - np.round(answer.x)), -1.0)
        return int(np.argmax(apart))

    def _split(self, node: _Node, bound: float, j: int, answer: LpAnswer, number: int) -> list[_Node]:
        low, high = node.lower[j], node.upper[j]
        middle = 0.5 * (low + high) if answer.x is None else float(answer.x[j])
        cut = math.floor(min(max(middle, low), high))
        if cut >= high:
            cut = int(high) - 1
        below, above = node.upper.copy(), node.lower.copy()
        below[j], above[j] = cut, cut + 1
        return [_Node(bound, number, node.lower, below), _Node(bound, number + 1, above, node.upper)]
