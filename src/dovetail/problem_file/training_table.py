"""Training inputs in a file, .csv or .npy: what a predictor has seen, to say where an answer leaves it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError

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
        """The columns that are called as the features are, where there are others too.

        These are in the order of the features, whatever the predictor calls them: they need no names then.
        """
        names = [feature for feature in features if isinstance(feature, str)]
        if self.columns is None or len(names) != len(features) or not set(names) <= set(self.columns):
            return self
        return TrainingTable(self.values[:, [self.columns.index(name) for name in names]], None)


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
