"""Algorithm 1 of the paper: dual decomposition between a MIP and its networks.

    x(k)      = argmin over the MIP      of  c'x - lambda'x + 1/2 |u(k-1) - x|_W^2
    u(k)      = argmin over the networks of  d'f(u) + lambda'(u - x(k)) + 1/2 |u - x(k)|_W^2
    lambda(k) = lambda(k-1) + W (u(k) - x(k))

until |u - x| is below the tolerance. Every x(k), and u(k) rounded, goes through the door: what is
returned is the best *verified* point on the way, not the pair the loop ends with.

Idea: neither side is rewritten in the other's language, so the MIP does not grow with the network
and one iteration costs one MIP plus a few passes through the networks. Advice: leave rho alone where
`scaling="box"`; unscaled (the paper's form) rho has to be tried. Weakness: agreement is neither
optimality nor feasibility: with a tight row or an equality on a network's output the loop may end
without a point, and with integers a large rho freezes x at the rounded u.

Settled where the paper is silent or slips: Theorem 1's proof has the merit fall in the dual step, but
by its own definition the dual step *raises* it by |u - x|_W^2 (the trace shows both numbers); W is
rho times the identity in the paper, and rho k / width^2 here unless scaling is off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.budget import StopReason
from dovetail.core.errors import UnsupportedError
from dovetail.core.incumbent import Incumbent
from dovetail.core.lap import Lap
from dovetail.core.network import NnSolver
from dovetail.core.options import (
    require_choice,
    require_count,
    require_flags,
    require_methods,
    require_number,
)
from dovetail.core.problem import Problem
from dovetail.core.search import Outcome, Search
from dovetail.core.trace import Row
from dovetail.coupling.assemble import network_block
from dovetail.coupling.coupled import Coupled
from dovetail.coupling.link import Link
from dovetail.coupling.penalty import BalancedPenalty, FixedPenalty, Penalty
from dovetail.coupling.split import split
from dovetail.mip import ENGINES, engine_for
from dovetail.nn import ProjectedGradient
from dovetail.presolve.boxes import input_box
from dovetail.presolve.stretch import Stretch, require_finite_inputs, stretch

INTEGER_LENGTH = 10.0
GLANCES = 16


@dataclass(frozen=True)
class DualDecomposition:
    """Options of Algorithm 1. The defaults are ours; `paper()` has the paper's."""

    rho: float = 40.0
    nn_solver: NnSolver = field(default_factory=ProjectedGradient)
    tolerance: float = 1e-4
    """Largest |u - x| that counts as agreement."""
    movement: float | None = 1e-4
    """Largest last move of the copies with which agreement ends the loop; None: any, as in the paper."""
    iterations: int = 50
    penalty: Penalty = field(default_factory=BalancedPenalty)
    scaling: Literal["box", "none"] = "box"
    engine: str = "auto"
    mip_gap: float = 1e-3
    both_starts: bool = True
    """Start the network step from the better of u(k-1) and x(k), sample by sample."""
    patience: int | None = 20
    """Stop as stalled after so many iterations without a new incumbent or a smaller residual."""

    name = "dual-decomposition"

    @classmethod
    def paper(cls, adaptive: bool = False) -> DualDecomposition:
        """The paper's settings: rho 10, no scaling, 25 Adam steps of 0.01, 50 iterations, 1e-4."""
        return cls(
            rho=10.0,
            nn_solver=ProjectedGradient.paper(),
            penalty=BalancedPenalty(relative=False) if adaptive else FixedPenalty(),
            scaling="none",
            movement=None,
            both_starts=False,
            patience=None,
        )

    def __post_init__(self) -> None:
        require_number("DualDecomposition: rho", self.rho, above=0.0)
        require_number("DualDecomposition: tolerance", self.tolerance, above=0.0)
        if self.movement is not None:
            require_number("DualDecomposition: movement", self.movement, above=0.0)
        require_number("DualDecomposition: mip_gap", self.mip_gap, at_least=0.0)
        require_count("DualDecomposition: iterations", self.iterations, at_least=1)
        require_flags("DualDecomposition", self, "both_starts")
        require_choice("DualDecomposition: scaling", self.scaling, ("box", "none"))
        require_choice("DualDecomposition: engine", self.engine, ("auto", *ENGINES))
        if self.patience is not None:
            require_count("DualDecomposition: patience", self.patience, at_least=1)
        solver, penalty = "dovetail.ProjectedGradient()", "dovetail.FixedPenalty()"
        require_methods("DualDecomposition: nn_solver", self.nn_solver, ("solve", "refuses"), solver)
        require_methods("DualDecomposition: penalty", self.penalty, ("start", "update"), penalty)

    def solve(self, search: Search) -> Outcome:
        """Algorithm 1: MIP step, network step, dual update, check, penalty."""
        budget, watch = search.budget, search.watch
        coupled = self._set_up(search)
        if coupled is None:
            return Outcome(StopReason.TIME, 0, "the boxes of the networks' inputs were not found in time")
        penalty = self.penalty.start(self.rho)
        progress = _Progress(self.patience)
        for k in range(1, self.iterations + 1):
            rho = penalty.rho
            lap = Lap(search)

            # 1. MIP step: x(k)
            answer = coupled.mip_step(rho, self.mip_gap, budget)
            if answer.x is None:
                return _end(budget.over or StopReason.STALLED, k - 1, coupled, rho, search)

            # 2. network step: u(k)
            coupled.network_step(answer.x, rho, self.nn_solver, budget, both_starts=self.both_starts)
            lagrangian = coupled.lagrangian(answer.x, rho)

            # 3. dual update: lambda(k)
            coupled.update_multipliers(rho)

            # 4. every candidate to the door; agreement?
            objective = search.incumbent.offer(answer.x, "x")
            search.incumbent.offer(coupled.copies(answer.x), "u")
            merit, residuals = coupled.lagrangian(answer.x, rho), coupled.residuals(rho)
            row = lap.row(
                k,
                objective,
                lagrangian=lagrangian,
                merit=merit,
                residuals=residuals,
                rho=rho,
                exact=answer.exact,
            )
            watch.iteration(row, search.incumbent.x)
            progress.see(row)
            if self._agrees(row):
                return _end(StopReason.AGREED, k, coupled, rho, search)
            stop = budget.over or progress.verdict(search.incumbent)
            if stop:
                return _end(stop, k, coupled, rho, search)

            # 5. penalty: rho
            penalty = self.penalty.update(penalty, k, row.primal, row.dual)
        return _end(StopReason.ITERATIONS, self.iterations, coupled, penalty.rho, search)

    def _agrees(self, row: Row) -> bool:
        """Agreement on a point that passed the door, with copies that have come to rest."""
        still = self.movement is None or row.dual <= row.rho * self.movement
        return row.primal < self.tolerance and still and not np.isnan(row.objective)

    def _set_up(self, search: Search) -> Coupled | None:
        """What is done once: cut the problem, measure it, load the engine, freeze the networks."""
        problem, start = search.problem, search.start
        parts = split(problem)
        box = input_box(problem, search.budget, seed=search.seed, threads=search.threads)
        scaled = self.scaling == "box"
        if scaled and not box.complete and search.budget.over:
            return None
        if scaled:
            require_finite_inputs(problem, box)
        reach = stretch(problem, box, search.seed)
        ones = np.ones(problem.mip.columns)
        width, length = (reach.width, _lengths(problem, reach)) if scaled else (ones, ones)
        unit = _objective_unit(problem, reach) if scaled else 1.0
        engine = engine_for(self.engine, parts.mip, parts.columns)
        session = engine.load(parts.mip, parts.columns, seed=search.seed, threads=search.threads)
        cost = problem.mip.minimised().cost
        links = []
        for part in parts.parts:
            points = reach.points[part.block.name]
            network = network_block(
                part, box.lower, box.upper, length, points, search.device, search.stopwatch
            )
            reason = self.nn_solver.refuses(network)
            if reason is not None:
                raise UnsupportedError(reason)
            links.append(Link(part, network, cost, width[part.block.inputs], unit, scaled=scaled))
        coupled = Coupled(parts.mip, session, links, search.stopwatch)
        search.watch.say(_introduction(engine.name, self, links))
        coupled.begin(start.x if start.x is not None else _first_point(search, reach), start.multipliers)
        return coupled


def _end(reason: StopReason, iterations: int, coupled: Coupled, rho: float, search: Search) -> Outcome:
    """Pack up: the last residual and the prices, for a later start."""
    trace = search.watch.trace
    residual = trace[-1].primal if len(trace) else None
    notes = [link.note for link in coupled.links if link.note]
    return Outcome(reason, iterations, "; ".join(notes), residual, coupled.multipliers(rho))


def _first_point(search: Search, reach: Stretch) -> FloatArray:
    """Where the copies begin: the middle of everything; where nothing feasible is known, a look around."""
    if search.incumbent.x is not None:
        return reach.middle
    chance = np.random.default_rng(search.seed)
    for part in (0.0, *np.linspace(0.2, 1.0, GLANCES)):
        away = part * chance.uniform(-0.5, 0.5, reach.middle.size) * (reach.upper - reach.lower)
        search.incumbent.offer(reach.middle + away, "look")
        if search.incumbent.x is not None:
            return search.incumbent.x
    return reach.middle


def _lengths(problem: Problem, reach: Stretch) -> FloatArray:
    """What a column's moves are measured in: its width; for an integer ten times that.

    A continuous column is drawn along little by little. An integer moves by whole steps, each of
    which has to be worth half its weight: with the weight of a continuous column it never moves.
    """
    return np.where(problem.mip.integer, INTEGER_LENGTH, 1.0) * reach.width


def _objective_unit(problem: Problem, reach: Stretch) -> float:
    """How much of the objective is at stake where a copy meets its column: what prices are measured in.

    Per input, the mean of what moving it across its stretch is worth; per sample, a share of what all
    other columns are worth, since that is what a sample's inputs can bring about. A column outside the
    blocks counts for as much as inputs and outputs can move it through a row that they share.
    """
    mip = problem.mip
    inputs, outputs = np.zeros(mip.columns, dtype=bool), np.zeros(mip.columns, dtype=bool)
    inputs[problem.inputs] = outputs[problem.outputs] = True
    tied = inputs | outputs
    entries = abs(mip.A).tocoo()
    push = abs(mip.A) @ np.where(tied, reach.play, 0.0)
    moved = np.zeros(mip.columns)
    np.maximum.at(moved, entries.col, push[entries.row] / entries.data)
    play = np.where(tied | (moved == 0.0), reach.play, np.minimum(moved, reach.play))
    worth = np.abs(mip.cost) * play
    samples = sum(block.samples for block in problem.blocks)
    at_stake = float(worth[inputs].mean() + worth[~inputs].sum() / samples)
    return at_stake if at_stake > 0.0 else 1.0


def _introduction(engine: str, options: DualDecomposition, links: list[Link]) -> str:
    forms = {link.block.name: "inputs and outputs" if link.couples_outputs else "inputs" for link in links}
    solver = getattr(options.nn_solver, "name", type(options.nn_solver).__name__)
    couplings = ", ".join(f"{name}: {form}" for name, form in forms.items())
    return f"  MIP step by {engine}, network step by {solver}\n  coupled: {couplings}"


class _Progress:
    """Notices when nothing better exists, or nothing better has come for a while."""

    def __init__(self, patience: int | None) -> None:
        self._patience = patience
        self._best_residual, self._last_gain, self._now = np.inf, 0, 0

    def see(self, row: Row) -> None:
        self._now = row.iteration
        if row.source or row.primal < 0.99 * self._best_residual:
            self._best_residual = min(self._best_residual, row.primal)
            self._last_gain = row.iteration

    def verdict(self, incumbent: Incumbent) -> StopReason | None:
        if incumbent.proved:
            return StopReason.PROVED
        if self._patience is not None and self._now - self._last_gain >= self._patience:
            return StopReason.STALLED
        return None
