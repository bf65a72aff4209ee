"""Predictors tied to a model that stays in the tool it was written in.

`add_predictor_constr` only notes what is tied to what (and refuses what cannot work): the owner's model
gets no row, and no variable unless outputs have to be made. Each solve reads the model afresh, so that
whatever was changed since is seen.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core import check as judge
from dovetail.core import probe
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.check import Violation
from dovetail.core.description import Description
from dovetail.core.errors import DovetailError, ModelError, OptionError, PredictorError
from dovetail.core.foreign import NUMBER, ForeignModel, ObjectArray, Origin, Places, Reading, locate
from dovetail.core.indicator import Indicator
from dovetail.core.mip import Mip
from dovetail.core.predictor import Predictor, as_predictor
from dovetail.core.problem import OutputType, Problem
from dovetail.models import foreign_model
from dovetail.models.own import OwnModel
from dovetail.run.result import Result

PEER_OPTIONS = frozenset(
    {"unique_naming_prefix", "formulation", "pwl_attributes", "verbose", "no_record", "no_debug",
     "safety_floor", "float_type", "predict_function"}
)  # fmt: skip
"""Keywords of PySCIPOpt-ML and gurobi-machinelearning; all but the first say how to write a network out."""

_log = logging.getLogger("dovetail")

Found = TypeVar("Found")


@dataclass(eq=False)
class _Tie:
    """One call of `add_predictor_constr`, as it is kept between solves."""

    name: str
    predictor: Predictor
    inputs: Any
    outputs: Any
    """Containers as they were passed: a number that is changed in one later on is seen."""
    output_type: OutputType
    threshold: float | None
    epsilon: float
    data: Any
    block: Block | None = None
    """As it was accepted, over columns of that moment."""
    values: tuple[FloatArray, FloatArray] | None = None
    """Inputs and outputs at the point of the last solve, in the shapes they were passed."""
    trouble: str = "there is no solution yet; call dovetail.solve(model) first"
    """Why there are no values."""


@dataclass(eq=False)
class _Book:
    """What is tied to one model."""

    ties: list[_Tie] = field(default_factory=list)
    read: set[Hashable] = field(default_factory=set)
    written: set[Hashable] = field(default_factory=set)
    """Keys of variables that some tie reads or writes: most new ties have nothing to do with older ones."""

    def involves(self, inputs: set[Hashable], outputs: set[Hashable]) -> bool:
        """Whether a new tie may clash with the others, or close a cycle."""
        return bool(outputs & (self.read | self.written | inputs))


_books: WeakKeyDictionary[Any, _Book] = WeakKeyDictionary()


def add_predictor_constr(
    model: Any,
    predictor: Any,
    input_vars: Any,
    output_vars: Any = None,
    *,
    output_type: OutputType | Literal["probability_1"] | None = None,
    threshold: float | None = None,
    epsilon: float = 1e-4,
    name: str = "",
    data: Any = None,
    trust: bool = False,
    **peer_options: Any,
) -> PredictorConstr:
    """Tie `output_vars` to `input_vars` of `model` through `predictor`, for `dovetail.solve(model)`.

    `model` is a model of PySCIPOpt, highspy, gurobipy, Pyomo or linopy, or a `dovetail.Problem`; variables
    are that tool's own, in arrays of shape (n_samples, n_features) and (n_samples, n_outputs). One sample
    may be a vector; inputs may hold numbers (fixed features) beside variables; more than two dimensions
    are flattened sample by sample. Without `output_vars` variables are made: free ones, or binaries for
    classes. `output_type` is "regression" unless a scikit-learn classifier is passed, which gives classes
    as it does in the peers; "probability_1" asks it for the probability of its second class.

    `threshold`, `epsilon` and `data` are those of `Problem.add_predictor`. `trust=True` allows a file that
    can run code when it is loaded (pickles). The peers' options for writing networks out mean nothing here.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> constr = dt.add_predictor_constr(problem, lambda X: X**2, [0], [1])
    >>> assert dt.solve(problem, log=False).objective == -6.0
    """
    prefix = _peer_name(peer_options)
    foreign = _require_foreign(model)
    if trust and isinstance(predictor, (str, Path)):
        from dovetail.predictors.files import load_predictor

        predictor = load_predictor(predictor, trust=True)
    truth = as_predictor(predictor)
    book = _books.setdefault(model, _Book())
    name = _free_name(model, book, str(name), prefix)
    tie = _Tie(name, truth, input_vars, output_vars, "regression", threshold, epsilon, data)
    draft = _Draft(foreign, book, model.blocks if isinstance(model, Problem) else None)
    description = draft.described(tie)
    _require_order(name, description, input_vars, data)
    tie.output_type = kind = _output_type(description, output_type)
    created = None
    if output_vars is None:
        assert description.outputs is not None
        shape = draft.try_fresh_outputs(tie, description.outputs)
        _require_probability(tie, output_type)
        tie.outputs = created = foreign.create(shape, binary=kind == "classification", name=tie.name)
    else:
        draft.try_tie(tie)
        _require_probability(tie, output_type)
    book.read |= draft.keys(tie.inputs)
    book.written |= draft.keys(tie.outputs)
    if isinstance(model, Problem):
        _keep_in(model, foreign, tie)
    constr = PredictorConstr(model, foreign, tie, created)
    tie.inputs, tie.outputs = _kept(foreign, tie.inputs), _kept(foreign, tie.outputs)
    book.ties.append(tie)
    return constr


def _kept(foreign: ForeignModel, given: Any) -> Any:
    return foreign.unpack(given) if isinstance(given, foreign.heavy) else given


class PredictorConstr:
    """What `add_predictor_constr` tied together; its values are those of the model's last solve.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, -1.0], upper=[2.0, 9.0], names=["x", "y"]))
    >>> constr = dt.add_predictor_constr(problem, lambda X: X**2, ["x"], ["y"])
    >>> result = dt.solve(problem, time_limit=2, log=False)
    >>> constr.output_values.shape, float(constr.get_error().max()) <= 1e-6
    ((1,), True)
    """

    def __init__(self, model: Any, foreign: ForeignModel, tie: _Tie, created: Any) -> None:
        self._model, self._foreign, self._tie, self._created = model, foreign, tie, created
        self.input, self.output = tie.inputs, tie.outputs

    @property
    def name(self) -> str:
        """How log and messages call it."""
        return self._tie.name

    @property
    def input_values(self) -> FloatArray:
        """Values of the inputs, in the shape they were passed."""
        return self._values[0]

    @property
    def output_values(self) -> FloatArray:
        """Values of the outputs, in the shape they were passed."""
        return self._values[1]

    def get_error(self, eps: float | None = None) -> FloatArray:
        """|what the predictor says of the inputs - the outputs|, in the shape of the outputs.

        `eps` is taken for the peers' sake: class boundaries are judged without a tolerance here.
        """
        inputs = _samples(self.input_values)
        outputs = self.output_values
        tie = self._tie
        assert tie.block is not None
        said = tie.block.decode(tie.block.predictor.predict(inputs))
        return np.asarray(np.abs(said.reshape(outputs.shape) - outputs))

    def print_stats(self, file: TextIO | None = None) -> None:
        """What is tied, in a few lines."""
        tie = self._tie
        assert tie.block is not None
        n, d = tie.block.inputs.shape
        description = tie.block.description
        made = "made by dovetail" if self._created is not None else "the model's own"
        print(
            f"{tie.name}: {description.name} ({tie.output_type})\n"
            f"  {n} samples, {d} inputs -> {tie.block.outputs.shape[1]} outputs each ({made})\n"
            f"  {'float64' if description.is_float64 else 'lower precision'}, on {description.device}; no "
            "rows or variables are added for its neurons",
            file=file or sys.stdout,
        )

    def remove(self) -> None:
        """Untie it: later solves do not see it. Outputs that were made for it are removed from the model."""
        book = _books.get(self._model, _Book())
        if self._tie not in book.ties:
            raise PredictorError(f"{self.name} has been removed before.")
        if self._created is not None:
            self._foreign.discard(self._created)
        if isinstance(self._model, Problem):
            self._model.remove_predictor(self.name)
        book.ties.remove(self._tie)

    @property
    def _values(self) -> tuple[FloatArray, FloatArray]:
        if self._tie.values is None:
            raise DovetailError(f"{self.name}: {self._tie.trouble}.")
        return self._tie.values


@dataclass(frozen=True, eq=False)
class Opened:
    """A model on its way through one solve: the problem it is now, and where that came from."""

    problem: Problem
    origin: Origin | None = None
    places: tuple[tuple[_Tie, Places, Places], ...] = ()
    """Where each tie's inputs and outputs are, in the shapes they were passed."""

    def carry(self, x: FloatArray, before: Origin) -> FloatArray:
        """A point of an earlier reading, over the columns of this one; new ones as near 0 as they can be."""
        assert self.origin is not None
        mip = self.problem.mip
        if before.model.moved(before.reading):
            raise OptionError(
                "start is the result of a model that variables were deleted from since: nobody knows which "
                "value belongs where. Leave start= out once."
            )
        if not set(before.reading.keys) & set(self.origin.reading.keys):
            raise OptionError("start is the result of another model; give one of this model.")
        carried = np.clip(np.zeros(mip.n_columns), mip.lower, mip.upper)
        for value, key in zip(x, before.reading.keys, strict=False):
            j = self.origin.reading.column.get(key)
            if j is not None:
                carried[j] = value
        return carried


def opened(model: Any) -> Opened:
    """The problem that `model` and all that was tied to it are now."""
    foreign = _require_foreign(model)
    reading = foreign.read()
    ties = [tie for part in foreign.enclosed() for tie in _books.get(part, _Book()).ties]
    found = tuple((tie, *_as_passed(foreign, reading, tie)) for tie in ties)
    if isinstance(model, Problem):
        return Opened(model, None, found)
    places = [_places(foreign, reading, tie) for tie in ties]
    problem = Problem(_with_numbers(reading.mip, [inputs for inputs, _ in places]))
    for tie, (inputs, outputs) in zip(ties, places, strict=True):
        columns = _columns(problem.mip, reading.mip.n_columns, inputs)
        tie.block = _add(problem, tie, columns, outputs.column)
    for indicator in reading.switched:
        _add_switched(problem, indicator)
    if not ties:
        _log.info("no predictor is tied to this %s; a copy of a model has none of its ties", foreign.tool)
    return Opened(problem, Origin(foreign, reading), found)


def check(model: Any, x: ArrayLike) -> Violation:
    """How far `x` (a value for every column) is from satisfying a problem, or a model with its ties.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1], name="square")
    >>> dt.check(problem, [3.0, 9.0]).within(), str(dt.check(problem, [3.0, 8.0]))
    (True, 'square, sample 0, output 0 by 1.1e-01')
    """
    problem = model.renewed() if isinstance(model, Problem) else opened(model).problem
    return judge.check(problem, x)


def _add_switched(problem: Problem, indicator: Indicator) -> None:
    """An indicator without a finite big M, as a block whose output is 0."""
    from dovetail.reformulations.indicator_block import SwitchedRow

    name = _untaken(problem, f"indicator {indicator.name or len(problem.blocks)}")
    nothing = np.zeros(1)
    (output,) = problem.add_columns(nothing, nothing, np.zeros(1, dtype=bool), [name])
    inputs = np.array([indicator.binary, *indicator.columns])
    problem.add_predictor(SwitchedRow(indicator), inputs, [output], name=name)


def _untaken(problem: Problem, name: str) -> str:
    """The name, or one like it if another block of the problem has it."""
    taken = {block.name for block in problem.blocks}
    return name if name not in taken else f"{name}#{len(taken)}"


def remember(session: Opened, result: Result) -> None:
    """Let the model's `PredictorConstr` objects read the point that a solve found."""
    for tie, inputs, outputs in session.places:
        tie.values = None if result.x is None else (inputs.values(result.x), outputs.values(result.x))
        tie.trouble = f"the last solve found no point: {result.status.value}"


# --- before anything is kept ---------------------------------------------------------------------


class _Draft:
    """The model's columns and all ties so far, to see whether one more fits; nothing of the owner's moves."""

    def __init__(self, foreign: ForeignModel, book: _Book, own: tuple[Block, ...] | None) -> None:
        self._foreign, self._book, self._own = foreign, book, own
        self._reading = foreign.read(rows=False)

    def keys(self, given: Any) -> set[Hashable]:
        """What the variables in a container are known by."""
        entries = self._foreign.unpack(given)
        return {self._foreign.key(entry) for entry in entries.flat if not isinstance(entry, (Real, np.bool_))}

    def try_tie(self, tie: _Tie) -> None:
        """Accept `tie`, or raise what is wrong with it."""
        inputs, outputs = self._found(tie, _places)
        involved = self._book.involves(self.keys(tie.inputs), self.keys(tie.outputs))
        problem, columns = self._problem(inputs, self._book.ties if involved else ())
        tie.block = _add(problem, tie, columns, outputs.column)

    def described(self, tie: _Tie) -> Description:
        """What the predictor of `tie` says of itself, before outputs and their kind are chosen."""
        problem, columns = self._problem(self._found(tie, _input_places), ())
        return probe.described(tie.name, tie.predictor, problem.mip, columns)

    def try_fresh_outputs(self, tie: _Tie, outputs_per_sample: int) -> tuple[int, int]:
        """Accept `tie` with new columns as its outputs, and say how many it needs."""
        problem, columns = self._problem(self._found(tie, _input_places), ())
        shape = len(columns), outputs_per_sample
        outputs = OwnModel(problem).create(shape, binary=tie.output_type == "classification", name=tie.name)
        tie.block = _add(problem, tie, columns, outputs)
        return shape

    def _found(self, tie: _Tie, find: Callable[[ForeignModel, Reading, _Tie], Found]) -> Found:
        """What `find` finds among the columns, or among those that only rows know."""
        try:
            return find(self._foreign, self._reading, tie)
        except ModelError:
            self._reading = self._foreign.read()
            return find(self._foreign, self._reading, tie)

    def _problem(self, inputs: Places, ties: Sequence[_Tie]) -> tuple[Problem, IntArray]:
        """The columns with earlier blocks over them, and where the new inputs are."""
        host = self._reading.mip
        if self._own is not None:
            mip = _with_numbers(host, [inputs])
            return Problem(mip).derived(mip, self._own), _columns(mip, host.n_columns, inputs)
        before = [_places(self._foreign, self._reading, tie) for tie in ties]
        mip = _with_numbers(host, [inputs, *(into for into, _ in before)])
        blocks = []
        for tie, (into, out) in zip(ties, before, strict=True):
            assert tie.block is not None
            columns = _columns(mip, host.n_columns, into)
            blocks.append(replace(tie.block, inputs=columns, outputs=out.column))
        return Problem(mip).derived(mip, tuple(blocks)), _columns(mip, host.n_columns, inputs)


def _keep_in(problem: Problem, foreign: ForeignModel, tie: _Tie) -> None:
    """A `dovetail.Problem` holds its blocks itself, and the columns of their numbers too."""
    inputs, outputs = _places(foreign, foreign.read(), tie)
    first, mip = problem.mip.n_columns, _with_numbers(problem.mip, [inputs])
    names = [mip.column_name(j) for j in range(first, mip.n_columns)]
    problem.add_columns(mip.lower[first:], mip.upper[first:], mip.integer[first:], names)
    tie.block = _add(problem, tie, _columns(mip, first, inputs), outputs.column)


def _add(problem: Problem, tie: _Tie, inputs: IntArray, outputs: IntArray) -> Block:
    return problem.add_predictor(
        tie.predictor,
        inputs,
        outputs,
        output_type=tie.output_type,
        threshold=tie.threshold,
        epsilon=tie.epsilon,
        name=_untaken(problem, tie.name),
        data=tie.data,
    )


# --- arrays of variables --------------------------------------------------------------------------


def _places(foreign: ForeignModel, reading: Reading, tie: _Tie) -> tuple[Places, Places]:
    inputs = _input_places(foreign, reading, tie)
    what = f"{tie.name}: output_vars"
    found = locate(foreign, reading, what, foreign.unpack(tie.outputs))
    return inputs, _output_samples(found, len(inputs.column), tie.name)


def _as_passed(foreign: ForeignModel, reading: Reading, tie: _Tie) -> tuple[Places, Places]:
    """Inputs and outputs in the shapes they were passed."""
    inputs = locate(foreign, reading, f"{tie.name}: input_vars", foreign.unpack(tie.inputs))
    return inputs, locate(foreign, reading, f"{tie.name}: output_vars", foreign.unpack(tie.outputs))


def _input_places(foreign: ForeignModel, reading: Reading, tie: _Tie) -> Places:
    what = f"{tie.name}: input_vars"
    entries: ObjectArray = _samples(foreign.unpack(tie.inputs))
    if entries.size == 0:
        raise PredictorError(f"{what} is empty; give (n_samples, n_features).")
    return locate(foreign, reading, what, entries)


def _samples(given: Any) -> Any:
    """(n_samples, n_features): a vector is one sample, further dimensions are flattened."""
    return np.atleast_2d(given) if given.ndim < 3 else given.reshape(len(given), -1)


def _output_samples(found: Places, samples: int, name: str) -> Places:
    """(n_samples, n_outputs): a vector is one sample, or one output of each of several samples."""
    if np.any(found.column == NUMBER):
        raise PredictorError(
            f"{name}: output_vars holds a number; outputs must be variables. To ask for a value, fix the "
            "variable or add a row."
        )
    shape = found.column.shape
    if len(shape) == 1 and samples > 1:
        return Places(found.column[:, None], found.number[:, None])
    return Places(_samples(found.column), _samples(found.number))


def _with_numbers(mip: Mip, inputs: Sequence[Places]) -> Mip:
    """A column for each different number among the inputs, fixed to it."""
    numbers = np.unique(np.concatenate([[], *(found.number[found.column == NUMBER] for found in inputs)]))
    if not numbers.size:
        return mip
    names = [f"constant {number!r}" for number in numbers.tolist()]
    return mip.with_columns(numbers, numbers, np.zeros(numbers.size, dtype=bool), names)


def _columns(mip: Mip, first: int, inputs: Places) -> IntArray:
    """Input columns, numbers replaced by the columns fixed to them; those begin at `first`, sorted."""
    constants = first + np.searchsorted(mip.lower[first:], inputs.number)
    return np.where(inputs.column == NUMBER, constants, inputs.column)


# --- options -------------------------------------------------------------------------------------


def _require_foreign(model: Any) -> ForeignModel:
    foreign = foreign_model(model)
    if foreign is None:
        raise ModelError(
            f"{type(model).__module__}.{type(model).__qualname__} is not a model dovetail can read; give a "
            "model of PySCIPOpt, highspy, gurobipy, Pyomo or linopy, or a dovetail.Problem."
        )
    return foreign


def _peer_name(peer_options: dict[str, Any]) -> str:
    """The peers' naming prefix; a `TypeError` for keywords nobody knows."""
    for option in peer_options:
        if option not in PEER_OPTIONS:
            raise TypeError(f"add_predictor_constr() got an unexpected keyword argument {option!r}")
        if option != "unique_naming_prefix":
            _log.debug("%s= says how to write a network out; dovetail does not write it out", option)
    return str(peer_options.get("unique_naming_prefix", "")).rstrip("_")


def _free_name(model: Any, book: _Book, name: str, prefix: str) -> str:
    """The name asked for, which must be free; else one made of the peers' prefix, which need not be."""
    taken = {tie.name for tie in book.ties}
    if isinstance(model, Problem):
        taken |= {block.name for block in model.blocks}
    if name in taken:
        raise PredictorError(f"there is already a block called {name!r}; give another name=.")
    if name or (prefix and prefix not in taken):
        return name or prefix
    return next(free for k in range(len(taken) + 1) if (free := f"{prefix or 'block'}{k}") not in taken)


def _require_order(name: str, description: Description, inputs: Any, data: Any) -> None:
    """Refuse a frame whose columns are not the features the predictor was trained on, in their order."""
    expected = description.feature_names
    for what, given in (("input_vars", inputs), ("data", data)):
        columns = getattr(given, "columns", getattr(given, "index", None))
        if expected is None or columns is None or callable(columns):
            continue
        found = list(columns)
        if found != list(expected) and all(isinstance(column, str) for column in found):
            raise PredictorError(
                f"{name}: {what} has the columns {', '.join(found)}, but the predictor was trained on "
                f"{', '.join(map(str, expected))}; give these, in this order."
            )


def _require_probability(tie: _Tie, asked: str | None) -> None:
    assert tie.block is not None
    if asked == "probability_1" and not (
        tie.block.description.ends_in_sigmoid and tie.block.outputs.shape[1] == 1
    ):
        raise PredictorError(
            f"{tie.name}: {tie.block.description.name} has no probability of one class out of two; "
            'output_type "probability_1" needs a classifier of two classes with predict_proba, or a network '
            "that ends in a sigmoid."
        )


def _output_type(description: Description, asked: str | None) -> OutputType:
    if asked == "probability_1":
        return "regression"
    if asked is None:
        return "classification" if description.is_classifier else "regression"
    return asked  # type: ignore[return-value]
