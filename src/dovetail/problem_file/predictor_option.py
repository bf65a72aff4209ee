"""A predictor as the command line writes it: ``strength.onnx:cement,ash->strength``."""

from __future__ import annotations

from pathlib import Path

from dovetail.core.errors import OptionError
from dovetail.problem_file.document import Document

EXAMPLE = "'strength.onnx:cement,ash->strength'"
OPENING, CLOSING = "[({", "])}"


def read_predictor_option(text: str) -> Document:
    """What the option says, as a problem file would; names are split at commas outside brackets."""
    name = f"--predictor {text!r}"
    columns, arrow, outputs = text.rpartition("->")
    if not arrow:
        shell = " (the shell takes > for itself: put it in quotes)" if text.endswith("-") else ""
        raise OptionError(f"{name} has no ->{shell}; write FILE:INPUTS->OUTPUTS, such as {EXAMPLE}.")
    file, inputs = _split(name, columns)
    table = {"file": file, "inputs": _names(name, inputs), "outputs": _names(name, outputs)}
    return Document(name, Path(), {"predictor": [table]}, {})


def _split(name: str, text: str) -> tuple[str, str]:
    """The file and the inputs: at the first colon before which a file is named; both may hold colons."""
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
