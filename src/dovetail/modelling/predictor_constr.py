"""The object that `add_predictor_constr` returns."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TextIO, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray, ObjectArray
from dovetail.core.block import Block, TrainingData
from dovetail.core.domain import Region, regions_of
from dovetail.core.errors import DovetailError, ModelError, PredictorError
from dovetail.core.foreign import NUMBER, ForeignModel, Places, Reading, frame_of, locate
from dovetail.core.mip import Mip
from dovetail.core.names import free_name, in_short
from dovetail.core.predictor import Predictor
from dovetail.core.problem import OutputType, Problem
from dovetail.core.words import facts, several


@dataclass(eq=False)
class Attachment:
    """One call of `add_predictor_constr`."""

    name: str
    predictor: Predictor
    inputs: Any
    outputs: Any
    """The containers as they were passed, so that later changes of numbers in them count."""
    output_type: OutputType
    threshold: float | None
    epsilon: float
    data: Any
    categories: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    """Category names by feature; a name among the inputs stands for its position in the list. Empty for a
    feature that the predictor drops: any text stands for 0."""
    block: Block | None = None
    """The accepted block, over the columns of that moment."""
    within: Any = None
    """The validity domain as it was passed."""
    regions: tuple[Region, ...] | None = None
    """What the validity domain is for so many samples, made once."""
    places: tuple[Places, Places] | None = None
    """Places of inputs and outputs in a `dovetail.Problem`, whose columns do not move."""
    values: tuple[FloatArray, FloatArray] | None = None
    """Inputs (n_samples, n_features) and outputs (n_samples, n_outputs) in the last solution."""
    trouble: str = "there is no solution yet; call dovetail.solve(model) first"
    """Why there are no values."""

    def add_to(self, problem: Problem, inputs: IntArray, outputs: IntArray) -> None:
        """Add the attachment as a block of `problem`, or raise an error."""
        taken = {block.name for block in problem.blocks}
        data, (samples, features) = _numbered(self.data, self.categories), inputs.shape
        if self.regions is None:
            known = None if data is None else TrainingData.of(self.name, data, features, self.categories)
            self.regions = regions_of(self.name, self.within, known, features, samples)
        self.block = problem.add_predictor(
            self.predictor,
            inputs,
            outputs,
            output_type=self.output_type,
            threshold=self.threshold,
            epsilon=self.epsilon,
            name=self.name if self.name not in taken else f"{self.name}#{len(taken)}",
            data=data,
            within=self.regions,
        )

    def error(self, inputs: FloatArray, outputs: FloatArray) -> FloatArray:
        """(n_samples, n_outputs) |predictor(inputs) - outputs|."""
        assert self.block is not None
        return np.asarray(np.abs(self.block.decode(self.block.predictor.predict(inputs)) - outputs))


def sample_places(foreign: ForeignModel, reading: Reading, attached: Attachment) -> tuple[Places, Places]:
    """Columns, (n_samples, n_features) and (n_samples, n_outputs)."""
    inputs = input_places(foreign, reading, attached)
    what = f"{attached.name}: output_vars"
    found = locate(foreign, reading, what, foreign.unpack(attached.outputs))
    if np.any(found.column == NUMBER):
        raise PredictorError(
            f"{attached.name}: output_vars holds a number; outputs must be variables. To ask for a value, "
            "fix the variable or add a constraint."
        )
    samples = len(inputs.column)
    return inputs, Places(as_outputs(found.column, samples), as_outputs(found.number, samples))


def input_places(foreign: ForeignModel, reading: Reading, attached: Attachment) -> Places:
    """(n_samples, n_features)."""
    return locate(foreign, reading, f"{attached.name}: input_vars", input_entries(foreign, attached))


def input_entries(foreign: ForeignModel, attached: Attachment) -> ObjectArray:
    """(n_samples, n_features) variables and numbers; category names are replaced by their numbers."""
    entries: ObjectArray = as_samples(foreign.unpack(attached.inputs))
    if entries.size == 0:
        raise PredictorError(f"{attached.name}: input_vars is empty; give (n_samples, n_features).")
    named = {j: names for j, names in attached.categories.items() if j < entries.shape[1]}
    if not named:
        return entries
    numbered = entries.copy()
    for feature, names in named.items():
        for i, entry in enumerate(entries[:, feature]):
            if not isinstance(entry, str):  # a variable, or the number itself
                continue
            if names and entry not in names:
                raise PredictorError(
                    f"{attached.name}: input_vars holds {entry!r} as feature {feature}, which the predictor "
                    f"was not trained on; it knows {', '.join(map(str, names))}."
                )
            numbered[i, feature] = float(names.index(entry)) if names else 0.0
    return numbered


def _numbered(data: Any, categories: dict[int, tuple[Any, ...]]) -> Any:
    """The training inputs; a frame has the positions of categories instead of their names."""
    if not categories or not hasattr(type(data), "iloc"):
        return data
    table = data.copy()
    for feature, names in categories.items():
        if feature < table.shape[1]:
            column, place = table.iloc[:, feature], dict(zip(names, map(float, count()), strict=False))
            unknown = next((e for e in column if names and isinstance(e, str) and e not in place), None)
            if unknown is not None:
                raise PredictorError(
                    f"data holds {unknown!r} as feature {feature}, which the predictor was not trained on; "
                    "give its training data, or leave data= out."
                )
            table.isetitem(feature, [place.get(entry, entry) for entry in column])
    return table


def as_samples(given: Any) -> Any:
    """(n_samples, n_features): a vector is a single sample, further dimensions are flattened."""
    return np.atleast_2d(given) if given.ndim < 3 else given.reshape(len(given), -1)


def as_outputs(given: Any, samples: int) -> Any:
    """(n_samples, n_outputs): a vector is one sample, or one output of each of several samples."""
    return given[:, None] if given.ndim == 1 and samples > 1 else as_samples(given)


def with_numbers(mip: Mip, inputs: Sequence[Places]) -> Mip:
    """A fixed column for each different number among the inputs."""
    numbers = np.unique(np.concatenate([[], *(found.number[found.column == NUMBER] for found in inputs)]))
    if not numbers.size:
        return mip
    names = [f"constant {number!r}" for number in numbers.tolist()]
    return mip.with_columns(numbers, numbers, np.zeros(numbers.size, dtype=bool), names)


def columns_of(mip: Mip, first: int, inputs: Places) -> IntArray:
    """The input columns, with numbers replaced by fixed columns, which begin at `first`, sorted."""
    constants = first + np.searchsorted(mip.lower[first:], inputs.number)
    return np.where(inputs.column == NUMBER, constants, inputs.column)


@dataclass(eq=False)
class Registry:
    """The attachments of one model."""

    attachments: list[Attachment] = field(default_factory=list)
    read: set[Hashable] = field(default_factory=set)
    written: set[Hashable] = field(default_factory=set)
    """Keys of variables that attachments read or write, to skip tests for unrelated ones."""

    lost: bool = False
    """Whether the model is a copy that lost its predictors."""

    def involves(self, inputs: set[Hashable], outputs: set[Hashable]) -> bool:
        """Whether a new attachment may clash with others or close a cycle."""
        return bool(outputs & (self.read | self.written | inputs))

    def free_name(self, model: Any, name: str, prefix: str) -> str:
        """The requested name, which must not be taken; otherwise a name made of the peers' prefix."""
        taken = {attachment.name for attachment in self.attachments}
        if isinstance(model, Problem):
            taken |= {block.name for block in model.blocks}
        if name in taken:
            raise PredictorError(f"there is already a block called {name!r}; give another name=.")
        if name or (prefix and prefix not in taken):
            return name or prefix
        return free_name(prefix or "block", taken)


_registries: WeakKeyDictionary[Any, Registry] = WeakKeyDictionary()


def registry_of(model: Any) -> Registry:
    """The attachments of `model`; an empty registry is stored if there was none."""
    return _registries.setdefault(model, Registry())


def attached_to(model: Any) -> tuple[Attachment, ...]:
    """The attachments of `model`, without storing anything."""
    registry = _registries.get(model)
    return () if registry is None else tuple(registry.attachments)


def is_lost(model: Any) -> bool:
    """Whether `model` is a copy that lost the predictors of its original."""
    registry = _registries.get(model)
    return registry is not None and registry.lost


class OwnSolves:
    """The answers to tools' questions (`dovetail.core.foreign.Ties`)."""

    def refuse(self, parts: Iterable[Any]) -> None:
        """Raise a `ModelError` if a part has predictors, or is a copy that lost them."""
        for part in parts:
            require_not_lost((part,))
            names = [attached.name for attached in attached_to(part)]
            if names:
                raise ModelError(
                    f"predictors are attached to this model ({', '.join(names)}), and its own solver would "
                    "leave them out. Call dovetail.solve(model) instead; to solve without a predictor, call "
                    "remove() of the object that add_predictor_constr returned."
                )

    def copied(self, parts: Iterable[Any], copy: Any) -> None:
        """Record that a copy lost its predictors."""
        if any(is_lost(part) or attached_to(part) for part in parts):
            registry_of(copy).lost = True


def require_not_lost(parts: Iterable[Any]) -> None:
    """Refuse to solve a copy that lost its predictors."""
    if any(map(is_lost, parts)):
        raise ModelError(
            "this model is a copy of one that predictors are attached to, and a copy has none of them. "
            "Attach them to the copy (add_predictor_constr), or solve the original with dovetail.solve; for "
            "a copy without predictors, call their remove() first."
        )


Kind = TypeVar("Kind", bound="PredictorConstr")

MOST_SHOWN = 4
"""Number of output values shown in one line."""


class PredictorConstr:
    """A predictor attached by `add_predictor_constr`; values are those of the model's last solve.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, -1.0], upper=[2.0, 9.0], names=["x", "y"]))
    >>> constr = dt.add_predictor_constr(problem, lambda X: X**2, ["x"], ["y"])
    >>> result = dt.solve(problem, time_limit=2, log=False)
    >>> constr.output_values.shape, float(constr.get_error().max()) <= 1e-6
    ((1, 1), True)
    """

    def __init__(
        self, model: Any, foreign: ForeignModel, attached: Attachment, created: Any, predictor: Any
    ) -> None:
        self._model, self._foreign, self._attached, self._created = model, foreign, attached, created
        self.predictor = predictor
        """The predictor as it was passed."""
        entries = as_samples(foreign.unpack(attached.inputs))
        self.input = foreign.table(attached.inputs, entries)
        """The inputs, (n_samples, n_features) if the tool has tables of variables; otherwise as passed."""
        made = as_outputs(foreign.unpack(attached.outputs), len(entries))
        self.output = foreign.table(attached.outputs, made)
        """The outputs, (n_samples, n_outputs) or as passed."""

    def held_as(self, kind: type[Kind]) -> Kind:
        """The same attachment as an object of a derived class."""
        other = kind.__new__(kind)
        other.__dict__.update(self.__dict__)
        return other

    @property
    def name(self) -> str:
        """The name in log and messages."""
        return self._attached.name

    @property
    def input_values(self) -> Any:
        """(n_samples, n_features) values of the inputs; a frame where a frame or a series was passed.

        A frame has the names of categories, as in the training data.
        """
        given = self._attached.inputs
        found = frame_of(given, self._values[0])
        for feature, names in self._attached.categories.items() if hasattr(type(found), "iloc") else ():
            column = found.columns[feature]
            if names:
                found[column] = [names[round(place)] for place in found[column]]
            elif any(isinstance(entry, str) for entry in given[column]):
                found[column] = list(given[column])
        return found

    @property
    def output_values(self) -> Any:
        """(n_samples, n_outputs) values of the outputs; a frame where a frame was passed."""
        given, values = self._attached.outputs, self._values[1]
        return frame_of(given, values) if hasattr(type(given), "columns") else values

    def get_error(self, eps: float | None = None) -> FloatArray:
        """The distance of outputs from the predictor's answers, (n_samples, n_outputs).

        `eps` is accepted for programs of the peers and has no effect.
        """
        error = self._attached.error(*self._values)
        if eps is not None and np.max(error) > eps:
            warnings.warn(f"{self.name}: the largest error is {np.max(error):.1e}", stacklevel=2)
        return error

    def __repr__(self) -> str:
        block = self._attached.block
        assert block is not None
        return f"<PredictorConstr {in_short(self.name)}: {block.in_words}; {self._outputs_in_short()}>"

    def _repr_html_(self) -> str:
        block = self._attached.block
        assert block is not None
        rows = [("predictor", block.in_words), ("outputs", self._outputs_in_short())]
        if self._attached.values is not None:
            rows.append(("largest error", f"{float(self.get_error().max()):.1e}"))
        return facts(f"PredictorConstr {self.name}", rows)

    def _outputs_in_short(self) -> str:
        """The values of the outputs, or why there are none."""
        if self._attached.values is None:
            return "no values yet" if "no solution yet" in self._attached.trouble else self._attached.trouble
        values = self._attached.values[1].ravel()
        shown = ", ".join(f"{value:.6g}" for value in values[:MOST_SHOWN])
        return f"outputs {shown}{', ...' if values.size > MOST_SHOWN else ''}"

    def print_stats(self, file: TextIO | None = None) -> None:
        """Print a summary of the attachment in a few lines."""
        attached = self._attached
        assert attached.block is not None
        (n, d), q = attached.block.inputs.shape, attached.block.outputs.shape[1]
        made = "made by dovetail" if self._created is not None else "the model's own"
        print(
            f"{attached.name}: {attached.block.description.name} ({attached.output_type})\n"
            f"  {several(n, 'sample')}, {several(d, 'input')} -> {several(q, 'output')} each ({made})\n"
            f"  {'float64' if attached.block.description.is_float64 else 'lower precision'}, on "
            f"{attached.block.description.device}; no rows or variables are added for its neurons",
            file=file or sys.stdout,
        )

    @property
    def is_attached(self) -> bool:
        """False after `remove()`."""
        return self._attached in registry_of(self._model).attachments

    def remove(self) -> None:
        """Detach the predictor: later solves ignore it. Output variables made for it are removed."""
        attachments = registry_of(self._model).attachments
        if self._attached not in attachments:
            raise PredictorError(f"{self.name} has been removed before.")
        if self._created is not None:
            self._foreign.discard(self._created)
        if isinstance(self._model, Problem):
            self._model.remove_predictor(self.name)
        attachments.remove(self._attached)

    @property
    def _values(self) -> tuple[FloatArray, FloatArray]:
        if self._attached.values is None:
            raise DovetailError(f"{self.name}: {self._attached.trouble}.")
        return self._attached.values
