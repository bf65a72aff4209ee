"""AutoLinearized, the paper's baseline: every neuron a variable, the whole problem one MILP for SCIP.

    z = W v + b,   v' >= z,   v' <= z - (1 - a) l,   v' <= a u,   v' >= 0,   a binary    (formulation "bigm")
    z = W v + b,   v' = z + s,   not both v' > 0 and s > 0                               (formulation "sos")

for each ReLU v' = max(0, z) with z between l and u, for each sample; written by PySCIPOpt-ML, solved by
SCIP with its own settings.

Idea: exact, with a bound. Advice: small networks, few samples. Weakness: each ReLU costs three variables
and four constraints per sample, and only plain sequences of dense layers can be written at all.

SCIP's tolerances let points through that the network itself rejects, so its objective (`lagrangian` in
the trace, and the message) may be better than what the incumbent makes of the same point. A point that misses
a row by a hair is moved to the nearest one of the host before it counts as refused. SCIP's bound is
reported only where the re-evaluated objective meets it, and its "infeasible" is not taken as proof. It is
a bound of the layers in exact numbers: what the networks' own rounding may do is taken off it first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from dovetail.analysis.boxes import input_box
from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import EngineError, UnsupportedError
from dovetail.core.layers import Layer, propagated
from dovetail.core.options import require_choice, require_count, require_flags, require_number
from dovetail.core.probe import computes
from dovetail.core.problem import Problem
from dovetail.methods.big_m.written_out import Size, WrittenOut, import_writer, written_size
from dovetail.mip import engine_for
from dovetail.reformulations.relu_big_m import read_elsewhere
from dovetail.run.budget import OutOfTime, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipSession, Quadratic
from dovetail.run.incumbent import meets
from dovetail.run.progress import Progress
from dovetail.run.trace import Residual

FIRST_NODES, GROWTH = 10, 1.1
"""The first nodes are all reported; after them each time their number has grown by a tenth."""
COMPLETION_SECONDS = 5.0
STORED = 20
"""So many of SCIP's stored points are tried at the end if none was taken before."""
MEANINGLESS = 1e15
"""Neuron bounds beyond this make rows whose coefficients SCIP cannot compute with."""
CLOSE = 1e-9
"""SCIP takes numbers that are no further apart for the same."""
ENDED = {
    "timelimit": StopReason.TIME,
    "userinterrupt": StopReason.INTERRUPT,
    "optimal": StopReason.STALLED,
    "gaplimit": StopReason.STALLED,
    "infeasible": StopReason.STALLED,
    "unbounded": StopReason.STALLED,
    "inforunbd": StopReason.STALLED,
    "memlimit": StopReason.STALLED,
}
"""SCIP's last word as a reason; "optimal" becomes proved only where the verified objective agrees."""


@dataclass(frozen=True)
class BigM:
    """Options of the baseline.

    >>> import dovetail as dt, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[-1.0, -9.0], upper=[1.0, 9.0]))
    >>> block = problem.add_predictor(net, inputs=[0], outputs=[1])
    >>> dt.BigM().size(problem).variables
    14
    """

    formulation: Literal["bigm", "sos"] = "bigm"
    margin: float = 0.0
    """By how much the threshold of single class outputs is raised in the model. Without it SCIP puts samples
    exactly on the threshold, where float32 and float64 disagree and the check refuses; with it classes
    just above the threshold are cut off, so no bound is proven."""
    max_terms: int = 50_000_000
    """Coefficients above which the model is not built: so many take minutes and gigabytes to write."""
    force: bool = False
    """Build it whatever its size."""

    name = "big-m"

    def __post_init__(self) -> None:
        require_choice("BigM: formulation", self.formulation, ("bigm", "sos"))
        require_number("BigM: margin", self.margin, at_least=0.0)
        require_count("BigM: max_terms", self.max_terms, at_least=1)
        require_flags("BigM", self, "force")

    def prepare(self) -> None:
        """Import SCIP and what writes networks into it."""
        import_writer()

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Write everything into SCIP, let it search, offer what it finds."""
        networks = {block.name: _layers(block) for block in context.problem.blocks}
        self._require_size(context.problem, networks)
        for block in context.problem.blocks:
            _require_truth(context.problem, block, networks[block.name])
        box = input_box(context.problem, context.budget, seed=context.seed, threads=context.threads)
        if not box.complete:
            return MethodOutcome(
                StopReason.TIME, 0, "the boxes of the networks' inputs were not found in time"
            )
        mip = context.problem.mip.minimised()
        with context.stopwatch.measure("build"):
            try:
                model = WrittenOut(mip, box.lower, box.upper, seed=context.seed, budget=context.budget)
                self._write(context.problem, model, networks, box)
            except OutOfTime:
                reason = context.budget.over or StopReason.TIME
                return MethodOutcome(reason, 0, "time ran out while the networks were written into the model")
        single = (block.classifies and block.outputs.shape[1] == 1 for block in context.problem.blocks)
        restricted = self.margin > 0.0 and any(single)
        off = np.inf if restricted else _rounding(context.problem, networks, box)
        try:
            return self._solved(context, model, off)
        finally:
            model.free()

    def _solved(self, context: SolveContext, model: WrittenOut, off: float) -> MethodOutcome:
        """Let SCIP search, offer what it finds; its bound may be `off` by what the networks round."""
        seconds = context.stopwatch.read("build")
        variables, constraints = model.size
        built = f"{variables:,} variables and {constraints:,} constraints written in {seconds:.1f} s"
        context.monitor.say(f"  {model.versions}\n  formulation {self.formulation}: {built}")
        reporter = _Reporter(context)
        before = context.stopwatch.read("check")
        with context.stopwatch.measure("engine"):
            said = model.solve(context.budget, reporter.point, reporter.nodes)
        context.stopwatch.deduct("engine", context.stopwatch.read("check") - before)  # it ran inside SCIP
        if said == "abandoned":
            reason = context.budget.over or StopReason.TIME
            return MethodOutcome(
                reason, len(context.monitor.trace), f"SCIP did not end when it was asked to; {built}"
            )
        return _concluded(context, model, reporter, said, built, model.bound - off)

    def size(self, problem: Problem) -> Size:
        """How large the model would be; nothing is built."""
        return self._size(problem, {block.name: _layers(block) for block in problem.blocks})

    def _size(self, problem: Problem, networks: dict[str, tuple[Layer, ...]]) -> Size:
        size = Size(problem.mip.n_columns, problem.mip.n_rows, problem.mip.A.nnz)
        for block in problem.blocks:
            layers = networks[block.name]
            size += written_size(layers, block.samples, self.formulation, classifies=block.classifies)
        return size

    def _require_size(self, problem: Problem, networks: dict[str, tuple[Layer, ...]]) -> None:
        size = self._size(problem, networks)
        if size.terms > self.max_terms and not self.force:
            raise UnsupportedError(
                f"written out, the problem would have {size}, more than max_terms = {self.max_terms:,} "
                f"coefficients (dual decomposition keeps {problem.mip.n_columns:,} columns). "
                "BigM(force=True) builds it all the same."
            )

    def _write(
        self, problem: Problem, model: WrittenOut, networks: dict[str, tuple[Layer, ...]], box: Box
    ) -> None:
        """The networks, stage by stage."""
        reach = Box(box.lower.copy(), box.upper.copy())
        for stage in problem.stages:
            for block, samples in stage:
                layers = networks[block.name]
                if self.formulation == "bigm":
                    _require_bounds(problem, block, layers, reach, samples)
                threshold = block.threshold + self.margin if block.classifies else None
                inputs, outputs = block.inputs[samples], block.outputs[samples]
                model.add(layers, inputs, outputs, self.formulation, threshold)


class _Reporter:
    """Carries what SCIP finds to the incumbent, the log and the callback."""

    def __init__(self, context: SolveContext) -> None:
        self._context, self._host = context, context.problem.mip.minimised()
        self._progress = Progress(context)
        self._next_node = 1.0
        self.told = math.nan
        """SCIP's objective at the last point it told."""

    def point(self, x: FloatArray) -> None:
        """A new best point of SCIP."""
        objective, self.told = self.offer(x), self._host.objective(x)
        self._tell(objective, self.told, _errors(self._context.problem, x))

    def offer(self, x: FloatArray) -> float:
        """Offered; if it is refused, once more as the nearest point of the host."""
        objective = self._context.incumbent.offer(x, "scip")
        if math.isnan(objective):
            nearest = self._nearest(x)
            if nearest is not None:
                objective = self._context.incumbent.offer(nearest, "scip")
        return objective

    def _nearest(self, x: FloatArray) -> FloatArray | None:
        """The point of the host nearest to SCIP's, with SCIP's integers."""
        host, ones = self._host, np.ones(self._host.n_columns)
        whole = np.clip(np.round(x), host.lower, host.upper)
        lower, upper = np.where(host.integer, whole, host.lower), np.where(host.integer, whole, host.upper)
        objective = Quadratic(np.zeros_like(ones), 0.0, ones, x)
        with self._context.stopwatch.measure("check"):
            try:
                answer = self._session.solve(
                    objective, budget=self._context.budget.part(COMPLETION_SECONDS), bounds=(lower, upper)
                )
            except EngineError:
                return None  # costs a candidate, not the solve
        return answer.x

    @cached_property
    def _session(self) -> MipSession:
        relaxed, columns = self._host.relaxed(), np.arange(self._host.n_columns)
        engine = engine_for("auto", relaxed, columns)
        return engine.load(relaxed, columns, seed=self._context.seed, threads=self._context.threads)

    def nodes(self, count: int) -> None:
        """SCIP has solved so many nodes."""
        if count >= self._next_node:
            self._next_node = count + 1 if count < FIRST_NODES else math.ceil(GROWTH * count)
            self._tell(math.nan, math.nan, ())

    def _tell(self, objective: float, raw: float, errors: tuple[Residual, ...]) -> None:
        self._progress.record(raw, objective, residuals=errors)


def _concluded(
    context: SolveContext, model: WrittenOut, reporter: _Reporter, said: str, built: str, bound: float
) -> MethodOutcome:
    """What SCIP's last word is worth."""
    if said not in ENDED:
        raise EngineError(f"SCIP ended with {said!r}; no answer was taken from it.")
    incumbent, mip = context.incumbent, context.problem.mip
    points = model.points()
    if points:
        late = reporter.told != mip.minimised().objective(points[0]) and context.budget.stopped is None
        tell = reporter.point if late else reporter.offer  # SCIP may have found it too late to tell
        tell(points[0])
    for x in points[1:STORED] if incumbent.source != "scip" else ():
        reporter.offer(x)
    met = incumbent.x is not None and meets(mip, incumbent.objective, mip.sign * bound)
    notes = [f"SCIP says {said}; {built}"]
    if points:
        raw = mip.objective(points[0])
        completed = "no point" if incumbent.x is None else f"{incumbent.objective:.8g}"
        notes.append(f"its own objective {raw:.8g}, verified {completed}")
    else:
        notes.append("it found no point")
    if np.isfinite(bound) and not met:
        notes.append(
            f"its bound {mip.sign * bound:.8g} is not taken over: the verified objective does not meet it"
        )
    if met:
        incumbent.raise_bound(bound)
    reason = context.budget.over or ENDED[said]
    return MethodOutcome(
        reason,
        len(context.monitor.trace),
        "; ".join(notes),
        residual=max(error.primal for error in _errors(context.problem, points[0])) if points else None,
    )


def _layers(block: Block) -> tuple[Layer, ...]:
    if block.description.layers is None:
        raise UnsupportedError(
            f"{block.name}: {block.description.name} cannot be written out as layers; "
            'method="auto" takes it as it is.'
        )
    return block.description.layers()


def _require_truth(problem: Problem, block: Block, layers: tuple[Layer, ...]) -> None:
    """The block's layers, checked against the predictor itself."""
    if not computes(problem.mip, block, layers):
        raise UnsupportedError(
            f"{block.name}: {block.description.name} does not compute what its layers say (a hook, perhaps); "
            "it cannot be written out."
        )


def _rounding(problem: Problem, networks: dict[str, tuple[Layer, ...]], box: Box) -> float:
    """What the networks' own arithmetic may take off SCIP's bound, which is one of their exact layers.

    Infinity where that cannot be said: the arithmetic is not known, or what it moves is a class, or an
    output that rows or other networks read.
    """
    reach, read, total = Box(box.lower.copy(), box.upper.copy()), read_elsewhere(problem), 0.0
    for stage in problem.stages:
        for block, samples in stage:
            inputs, outputs = block.inputs[samples], block.outputs[samples]
            slack = block_slack(block, reach.lower[inputs], reach.upper[inputs])
            if np.any(slack > (CLOSE if block.classifies else np.where(read[outputs], CLOSE, MEANINGLESS))):
                return np.inf
            if not block.classifies:
                total += float(np.sum(np.abs(problem.mip.cost[outputs]) * slack))
                lower, upper, _ = propagated(networks[block.name], reach.lower[inputs], reach.upper[inputs])
                reach.lower[outputs] = np.maximum(reach.lower[outputs], lower - slack)
                reach.upper[outputs] = np.minimum(reach.upper[outputs], upper + slack)
    return total


def _require_bounds(
    problem: Problem,
    block: Block,
    layers: tuple[Layer, ...],
    reach: Box,
    samples: np.ndarray,
) -> None:
    """Finite inputs, neurons of a size that can be computed with; outputs get bounds for the next stage."""
    inputs, outputs = block.inputs[samples], block.outputs[samples]
    endless = inputs[~reach.finite[inputs]]
    if endless.size:
        raise UnsupportedError(
            f"{block.name}: input {problem.mip.column_name(int(endless.flat[0]))} has no finite bounds, "
            'and big-M rows need them; give it bounds, or use BigM(formulation="sos").'
        )
    lower, upper, widest = propagated(layers, reach.lower[inputs], reach.upper[inputs])
    if widest > MEANINGLESS:
        raise UnsupportedError(
            f"{block.name}: bounds of neurons grow to {widest:.0e} through {len(layers)} layers, and rows "
            'with such coefficients mean nothing to SCIP; use BigM(formulation="sos").'
        )
    if not block.classifies:
        reach.lower[outputs] = np.maximum(reach.lower[outputs], lower)
        reach.upper[outputs] = np.minimum(reach.upper[outputs], upper)


def _errors(problem: Problem, x: FloatArray) -> tuple[Residual, ...]:
    """How far SCIP's outputs are from what the networks say of SCIP's inputs."""
    truth = problem.predict(x)
    return tuple(
        Residual(block.name, "outputs", float(np.max(np.abs(truth - x)[block.outputs])), 0.0)
        for block in problem.blocks
    )
