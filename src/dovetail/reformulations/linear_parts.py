"""Linear maps at the ends of a network, in the network or in rows: brought to one form.

A modeller may standardise inputs in columns of their own, write the first or the last layer of a network as
constraints, give the same network the same inputs twice, or have inputs and outputs without any effect:

    u = W x + b, and nothing else uses u           the network reads x: u goes
    inputs that change no output                   are not read
    outputs h that rows use as W h only            the network has the outputs W h: h goes
    two networks with equal layers and inputs      one network

Sums of several columns are moved only into a network that begins with an activation. Blends that a network
with a first layer of its own reads stay: branching closes wine in 4 boxes with 11 blends, and not in 11,000
with the 6 ingredients of which they are made.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.errors import PredictorError
from dovetail.core.mip import Mip
from dovetail.core.names import distinct
from dovetail.core.predictor import Predictor
from dovetail.core.probe import within_reach
from dovetail.core.problem import Problem
from dovetail.core.sparse import entries_of
from dovetail.core.words import several
from dovetail.networks.layers import Dense
from dovetail.networks.sums import Sums
from dovetail.reformulations.chained_networks import unlimited
from dovetail.reformulations.composed import Linear, composed, same_network
from dovetail.reformulations.reformulated import Reformulated, picked

SAME = 1e-9
"""Relative: rows of outputs that differ by less are the same map of them."""


@dataclass(frozen=True)
class LinearParts:
    """Moves linear maps into the networks that they belong to."""

    name = "linear parts"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with fewer or simpler networks; None if nothing changes."""
        for step in (_same_networks, _inputs_moved, _outputs_moved):
            further = step(given)
            if further is not None:
                return self.apply(further) or further
        return None


# ---- networks that stand there twice


def _same_networks(given: Reformulated) -> Reformulated | None:
    """One block for blocks with equal networks and inputs; their outputs are the same columns."""
    problem, mip = given.problem, given.problem.mip
    twins: dict[str, Block] = {}
    first: dict[tuple[bytes, tuple[int, ...]], list[Block]] = {}
    for block in problem.blocks:
        alike = first.setdefault((block.inputs.tobytes(), block.inputs.shape), [])
        one = next((one for one in alike if _same(one, block)), None)
        if one is None:
            alike.append(block)
        else:
            twins[block.name] = one
    if not twins:
        return None
    n = mip.n_columns
    place, lower, upper = np.arange(n), mip.lower.copy(), mip.upper.copy()
    integer = mip.integer.copy()
    for block in problem.blocks:
        if block.name in twins:
            ours, theirs = twins[block.name].outputs, block.outputs
            place[theirs] = ours
            lower[ours], upper[ours] = (
                np.maximum(lower[ours], lower[theirs]),
                np.minimum(upper[ours], upper[theirs]),
            )
            integer[ours] |= integer[theirs]
    if np.any(lower > upper):
        return None  # a solve takes contradictory bounds as they are written
    kept = np.flatnonzero(place == np.arange(n))
    new = np.cumsum(place == np.arange(n)) - 1
    onto = sp.csr_array((np.ones(n), (np.arange(n), new[place])), shape=(n, kept.size))
    host = replace(
        mip, cost=onto.T @ mip.cost, A=sp.csr_array(mip.A @ onto), lower=lower[kept], upper=upper[kept],
        integer=integer[kept], names=None if mip.names is None else [mip.names[j] for j in kept.tolist()],
    )  # fmt: skip
    blocks = [_placed(block, new[place]) for block in problem.blocks if block.name not in twins]
    note = f"{several(len(twins), 'network')} with the inputs of an equal one left out"
    return Reformulated(
        problem.derived(host, tuple(blocks)), given, into=picked(kept, n), back=lambda z: onto @ z, note=note
    )


def _same(one: Block, other: Block) -> bool:
    if one.outputs.shape != other.outputs.shape or one.classifies != other.classifies:
        return False
    if one.classifies and one.threshold != other.threshold:
        return False
    return one.predictor is other.predictor or same_network(one.description, other.description)


def _placed(block: Block, place: IntArray) -> Block:
    return replace(block, inputs=place[block.inputs], outputs=place[block.outputs])


# ---- inputs


def _inputs_moved(given: Reformulated) -> Reformulated | None:
    """Networks that read the columns of which their inputs are made."""
    problem, moved = given.problem, 0
    defining = _defining_rows(problem)
    for k, block in enumerate(problem.blocks):
        for chosen in (defining, {}):
            other = _with_inputs(problem.mip, block, chosen, given.box)
            if other is None:
                continue
            further = problem.derived(problem.mip, (*problem.blocks[:k], other, *problem.blocks[k + 1 :]))
            with suppress(PredictorError):  # the network would read what it writes
                assert further.stages
                problem, moved = further, moved + 1
                break
    if not moved:
        return None
    note = f"{several(moved, 'network')} with linear maps of inputs inside"
    return Reformulated(problem, given, note=note)


def _defining_rows(problem: Problem) -> dict[int, int]:
    """The equation that defines a column which is in no other row and has no cost, nor is it written or an
    integer."""
    mip = problem.mip
    alone = (np.bincount(mip.A.indices, minlength=mip.n_columns) == 1) & (mip.cost == 0.0) & ~mip.integer
    alone[problem.outputs] = False
    found: dict[int, int] = {}
    reads = np.zeros(mip.n_columns, dtype=bool)
    reads[problem.inputs] = True
    for i in np.flatnonzero(mip.row_lower == mip.row_upper).tolist():
        columns, _ = entries_of(mip.A, i)
        made = columns[alone[columns] & reads[columns]]
        if made.size == 1 and columns.size > 1 and np.count_nonzero(alone[columns]) == 1:
            found[int(made[0])] = i
    return found


def _with_inputs(mip: Mip, block: Block, defining: dict[int, int], box: Box) -> Block | None:
    """The block that reads other columns; None if there is no better choice of them."""
    program = block.description.program_if_known(block.inputs.shape[1])
    if program is None or block.description.trees is not None:
        return None
    read, starts = program.read_inputs, mip.A.indptr
    if any(isinstance(one, Sums) and np.any(one.sources < program.inputs) for one in program.operations):
        defining = {u: i for u, i in defining.items() if starts[i + 1] - starts[i] == 2}
    maps = [_inputs_of(mip, inputs, read, defining) for inputs in block.inputs]
    columns, weight, bias = maps[0]
    if not columns.size:
        return None
    if not all(np.array_equal(w, weight) and np.array_equal(shift, bias) for _, w, shift in maps):
        return None
    inputs = np.array([one for one, _, _ in maps])
    if np.array_equal(inputs, block.inputs):
        return None
    predictor = composed(Linear(Dense(weight, bias)), block.predictor)
    return _described(replace(block, inputs=inputs), predictor, box, block.outputs)


def _inputs_of(
    mip: Mip, inputs: IntArray, read: BoolArray, defining: dict[int, int]
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Other columns for one sample, and the map from these to its inputs."""
    entries: list[tuple[int, int, float]] = []
    bias, found = np.zeros(inputs.size), dict[int, int]()
    for k, u in enumerate(inputs.tolist()):
        if not read[k]:
            continue
        if u not in defining:
            entries.append((k, found.setdefault(u, len(found)), 1.0))
            continue
        i = defining[u]
        columns, a = entries_of(mip.A, i)
        own = float(a[columns == u][0])
        bias[k] = mip.row_lower[i] / own
        for j, factor in zip(columns.tolist(), a.tolist(), strict=True):
            if j != u:
                entries.append((k, found.setdefault(j, len(found)), -factor / own))
    weight = np.zeros((inputs.size, len(found)))
    for k, place, factor in entries:
        weight[k, place] = factor
    return np.array(list(found), dtype=np.int64), weight, bias


def _described(block: Block, predictor: Predictor, box: Box, outputs: IntArray) -> Block:
    """The block with another predictor and other outputs."""
    lower, upper = within_reach(box.lower, box.upper)
    known = predictor.describe(0.5 * (lower + upper)[block.inputs])
    description = replace(known, features=block.inputs.shape[1], outputs=outputs.shape[1])
    return replace(block, predictor=predictor, description=description, outputs=outputs, training_range=None)


# ---- outputs


@dataclass(frozen=True, eq=False)
class _Outputs:
    """Outputs of one block, of which rows and objective use only some sums."""

    block: Block
    sums: FloatArray
    """(r, q) the sums; one of a single output has the output's bounds."""
    uses: tuple[FloatArray, ...]
    """For each sample: (rows of the host and the objective, r) its entries on the sums."""


def _outputs_moved(given: Reformulated) -> Reformulated | None:
    """Networks with the sums of their outputs that rows use, if these are fewer than the outputs."""
    problem, mip = given.problem, given.problem.mip
    columns, found = mip.A.tocsc(), list[_Outputs]()
    for block in problem.blocks:
        one = None if block.classifies else _sums_of(problem, columns, block, given.box)
        found += [] if one is None else [one]
    if not found:
        return None
    n, gone = mip.n_columns, np.zeros(mip.n_columns, dtype=bool)
    for one in found:
        gone[one.block.outputs] = True
    kept, place = np.flatnonzero(~gone), np.cumsum(~gone) - 1
    into, uses = [picked(kept, n)], [sp.csr_array(sp.vstack([mip.A, mip.cost[None]]))[:, kept]]
    whose, predictors, outputs = list[IntArray](), dict[str, Predictor](), dict[str, IntArray]()
    count = kept.size
    for one in found:
        r, samples = len(one.sums), one.block.samples
        single = np.where(np.count_nonzero(one.sums, axis=1) == 1, np.argmax(one.sums != 0.0, axis=1), -1)
        made = np.arange(count, count + r * samples).reshape(samples, r)
        count += made.size
        for sample, entries, new in zip(one.block.outputs, one.uses, made, strict=True):
            where = np.repeat(np.arange(r), sample.size), np.tile(sample, r)
            into.append(sp.csr_array((one.sums.ravel(), where), shape=(r, n)))
            uses.append(sp.csr_array(entries))
            whose.append(np.where(single >= 0, sample[single], n))
            place[sample[single[single >= 0]]] = new[single >= 0]
        outputs[one.block.name] = made
        predictors[one.block.name] = composed(one.block.predictor, Linear(Dense(one.sums, np.zeros(r))))
    everything, whole = sp.csr_array(sp.hstack(uses)), np.concatenate([kept, *whose])
    names = None if mip.names is None else (*mip.names, "sum of outputs")
    host = replace(
        mip,
        cost=everything[[-1]].toarray()[0],
        A=sp.csr_array(everything[:-1]),
        lower=np.append(mip.lower, -np.inf)[whole],
        upper=np.append(mip.upper, np.inf)[whole],
        integer=np.append(mip.integer, False)[whole],
        names=None if names is None else distinct([names[j] for j in whole.tolist()]),
    )
    box = Box(
        *(np.append(end, no)[whole] for end, no in ((given.box.lower, -np.inf), (given.box.upper, np.inf)))
    )
    blocks = [
        _described(
            replace(block, inputs=place[block.inputs]), predictors[block.name], box, outputs[block.name]
        )
        if block.name in outputs
        else _placed(block, place)
        for block in problem.blocks
        if outputs.get(block.name, block.outputs).size
    ]

    def back(z: FloatArray) -> FloatArray:
        x = np.zeros(n)
        x[kept] = z[: kept.size]
        return given.problem.predict(x)

    note = f"{several(len(found), 'network')} with sums of outputs inside"
    made_of = sp.csr_array(sp.vstack(into))
    return Reformulated(problem.derived(host, tuple(blocks)), given, into=made_of, back=back, note=note)


def _sums_of(problem: Problem, columns: sp.csc_array, block: Block, box: Box) -> _Outputs | None:
    """The sums of a block's outputs; None if there are as many as outputs, or the network is not known."""
    if (
        block.description.trees is not None
        or block.description.program_if_known(block.inputs.shape[1]) is None
    ):
        return None
    mip, q = problem.mip, block.outputs.shape[1]
    limited = (np.isfinite(mip.lower) | np.isfinite(mip.upper))[block.outputs].any(axis=0)
    limited = limited & (not unlimited(mip, block, box))
    limited |= (mip.integer[block.outputs] | np.isin(block.outputs, problem.inputs)).any(axis=0)
    parts = [np.vstack([columns[:, sample].toarray(), mip.cost[sample][None]]) for sample in block.outputs]
    used = np.vstack([np.eye(q)[limited], *(part[part.any(axis=1)] for part in parts)])
    independent = _independent(used)
    if independent.size >= q:
        return None
    sums = used[independent]
    uses = tuple(
        _snapped(part @ np.linalg.pinv(sums)) if len(sums) else np.zeros((len(part), 0)) for part in parts
    )
    for part, entries in zip(parts, uses, strict=True):
        if np.any(np.abs(entries @ sums - part) > SAME * np.abs(part).max(initial=0.0)):
            return None
    return _Outputs(block, sums, uses)


def _independent(rows: FloatArray) -> IntArray:
    """The first rows that together span all of them."""
    chosen, basis = list[int](), np.zeros((0, rows.shape[1]))
    for i, row in enumerate(rows):
        rest = row - basis.T @ (basis @ row)
        rest -= basis.T @ (basis @ rest)
        size = float(np.linalg.norm(rest))
        if size > SAME * float(np.linalg.norm(row)):
            chosen.append(i)
            basis = np.vstack([basis, rest / size])
            if len(chosen) == rows.shape[1]:
                break
    return np.array(chosen, dtype=np.int64)


def _snapped(entries: FloatArray) -> FloatArray:
    """Entries without the rounding of zeros and ones."""
    near = np.round(entries)
    return np.where(np.abs(entries - near) <= SAME, near, entries)
