"""Binaries that stand for one of several states, written in one way.

    sum b_k = 1                 one of the b_k is 1
    sum b_k <= 1                one of them, or none
    y_1 >= y_2 >= ...           the first few of the y_k are 1

What a state adds to the other rows and to the objective is a vector. Where the vectors are equally far apart
in all rows, vector k = vector 0 + k step, an integer that counts the states takes the place of the binaries:
levels 0, 5, 10 of x become x = 5 n, a chain with equal steps becomes the number of its steps. Another chain
becomes binaries b_k = y_k - y_(k+1) of which one at most is 1, if this does not add entries to the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.sparse import entries_of, row_of_entries
from dovetail.reformulations.redundant import ROUNDED


@dataclass(frozen=True, eq=False)
class Regrouped:
    """Columns that replace binaries: members = onto @ columns + constant, in all other rows."""

    members: IntArray
    stays: IntArray
    """The members whose places the new columns take."""
    onto: FloatArray
    """(members, stays)"""
    constant: FloatArray
    into: FloatArray
    """(stays, members) the new columns from the members."""
    least: int
    most: int
    rows: tuple[int, ...]
    """Rows that only define the possible states, which are removed."""
    at_most_one: int | None = None
    """The one of these rows that stays, limiting the first member to 1."""
    states: FloatArray | None = None
    """(values, members) the members for each value of an integer column; None if `onto` gives them."""

    def binaries(self, values: FloatArray) -> FloatArray:
        """The members at values of the new columns."""
        if self.states is None:
            return np.asarray(self.onto @ values + self.constant)
        return np.asarray(self.states[int(np.clip(np.round(values[0]), self.least, self.most)) - self.least])


@dataclass(frozen=True, eq=False)
class _StateGroup:
    """Binaries with few possible states."""

    members: IntArray
    rows: tuple[int, ...]
    states: FloatArray
    """(states, members), in any order; the state without a 1 first, if there is one."""
    chained: bool = False


def regrouped(
    A: sp.csr_array, cost: FloatArray, sides: tuple[FloatArray, FloatArray], binary: BoolArray
) -> list[Regrouped]:
    """The replacement of some of these binaries."""
    found: list[Regrouped] = []
    taken = np.zeros(cost.size, dtype=bool)
    columns: sp.csc_array | None = None
    for group in _groups(A, sides, binary):
        if taken[group.members].any():
            continue
        columns = A.tocsc() if columns is None else columns
        added = _added(group, columns, cost)
        made = None if added is None else _as_integer(group, added) or _one_of(group, added)
        if made is not None:
            taken[group.members] = True
            found.append(made)
    return found


def _groups(
    A: sp.csr_array, sides: tuple[FloatArray, FloatArray], binary: BoolArray
) -> Iterator[_StateGroup]:
    """Groups by rows that contain only these binaries with equal coefficients."""
    sizes = np.diff(A.indptr)
    alone = (sizes > 1) & (np.bincount(row_of_entries(A), binary[A.indices], A.shape[0]) == sizes)
    next_of: dict[int, list[tuple[int, int]]] = {}
    for i in np.flatnonzero(alone).tolist():
        columns, a = entries_of(A, i)
        if np.any(np.abs(a) != abs(a[0])):
            continue
        low, high = sorted((sides[0][i] / a[0], sides[1][i] / a[0]))
        if np.all(a == a[0]) and high == 1.0 and (low == 1.0 or low <= 0.0):
            states = np.eye(columns.size)
            yield _StateGroup(columns, (i,), states if low == 1.0 else np.vstack([0.0 * states[:1], states]))
        elif columns.size == 2 and a[0] == -a[1]:
            if low == 0.0 and high >= 1.0:
                next_of.setdefault(int(columns[0]), []).append((int(columns[1]), i))
            elif high == 0.0 and low <= -1.0:
                next_of.setdefault(int(columns[1]), []).append((int(columns[0]), i))
    yield from _chains(next_of)


def _chains(next_of: dict[int, list[tuple[int, int]]]) -> Iterator[_StateGroup]:
    """Ordered binaries, each with at most one predecessor and successor."""
    before = Counter(j for after in next_of.values() for j, _ in after)
    branching = {j for j, after in next_of.items() if len(after) > 1} | {j for j in before if before[j] > 1}
    for first in sorted(next_of.keys() - before.keys()):
        members, rows = [first], list[int]()
        while members[-1] in next_of and members[-1] not in branching:
            after, row = next_of[members[-1]][0]
            members.append(after)
            rows.append(row)
        if not branching.intersection(members):
            states = np.tril(np.ones((len(members) + 1, len(members))), -1)
            yield _StateGroup(np.array(members), tuple(rows), states, chained=True)


def _added(group: _StateGroup, columns: sp.csc_array, cost: FloatArray) -> FloatArray | None:
    """(rows, members) what each member adds to each other row that has members, and to the objective.

    None if neither rule can apply: states are equally spaced only in rows that contain all members except at
    most one, and rewriting a chain adds entries to rows that contain few of its members.
    """
    entries = [entries_of(columns, j) for j in group.members]
    rows = np.concatenate([i for i, _ in entries])
    if not group.chained and np.bincount(rows)[rows].min() < group.members.size - 1:
        return None
    own = np.isin(rows, group.rows)
    others = np.unique(rows[~own])
    added = np.zeros((others.size + 1, group.members.size))
    at = np.repeat(np.arange(group.members.size), [i.size for i, _ in entries])[~own]
    added[np.searchsorted(others, rows[~own]), at] = np.concatenate([a for _, a in entries])[~own]
    added[-1] = cost[group.members]
    return added


def _as_integer(group: _StateGroup, added: FloatArray) -> Regrouped | None:
    """An integer for the group; None if its states are not equally spaced."""
    of_state = added @ group.states.T
    size = np.abs(of_state).max(axis=1, keepdims=True)
    differs = np.flatnonzero(np.ptp(of_state, axis=1) > ROUNDED * size[:, 0])
    if not differs.size or len(group.states) < 3:
        return None
    order = np.arange(len(group.states)) if group.chained else np.argsort(of_state[differs[0]])
    last = order.size - 1
    first, end = of_state[:, order[[0]]], of_state[:, order[[-1]]]
    even = first + (end - first) * (np.arange(order.size) / last)
    if np.any(np.abs(of_state[:, order] - even) > ROUNDED * size):
        return None
    states = group.states[order]
    none = np.flatnonzero(~states.any(axis=1))
    least = -int(none[0]) if none.size else 0  # all binaries are 0 if the integer is 0
    worth = np.ones(group.members.size) if group.chained else np.argmax(states, axis=0) + least
    far = 1 if group.chained or np.array_equal(of_state, np.round(of_state)) else last  # whole stays whole
    onto = (states[far] - states[0]) / far
    return Regrouped(
        group.members, group.members[:1], onto[:, None], states[-least], worth[None].astype(float), least,
        least + last, group.rows, states=states,
    )  # fmt: skip


def _one_of(group: _StateGroup, added: FloatArray) -> Regrouped | None:
    """A chain as binaries of which at most one is 1; None if not possible or if it needs more entries."""
    count = group.members.size
    now, then = np.count_nonzero(added), np.count_nonzero(np.cumsum(added, axis=1))
    if not group.chained or then + count > now + 2 * (count - 1):
        return None
    steps = np.eye(count) - np.eye(count, k=1)
    return Regrouped(
        group.members, group.members, np.triu(np.ones((count, count))), np.zeros(count), steps, 0, 1,
        group.rows, at_most_one=group.rows[0],
    )  # fmt: skip
