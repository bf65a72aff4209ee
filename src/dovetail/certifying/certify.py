"""A certificate for a bound that a solve has proved: from the linear part, or from a tree over network
inputs.

The certificate is made without the method that proved the bound. Where no certificate can be made, the bound
is labelled as an engine's claim.

For components that share constraints, the certificate uses the prices of these constraints and branching on
signs of neurons. The branching runs once more at the prices of the proved bound, with all components in a
batch; the nodes that it closes are the leaves of each component's tree. A class is branched on first. Nodes
still open at the time limit become leaves too and make the certified bound weaker.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import chain

import numpy as np
import torch

from dovetail.bounds.safe_lp import SafeLp
from dovetail.branching.record import Record
from dovetail.branching.targets import is_relu_network
from dovetail.branching.tree import Tree
from dovetail.certificates.certificate import SHORT, Certificate
from dovetail.certificates.checker.leaf_values import PartValues
from dovetail.certificates.checker.root_box import root_box
from dovetail.certificates.checker.verification import Verifier, verify
from dovetail.certificates.fingerprint import fingerprint
from dovetail.certificates.proof import COST_ROW, LARGEST_BYTES, CertificateKind, Leaves, ProofPart, ProofTree
from dovetail.certifying.sign_tree import SignLeaves, region_of, searched, sign_tree, tree_of
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.methods.branching_model import model_of
from dovetail.methods.component_prices.coupled_problem import CoupledProblem, Priced
from dovetail.methods.component_prices.signs import kinds_of
from dovetail.networks.graph import Graph
from dovetail.run.budget import Budget
from dovetail.structure.networks import block_graph
from dovetail.structure.structure import Structure

TOLERANCE = 1e-3
"""Relative to what the cheaper class of a component saves: the tolerance of its search."""
MOST_COMPONENTS = 1000
"""Largest number of components, because larger certificates are not kept."""
BATCH = 1024


def price_parts(problem: Problem, row_prices: FloatArray, seconds: float) -> tuple[ProofPart, ...] | None:
    """Parts at (rows,) multipliers of the coupling rows; None for components of another kind."""
    coupled = CoupledProblem.of(Structure(problem), "cpu")
    if coupled is None or not 2 <= coupled.parts.count <= MOST_COMPONENTS:
        return None
    if not all(is_relu_network(group.planes.graph) for group in coupled.groups):
        return None
    at, budget = coupled.at(coupled.sides.side_prices(row_prices)), Budget(seconds)
    with torch.inference_mode():
        made = [_parts(problem, group, budget) for group in at.parts]
    found = [parts for parts in made if parts is not None]
    return tuple(chain.from_iterable(found)) if len(found) == len(made) else None


def _parts(problem: Problem, group: Priced, budget: Budget) -> list[ProofPart] | None:
    """The parts of a group of components, in order."""
    alone = [_by_moves(problem, group, k) for k in range(len(group.other))]
    if group.targets is None:
        return alone
    first, like = kinds_of(group.targets)
    share = first.size / like.size  # similar components have the same leaves, each its own copy
    targets, tolerance = group.targets.take(torch.as_tensor(first)), TOLERANCE * group.worth
    found = searched(targets, tolerance, BATCH, budget, share=share)
    if found is None:
        return None
    leaves = [found.of(kind) for kind in range(first.size)]
    for place, k in enumerate(group.asked.tolist()):
        alone[k] = _by_signs(problem, group, k, alone[k], leaves[like[place]])
    return alone


def _by_moves(problem: Problem, group: Priced, k: int) -> ProofPart:
    """The part of component k without its network."""
    one, block = group.group.parts[k], group.group.block
    columns, rows = np.union1d(one.members, block.inputs[one.sample]), np.sort(one.rows)
    leaf = Leaves(np.ones(1), np.zeros((1, rows.size)))
    none = np.zeros(0, dtype=np.int64)
    tree = ProofTree(none, np.zeros(0), none.reshape(0, 2), leaf)
    return ProofPart(columns, rows, tree, float(group.bounds()[k]), *region_of(problem, rows))


def _by_signs(problem: Problem, group: Priced, k: int, alone: ProofPart, leaves: SignLeaves) -> ProofPart:
    """The part of component k with leaves of signs, if they form a tree."""
    tree = tree_of(leaves, problem.mip.n_columns, alone.rows.size)
    if tree is None:
        return alone
    value, row = float(group.base[k] + leaves.nodes.bound.min()), alone.row
    block, sample = group.group.block, group.group.parts[k].sample
    if block.classifies:
        value, row = min(value, float(group.other[k])), row if row >= 0 else COST_ROW
        tree = _tree_with_class(
            tree, int(block.outputs[sample][0]), leaves.price.numpy(), int(group.first[k])
        )
    return replace(alone, tree=tree, value=value, row=row)


def _tree_with_class(tree: ProofTree, column: int, price: FloatArray, of_class: int) -> ProofTree:
    """A tree for one class's points, beside a single leaf for the other class."""
    leaves, count = tree.leaves, len(tree.leaves)
    first = np.where(tree.children >= 0, tree.children + 1, tree.children)
    sides = [-1 - count, -1 - count]
    sides[of_class] = 1 if len(tree.variable) else -1
    return ProofTree(
        np.concatenate([[column], tree.variable]),
        np.concatenate([[0.5], tree.at]),
        np.concatenate([np.array([sides], dtype=np.int64), first]),
        Leaves(
            np.append(leaves.objective, 1.0),
            np.vstack([leaves.rows, np.zeros((1, leaves.rows.shape[1]))]),
            conditions=np.append(price if of_class else -price, 0.0)[:, None],
            slopes=np.vstack([leaves.slopes, np.full((1, leaves.slopes.shape[1]), np.nan)]),
            neurons=np.vstack([leaves.neurons, np.zeros((1, leaves.neurons.shape[1]))]),
        ),
    )


HAIR = 1e-9
"""Relative: a certificate is for a bound that is lower by this fraction, because the checker computes in
another order."""
BOTH = "highspy", "pyscipopt"
ENGINES = {"exact": BOTH, "tables": BOTH, "splits": BOTH, "tangents": BOTH, "scip": ("pyscipopt",)}
"""Engines whose search trees prove bounds, by source."""
MOST_INPUTS = 12
"""Largest number of free inputs of networks for a tree over columns."""
HOST_SECONDS = 30.0
"""Time limit of the LP without networks, and of all its LPs."""
SIGNS_SECONDS = 30.0
"""Time limit of branching over signs of neurons."""
LITTLE, FEW = 5e-4, 16
"""Relative: a part's value may be lower than in its search by this fraction if then no leaf must be halved;
otherwise this number of leaves is halved."""
SEARCH_SHARE = 0.4
"""Share of the time for branching over signs in all components; the rest is for the slower checker."""


def certify(
    problem: Problem, bound: float, source: str, seconds: float, prices: FloatArray | None = None
) -> Certificate | None:
    """The certificate of `bound`, in minimisation form, which `source` has proved, possibly at (rows,)
    prices. None if there is no such part."""
    end = time.perf_counter() + seconds
    graphs = {block.name: block_graph(problem, block) for block in problem.blocks}
    mine = _CertificateBuilder(
        problem, graphs, bound - HAIR * (1.0 + abs(bound)), source, seconds, lambda: time.perf_counter() > end
    )
    found = [c for c in (mine.from_host_prices(),) if c is not None]
    if not found or found[0].bound < mine.target:
        if prices is not None:
            made = mine.by_prices(prices)
        else:
            made = (mine.from_sign_tree() if _many_inputs(problem) else None) or mine.from_branching()
        found += [made] if made is not None else []
    best = max(found, key=lambda c: c.bound, default=None)
    engines = ENGINES.get(source, ())
    if engines and (best is None or best.bound < bound - SHORT * (1.0 + abs(bound))):
        said = " and ".join(filter(None, map(_version, engines)))
        return Certificate(CertificateKind.SOLVER, fingerprint(problem), bound, said)
    return best


class _CertificateBuilder:
    def __init__(
        self,
        problem: Problem,
        graphs: dict[str, Graph | None],
        target: float,
        source: str,
        seconds: float,
        over: Callable[[], bool],
    ) -> None:
        self.target, self._source, self._seconds, self._over = target, source, seconds, over
        self._problem, self._graphs = problem, graphs
        self._structure = Structure(problem)
        self._loose = self._structure.loose

    def from_host_prices(self) -> Certificate | None:
        """A certificate with prices of all rows alone."""
        mip = self._loose.mip
        prices = _host_prices(mip, min(HOST_SECONDS, self._seconds))
        if prices is None:
            return None
        return self._claiming_what_holds(self._certificate(self.target, prices, ()))

    def by_prices(self, prices: FloatArray) -> Certificate | None:
        """A certificate with a tree for every component, at prices of the coupling rows."""
        parts = price_parts(self._problem, prices, SEARCH_SHARE * self._seconds)
        if parts is None:
            return None
        tried = self._certificate(self.target, prices, parts)
        if tried.size > LARGEST_BYTES:
            return None
        try:
            leaves = Verifier(self._problem, tried, self._graphs).one_by_one()
        except UnsupportedError:
            return None
        parts = tuple(_within_reach(part, proved) for part, proved in zip(parts, leaves, strict=True))
        return self._claiming_what_holds(replace(tried, parts=parts))

    def from_sign_tree(self) -> Certificate | None:
        """A certificate with a tree over signs of neurons."""
        mip = self._loose.mip
        aim = self.target - 0.5 * SHORT * (1.0 + abs(self.target))  # the bound is for exact rows
        found = sign_tree(self._problem, aim, SIGNS_SECONDS)
        if found is None:
            return None
        columns, rows = np.arange(mip.n_columns), np.arange(mip.n_rows)
        part = ProofPart(columns, rows, found.tree, aim - mip.offset, found.defined, found.row)
        tried = self._certificate(self.target, np.zeros(mip.n_rows), (part,))
        return None if tried.size > LARGEST_BYTES else self._claiming_what_holds(tried)

    def from_branching(self) -> Certificate | None:
        """A certificate by recorded branch and bound over all columns."""
        mip, reached = self._loose.mip, self._structure.reached
        if reached is None or reached.why_empty:
            return None
        columns, rows, blocks = np.arange(mip.n_columns), np.arange(mip.n_rows), self._loose.blocks
        lower, upper = root_box(mip)
        if np.any(lower > upper):
            return None
        try:
            made = model_of(reached.problem, reached.box.lower, reached.box.upper)
            values = PartValues(
                self._loose, self._graphs, columns, rows, cost=mip.cost, noise=np.zeros(mip.n_columns),
                lower=lower, upper=upper, defined=np.zeros((0, 2), dtype=np.int64),
                most=self.target - mip.offset,
            )  # fmt: skip
        except UnsupportedError:
            return None
        if not made.solvable:
            return None
        record = Record(made, blocks, values, self.target)
        with torch.inference_mode(False), torch.no_grad():
            tree, budget = Tree(made, seed=0, threads=1, counted=False, record=record), Budget(self._seconds)
            while len(tree) and not self._over() and record.bytes < LARGEST_BYTES:
                tree.step(min(self.target, tree.leaves), budget)
            tree.finish()
        if record.value == -np.inf:
            return None
        part = ProofPart(columns, rows, record.tree(), min(record.value, record.aim))
        bound = min(self.target, part.value + mip.offset - HAIR * (1.0 + abs(part.value) + abs(mip.offset)))
        tried = self._certificate(bound, np.zeros(mip.n_rows), (part,))
        return None if tried.size > LARGEST_BYTES else self._claiming_what_holds(tried)

    def _claiming_what_holds(self, tried: Certificate) -> Certificate | None:
        """Claim what the checker proves: leaves in other batches may differ in the last digits."""
        proved = verify(self._problem, tried, self._graphs).bound
        if proved is None:
            return None
        return replace(tried, bound=min(self.target, tried.bound, self._problem.mip.sign * proved))

    def _certificate(self, bound: float, prices: np.ndarray, parts: tuple[ProofPart, ...]) -> Certificate:
        print_ = fingerprint(self._problem)
        return Certificate(CertificateKind.CHECKED, print_, float(bound), self._source, prices, parts)


def _within_reach(part: ProofPart, proved: FloatArray) -> ProofPart:
    """Claim a value that the leaves prove by themselves, or all but a few, which are halved."""
    ordered = np.sort(proved)
    alone = min(part.value, float(ordered[0]))
    if alone >= part.value - LITTLE * max(1.0, abs(part.value)):
        return replace(part, value=alone)
    return replace(part, value=min(part.value, float(ordered[min(FEW, ordered.size - 1)])))


def _many_inputs(problem: Problem) -> bool:
    """Whether networks read too many columns for a tree over these."""
    read = np.setdiff1d(problem.inputs, problem.outputs)
    return int(np.count_nonzero(problem.mip.upper[read] > problem.mip.lower[read])) > MOST_INPUTS


def _host_prices(mip: Mip, seconds: float) -> np.ndarray | None:
    """Multipliers of the LP without networks."""
    return SafeLp(mip).minimise(mip.cost, mip.offset, Budget(seconds)).multipliers


def _version(package: str) -> str:
    try:
        return f"{'SCIP by ' if package == 'pyscipopt' else ''}{package} {version(package)}"
    except PackageNotFoundError:
        return ""
