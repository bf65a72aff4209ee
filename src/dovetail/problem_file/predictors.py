"""The predictors of a problem file: read from their own files and connected with the variables of the model.

A state dict has the sizes of layers but no activations. The name of one activation completes a chain of
dense layers, so that the most common networks need no code.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.block import TrainingData
from dovetail.core.errors import ModelError, PredictorError
from dovetail.core.names import features_in
from dovetail.core.problem import Problem
from dovetail.core.words import did_you_mean, several
from dovetail.modelling.add_predictor_constr import add_predictor_constr
from dovetail.predictors.files import UntrustedFileError, load_predictor, load_weights
from dovetail.problem_file.column_patterns import NamedColumns, NamePattern
from dovetail.problem_file.document import Document, Place

WEIGHTS = (".pt", ".pth", ".safetensors")
"""File types that hold weights, unless they are read with `--trust`."""


def tie_predictor(
    problem: Problem, columns: NamedColumns, document: Document, place: Place, *, trust: bool
) -> None:
    """Read the predictor at a place and add it to `problem`; errors name the line."""
    table: Mapping[str, Any] = document.content["predictor"][place[-1]]
    file = document.file((*place, "file"), table["file"])
    samples = read_samples(document, place, columns)
    activation = table.get("activation")
    if activation is not None:
        with document.at((*place, "activation")):
            require_activation(activation)
    with document.at((*place, "file")):
        predictor = _loaded(file, activation, trust=trust)
    options = {key: table[key] for key in ("output_type", "threshold", "epsilon", "name") if key in table}
    try:
        data = _data(document, place, table, samples.inputs[0])
    except PredictorError:
        with document.at(place):  # columns that the predictor does not take are named before the data is
            add_predictor_constr(problem, predictor, samples.inputs, samples.outputs, **options)
        raise
    with document.at(place):
        add_predictor_constr(
            problem,
            predictor,
            samples.inputs,
            samples.outputs,
            data=data,
            within=table.get("within"),
            **options,
        )


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
        TrainingData.of(file.name, data, len(features))  # refused here, because the line is known here
    return data


LARGEST = 1 << 30
"""Largest number of bytes: such a file takes half a minute to read."""


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table of numbers with column names, for `data=`."""

    values: FloatArray
    columns: tuple[str, ...] | None

    def __array__(self, dtype: object = None, copy: object = None) -> FloatArray:
        return self.values

    def of(self, features: Sequence[object]) -> TrainingTable:
        """The columns that are called as the features, if there are others too."""
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
        raise PredictorError(f"{file} has more than {LARGEST:,} bytes; use a sample of the data.")
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


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU,
    "gelu": nn.GELU, "silu": nn.SiLU, "softplus": nn.Softplus,
}  # fmt: skip
"""Activations by name, with torch's default settings."""


def require_activation(name: str) -> None:
    """Refuse an unknown activation."""
    if name not in ACTIVATIONS:
        meant = did_you_mean(name, ACTIVATIONS) or f"; choose {', '.join(ACTIVATIONS)}."
        raise PredictorError(f"activation is {name!r}{meant}")


def dense_network(file: Path, activation: str) -> nn.Module:
    """The chain of dense layers whose weights a `.pt`, `.pth` or `.safetensors` file holds."""
    weights = load_weights(file)
    layers: list[nn.Module] = []
    for name in _weights_in_order(file, [key for key in weights if key.endswith("weight")]):
        weight, bias = weights[name], weights.get(f"{name.removesuffix('weight')}bias")
        before = layers[-1].out_features if layers else None
        if weight.ndim != 2 or before not in (None, weight.shape[1]):
            raise _no_chain(file, f"{name} has the shape {tuple(weight.shape)}")
        layers += [ACTIVATIONS[activation]()] if layers else []
        layers.append(_dense(file, name, weight, bias))
    network = nn.Sequential(*layers)
    if not layers or len(network.state_dict()) != len(weights):
        raise _no_chain(file, f"it has {', '.join([*weights][:6]) or 'nothing'}")
    return network.eval()


def _dense(file: Path, name: str, weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    try:
        layer.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
    except RuntimeError as reason:
        raise _no_chain(file, f"{name}: {str(reason).splitlines()[-1].strip()}") from reason
    return layer


def _weights_in_order(file: Path, names: list[str]) -> list[str]:
    """The weights from the first layer to the last: a state dict keeps this order, `.safetensors` sorts by
    name, so that numbers in the names are needed."""
    if file.suffix.lower() != ".safetensors" or len(names) < 2:
        return names
    places = {name: tuple(map(int, re.findall(r"\d+", name))) for name in names}
    if len(set(places.values())) < len(names):
        raise _no_chain(
            file, f"{', '.join(names[:6])}: the names have no numbers for the order of the layers"
        )
    return sorted(names, key=places.__getitem__)


def _no_chain(file: Path, why: str) -> PredictorError:
    return PredictorError(
        f"{file} holds no chain of dense layers ({why}); export the network to ONNX, which contains its "
        f"structure."
    )


Entry = str | float
"""A name, or a number for a fixed feature."""


class Samples(NamedTuple):
    """One list of entries for every sample."""

    inputs: list[list[Entry]]
    outputs: list[list[Entry]]


class _Entries(NamedTuple):
    entry: Entry
    place: Place


def read_samples(document: Document, place: Place, columns: NamedColumns) -> Samples:
    """The samples of the predictor at a place: one list per sample; or one sample, or one for each value of
    the outputs' placeholders."""
    table: Mapping[str, Any] = document.content["predictor"][place[-1]]
    inputs = _rows((*place, "inputs"), table["inputs"])
    outputs = _rows((*place, "outputs"), table["outputs"])
    if len(inputs) > 1 and len(outputs) == 1:  # one output per sample, written as one list
        outputs = [[written] for written in outputs[0]]
    if len(inputs) != len(outputs):
        raise document.wrong(
            (*place, "outputs"),
            f"inputs has {several(len(inputs), 'sample')}, outputs has {len(outputs)}; give as many.",
        )
    if len(inputs) == 1:
        return _Placeholders(document, columns, inputs[0], outputs[0]).samples()
    return Samples(
        [_expanded(document, columns, row) for row in inputs],
        [_expanded(document, columns, row) for row in outputs],
    )


def _rows(place: Place, value: Any) -> list[list[_Entries]]:
    if isinstance(value, str):
        return [[_Entries(value, place)]]
    if isinstance(value[0], list):
        return [_row((*place, i), row) for i, row in enumerate(value)]
    return [_row(place, value)]


def _row(place: Place, entries: list[Entry]) -> list[_Entries]:
    return [_Entries(entry, (*place, k)) for k, entry in enumerate(entries)]


def _expanded(document: Document, columns: NamedColumns, row: list[_Entries]) -> list[Entry]:
    """A sample with its stars expanded."""
    found: list[Entry] = []
    for entry, place in row:
        with document.at(place):
            if not isinstance(entry, str):
                found.append(float(entry))
                continue
            pattern = columns.pattern(entry)
            if pattern is not None and pattern.placeholders:
                raise ModelError(f"{entry!r} stands for many samples; then inputs and outputs are one list.")
            found += _columns(entry, pattern, (), columns)
    return found


class _Placeholders:
    """One list of inputs and one of outputs, with one sample for each value of the placeholders."""

    def __init__(
        self,
        document: Document,
        columns: NamedColumns,
        inputs: list[_Entries],
        outputs: list[_Entries],
    ) -> None:
        self._document, self._columns = document, columns
        self._inputs, self._outputs = inputs, outputs
        self._patterns: dict[Place, NamePattern | None] = {
            place: columns.pattern(entry) if isinstance(entry, str) else None
            for entry, place in (*inputs, *outputs)
        }
        for entry, place in (*inputs, *outputs):
            if isinstance(entry, str) and self._patterns[place] is None:
                with document.at(place):
                    columns.require(entry)
        self._names = self._placeholders()

    def samples(self) -> Samples:
        keys = list(self._keys())
        return Samples(
            [self._sample(self._inputs, key) for key in keys],
            [self._sample(self._outputs, key) for key in keys],
        )

    def _placeholders(self) -> tuple[str, ...]:
        """The placeholders of the outputs; every output must have all of them, and no input another one."""
        first = self._patterns[self._outputs[0].place]
        names = first.placeholders if first is not None else ()
        for written in (*self._outputs, *self._inputs):
            pattern = self._patterns[written.place]
            own = set(pattern.placeholders) if pattern is not None else set()
            if own - set(names) or (written in self._outputs and own != set(names)):
                raise self._document.wrong(
                    written.place,
                    f"{written.entry!r} has other placeholders than the output {self._outputs[0].entry!r}; "
                    "all outputs need the same placeholders, and inputs may use only these.",
                )
        return names

    def _keys(self) -> Iterator[dict[str, str]]:
        first = self._patterns[self._outputs[0].place]
        if first is None or not self._names:
            yield {}
            return
        with self._document.at(self._outputs[0].place):
            keys = first.keys()
            if not keys:
                meant = did_you_mean(first.text, self._columns.names) or "."
                raise ModelError(f"no variable matches {first.text!r}{meant}")
        for key in keys:
            yield dict(zip(self._names, key, strict=True))

    def _sample(self, row: list[_Entries], key: dict[str, str]) -> list[Entry]:
        found: list[Entry] = []
        for entry, place in row:
            with self._document.at(place):
                if isinstance(entry, str):
                    pattern = self._patterns[place]
                    values = () if pattern is None else tuple(key[name] for name in pattern.placeholders)
                    found += _columns(entry, pattern, values, self._columns)
                else:
                    found.append(float(entry))
        return found


def _columns(
    text: str, pattern: NamePattern | None, key: tuple[str, ...], columns: NamedColumns
) -> list[str]:
    if pattern is None:
        columns.require(text)
        return [text]
    found = pattern.columns(key)
    if not found:
        values = ", ".join(
            f"{{{name}}} = {value}" for name, value in zip(pattern.placeholders, key, strict=True)
        )
        meant = did_you_mean(pattern.filled(key), columns.names) or "."
        raise ModelError(f"no variable matches {text!r}{f' with {values}' if values else ''}{meant}")
    return found
