"""Algorithm 1 of the paper: dual decomposition between a MIP and its networks.

    x(k)      = argmin over the MIP      of  c'x - lambda'x + 1/2 |u(k-1) - x|_W^2
    u(k)      = argmin over the networks of  d'f(u) + lambda'(u - x(k)) + 1/2 |u - x(k)|_W^2
    lambda(k) = lambda(k-1) + W (u(k) - x(k))

until |u - x| is below the tolerance. Every x(k), and u(k) rounded, is completed and checked: the result is
the best *verified* point of all iterations, not the last pair of the loop.

Idea: neither side is rewritten in the other's language, so the MIP does not grow with the network, and one
iteration costs one MIP plus a few passes through the networks. Advice: leave rho unchanged with
`scaling="box"`; unscaled (the paper's form) rho has to be tuned. Weakness: agreement is neither optimality
nor feasibility: with a tight row or an equality on a network's output the loop may end without a point, and
with integers a large rho freezes x at the rounded u.

Deviations from the paper: Theorem 1's proof has the merit fall in the dual step, but by the definition of the
merit this step *raises* the merit by |u - x|_W^2 (the trace shows both numbers). The other two steps lower it
by more where the copies are free and rho > L (2 L where d'f is not convex), so the theorem holds there; where
the copies' constraints bind it may fail: docs/theory.md. W is rho times the identity in the paper, and rho k
/ width^2 here unless scaling is off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import Mip
from dovetail.core.options import (
    require_choice,
    require_count,
    require_flags,
    require_methods,
    require_number,
)
from dovetail.core.problem import Problem
from dovetail.coupling.assemble import network_block
from dovetail.coupling.augmented_lagrangian import AugmentedLagrangian, BlockCoupling, NetworkStart, Norm
from dovetail.coupling.penalty import BalancedPenalty, FixedPenalty, IncreasingPenalty, Penalty
from dovetail.coupling.split import paper_split, split
from dovetail.mip import engine_for, require_engine
from dovetail.nn.projected_gradient import ProjectedGradient
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipEngine, MipSession, Quadratic
from dovetail.run.network_step import SURROGATES, NnSolver, Surrogate
from dovetail.run.progress import Progress, StoppingRule
from dovetail.run.trace import Row
from dovetail.structure.boxes import TypicalRanges, input_box, require_finite_inputs, typical_ranges

INTEGER_LENGTH = 10.0
"""The unit of an integer's moves, in widths: see `_lengths`."""
PROBES = 16
"""Number of points at growing distance from the middle that are tried without a feasible start."""
PROGRESS_RATIO = 0.99
"""A residual below this fraction of the smallest so far counts as progress."""


@dataclass(frozen=True)
class DualDecomposition:
    """Options of Algorithm 1, the paper's dual decomposition. Defaults are ours; `paper()` has the paper's.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=0.0, upper=[3.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    >>> result = dt.solve(problem, dt.DualDecomposition(rho=10.0, iterations=30), log=False)
    >>> result.objective < 1e-2, result.residual is not None
    (True, True)
    """

    rho: float = 40.0
    nn_solver: NnSolver = field(default_factory=ProjectedGradient)
    tolerance: float = 1e-4
    """Largest |u - x| that counts as agreement."""
    movement: float | None = 1e-4
    """Largest last move of the copies at which agreement ends the loop; None: any, as in the paper."""
    iterations: int = 50
    penalty: Penalty = field(default_factory=BalancedPenalty)
    scaling: Literal["box", "none"] = "box"
    copies: Literal["inputs", "rows"] = "inputs"
    """Which networks' columns have copies: their inputs (outputs in other rows are coupled too); or, as in
    the paper, every column of a row with an output in it, and such rows leave the MIP."""
    dual_update: bool = True
    """False keeps the multipliers at zero: the loop without dual update, for comparison."""
    surrogate: Surrogate = "scaled-probability"
    """What replaces a class in the network step, which needs a gradient."""
    network_start: NetworkStart = "better"
    """The start of the network step: "copies", u(k-1); "mip", x(k); or the better one for each sample."""
    first: Literal["middle", "mip"] = "middle"
    """u(0) without a start: the middle of the inputs' box, or the best point of the MIP without networks."""
    norm: Norm = "largest"
    """The norm of the residuals in the penalty's rule; agreement uses the largest difference."""
    largest_multiplier: float | None = 1e4
    """Limit of multipliers in objective units per width; None: no limit."""
    engine: str | MipEngine = "auto"
    mip_gap: float = 1e-3
    """Relative gap of every MIP step."""
    mip_share: float = 0.1
    """Share of the time left for one MIP step."""
    patience: int | None = 20
    """Stop as stalled after this number of iterations without a new incumbent or a smaller residual."""

    name = "dual-decomposition"
    has_residuals = True

    @classmethod
    def paper(cls, adaptive: bool = False, engine: str | MipEngine = "auto") -> DualDecomposition:
        """The paper's settings: its copies, rho 10, no scaling, 25 Adam steps of 0.01, 50 iterations, 1e-4.

        Where the paper is open, one reading was chosen on other seeds than the paper's (docs/method.md): the
        logit stands for a class, Adam starts anew at u(k-1) in each iteration, u(k) is the best of Adam's
        steps, and rho stays at 10. `adaptive` raises rho by the paper's rule. The paper's MIP solver is
        SCIP: `engine="scip"`.
        """
        return cls(
            rho=10.0,
            nn_solver=ProjectedGradient.paper(),
            penalty=IncreasingPenalty() if adaptive else FixedPenalty(),
            scaling="none",
            copies="rows",
            engine=engine,
            movement=None,
            surrogate="logit",
            network_start="copies",
            norm="euclidean",
            largest_multiplier=None,
            patience=None,
        )

    def __post_init__(self) -> None:
        require_number("DualDecomposition: rho", self.rho, above=0.0)
        require_number("DualDecomposition: tolerance", self.tolerance, above=0.0)
        if self.movement is not None:
            require_number("DualDecomposition: movement", self.movement, above=0.0)
        require_number("DualDecomposition: mip_gap", self.mip_gap, at_least=0.0)
        require_count("DualDecomposition: iterations", self.iterations, at_least=1)
        require_flags("DualDecomposition", self, "dual_update")
        require_choice("DualDecomposition: surrogate", self.surrogate, SURROGATES)
        require_choice("DualDecomposition: network_start", self.network_start, get_args(NetworkStart))
        require_choice("DualDecomposition: first", self.first, ("middle", "mip"))
        require_choice("DualDecomposition: norm", self.norm, get_args(Norm))
        if self.largest_multiplier is not None:
            require_number("DualDecomposition: largest_multiplier", self.largest_multiplier, above=0.0)
        require_number("DualDecomposition: mip_share", self.mip_share, above=0.0)
        require_choice("DualDecomposition: scaling", self.scaling, ("box", "none"))
        require_choice("DualDecomposition: copies", self.copies, ("inputs", "rows"))
        require_engine("DualDecomposition: engine", self.engine)
        if self.patience is not None:
            require_count("DualDecomposition: patience", self.patience, at_least=1)
        solver, penalty = "dovetail.ProjectedGradient()", "dovetail.FixedPenalty()"
        require_methods("DualDecomposition: nn_solver", self.nn_solver, ("solve", "refuses"), solver)
        require_methods("DualDecomposition: penalty", self.penalty, ("start", "update"), penalty)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Run Algorithm 1: MIP step, network step, dual update, check, penalty."""
        budget, monitor = context.budget, context.monitor
        augmented = self._set_up(context)
        if augmented is None:
            return MethodOutcome(
                StopReason.TIME, 0, "the boxes of the networks' inputs were not found in time"
            )
        penalty = self.penalty.start(self.rho)
        progress, rule, gained = Progress(context), StoppingRule(patience=self.patience), _ProgressTest()
        for k in range(1, self.iterations + 1):
            rho = penalty.rho
            progress.begin()

            # 1. MIP step: x(k)
            answer = augmented.mip_step(rho, self.mip_gap, self.mip_share, budget)
            if answer.x is None:
                return _end(budget.over or StopReason.STALLED, k - 1, augmented, rho, context)

            # 2. network step: u(k)
            augmented.network_step(answer.x, rho, self.nn_solver, budget, self.network_start)
            lagrangian = augmented.lagrangian(answer.x, rho)

            # 3. dual update: lambda(k)
            if self.dual_update:
                augmented.update_multipliers(rho, self.largest_multiplier)
            context.checkpoint.multipliers = partial(augmented.multipliers, rho)

            # 4. every candidate is offered; agreement?
            objective = context.incumbent.offer(answer.x, "x")
            context.incumbent.offer(augmented.copies(answer.x), "u")
            merit, residuals = augmented.lagrangian(answer.x, rho), augmented.residuals(rho)
            row = progress.row(
                k,
                objective,
                lagrangian=lagrangian,
                merit=merit,
                residuals=residuals,
                rho=rho,
                exact=answer.exact,
            )
            monitor.iteration(row, context.incumbent.as_given)
            if self._copies_agree(row):
                return _end(StopReason.AGREED, k, augmented, rho, context)
            stop = rule.after(gained=gained(row), over=context.over)
            if stop:
                return _end(stop, k, augmented, rho, context)

            # 5. penalty: rho
            apart, moved = augmented.distances(self.norm)
            penalty = self.penalty.update(penalty, k, apart, rho * moved)
        return _end(StopReason.ITERATIONS, self.iterations, augmented, penalty.rho, context)

    def _copies_agree(self, row: Row) -> bool:
        """Whether copies agree with a point that passed the check, and have stopped moving."""
        still = self.movement is None or row.dual <= row.rho * self.movement
        return row.primal < self.tolerance and still and not np.isnan(row.objective)

    def _set_up(self, context: SolveContext) -> AugmentedLagrangian | None:
        """Split the problem, compute its scales, load the engine, freeze the networks."""
        problem, start = context.problem, context.start
        parts = paper_split(problem) if self.copies == "rows" else split(problem)
        box = input_box(problem, context.budget, seed=context.seed, threads=context.threads)
        scaled = self.scaling == "box"
        if scaled and not box.complete and context.budget.over:
            return None
        if scaled:
            require_finite_inputs(problem, box)
        ranges = typical_ranges(problem, box, context.seed)
        ones = np.ones(problem.mip.n_columns)
        width, length = (ranges.width, _lengths(problem, ranges)) if scaled else (ones, ones)
        unit = _objective_unit(problem, ranges) if scaled else 1.0
        engine = engine_for(self.engine, parts.mip, parts.columns)
        session = engine.load(parts.mip, parts.columns, seed=context.seed, threads=context.threads)
        cost = problem.mip.minimised().cost
        couplings = []
        for part in parts.parts:
            network = network_block(
                part, box.lower, box.upper, length, ranges.points, context.device, context.stopwatch,
                self.surrogate,
            )  # fmt: skip
            reason = self.nn_solver.refuses(network)
            if reason is not None:
                raise UnsupportedError(reason)
            own_width = width[part.columns]
            couplings.append(BlockCoupling(part, network, cost, own_width, unit, scaled=scaled))
        augmented = AugmentedLagrangian(parts.mip, session, couplings, context.stopwatch, engine.name)
        for label, text in _introduction(engine.name, self, couplings):
            context.monitor.fact(label, text)
        augmented.begin(self._first_copies(context, parts.mip, session, ranges), start.multipliers)
        return augmented

    def _first_copies(
        self, context: SolveContext, mip: Mip, session: MipSession, ranges: TypicalRanges
    ) -> FloatArray:
        """u(0): the user's start, or a default."""
        if context.start.x is not None:
            return context.start.x
        if self.first == "mip":
            with context.stopwatch.measure("engine"):
                answer = session.solve(
                    Quadratic.linear(mip.cost, mip.offset),
                    budget=context.budget.part(self.mip_share * context.budget.left), gap=self.mip_gap,
                )  # fmt: skip
            if answer.x is not None:
                return answer.x
        return _first_point(context, ranges)


def _end(
    reason: StopReason, iterations: int, augmented: AugmentedLagrangian, rho: float, context: SolveContext
) -> MethodOutcome:
    """The outcome with the last residual and the multipliers."""
    trace = context.monitor.trace
    residual = trace[-1].primal if len(trace) else None
    notes = [coupling.note for coupling in augmented.couplings if coupling.note]
    return MethodOutcome(
        reason, iterations, "; ".join(notes), residual, augmented.multipliers(rho), augmented.engine
    )


def _first_point(context: SolveContext, ranges: TypicalRanges) -> FloatArray:
    """The first copies: the middle of the boxes; without a feasible start, points around it."""
    if context.incumbent.x is not None:
        return ranges.middle
    rng = np.random.default_rng(context.seed)
    for part in (0.0, *np.linspace(0.2, 1.0, PROBES)):
        away = part * rng.uniform(-0.5, 0.5, ranges.middle.size) * (ranges.upper - ranges.lower)
        context.incumbent.offer(ranges.middle + away, "probe")
        if context.incumbent.x is not None:
            return context.incumbent.x
    return ranges.middle


def _lengths(problem: Problem, ranges: TypicalRanges) -> FloatArray:
    """The unit of each column's moves: its width; for an integer ten times that. A continuous column moves
    gradually. An integer moves by whole steps, each of which must gain half its weight; with the weight of a
    continuous column it never moves."""
    return np.where(problem.mip.integer, INTEGER_LENGTH, 1.0) * ranges.width


def _objective_unit(problem: Problem, ranges: TypicalRanges) -> float:
    """The part of the objective at stake in the difference of a copy and its column, in which prices are
    measured.

    For each input, the mean change of the objective when the input moves across its typical range; for each
    sample, a share of the effect of all other columns, since a sample's inputs can affect these columns. A
    column outside the blocks counts with the distance that inputs and outputs can move it through a shared
    row.
    """
    mip = problem.mip
    inputs, outputs = np.zeros(mip.n_columns, dtype=bool), np.zeros(mip.n_columns, dtype=bool)
    inputs[problem.inputs] = outputs[problem.outputs] = True
    tied = inputs | outputs
    entries = abs(mip.A).tocoo()
    push = abs(mip.A) @ np.where(tied, ranges.play, 0.0)
    moved = np.zeros(mip.n_columns)
    np.maximum.at(moved, entries.col, push[entries.row] / entries.data)
    play = np.where(tied | (moved == 0.0), ranges.play, np.minimum(moved, ranges.play))
    worth = np.abs(mip.cost) * play
    samples = sum(block.samples for block in problem.blocks)
    at_stake = float(worth[inputs].mean() + worth[~inputs].sum() / samples)
    return at_stake if at_stake > 0.0 else 1.0


def _introduction(
    engine: str, options: DualDecomposition, couplings: list[BlockCoupling]
) -> tuple[tuple[str, str], ...]:
    """Facts for the log."""
    forms = ", ".join(f"{coupling.name}: {_coupled(options, coupling)}" for coupling in couplings)
    solver = getattr(options.nn_solver, "name", type(options.nn_solver).__name__)
    return ("steps", f"MIP step by {engine}, network step by {solver}"), ("coupled", forms)


def _coupled(options: DualDecomposition, coupling: BlockCoupling) -> str:
    if coupling.couples_outputs:
        return "inputs and outputs"
    return "inputs" if options.copies == "inputs" else f"{coupling.columns.shape[1]} copies per group"


class _ProgressTest:
    """Whether an iteration brought progress: a new incumbent, or a smaller residual."""

    def __init__(self) -> None:
        self._best_residual = np.inf

    def __call__(self, row: Row) -> bool:
        gained = bool(row.source) or row.primal < PROGRESS_RATIO * self._best_residual
        if gained:
            self._best_residual = min(self._best_residual, row.primal)
        return gained
