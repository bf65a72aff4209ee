"""AutoLinearized, the paper's baseline: every neuron a variable, the whole problem one MILP for SCIP.

    z = W v + b,   v' >= z,   v' <= z - (1 - a) l,   v' <= a u,   v' >= 0,   a binary    (formulation "bigm")
    z = W v + b,   v' = z + s,   not both v' > 0 and s > 0                               (formulation "sos")

for each ReLU v' = max(0, z) with z between l and u, for each sample; written by PySCIPOpt-ML, solved by
SCIP with its own settings.

Idea: exact, with a bound. Advice: small networks, few samples. Weakness: each ReLU costs three variables
and four constraints per sample, and only plain sequences of dense layers can be written at all.

SCIP's tolerances accept points that the network itself rejects, so its objective (`lagrangian` in the trace,
and the message) may be better than the incumbent's objective for the same point. A point that violates a row
slightly is moved to the nearest feasible point of the host before it counts as refused. SCIP's bound is
reported only if the re-evaluated objective meets it and no network depends on a single binary, a case in
which SCIP has given wrong bounds (`one_binary_decides`); its "infeasible" is not accepted as a proof. The
bound is for the layers in exact numbers: the possible effect of the networks' rounding is subtracted first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from dovetail.bounds.box import Box, narrow
from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import EngineError, UnsupportedError
from dovetail.core.options import require_choice, require_number
from dovetail.core.probe import computes
from dovetail.core.problem import Problem
from dovetail.mip import engine_for
from dovetail.networks.layers import Layer, program_of
from dovetail.reformulations.relu_big_m import read_elsewhere
from dovetail.run.bound import Bound, Scope, Support
from dovetail.run.budget import Budget, OutOfTime, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipSession, Quadratic
from dovetail.run.failures import expendable
from dovetail.run.memory import MemoryWatch
from dovetail.run.progress import Progress
from dovetail.run.result import ModelEnd, WrittenModel
from dovetail.run.trace import Residual
from dovetail.run.work import Stopwatch
from dovetail.structure.boxes import input_box
from dovetail_study.big_m.scip_formulation import ScipFormulation, Size, formulation_size, import_pyscipopt_ml

MEANINGLESS = 1e15
"""Neuron bounds beyond this make rows whose coefficients SCIP cannot compute with."""
CLOSE = 1e-9
"""SCIP treats numbers that are closer than this as equal."""


def layers_of(block: Block) -> tuple[Layer, ...]:
    """The block's network as layers, or an error."""
    if block.description.layers is None:
        raise UnsupportedError(
            f"{block.name}: {block.description.name} cannot be written out as layers; "
            'method="auto" takes it as it is.'
        )
    return block.description.layers()


def require_truth(problem: Problem, block: Block, layers: tuple[Layer, ...]) -> None:
    """The block's layers, checked against the predictor itself."""
    if not computes(problem.mip, block, layers):
        raise UnsupportedError(
            f"{block.name}: {block.description.name} does not compute what its layers say (a hook, perhaps); "
            "it cannot be written out."
        )


def rounding_of_bound(problem: Problem, networks: dict[str, tuple[Layer, ...]], box: Box) -> float:
    """The amount by which the networks' own arithmetic may weaken SCIP's bound, which is for their exact
    layers.

    Infinity if the amount is unknown: if the arithmetic is unknown, or if it affects a class or an output
    that rows or other networks read.
    """
    box, read, total = Box(box.lower.copy(), box.upper.copy()), read_elsewhere(problem), 0.0
    for stage in problem.stages:
        for block, samples in stage:
            inputs, outputs = block.inputs[samples], block.outputs[samples]
            slack = block_slack(block, box.lower[inputs], box.upper[inputs])
            if np.any(slack > (CLOSE if block.classifies else np.where(read[outputs], CLOSE, MEANINGLESS))):
                return np.inf
            if not block.classifies:
                total += float(np.sum(np.abs(problem.mip.cost[outputs]) * slack))
                lower, upper, _ = propagated(networks[block.name], box.lower[inputs], box.upper[inputs])
                narrow(box.lower, box.upper, outputs, lower - slack, upper + slack)
    return total


def one_binary_decides(problem: Problem, box: Box) -> bool:
    """Whether, in some sample, one binary column decides a whole network: no bound of SCIP is accepted then.

    SCIP's probing propagates through such a network, makes every neuron a multiple of the binary, and
    sometimes fixes it to the wrong value (SCIP 10.0.2; "Baseline: big-M" in docs/method.md).
    """
    integer = problem.mip.integer
    deciding: list[set[int]] = [set() if fixed else {j} for j, fixed in enumerate(box.lower == box.upper)]
    for stage in problem.stages:
        for block, samples in stage:
            for inputs, outputs in zip(block.inputs[samples], block.outputs[samples], strict=True):
                columns = set[int]().union(*(deciding[j] for j in inputs))
                if len(columns) == 1 and all(
                    integer[j] and box.upper[j] - box.lower[j] <= 1 for j in columns
                ):
                    return True
                for j in outputs:
                    deciding[j] = columns
    return False


def require_bounds(
    problem: Problem, block: Block, layers: tuple[Layer, ...], box: Box, samples: np.ndarray
) -> None:
    """Finite inputs, neurons of a size that can be computed with; outputs get bounds for the next stage."""
    inputs, outputs = block.inputs[samples], block.outputs[samples]
    endless = inputs[~box.finite[inputs]]
    if endless.size:
        raise UnsupportedError(
            f"{block.name}: input {problem.mip.column_name(int(endless.flat[0]))} has no finite bounds, "
            'and big-M rows need them; give it bounds, or use BigM(formulation="sos").'
        )
    lower, upper, widest = propagated(layers, box.lower[inputs], box.upper[inputs])
    if widest > MEANINGLESS:
        raise UnsupportedError(
            f"{block.name}: bounds of neurons grow to {widest:.0e} through {len(layers)} layers, and rows "
            'with such coefficients mean nothing to SCIP; use BigM(formulation="sos").'
        )
    if not block.classifies:
        narrow(box.lower, box.upper, outputs, lower, upper)


def propagated(
    layers: tuple[Layer, ...], lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Bounds of the outputs, and the largest bound of any neuron on the way; NaN counts as infinite."""
    program = program_of(layers, lower.shape[1])
    low, high = program.ranges(lower, upper)
    neurons = np.maximum(np.abs(low), np.abs(high))[:, program.inputs :]
    widest = float(np.max(np.nan_to_num(neurons, nan=np.inf, posinf=np.inf), initial=0.0))
    return low[:, program.outputs], high[:, program.outputs], widest


FIRST_NODES, GROWTH = 10, 1.1
"""All of the first nodes are reported; later ones whenever their number has grown by a tenth."""
COMPLETION_SECONDS = 5.0
"""For the nearest point of the host: a QP without integers, quick for all problems that SCIP can handle."""


class Reporter:
    """Passes SCIP's points to the incumbent, the log and the callback."""

    def __init__(self, context: SolveContext) -> None:
        self._context, self._host = context, context.problem.mip.minimised()
        self._progress = Progress(context)
        self._next_node = 1.0
        self.reported = math.nan
        """SCIP's objective at the last point it reported."""

    def point(self, x: FloatArray) -> None:
        """A new best point of SCIP."""
        objective, self.reported = self.offer(x), self._host.objective(x)
        self._report(objective, self.reported, prediction_errors(self._context.problem, x))

    def offer(self, x: FloatArray) -> float:
        """Offered; if it is refused, the nearest feasible point of the host is offered."""
        objective = self._context.incumbent.offer(x, "scip")
        if math.isnan(objective):
            nearest = self._nearest(x)
            if nearest is not None:
                objective = self._context.incumbent.offer(nearest, "scip")
        return objective

    def _nearest(self, x: FloatArray) -> FloatArray | None:
        """The point of the host nearest to SCIP's, with SCIP's integers."""
        host, ones = self._host, np.ones(self._host.n_columns)
        rounded = np.clip(np.round(x), host.lower, host.upper)
        lower = np.where(host.integer, rounded, host.lower)
        upper = np.where(host.integer, rounded, host.upper)
        objective = Quadratic(np.zeros_like(ones), 0.0, ones, x)
        budget = self._context.budget.part(COMPLETION_SECONDS)
        with expendable("completion of SCIP's point", EngineError), self._context.stopwatch.measure("check"):
            return self._session.solve(objective, budget=budget, bounds=(lower, upper)).x
        return None

    @cached_property
    def _session(self) -> MipSession:
        relaxed, columns = self._host.relaxed(), np.arange(self._host.n_columns)
        engine = engine_for("auto", relaxed, columns)
        return engine.load(relaxed, columns, seed=self._context.seed, threads=self._context.threads)

    def nodes(self, count: int) -> None:
        """SCIP has solved this number of nodes."""
        if count >= self._next_node:
            self._next_node = count + 1 if count < FIRST_NODES else math.ceil(GROWTH * count)
            self._report(math.nan, math.nan, ())

    def _report(self, objective: float, raw: float, errors: tuple[Residual, ...]) -> None:
        self._progress.record(raw, objective, residuals=errors)


def prediction_errors(problem: Problem, x: FloatArray) -> tuple[Residual, ...]:
    """The difference between SCIP's outputs and the networks' answers to SCIP's inputs."""
    truth = problem.predict(x)
    return tuple(
        Residual(block.name, "outputs", float(np.max(np.abs(truth - x)[block.outputs])), 0.0)
        for block in problem.blocks
    )


class Account:
    """Times and size of the model, recorded while it is written and solved."""

    def __init__(self, stopwatch: Stopwatch, memory: MemoryWatch) -> None:
        self._stopwatch = stopwatch
        self.memory = memory
        self._solving_seconds: float | None = None
        self.size: tuple[int, int] | None = None
        """Variables and constraints, once all are written."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Count the body as writing."""
        with self._stopwatch.measure("build"):
            yield

    @contextmanager
    def solving(self) -> Iterator[None]:
        """Count the block as solving, except for checks of points inside it."""
        stopwatch = self._stopwatch
        engine, check = stopwatch.read("engine"), stopwatch.read("check")
        try:
            with stopwatch.measure("engine"):
                yield
        finally:
            stopwatch.deduct("engine", stopwatch.read("check") - check)
            self._solving_seconds = stopwatch.read("engine") - engine

    @property
    def built(self) -> str:
        """The size of the written model, in words."""
        variables, constraints = self.size or (0, 0)
        seconds = self._stopwatch.read("build")
        return f"{variables:,} variables and {constraints:,} constraints written in {seconds:.1f} s"

    def shortage(self, while_what: str) -> str:
        """A message about lack of memory, and what helps."""
        watch = self.memory
        helps = (
            "the machine has no more to give" if watch.bound_by_machine else "BigM(memory_limit=) gives more"
        )
        return f"out of memory: {watch} while {while_what} ({helps})"

    def settled(self, end: ModelEnd, said: str | None = None) -> WrittenModel:
        """The record of the model."""
        self.memory.look()
        variables, constraints = self.size or (None, None)
        return WrittenModel(
            end,
            self._stopwatch.read("build"),
            self._solving_seconds,
            self.memory.peak,
            variables,
            constraints,
            said,
        )


STORED = 20
"""This number of SCIP's stored points is tried at the end if none was accepted before."""
ENDED = {
    "timelimit": StopReason.TIME,
    "memlimit": StopReason.MEMORY,
    "userinterrupt": StopReason.INTERRUPT,
    "optimal": StopReason.STALLED,
    "gaplimit": StopReason.STALLED,
    "infeasible": StopReason.STALLED,
    "unbounded": StopReason.STALLED,
    "inforunbd": StopReason.STALLED,
}
"""SCIP's final status as a stop reason; "optimal" becomes proved only if the verified objective agrees."""


@dataclass(frozen=True)
class BigM:
    """The paper's AutoLinearized, a baseline: networks written out neuron by neuron, one MILP for SCIP.

    >>> import dovetail as dt, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[-1.0, -9.0], upper=[1.0, 9.0]))
    >>> block = problem.add_predictor(net, inputs=[0], outputs=[1])
    >>> dt.BigM().size(problem).variables
    14
    """

    formulation: Literal["bigm", "sos"] = "bigm"
    margin: float = 0.0
    """The amount by which the threshold of single class outputs is raised in the model. Without it SCIP
    puts samples exactly on the threshold, where float32 and float64 disagree and the check refuses; with
    it classes just above the threshold are cut off, so no bound is proven."""
    memory_limit: float | None = None
    """GB this process may hold, measured while the model is written and while SCIP searches; the solve ends
    there with the best point so far. None: as much as the machine has. In any case a tenth of the machine's
    memory (or of the container's) stays free, so that the kernel does not kill this process or others."""
    solve_seconds: float | None = None
    """SCIP's own time limit, which begins when the model is written; None: the remaining part of the whole
    time limit. These seconds are reserved for SCIP: writing ends when no more than these are left."""

    name = "big-m"

    def __post_init__(self) -> None:
        require_choice("BigM: formulation", self.formulation, ("bigm", "sos"))
        require_number("BigM: margin", self.margin, at_least=0.0)
        if self.memory_limit is not None:
            require_number("BigM: memory_limit", self.memory_limit, above=0.0)
        if self.solve_seconds is not None:
            require_number("BigM: solve_seconds", self.solve_seconds, above=0.0)

    def prepare(self) -> None:
        """Import SCIP and PySCIPOpt-ML."""
        import_pyscipopt_ml()

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Write the problem into SCIP, solve it, and offer its points."""
        networks = {block.name: layers_of(block) for block in context.problem.blocks}
        for block in context.problem.blocks:
            require_truth(context.problem, block, networks[block.name])
        account = Account(context.stopwatch, MemoryWatch(self.memory_limit))
        if account.memory.held is None:
            context.monitor.say("  memory is not watched: this system does not say how much a process holds")
        kept = self.solve_seconds or 0.0
        budget = context.budget.part(context.budget.left - kept, memory=account.memory)
        try:
            with account.writing():
                model, off = self._write_model(context, networks, budget)
        except OutOfTime:
            size = self._size(context.problem, networks)
            return _unwritten(account, budget.over or StopReason.TIME, size, kept)
        try:
            account.size = model.size
            return self._solved(context, model, off, account)
        finally:
            model.free()

    def _write_model(
        self, context: SolveContext, networks: dict[str, tuple[Layer, ...]], budget: Budget
    ) -> tuple[ScipFormulation, float]:
        """The model, and the largest error of its bound: the networks' rounding, or infinity."""
        problem = context.problem
        box = input_box(problem, budget, seed=context.seed, threads=context.threads)
        if not box.complete:
            raise OutOfTime
        model = ScipFormulation(
            problem.mip.minimised(), box.lower, box.upper, seed=context.seed, budget=budget
        )
        try:
            self._write(problem, model, networks, box)
            single = (block.classifies and block.outputs.shape[1] == 1 for block in problem.blocks)
            no_bound = (self.margin > 0.0 and any(single)) or one_binary_decides(problem, box)
            return model, np.inf if no_bound else rounding_of_bound(problem, networks, box)
        except BaseException:
            model.free()
            raise

    def _solved(
        self, context: SolveContext, model: ScipFormulation, off: float, account: Account
    ) -> MethodOutcome:
        """Let SCIP solve, and offer its points; its bound may be `off` by the networks' rounding."""
        context.monitor.say(f"   {model.versions}")
        context.monitor.say(f"   formulation {self.formulation}: {account.built}")
        reporter, memory = Reporter(context), account.memory
        budget = context.budget.part(self.solve_seconds or math.inf, memory=memory)
        with account.solving():
            said = model.solve(budget, reporter.point, reporter.nodes, memory=memory.left)
        over = budget.over
        if said == "abandoned":
            return abandoned(context, account, over)
        return concluded(context, model, reporter, account, said, over, model.bound - off)

    def size(self, problem: Problem) -> Size:
        """The size of the model, without building it."""
        return self._size(problem, {block.name: layers_of(block) for block in problem.blocks})

    def _size(self, problem: Problem, networks: dict[str, tuple[Layer, ...]]) -> Size:
        size = Size(problem.mip.n_columns, problem.mip.n_rows, problem.mip.A.nnz)
        for block in problem.blocks:
            layers = networks[block.name]
            size += formulation_size(layers, block.samples, self.formulation, classifies=block.classifies)
        return size

    def _write(
        self, problem: Problem, model: ScipFormulation, networks: dict[str, tuple[Layer, ...]], box: Box
    ) -> None:
        """The networks, stage by stage."""
        box = Box(box.lower.copy(), box.upper.copy())  # `require_bounds` narrows it
        for stage in problem.stages:
            for block, samples in stage:
                layers = networks[block.name]
                if self.formulation == "bigm":
                    require_bounds(problem, block, layers, box, samples)
                threshold = block.threshold + self.margin if block.classifies else None
                inputs, outputs = block.inputs[samples], block.outputs[samples]
                model.add(layers, inputs, outputs, self.formulation, threshold)


def _unwritten(account: Account, reason: StopReason, size: Size, kept: float) -> MethodOutcome:
    """The outcome of a model that was not finished."""
    if reason is StopReason.MEMORY:
        note, end = account.shortage("the model was written"), ModelEnd.MEMORY
    else:
        note, end = "time ran out while the networks were written into the model", ModelEnd.WRITING
        if kept:
            note += f": {kept:g} s of it are kept for SCIP (solve_seconds); raise time_limit"
    return MethodOutcome(reason, 0, f"{note}; whole it would have {size}", written=account.settled(end))


def concluded(
    context: SolveContext,
    model: ScipFormulation,
    reporter: Reporter,
    account: Account,
    said: str,
    over: StopReason | None,
    bound: float,
) -> MethodOutcome:
    """The outcome; `over` is the reason why SCIP was asked to end, `bound` the corrected bound of SCIP."""
    if said not in ENDED:
        raise EngineError(f"SCIP ended with {said!r}; no answer was taken from it.")
    incumbent, mip = context.incumbent, context.problem.mip
    points = model.points()
    _offer(context, reporter, points)
    met = incumbent.x is not None and abs(mip.sign * incumbent.objective - bound) <= incumbent.allowed_gap
    notes = [f"SCIP says {said}; {account.built}"]
    reason = over or ENDED[said]
    if reason is StopReason.MEMORY:
        notes.insert(0, account.shortage("SCIP searched"))
    if points:
        raw = mip.objective(points[0])
        completed = "no point" if incumbent.x is None else f"{incumbent.objective:.8g}"
        notes.append(f"its own objective {raw:.8g}, verified {completed}")
    else:
        notes.append("it found no point")
    if said == "infeasible" and incumbent.x is not None:
        notes.append("its word is not taken: a verified point is known")
    if np.isfinite(bound) and not met:
        notes.append(
            f"its bound {mip.sign * bound:.8g} is not taken over: the verified objective does not meet it"
        )
    if met:
        incumbent.raise_bound(Bound(bound, "scip", Scope.WRITTEN, Support.ENGINE))
    errors = prediction_errors(context.problem, points[0]) if points else ()
    return MethodOutcome(
        reason,
        len(context.monitor.trace),
        "; ".join(notes),
        residual=max(error.primal for error in errors) if errors else None,
        written=account.settled(_end(said, reason, met), said),
    )


def abandoned(context: SolveContext, account: Account, over: StopReason | None) -> MethodOutcome:
    """The outcome if SCIP did not end when it was asked to: the model cannot be read then."""
    reason = over or StopReason.TIME
    notes = [f"SCIP did not end when it was asked to; {account.built}"]
    if reason is StopReason.MEMORY:
        notes.insert(0, account.shortage("SCIP searched"))
    written = account.settled(_end("", reason, met=False))
    return MethodOutcome(reason, len(context.monitor.trace), "; ".join(notes), written=written)


def _offer(context: SolveContext, reporter: Reporter, points: list[np.ndarray]) -> None:
    """Offer SCIP's best point, which SCIP may have found too late to report, and other points if none was
    accepted."""
    if points:
        mip = context.problem.mip.minimised()
        late = reporter.reported != mip.objective(points[0]) and context.budget.stopped is None
        take = reporter.point if late else reporter.offer
        take(points[0])
    for x in points[1:STORED] if context.incumbent.source != "scip" else ():
        reporter.offer(x)


def _end(said: str, reason: StopReason, met: bool) -> ModelEnd:
    """The end of the run as a category for comparisons."""
    if reason is StopReason.MEMORY:
        return ModelEnd.MEMORY
    if met and said in ("optimal", "gaplimit"):
        return ModelEnd.PROVED
    if said == "infeasible":
        return ModelEnd.INFEASIBLE
    return ModelEnd.TIME if reason is StopReason.TIME else ModelEnd.OTHER
