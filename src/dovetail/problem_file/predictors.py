"""The predictors of a problem file, read from their own files and tied to the columns of the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dovetail.core.errors import PredictorError
from dovetail.core.problem import Problem
from dovetail.core.training_range import TrainingRange
from dovetail.modelling.add_predictor_constr import add_predictor_constr
from dovetail.predictors.files import UntrustedFileError, load_predictor
from dovetail.problem_file.column_patterns import NamedColumns
from dovetail.problem_file.dense_weights import dense_network, require_activation
from dovetail.problem_file.document import Document, Place
from dovetail.problem_file.samples import Entry, read_samples
from dovetail.problem_file.training_table import read_training_table

WEIGHTS = (".pt", ".pth", ".safetensors")
"""Files that hold weights, unless somebody trusts them with more."""
PASSED_ON = ("output_type", "threshold", "epsilon", "name")
"""Keys that are arguments of `add_predictor_constr`."""


def tie_predictor(
    problem: Problem, columns: NamedColumns, document: Document, place: Place, *, trust: bool
) -> None:
    """Read the predictor at a place and tie it to `problem`; errors name the line."""
    table: Mapping[str, Any] = document.content["predictor"][place[-1]]
    file = document.file((*place, "file"), table["file"])
    samples = read_samples(document, place, columns)
    activation = table.get("activation")
    if activation is not None:
        with document.at((*place, "activation")):
            require_activation(activation)
    with document.at((*place, "file")):
        predictor = _loaded(file, activation, trust=trust)
    options = {key: table[key] for key in PASSED_ON if key in table}
    try:
        data = _data(document, place, table, samples.inputs[0])
    except PredictorError:
        with document.at(place):  # columns that the predictor does not take are named before the data is
            add_predictor_constr(problem, predictor, samples.inputs, samples.outputs, **options)
        raise
    with document.at(place):
        add_predictor_constr(problem, predictor, samples.inputs, samples.outputs, data=data, **options)


def _loaded(file: Path, activation: str | None, *, trust: bool) -> Any:
    if activation is not None:
        return dense_network(file, activation)
    if file.suffix.lower() in WEIGHTS and not trust:
        raise PredictorError(
            f"{file} holds weights, not the network they belong to; if it is a chain of dense layers, say "
            'what is between them in a problem.toml (activation = "relu"; `dovetail init` writes one to '
            "start from), else export it to ONNX."
        )
    try:
        return load_predictor(file, trust=trust)
    except UntrustedFileError:
        raise PredictorError(
            f"{file} can run any code when it is loaded; if you trust it as your own code, say --trust. For "
            "exchange, keep ONNX or skops instead."
        ) from None


def _data(document: Document, place: Place, table: Mapping[str, Any], features: list[Entry]) -> Any:
    if "data" not in table:
        return None
    at = (*place, "data")
    file = document.file(at, table["data"])
    with document.at(at):
        data = read_training_table(file).of(features)
        TrainingRange.of(file.name, data, len(features))  # refused here, where its line is known
    return data
