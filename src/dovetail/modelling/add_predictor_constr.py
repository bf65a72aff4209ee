"""`add_predictor_constr`: records a connection, or refuses what cannot work."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from dovetail.core import probe
from dovetail.core.arrays import IntArray, ObjectArray
from dovetail.core.block import Block
from dovetail.core.description import Description
from dovetail.core.errors import ModelError, OptionError, PredictorError
from dovetail.core.foreign import ForeignModel, Places, Reading
from dovetail.core.names import labels_of
from dovetail.core.predictor import Measure, as_predictor, with_risk
from dovetail.core.problem import OutputType, Problem
from dovetail.core.words import did_you_mean
from dovetail.modelling.predictor_constr import (
    Attachment,
    OwnSolves,
    PredictorConstr,
    Registry,
    columns_of,
    input_entries,
    input_places,
    registry_of,
    sample_places,
    with_numbers,
)
from dovetail.models import foreign_model
from dovetail.models.own import OwnModel
from dovetail.predictors import PREDICTORS, text_features

Found = TypeVar("Found")


def add_predictor_constr(
    model: Any,
    predictor: Any,
    input_vars: Any,
    output_vars: Any = None,
    *,
    output_type: PeerOutputType = None,
    threshold: float | None = None,
    epsilon: float = 1e-4,
    name: str = "",
    data: Any = None,
    within: Any = None,
    trust: bool = False,
    risk: Measure | None = None,
    **peer_options: Any,
) -> PredictorConstr:
    """Connect variables of `model` by a predictor: `output_vars` = predictor(`input_vars`) per sample.

    The connection counts in `dovetail.solve(model)`; the model gets no constraints for the network. Options
    of PySCIPOpt-ML and gurobi-machinelearning for their formulations are accepted and ignored.

    Args:
        model: A model of PySCIPOpt, highspy, gurobipy, Pyomo or linopy, or a `dovetail.Problem`.
        predictor: A torch module, a trained estimator, trees, the path of a file, or a function of numpy
            batches (docs/predictors.md).
        input_vars: Variables of the tool, of shape (n_samples, n_features), or a vector for one sample.
            Numbers among them are fixed features. More than two dimensions are flattened sample by sample,
            unless the predictor takes samples of that shape, as a CNN does.
        output_vars: Variables of shape (n_samples, n_outputs). None makes them: free variables, or binaries
            for classes.
        output_type: "regression" by default; "classification" for classes, the default of scikit-learn's
            classifiers; "probability_1" for a classifier's probability of its second class.
        threshold: As in `Problem.add_predictor`.
        epsilon: As in `Problem.add_predictor`.
        name: For messages and the log.
        data: The training inputs; the result then lists inputs outside their range.
        within: As in `Problem.add_predictor`.
        trust: Whether to load a file that can run code (pickles).
        risk: As in `Problem.add_predictor`.
        **peer_options: Options of PySCIPOpt-ML and gurobi-machinelearning.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> constr = dt.add_predictor_constr(problem, lambda X: X**2, [0], [1])
    >>> assert dt.solve(problem, log=False).objective == -6.0
    """
    require_known(peer_options)
    output_type = asked_output_type(output_type, peer_options)
    foreign = foreign_model(model)
    truth = as_predictor(with_risk(_loaded(predictor) if trust else predictor, risk))
    foreign.watch(OwnSolves())
    registry = registry_of(model)
    name = registry.free_name(model, str(name), naming_prefix(peer_options))
    new = Attachment(name, truth, input_vars, output_vars, "regression", threshold, epsilon, data)
    new.within = within
    if not isinstance(model, Problem):  # a frame, whose columns have names
        new.categories = text_features(predictor)
    trial = Trial(foreign, registry, model.blocks if isinstance(model, Problem) else None)
    description = _described(trial, new, foreign, predictor)
    _require_order(name, description, input_vars, data)
    new.output_type = output_type_of(description, output_type)
    created = _attach(trial, new, foreign, description, output_type)
    read, written = trial.keys_of(new)
    registry.read |= read
    registry.written |= written
    if isinstance(model, Problem):
        _add_to_own(model, foreign, new)
    constr = PredictorConstr(model, foreign, new, created, predictor)
    new.inputs, new.outputs = _without_model(foreign, new.inputs), _without_model(foreign, new.outputs)
    registry.attachments.append(new)
    registry.lost = False
    return constr


def _described(trial: Trial, new: Attachment, foreign: ForeignModel, predictor: Any) -> Description:
    """The predictor's description; a predictor that takes samples with the shape of the inputs gets this
    shape."""
    try:
        return trial.described(new)
    except PredictorError:
        shape = foreign.unpack(new.inputs).shape[1:]
        if len(shape) < 2:
            raise
        from dovetail.predictors.shaped import shaped  # loads torch

        for wrapped in shaped(predictor, shape):
            new.predictor = as_predictor(wrapped)
            with suppress(PredictorError):
                return trial.described(new)
        raise


def _attach(
    trial: Trial, new: Attachment, foreign: ForeignModel, description: Description, asked: PeerOutputType
) -> Any:
    """Accept the attachment; returns the outputs that were made for it, if none were given."""
    classifies = new.output_type == "classification"
    if new.outputs is None:
        assert description.outputs is not None
        shape = trial.attach_with_fresh_outputs(new, description.outputs)
        require_probability(new, asked)
        new.outputs = foreign.create(shape, binary=classifies, name=new.name)
        return new.outputs
    trial.attach(new)
    require_probability(new, asked)
    if classifies and asked is None and trial.has_continuous_outputs(new):
        warnings.warn(
            f"{new.name}: {description.name} gives classes, 0 or 1, and its outputs here are continuous; "
            'output_type="probability_1" asks for the probability, output_type="classification" asks for '
            "classes.",
            stacklevel=3,
        )
    return None


def _loaded(predictor: Any) -> Any:
    """The contents of a file, if a path was given; it may run code, because its owner trusts it."""
    if not isinstance(predictor, (str, Path)):
        return predictor
    return PREDICTORS["file"].load()(predictor, trust=True)


def _without_model(foreign: ForeignModel, given: Any) -> Any:
    """The contents of a container that would keep its model alive."""
    return foreign.unpack(given) if isinstance(given, foreign.heavy) else given


def _add_to_own(problem: Problem, foreign: ForeignModel, new: Attachment) -> None:
    """A `dovetail.Problem` stores its blocks and the columns of fixed features itself."""
    reading = foreign.read()
    inputs, outputs = sample_places(foreign, reading, new)
    first, mip = problem.mip.n_columns, with_numbers(problem.mip, [inputs])
    names = [mip.column_name(j) for j in range(first, mip.n_columns)]
    problem.add_columns(mip.lower[first:], mip.upper[first:], mip.integer[first:], names)
    new.add_to(problem, columns_of(mip, first, inputs), outputs.column)
    new.places = inputs, outputs


def _require_order(name: str, description: Description, inputs: Any, data: Any) -> None:
    expected = description.feature_names
    for what, given in (("input_vars", inputs), ("data", data)):
        if expected is None or not hasattr(type(given), "iloc"):  # of pandas; others may have names of theirs
            continue
        found = labels_of(given) or []
        if found != list(expected) and all(isinstance(column, str) for column in found):
            raise PredictorError(
                f"{name}: {what} has the columns {', '.join(found)}, but the predictor was trained on "
                f"{', '.join(map(str, expected))}; give these, in this order."
            )


class Trial:
    """The model's columns and all earlier attachments, to test whether one more fits."""

    def __init__(self, foreign: ForeignModel, registry: Registry, own: tuple[Block, ...] | None) -> None:
        """`own` are the blocks of a `dovetail.Problem`."""
        self._foreign, self._registry, self._own = foreign, registry, own
        self._reading = foreign.read(rows=False)

    def _keys(self, entries: ObjectArray) -> set[Hashable]:
        """The keys of the variables in an array."""
        return {self._foreign.key(entry) for entry in entries.flat if not isinstance(entry, (Real, np.bool_))}

    def keys_of(self, new: Attachment) -> tuple[set[Hashable], set[Hashable]]:
        """The keys of the attachment's inputs and outputs."""
        outputs = self._foreign.unpack(new.outputs)
        return self._keys(input_entries(self._foreign, new)), self._keys(outputs)

    def attach(self, new: Attachment) -> None:
        """Accept the attachment, or raise an error."""
        inputs, outputs = self._find_columns(new, sample_places)
        read, written = self.keys_of(new)
        involved = self._registry.involves(read, written)
        problem, columns = self._problem(inputs, self._registry.attachments if involved else ())
        new.add_to(problem, columns, outputs.column)

    def has_continuous_outputs(self, new: Attachment) -> bool:
        """Whether any output column is continuous."""
        _, outputs = self._find_columns(new, sample_places)
        return not bool(np.all(self._reading.mip.integer[outputs.column]))

    def described(self, new: Attachment) -> Description:
        """The predictor's description, before outputs are chosen."""
        problem, columns = self._problem(self._find_columns(new, input_places), ())
        return probe.described(new.name, new.predictor, problem.mip, columns)

    def attach_with_fresh_outputs(self, new: Attachment, outputs_per_sample: int) -> tuple[int, int]:
        """Accept the attachment with new columns as outputs; returns their shape."""
        problem, columns = self._problem(self._find_columns(new, input_places), ())
        shape = len(columns), outputs_per_sample
        outputs = OwnModel(problem).create(shape, binary=new.output_type == "classification", name=new.name)
        new.add_to(problem, columns, outputs)
        return shape

    def _find_columns(
        self, new: Attachment, find: Callable[[ForeignModel, Reading, Attachment], Found]
    ) -> Found:
        """The result of `find` among the model's columns, or among columns that only rows know."""
        try:
            return find(self._foreign, self._reading, new)
        except ModelError:
            self._reading = self._foreign.read()
            return find(self._foreign, self._reading, new)

    def _problem(self, inputs: Places, before: Sequence[Attachment]) -> tuple[Problem, IntArray]:
        """The columns with the earlier blocks, and the places of the new inputs."""
        host = self._reading.mip
        if self._own is not None:
            mip = with_numbers(host, [inputs])
            return Problem(mip).derived(mip, self._own), columns_of(mip, host.n_columns, inputs)
        places = [sample_places(self._foreign, self._reading, attached) for attached in before]
        mip = with_numbers(host, [inputs, *(into for into, _ in places)])
        blocks = []
        for attached, (into, out) in zip(before, places, strict=True):
            assert attached.block is not None
            columns = columns_of(mip, host.n_columns, into)
            blocks.append(replace(attached.block, inputs=columns, outputs=out.column))
        return Problem(mip).derived(mip, tuple(blocks)), columns_of(mip, host.n_columns, inputs)


RELU_FORMULATIONS = ("mip", "smooth", "soft")
"""gurobi-machinelearning's ReLU formulations, the last ones smooth approximations; all mean ReLU here."""

FORMULATIONS = ("bigm", "l1", "l2", "leaf", "leafs", "paths", "sos")
"""Formulations of the peers for networks, trees and clusters; all mean the predictor itself."""

WRITING_OPTIONS = frozenset(
    {"formulation", "bigm", "relu_formulation", "soft_relu_beta", "pwl_attributes", "verbose", "no_record"}
) | {"no_debug", "safety_floor", "float_type"}
"""Options of formulations, which are ignored."""

PEER_OPTIONS = WRITING_OPTIONS | {"unique_naming_prefix", "predict_function"}

OWN_OPTIONS = frozenset(
    {
        "input_vars",
        "output_vars",
        "output_type",
        "threshold",
        "epsilon",
        "name",
        "data",
        "within",
        "trust",
        "risk",
    }
)
"""The options of `add_predictor_constr`, for suggestions."""

PREDICT_FUNCTIONS: dict[str, OutputType | None] = {"predict": None, "predict_proba": "regression"}
"""Values of `predict_function`: classes (or values), or probabilities."""

PeerOutputType = OutputType | Literal["probability_1", "probability"] | None
"""None: the predictor's default; "probability_1": a classifier's probability of its second class;
"probability": the probabilities of all classes."""

_log = logging.getLogger("dovetail")


def require_known(peer_options: dict[str, Any]) -> None:
    """A `TypeError` for unknown keywords, an `OptionError` for an unknown formulation."""
    for option in peer_options:
        if option not in PEER_OPTIONS:
            meant = did_you_mean(option, OWN_OPTIONS | PEER_OPTIONS)
            raise TypeError(f"add_predictor_constr() got an unexpected keyword argument {option!r}{meant}")
        if option in WRITING_OPTIONS:
            _log.debug("%s= says how to write a network out; dovetail does not write it out", option)
    for option, known in (("relu_formulation", RELU_FORMULATIONS), ("formulation", FORMULATIONS)):
        way = peer_options.get(option)
        if way is not None and way not in known:
            raise OptionError(
                f"{option} must be one of {', '.join(known)}, all of which mean the predictor as it is; it "
                f"is {way!r}."
            )


def naming_prefix(peer_options: dict[str, Any]) -> str:
    """The peers' prefix for names."""
    return str(peer_options.get("unique_naming_prefix", "")).rstrip("_")


def asked_output_type(output_type: PeerOutputType, peer_options: dict[str, Any]) -> PeerOutputType:
    """The requested output type, also if it is given as the name of a scikit-learn method."""
    function = peer_options.get("predict_function")
    if function is None or output_type is not None:
        return output_type
    if function not in PREDICT_FUNCTIONS:
        raise PredictorError(
            f"predict_function is {function!r}; dovetail takes 'predict' and 'predict_proba'. For another "
            f"method pass it as the predictor (estimator.{function}), or set out_activation_ of an MLP to "
            '"identity" for its logits.'
        )
    return PREDICT_FUNCTIONS[function]


def output_type_of(description: Description, asked: PeerOutputType) -> OutputType:
    """The output type: a classifier gives classes unless something else is requested."""
    if asked == "probability_1" or asked == "probability":  # separate tests help mypy
        return "regression"
    if asked is None:
        return "classification" if description.is_classifier else "regression"
    return asked


def require_probability(attached: Attachment, asked: PeerOutputType) -> None:
    """Refuse "probability_1" for predictors without such a probability."""
    assert attached.block is not None
    if asked == "probability_1" and not (
        attached.block.description.ends_in_sigmoid and attached.block.outputs.shape[1] == 1
    ):
        raise PredictorError(
            f"{attached.name}: {attached.block.description.name} has no probability of one class out of two; "
            'output_type "probability_1" needs a classifier of two classes with predict_proba, or a network '
            "that ends in a sigmoid."
        )
