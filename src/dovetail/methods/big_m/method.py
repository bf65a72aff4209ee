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

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dovetail.analysis.boxes import input_box
from dovetail.bounds.box import Box
from dovetail.core.errors import EngineError, UnsupportedError
from dovetail.core.layers import Layer
from dovetail.core.options import require_choice, require_count, require_flags, require_number
from dovetail.core.problem import Problem
from dovetail.methods.big_m.reporter import Reporter, prediction_errors
from dovetail.methods.big_m.requirements import layers_of, require_bounds, require_truth, rounding_of_bound
from dovetail.methods.big_m.scip_formulation import (
    ScipFormulation,
    Size,
    formulation_size,
    import_pyscipopt_ml,
)
from dovetail.run.budget import OutOfTime, StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.incumbent import meets

STORED = 20
"""So many of SCIP's stored points are tried at the end if none was taken before."""
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
        import_pyscipopt_ml()

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Write everything into SCIP, let it search, offer what it finds."""
        networks = {block.name: layers_of(block) for block in context.problem.blocks}
        self._require_size(context.problem, networks)
        for block in context.problem.blocks:
            require_truth(context.problem, block, networks[block.name])
        box = input_box(context.problem, context.budget, seed=context.seed, threads=context.threads)
        if not box.complete:
            return MethodOutcome(
                StopReason.TIME, 0, "the boxes of the networks' inputs were not found in time"
            )
        mip = context.problem.mip.minimised()
        with context.stopwatch.measure("build"):
            try:
                model = ScipFormulation(mip, box.lower, box.upper, seed=context.seed, budget=context.budget)
                self._write(context.problem, model, networks, box)
            except OutOfTime:
                reason = context.budget.over or StopReason.TIME
                return MethodOutcome(reason, 0, "time ran out while the networks were written into the model")
        single = (block.classifies and block.outputs.shape[1] == 1 for block in context.problem.blocks)
        restricted = self.margin > 0.0 and any(single)
        off = np.inf if restricted else rounding_of_bound(context.problem, networks, box)
        try:
            return self._solved(context, model, off)
        finally:
            model.free()

    def _solved(self, context: SolveContext, model: ScipFormulation, off: float) -> MethodOutcome:
        """Let SCIP search, offer what it finds; its bound may be `off` by what the networks round."""
        seconds = context.stopwatch.read("build")
        variables, constraints = model.size
        built = f"{variables:,} variables and {constraints:,} constraints written in {seconds:.1f} s"
        context.monitor.say(f"  {model.versions}\n  formulation {self.formulation}: {built}")
        reporter = Reporter(context)
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
        return self._size(problem, {block.name: layers_of(block) for block in problem.blocks})

    def _size(self, problem: Problem, networks: dict[str, tuple[Layer, ...]]) -> Size:
        size = Size(problem.mip.n_columns, problem.mip.n_rows, problem.mip.A.nnz)
        for block in problem.blocks:
            layers = networks[block.name]
            size += formulation_size(layers, block.samples, self.formulation, classifies=block.classifies)
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


def _concluded(
    context: SolveContext, model: ScipFormulation, reporter: Reporter, said: str, built: str, bound: float
) -> MethodOutcome:
    """What SCIP's last word is worth."""
    if said not in ENDED:
        raise EngineError(f"SCIP ended with {said!r}; no answer was taken from it.")
    incumbent, mip = context.incumbent, context.problem.mip
    points = model.points()
    if points:
        late = reporter.reported != mip.minimised().objective(points[0]) and context.budget.stopped is None
        take = reporter.point if late else reporter.offer  # SCIP may have found it too late to report
        take(points[0])
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
    errors = prediction_errors(context.problem, points[0]) if points else ()
    return MethodOutcome(
        reason,
        len(context.monitor.trace),
        "; ".join(notes),
        residual=max(error.primal for error in errors) if errors else None,
    )
