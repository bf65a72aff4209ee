"""The inputs and outputs of a predictor as a problem file writes them, as one row of columns per sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dovetail.core.amounts import several
from dovetail.core.errors import ModelError
from dovetail.core.suggestion import did_you_mean
from dovetail.problem_file.column_patterns import NamedColumns, NamePattern
from dovetail.problem_file.document import Document, Place

Entry = str | float
"""A name, or a number: a feature that is the same wherever it stands."""


class Samples(NamedTuple):
    """One list of each for every sample."""

    inputs: list[list[Entry]]
    outputs: list[list[Entry]]


class _Entries(NamedTuple):
    """An entry where it stands."""

    entry: Entry
    place: Place


def read_samples(document: Document, place: Place, columns: NamedColumns) -> Samples:
    """The samples of the predictor at a place.

    Lists of lists are one list per sample. Otherwise there is one sample, or one for each value that the
    placeholders of the outputs have.
    """
    table: Mapping[str, Any] = document.content["predictor"][place[-1]]
    inputs = _rows((*place, "inputs"), table["inputs"])
    outputs = _rows((*place, "outputs"), table["outputs"])
    if len(inputs) > 1 and len(outputs) == 1:  # one output each, written as one list
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
    """A sample that was written out, but for stars."""
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
    """One list of inputs and one of outputs: one sample for each value of the placeholders."""

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
        """Those of the outputs; every output has all of them, and no input has another."""
        first = self._patterns[self._outputs[0].place]
        names = first.placeholders if first is not None else ()
        for written in (*self._outputs, *self._inputs):
            pattern = self._patterns[written.place]
            own = set(pattern.placeholders) if pattern is not None else set()
            if own - set(names) or (written in self._outputs and own != set(names)):
                raise self._document.wrong(
                    written.place,
                    f"{written.entry!r} has other placeholders than the output {self._outputs[0].entry!r}: "
                    "every output has all of them, an input no others.",
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
                raise ModelError(f"no column is like {first.text!r}{meant}")
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
        raise ModelError(f"no column is like {text!r}{f' with {values}' if values else ''}{meant}")
    return found
