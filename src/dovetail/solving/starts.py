"""`start=`: where a solve begins.

Given are a value for every variable, some variables with values, a frame, an earlier result or its file, a
checkpoint, or a model, this one or another, which stands for the values it holds. What is not given is
completed: outputs by the predictors, other variables by the MIP without predictors in which the given ones
are fixed. A start that violates constraints is no solution, and searches begin near it.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.certificates.fingerprint import covers_all, fingerprint
from dovetail.core.arrays import FloatArray, IntArray, require_finite, vector
from dovetail.core.errors import DovetailError, ModelError, OptionError
from dovetail.core.files import text_of
from dovetail.core.foreign import NUMBER, Origin, as_array, locate
from dovetail.core.problem import Problem
from dovetail.core.words import did_you_mean, several
from dovetail.mip.answers import answer_of
from dovetail.modelling.snapshot import ModelSnapshot
from dovetail.models import MODELS, foreign_model
from dovetail.run.bound import NO_BOUND
from dovetail.run.budget import Budget
from dovetail.run.checkpoint import Checkpoint, read_checkpoint
from dovetail.run.context import Start
from dovetail.run.engine import least_seconds
from dovetail.run.failures import expendable
from dovetail.run.monitor import Monitor
from dovetail.run.result import Result, Values
from dovetail.structure.boxes import class_limits
from dovetail.version import __version__

LARGEST = 1 << 30
"""Largest number of bytes of a result file: ten million variables with names."""
SHARE, SECONDS = 0.1, 5.0
"""Share of the time left, and largest number of seconds, for the variables that are not given."""
PART = "completion of the start"


def read_start(snapshot: ModelSnapshot, start: Any) -> Start:
    """`start=` over the columns of the snapshot; NaN for those that are not given."""
    if start is None:
        return Start()
    program = snapshot.problem.stated
    if isinstance(start, (str, os.PathLike)):
        start = start_of_file(Path(start))
    if isinstance(start, Checkpoint):
        return _continued(start, snapshot.problem)
    if isinstance(start, Result):
        return Start(_of_result(snapshot, start), start.multipliers)
    if snapshot.is_of(start):
        assert snapshot.origin is not None
        x = np.full(program.n_columns, np.nan)
        x[: len(snapshot.origin.reading.keys)] = _held(snapshot.origin)
        return Start(x)
    if MODELS.recognised(start) is not None and not isinstance(start, Problem):  # another model
        other = foreign_model(start)
        origin = Origin(other, other.read(rows=False))
        return Start(_by_names(snapshot.problem, _held(origin), origin.reading.mip.names, "the values"))
    if isinstance(start, Mapping):
        return Start(_named(snapshot, start.items()))
    if hasattr(type(start), "iloc"):  # a series or a frame of pandas
        return Start(_named(snapshot, start.items()))
    if isinstance(start, list) and start and all(_is_pair(one) for one in start):
        return Start(_named(snapshot, start))
    x = vector("start", snapshot.completed(start), program.n_columns, OptionError)
    require_finite("start", x, program.column_name, OptionError)
    return Start(x)


def _is_pair(one: Any) -> bool:
    """Whether an entry of a list is (variables, values), and no number or row of numbers."""
    return isinstance(one, tuple) and len(one) == 2 and not isinstance(one[0], Real)


def start_of_file(path: Path) -> Result | FloatArray:
    """The result in a file, or the solution of the checkpoint in it."""
    try:
        found = (
            read_checkpoint(path) if zipfile.is_zipfile(path) else Result.from_json(text_of(path, LARGEST))
        )
        if found.x is None:
            raise OptionError(f"{path} has no solution")
        return found if isinstance(found, Result) else found.x
    except OptionError as reason:
        named = "" if str(path) in str(reason) else f"{path}: "
        raise OptionError(f"start: {named}{reason}") from None


def _of_result(snapshot: ModelSnapshot, start: Result) -> FloatArray | None:
    """The solution of an earlier result: by column, by the variables of the model, or by names."""
    program, x = snapshot.problem.stated, start.x
    if x is None:
        return None
    if start.origin is not None and snapshot.shares_variables(start.origin):
        return snapshot.carry(x, start.origin)
    of_arrays = start.origin is None or snapshot.origin is None
    if of_arrays and np.shape(x) == (program.n_columns,) and _same_names(start.names, program.names):
        return x
    return _by_names(snapshot.problem, x, start.names, "the result")


def _by_names(problem: Problem, x: FloatArray, names: Sequence[str] | None, what: str) -> FloatArray:
    """Values of another model for the variables with the same names."""
    program = problem.stated
    own = Values(np.arange(program.n_columns, dtype=np.float64), program.names)
    value = dict(zip(names or (), np.ravel(x).tolist(), strict=False))
    named = {name: value[name] for name in program.names or () if name in value}
    if not named:
        raise OptionError(
            f"start has {np.size(x):,} values, the problem {several(program.n_columns, 'variable')}, and no "
            f"names are the same: start is {what} of another problem."
        )
    return _filled_in(program.n_columns, [(int(own[name]), number) for name, number in named.items()])


def _same_names(one: Any, other: Any) -> bool:
    return one is None or other is None or one is other or list(one) == list(other)


def _held(origin: Origin) -> FloatArray:
    """The values that a model holds."""
    x = origin.model.held(origin.reading)
    if np.all(np.isnan(x)):
        raise OptionError(f"start is the model, and no variable of this {origin.model.tool} holds a value.")
    return x


def _named(snapshot: ModelSnapshot, given: Iterable[tuple[Any, Any]]) -> FloatArray:
    """(columns,) the values of some variables, by name, family, column or the tool's own variables."""
    program = snapshot.problem.stated
    own = Values(np.arange(program.n_columns, dtype=np.float64), program.names)
    pairs = [pair for what, values in given for pair in _pairs(snapshot, own, what, values)]
    return _filled_in(program.n_columns, pairs)


def _filled_in(columns: int, pairs: Iterable[tuple[int, float]]) -> FloatArray:
    x = np.full(columns, np.nan)
    for j, value in pairs:
        x[j] = value
    if np.all(np.isnan(x)):
        raise OptionError("start gives no variable a value; leave it out, or give names with values.")
    if np.any(np.isinf(x)):
        raise OptionError("start holds infinity; give finite numbers.")
    return x


def _pairs(snapshot: ModelSnapshot, own: Values, what: Any, values: Any) -> Iterable[tuple[int, float]]:
    """Columns with their values."""
    if isinstance(what, str) or (isinstance(what, Real) and snapshot.origin is None):
        yield from _by_name(own, what, values)
        return
    if snapshot.origin is None:
        raise OptionError(f"start names {what!r}; give names or indices of variables.")
    if isinstance(values, Mapping) and hasattr(what, "__getitem__"):
        for index, value in values.items():
            yield from _pairs(snapshot, own, what[index], value)
        return
    model, reading = snapshot.origin.model, snapshot.origin.reading
    try:
        entries = model.unpack(what)
        column = locate(model, reading, "start", entries).column
    except ModelError as reason:
        raise OptionError(f"start: {reason}") from None
    yield from _matched(str(what)[:60], column, values)


def _by_name(own: Values, what: Any, values: Any) -> Iterable[tuple[int, float]]:
    """The same for a variable, or for a family of variables with indices."""
    name = what if isinstance(what, str) else next((n for j, n in enumerate(own) if j == what), str(what))
    if name not in own:
        known = [*own.families, *own]
        raise OptionError(f"start names {what!r}, which is no variable{did_you_mean(str(what), known)}")
    found = own[name]
    if not isinstance(found, dict):
        only = values.iloc[0] if hasattr(type(values), "iloc") and len(values) == 1 else values
        yield int(found), _number(name, only)
        return
    if hasattr(type(values), "iloc"):
        values = values.stack() if hasattr(type(values), "columns") else values
        values = {_plain(index): value for index, value in values.items()}
    if not isinstance(values, Mapping):
        yield from _matched(name, np.array([int(j) for j in found.values()]), values)
        return
    for index, value in values.items():
        if _plain(index) not in found:
            raise OptionError(f"start: {name} has no index {index!r}; it has {str([*found][:3])[1:-1]}, ...")
        yield int(found[_plain(index)]), _number(f"{name}[{index}]", value)


def _plain(index: Any) -> Any:
    """An index of a frame as names have it: numpy's integers become Python's."""
    if isinstance(index, tuple):
        return tuple(map(_plain, index))
    return index.item() if isinstance(index, np.generic) else index


def _matched(name: str, column: IntArray, values: Any) -> Iterable[tuple[int, float]]:
    """Columns in an array with values in an array of as many entries, or one value for all."""
    numbers = as_array(values, lambda item: item)
    if numbers.size not in (1, column.size):
        raise OptionError(
            f"start gives {several(numbers.size, 'value')} for {name}, which has {column.size:,} variables."
        )
    for j, value in zip(column.ravel().tolist(), np.broadcast_to(numbers.ravel(), column.size), strict=True):
        if j != NUMBER:
            yield j, _number(name, value)


def _number(name: str, value: Any) -> float:
    """A value; NaN for None, which means not given."""
    if value is None:
        return float("nan")
    if not isinstance(value, (Real, np.generic)) or isinstance(value, complex):
        raise OptionError(f"start gives {str(value)[:40]!r} for {name}; give a number.")
    return float(value)


def _continued(known: Checkpoint, problem: Problem) -> Start:
    """The start from a checkpoint of the same problem; its bound counts only if the same version wrote it and
    the fingerprint covers all predictors."""
    rows = () if known.prices is None else (known.prices.size,)
    if known.problem != fingerprint(problem) or rows not in ((), (problem.stated.n_rows,)):
        by = "" if known.version == __version__ else f", written by dovetail {known.version}"
        raise OptionError(
            f"the checkpoint is of another problem{by}: its model, its data or its predictors differ. Solve "
            "with start=, the path of the checkpoint, to begin from its solution without its bound."
        )
    trusted = known.version == __version__ and covers_all(problem)
    bound = known.proof if trusted else NO_BOUND
    return Start(known.x, known.multipliers, known.source or "start", bound)


def completed(
    start: Start, problem: Problem, budget: Budget, monitor: Monitor, *, seed: int, threads: int
) -> Start:
    """The start with a value for every variable."""
    if start.x is None or not np.any(np.isnan(start.x)):
        return start
    given = int(np.count_nonzero(~np.isnan(start.x)))
    x = start.x.copy()
    made = np.zeros(x.size, dtype=bool)
    made[problem.outputs] = True
    x[made] = np.nan
    x = problem.predict(problem.stated.clipped(x))
    left = np.isnan(x) & ~made
    said = f"{given:,} of {several(x.size, 'variable')} are given"
    if np.any(left):
        found = None
        with expendable(PART, DovetailError):
            found = _rest(problem, x, budget.part(min(SECONDS, SHARE * budget.left)), seed, threads)
        said += (
            "; the MIP without predictors completes them"
            if found is not None
            else "; no values of the others satisfy the constraints"
        )
        x = x if found is None else np.where(np.isnan(x), found, x)
    x = np.where(np.isnan(x), problem.stated.clipped(np.zeros(x.size)), x)
    monitor.fact("start", said)
    return replace(start, x=x)


def _rest(problem: Problem, x: FloatArray, budget: Budget, seed: int, threads: int) -> FloatArray | None:
    """A point of the MIP without predictors in which the known variables are fixed."""
    if 2.0 * least_seconds(problem.stated) > budget.left:
        return None
    mip = problem.mip.minimised()
    lower, upper, integer = class_limits(problem, mip.lower, mip.upper)
    known = ~np.isnan(x)
    bounds = np.where(known, x, lower), np.where(known, x, upper)
    cost = mip.cost.copy()
    cost[problem.outputs] = 0.0  # their predictors decide
    fixed = replace(mip, cost=cost, lower=lower, upper=upper, integer=integer)
    answer = answer_of(PART, fixed, budget, seed=seed, threads=threads, bounds=bounds)
    return None if answer is None else answer.x
