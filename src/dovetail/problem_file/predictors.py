"""The predictors of a problem file, read from their own files and tied to the columns of the model."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.core.feature_order import features_in
from dovetail.core.problem import Problem
from dovetail.core.training_range import TrainingRange
from dovetail.modelling.add_predictor_constr import add_predictor_constr
from dovetail.predictors.files import UntrustedFileError, load_predictor
from dovetail.problem_file.column_patterns import NamedColumns
from dovetail.problem_file.dense_weights import dense_network, require_activation
from dovetail.problem_file.document import Document, Place
from dovetail.problem_file.samples import Entry, read_samples

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


LARGEST = 1 << 30
"""Bytes: only ranges are taken from it, and a file of that size takes half a minute to read."""


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table of numbers whose columns have names, as `data=` takes it."""

    values: FloatArray
    columns: tuple[str, ...] | None

    def __array__(self, dtype: object = None, copy: object = None) -> FloatArray:
        return self.values

    def of(self, features: Sequence[object]) -> TrainingTable:
        """The columns that are called as the features are, where there are others too."""
        if self.columns is None or not all(isinstance(feature, str) for feature in features):
            return self
        meant = [features_in(str(feature), self.columns) for feature in features]
        names = [name for one in meant if len(one) == 1 for name in one]
        if len(set(names)) < len(features):
            return self
        return TrainingTable(self.values[:, [self.columns.index(name) for name in names]], tuple(names))


def read_training_table(file: Path) -> TrainingTable:
    """The numbers in a file; a .csv file may begin with a line of names, and cells may be empty."""
    if file.stat().st_size > LARGEST:
        raise PredictorError(f"{file} has more than {LARGEST:,} bytes; a sample of it will do.")
    try:
        if file.suffix.lower() == ".npy":
            values = np.load(file, allow_pickle=False)
            return TrainingTable(np.asarray(values, dtype=np.float64), None)
        with file.open(encoding="utf-8-sig", newline="") as stream:
            return _table(file, [row for row in csv.reader(stream) if row])
    except OSError as reason:
        raise PredictorError(f"{file} cannot be opened: {reason.strerror}.") from None
    except (ValueError, TypeError, EOFError, csv.Error) as reason:
        raise PredictorError(f"{file} is no table of numbers ({reason}); give .csv or .npy.") from None


def _table(file: Path, rows: list[list[str]]) -> TrainingTable:
    if not rows:
        raise PredictorError(f"{file} is empty.")
    names = None if _is_numbers(rows[0]) else tuple(cell.strip() for cell in rows[0])
    body = rows if names is None else rows[1:]
    for number, row in enumerate(body, start=1):
        if len(row) != len(rows[0]):
            raise PredictorError(f"{file}: row {number} has {len(row)} cells, the first has {len(rows[0])}.")
    values = [[_number(cell) for cell in row] for row in body]
    return TrainingTable(np.array(values, dtype=np.float64).reshape(len(body), -1), names)


def _is_numbers(row: list[str]) -> bool:
    try:
        return bool([_number(cell) for cell in row])
    except ValueError:
        return False


def _number(cell: str) -> float:
    return float(cell) if cell.strip() else float("nan")
