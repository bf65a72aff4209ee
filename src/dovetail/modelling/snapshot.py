"""A snapshot of a model with its attachments, as a problem."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from dovetail.bounds.box import propagate
from dovetail.certificates.certificate import Certificate
from dovetail.certificates.checker.verification import CertifiedViolation, verify
from dovetail.core import check as judge
from dovetail.core.arrays import FloatArray, vector
from dovetail.core.check import Violation
from dovetail.core.errors import OptionError
from dovetail.core.foreign import Origin, Places, Reading
from dovetail.core.problem import Problem
from dovetail.modelling.predictor_constr import (
    Attachment,
    attached_to,
    columns_of,
    require_not_lost,
    sample_places,
    with_numbers,
)
from dovetail.models import foreign_model
from dovetail.reformulations.indicators import IndicatorRows
from dovetail.reformulations.quadratic_blocks import with_quadratics
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.run.budget import Budget
from dovetail.run.result import Result
from dovetail.structure.networks import block_graph

_log = logging.getLogger("dovetail")


@dataclass(frozen=True, eq=False)
class ModelSnapshot:
    """A model during one solve: its problem, and the data for writing solutions back to the model."""

    problem: Problem
    origin: Origin | None = None
    """None for a `dovetail.Problem`."""
    attached: tuple[tuple[Attachment, Places, Places], ...] = ()
    """Places of inputs and outputs of each attachment, one row per sample."""
    asking_seconds: float = 0.0
    """Seconds that it took to evaluate every predictor once."""

    def is_of(self, model: Any) -> bool:
        """Whether this is the model of another tool that was read."""
        return self.origin is not None and self.origin.model.is_of(model)

    def shares_variables(self, before: Origin) -> bool:
        """Whether this snapshot has variables of an earlier one."""
        return self.origin is not None and bool(set(before.reading.keys) & set(self.origin.reading.keys))

    def carry(self, x: FloatArray, before: Origin) -> FloatArray:
        """A point of an earlier snapshot over the columns of this one; new columns as near 0 as possible."""
        assert self.origin is not None
        mip = self.problem.mip
        if before.model.moved(before.reading):
            raise OptionError(
                "start is a result from before variables of the model were deleted, so its values cannot "
                "be assigned. Leave start= out once."
            )
        carried = np.clip(np.zeros(mip.n_columns), mip.lower, mip.upper)
        for value, key in zip(x, before.reading.keys, strict=False):
            j = self.origin.reading.column.get(key)
            if j is not None:
                carried[j] = value
        return carried

    def completed(self, x: ArrayLike) -> ArrayLike:
        """A point of the variables that the owner wrote, with those that were added after them: fixed
        numbers, and outputs of blocks. Any other point is returned as it is."""
        try:
            given = np.shape(x)
        except ValueError:  # rows of different lengths
            return x
        if len(given) != 1 or given[0] >= self.problem.stated.n_columns:
            return x
        mip, own = self.problem.mip, given[0]
        added = np.arange(own, mip.n_columns)
        if self.origin is not None:
            known = own == self.origin.reading.mip.n_columns
        else:
            made = np.append(self.problem.outputs, self.problem.confining)
            known = np.all((mip.lower == mip.upper)[added] | np.isin(added, made))
        if not known:
            return x
        point = np.concatenate([vector("x", x, own), np.where(np.isfinite(mip.lower), mip.lower, 0.0)[own:]])
        point = self.problem.filled(point)
        return np.concatenate([point[:own], self.problem.predict(point)[own:]])

    def remember(self, result: Result) -> None:
        """Store the solution for the model's `PredictorConstr` objects."""
        for attached, inputs, outputs in self.attached:
            attached.values = (
                None if result.x is None else (inputs.values(result.x), outputs.values(result.x))
            )
            attached.trouble = f"the last solve found no solution: {result.status.value}"


def take_snapshot(model: Any, budget: Budget | None = None) -> ModelSnapshot:
    """The problem that `model` and its attachments state now. Every predictor is described again while the
    budget lasts; without a budget there is no limit."""
    budget = Budget() if budget is None else budget
    read = _own_problem(model) if isinstance(model, Problem) else _read(model, budget)
    begin = perf_counter()
    problem = read.problem.renewed(lambda: budget.over)
    return replace(read, problem=problem, asking_seconds=perf_counter() - begin)


def _own_problem(problem: Problem) -> ModelSnapshot:
    own = [(attached, attached.places) for attached in attached_to(problem)]
    return ModelSnapshot(problem, None, tuple((attached, *places) for attached, places in own if places))


def _read(model: Any, budget: Budget) -> ModelSnapshot:
    """A model of another tool, read again."""
    foreign = foreign_model(model)
    reading = foreign.read()
    parts = list(foreign.enclosed())
    require_not_lost(parts)
    attachments = [attached for part in parts for attached in attached_to(part)]
    if not attachments:
        _log.info("no predictor is attached to this %s", foreign.tool)
    found = tuple((attached, *sample_places(foreign, reading, attached)) for attached in attachments)
    return ModelSnapshot(_problem(reading, found, budget), Origin(foreign, reading), found)


def _problem(
    reading: Reading, found: tuple[tuple[Attachment, Places, Places], ...], budget: Budget
) -> Problem:
    """The problem of a reading, with fixed columns, blocks, products and indicators."""
    problem = Problem(with_numbers(reading.mip, [inputs for _, inputs, _ in found]))
    columns = [columns_of(problem.mip, reading.mip.n_columns, inputs) for _, inputs, _ in found]
    for (attached, _, outputs), read in zip(found, columns, strict=True):
        attached.add_to(problem, read, outputs.column)
    if reading.functions:
        from dovetail.modelling.function_blocks import with_functions  # loads torch

        problem = with_functions(problem, reading.functions)
    if reading.quadratics:
        problem = with_quadratics(problem, reading.quadratics)
    if not reading.indicators:
        return problem
    given = Reformulated.start(problem, propagate(problem.mip.loosened()))
    return reformulate(given, (IndicatorRows(reading.indicators, budget),)).problem


@overload
def check(model: Any, x: ArrayLike) -> Violation: ...
@overload
def check(model: Any, x: ArrayLike, *, certificate: Certificate) -> CertifiedViolation: ...
@overload
def check(model: Any, x: ArrayLike, *, certificate: None) -> Violation: ...
def check(model: Any, x: ArrayLike, *, certificate: Certificate | None = None) -> Violation:
    """Check a point (a value for every variable) against a problem, or a model with its predictors.

    `x` may be `result.x`, or have the variables of the model alone: variables that dovetail adds for numbers
    among the inputs, for outputs and for quadratic terms are then computed.

    Returns a `Violation`; ``print`` it, or ask ``within()``. No solver is used. With a `certificate` (from
    `Result.certificate` or `read_certificate`) the attribute `verification` says whether the certificate
    proves its bound, by code that shares nothing with the prover.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1], name="square")
    >>> dt.check(problem, [3.0, 9.0]).within(), str(dt.check(problem, [3.0, 8.0]))
    (True, 'infeasible: violates the prediction of square, sample 0, output 0 by 1.1e-01')
    """
    snapshot = take_snapshot(model)
    problem = snapshot.problem
    violation = judge.check(problem, snapshot.completed(x))
    if certificate is None:
        return violation
    if not isinstance(certificate, Certificate):
        raise OptionError(
            f"certificate is {type(certificate).__name__}; give a Result.certificate, or read a file with "
            "dovetail.read_certificate."
        )
    graphs = {block.name: block_graph(problem, block) for block in problem.blocks}
    return CertifiedViolation.of(violation, verify(problem, certificate, graphs))
