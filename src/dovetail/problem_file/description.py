"""A problem as files describe it: a model, its predictors, options, and output files.

Reading the description checks tables, keys and kinds of value, which is quick and finds most mistakes;
building the problem then reads the model and the networks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.words import did_you_mean
from dovetail.methods import METHODS
from dovetail.nn import SUB_SOLVERS
from dovetail.problem_file.document import Document, Place
from dovetail.solving.solve import solve

if TYPE_CHECKING:
    from dovetail.core.problem import Problem
    from dovetail.run.context import Method

SUFFIX = ".toml"


EXAMPLE = "'strength.onnx:cement,ash->strength'"
OPENING, CLOSING = "[({", "])}"


@dataclass(frozen=True, eq=False)
class FileDescription:
    """The contents of a problem file, or of a model file with command-line options."""

    model: Path
    document: Document
    """The document with method, options and outputs; empty for a model file."""
    predictors: tuple[tuple[Document, Place], ...]
    source: Path
    """The file named on the command line."""

    @classmethod
    def read(cls, path: Path, predictors: Sequence[str] = ()) -> FileDescription:
        """A problem file, or a model file whose predictors are given as ``FILE:INPUTS->OUTPUTS``."""
        if path.suffix.lower() != SUFFIX:
            options = tuple(read_predictor_option(text) for text in predictors)
            empty = Document(str(path), path.parent, {}, {})
            return cls(path, empty, tuple((option, ("predictor", 0)) for option in options), path)
        if predictors:
            raise OptionError(f"--predictor is for model files; {path} names its predictors itself.")
        document = Document.read(path)
        require_schema(document)
        model = document.file(("model",), document.content["model"])
        places = [("predictor", k) for k in range(len(document.content.get("predictor", ())))]
        return cls(model, document, tuple((document, place) for place in places), path)

    @property
    def options(self) -> dict[str, Any]:
        """The options of `dovetail.solve` in the file."""
        table = self.document.content.get("solve", {})
        return {name: value for name, value in table.items() if name in SOLVE}

    @property
    def start(self) -> Path | None:
        """The result file for `start`."""
        name = self.document.content.get("solve", {}).get("start")
        return None if name is None else self.document.file(("solve", "start"), name)

    def output(self, kind: str) -> Path | None:
        """The file for the solution, report or certificate."""
        name = self.document.content.get("output", {}).get(kind)
        return None if name is None else self.document.folder / name

    @property
    def files(self) -> tuple[Path, ...]:
        """All input files, which must not be overwritten."""
        named = []
        for document, place in self.predictors:
            table = document.content["predictor"][place[-1]]
            named += [document.folder / table[key] for key in ("file", "data") if key in table]
        return self.source, self.model, *named

    def method(self) -> Method:
        """The method with its options."""
        table = self.document.content.get("method", {})
        known = {name: part.load for name, part in METHODS.items()}
        method: Method = _object_of(self.document, ("method",), table, "auto", known)
        return method

    def require_options(self) -> None:
        """Refuse invalid options of the solve, with their line."""
        from dovetail.solving.options import SolveOptions

        taken = inspect.signature(SolveOptions.checked).parameters
        options = inspect.signature(solve).parameters
        usual = {name: option.default for name, option in options.items() if name in taken}
        for name, value in self.options.items():
            with self.document.at(("solve", name)):
                SolveOptions.checked(**{**usual, name: value})

    def problem(self, *, trust: bool = False) -> Problem:
        """The model with its predictors."""
        from dovetail.core.problem import Problem
        from dovetail.models.files import read
        from dovetail.problem_file.column_patterns import NamedColumns
        from dovetail.problem_file.predictors import tie_predictor

        with self.document.at(("model",)) if self.document.lines else nullcontext():
            mip = read(self.model)
        problem = Problem(mip)
        columns = NamedColumns(mip.names or ())
        for document, place in self.predictors:
            tie_predictor(problem, columns, document, place, trust=trust)
        return problem


def read_predictor_option(text: str) -> Document:
    """A command-line option in the form of a problem file; names are split at commas outside brackets."""
    name = f"--predictor {text!r}"
    columns, arrow, outputs = text.rpartition("->")
    if not arrow:
        shell = " (the shell takes > for itself: put it in quotes)" if text.endswith("-") else ""
        raise OptionError(f"{name} has no ->{shell}; write FILE:INPUTS->OUTPUTS, such as {EXAMPLE}.")
    file, inputs = _split(name, columns)
    table = {"file": file, "inputs": _names(name, inputs), "outputs": _names(name, outputs)}
    return Document(name, Path(), {"predictor": [table]}, {})


def with_whole_path(text: str) -> str:
    """A command-line option that holds in any folder."""
    columns, arrow, outputs = text.rpartition("->")
    file, inputs = _split(f"--predictor {text!r}", columns)
    return f"{Path(file).absolute()}:{inputs}{arrow}{outputs}"


def _split(name: str, text: str) -> tuple[str, str]:
    """The file and the rest, split at the first colon after an existing file; both may contain colons."""
    colons = [k for k, sign in enumerate(text) if sign == ":"]
    for k in colons:
        if Path(text[:k]).is_file():
            return text[:k], text[k + 1 :]
    if not colons:
        raise OptionError(f"{name} has no colon; write FILE:INPUTS->OUTPUTS, such as {EXAMPLE}.")
    raise OptionError(f"{name}: there is no file {text[: colons[0]]}.")


def _names(option: str, text: str) -> list[str]:
    names, depth = [""], 0
    for sign in text:
        depth += (sign in OPENING) - (sign in CLOSING)
        if sign == "," and depth <= 0:
            names.append("")
        else:
            names[-1] += sign
    found = [name.strip() for name in names]
    if not all(found):
        raise OptionError(f"{option}: a name is missing in {text!r}.")
    return found


Makers = Mapping[str, Callable[[], Callable[..., Any]]]
"""Functions that import a class or function, by the name that users write."""


def _object_of(
    document: Document,
    place: Place,
    table: Mapping[str, Any],
    usual: str,
    known: Mapping[str, Callable[..., Any]],
) -> Any:
    """An object with options, which may be objects with options themselves."""
    name = table.get("name", usual)
    with document.at((*place, "name")):
        make = _known_class(name, known)
    options = {key: value for key, value in table.items() if key != "name"}
    fields = inspect.signature(make).parameters
    for key, value in options.items():
        if key not in fields:
            choice = f"; its options are {', '.join(fields)}." if fields else "; it has none."
            meant = did_you_mean(key, fields) or choice
            raise document.wrong((*place, key), f"{name} has no option {key!r}{meant}")
        if isinstance(value, dict):
            options[key] = _object_of(document, (*place, key), value, "", _parts())
    try:
        return _call(make, options)
    except DovetailError as reason:
        raise document.wrong(_invalid_option_place(make, options, place), str(reason)) from reason


def _known_class(name: Any, known: Makers) -> Callable[..., Any]:
    if not isinstance(name, str) or name not in known:
        meant = did_you_mean(name, known) or f"; choose {', '.join(known)}."
        raise OptionError(f"name is {name!r}{meant}")
    return known[name]()


def _parts() -> Makers:
    """The classes that an option of a method may name, besides numbers and strings."""
    from dovetail.coupling.penalty import BalancedPenalty, FixedPenalty, IncreasingPenalty

    rules: dict[str, Callable[..., Any]] = {
        rule.__name__: lambda rule=rule: rule for rule in (BalancedPenalty, FixedPenalty, IncreasingPenalty)
    }
    return {name: part.load for name, part in SUB_SOLVERS.items()} | rules


def _call(make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    try:
        return make(**options)
    except (TypeError, ValueError) as reason:
        if isinstance(reason, DovetailError):
            raise
        raise OptionError(str(reason)) from reason


def _invalid_option_place(make: Callable[..., Any], options: Mapping[str, Any], place: Place) -> Place:
    """The place of the first invalid option, or that of all options."""
    for key, value in options.items():
        try:
            _call(make, {key: value})
        except DovetailError:
            return (*place, key)
    return place


@dataclass(frozen=True)
class ValueKind:
    """The type of a value."""

    words: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class Key:
    """One key of a table."""

    kind: ValueKind
    required: bool = False
    inner: Mapping[str, Key] | None = None
    """The keys of the table (or of each table) under this key; None: checked elsewhere."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_name_or_number(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


def _are_inputs(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list)
        and len(value) > 0
        and (
            all(map(_is_name_or_number, value))
            or all(isinstance(row, list) and row and all(map(_is_name_or_number, row)) for row in value)
        )
    )


def _are_outputs(value: Any) -> bool:
    rows = value if isinstance(value, list) else []
    entries = [entry for row in rows for entry in (row if isinstance(row, list) else [row])]
    return _are_inputs(value) and all(isinstance(entry, str) for entry in entries)


TEXT = ValueKind("text in quotes", lambda value: isinstance(value, str) and value != "")
NUMBER = ValueKind("a number", _is_number)
COUNT = ValueKind("a whole number", lambda value: _is_number(value) and isinstance(value, int))
INPUTS = ValueKind("a list of names and numbers, or a list of such lists, one for each sample", _are_inputs)
OUTPUTS = ValueKind("a list of names, or a list of such lists, one for each sample", _are_outputs)
TABLE = ValueKind("a table", lambda value: isinstance(value, dict))
TABLES = ValueKind(
    "one or more tables",
    lambda value: isinstance(value, list) and all(isinstance(table, dict) for table in value),
)

_KIND_OF_OPTION = {"float": NUMBER, "float | None": NUMBER, "int": COUNT, "int | None": COUNT,
                   "str | None": TEXT}  # fmt: skip
"""By the type of an option of `dovetail.solve`; objects and functions cannot be written in a file."""

SOLVE = {
    name: Key(_KIND_OF_OPTION[option.annotation])
    for name, option in inspect.signature(solve).parameters.items()
    if option.annotation in _KIND_OF_OPTION
}
"""The options of `dovetail.solve` that are numbers or text."""

PREDICTOR = {
    "file": Key(TEXT, required=True),
    "inputs": Key(INPUTS, required=True),
    "outputs": Key(OUTPUTS, required=True),
    "name": Key(TEXT),
    "output_type": Key(TEXT),
    "threshold": Key(NUMBER),
    "epsilon": Key(NUMBER),
    "data": Key(TEXT),
    "within": Key(TEXT),
    "activation": Key(TEXT),
}
PROBLEM_FILE = {
    "model": Key(TEXT, required=True),
    "predictor": Key(TABLES, inner=PREDICTOR),
    "method": Key(TABLE),
    "solve": Key(TABLE, inner={**SOLVE, "start": Key(TEXT)}),
    "output": Key(TABLE, inner={name: Key(TEXT) for name in ("solution", "report", "certificate")}),
}


def require_schema(document: Document) -> None:
    """Refuse unknown keys and wrong kinds of values; errors name the line."""
    _require_table(document, (), document.content, PROBLEM_FILE)


def _require_table(
    document: Document, place: Place, table: Mapping[str, Any], keys: Mapping[str, Key]
) -> None:
    where = f"[{'.'.join(str(part) for part in place if isinstance(part, str))}]" if place else "this file"
    for name in table:
        if name not in keys:
            meant = did_you_mean(name, keys) or f"; its keys are {', '.join(keys)}."
            raise document.wrong((*place, name), f"{where} has no key {name!r}{meant}")
    for name, key in keys.items():
        if name in table:
            _require_value(document, (*place, name), table[name], key)
        elif key.required:
            raise document.wrong(place, f"{where} needs the key {name!r}.")


def _require_value(document: Document, place: Place, value: Any, key: Key) -> None:
    name = place[-1]
    if not key.kind.fits(value):
        said = (
            f"; write [[{name}]]" if key.kind is TABLES else f"; write [{name}]" if key.kind is TABLE else ""
        )
        raise document.wrong(place, f"{name} is {_shown(value)}, but takes {key.kind.words}{said}.")
    if key.inner is not None:
        tables = value if isinstance(value, list) else [value]
        for k, table in enumerate(tables):
            inner = (*place, k) if isinstance(value, list) else place
            _require_table(document, inner, table, key.inner)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
