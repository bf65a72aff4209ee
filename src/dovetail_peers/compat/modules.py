"""Modules made from a table of names, under a package of ours and called as a peer's modules are.

A file for each of them would say one and the same thing forty times.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


def publish(package: str, names: Mapping[str, Mapping[str, Any]]) -> None:
    """Make the modules of `package`, by their path below it, with the names that each of them has.

    A name stands in the module it was written for and in all packages above that, as peers re-export them;
    `package` itself is a file, which says what it holds.
    """
    for path, own in names.items():
        parts = path.split(".")
        for depth in range(len(parts), 0, -1):
            module = _module(package, ".".join(parts[:depth]))
            for name, value in own.items():
                setattr(module, name, value)


def _module(package: str, path: str) -> ModuleType:
    whole = f"{package}.{path}"
    if whole in sys.modules:
        return sys.modules[whole]
    made = ModuleType(whole, f"`{path}` of the peer, as `{package}` has it.")
    made.__path__ = []  # a package, so that modules below it can be imported
    sys.modules[whole] = made
    above, _, name = path.rpartition(".")
    setattr(_module(package, above) if above else sys.modules[package], name, made)
    return made
