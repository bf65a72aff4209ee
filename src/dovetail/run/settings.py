"""How a result can be had again: the call, the versions, and the kind of machine."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dovetail.run.environment import cores
from dovetail.version import __version__

LIBRARIES = ("numpy", "scipy", "torch", "highspy", "piqp", "pyscipopt")
"""Those whose arithmetic an answer may rest on; the last one where it is there."""


@dataclass(frozen=True)
class Settings:
    """The call of one solve, as it would be written, and where it was made."""

    method: str
    """As it would be written: what is not said is the default."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """All options of the method, defaults too."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Those of `dovetail.solve` that decide what comes of it."""
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""
    """Its kind; no name of any machine."""

    @classmethod
    def of(cls, method: object, options: Mapping[str, object]) -> Settings:
        """Of a call that is made here and now."""
        said = {name: _written(value) for name, value in options.items()}
        machine = f"{platform.machine()}, {platform.system()}, {cores()} cores"
        return cls(_call(method), _options_of(method), said, _versions(), machine)

    @property
    def call(self) -> str:
        """The call as a line of Python."""
        arguments = [self.method, *(f"{name}={value}" for name, value in self.options.items())]
        return f"dt.solve(problem, {', '.join(arguments)})"


def _options_of(method: object) -> dict[str, str]:
    return {part.name: _written(getattr(method, part.name)) for part in _parts(method)}


def _call(method: object) -> str:
    """The call that makes the object, without options at their defaults."""
    default = {
        part.name: part.default if part.default_factory is MISSING else part.default_factory()
        for part in _parts(method)
    }
    said = [
        f"{name}={value}" for name, value in _options_of(method).items() if value != _written(default[name])
    ]
    kind = type(method)
    ours = "dt." if kind.__module__.startswith("dovetail.") else ""
    return f"{ours}{kind.__name__}({', '.join(said)})"


def _parts(method: object) -> tuple[Field[Any], ...]:
    return fields(method) if is_dataclass(method) else ()


def _written(value: object) -> str:
    """As Python would write it, without addresses, which differ from run to run."""
    if is_dataclass(value) and type(value).__module__.startswith("dovetail."):
        return _call(value)
    return "..." if value is ... else re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


@cache
def _versions() -> dict[str, str]:
    found = {"dovetail": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
