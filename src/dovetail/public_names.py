"""Packages beside the library that have a public name in it: `dovetail.problems`, `dovetail.compat`.

Both names refer to the same modules, so that each class exists once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType


class _PublicNames(MetaPathFinder, Loader):
    """Finds the modules below a package by their public names."""

    def __init__(self, public: str, package: str) -> None:
        self._public, self._package = public, package

    def _place(self, name: str) -> str:
        """The name, outside the library, of a module with this public name."""
        return self._package + name.removeprefix(self._public)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module below the public name, if the package has it: a file, or a generated module."""
        if not fullname.startswith(f"{self._public}."):
            return None
        place = self._place(fullname)
        known = place in sys.modules or find_spec(place) is not None
        return spec_from_loader(fullname, self) if known else None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the empty module that the import has made by the package's own module."""
        sys.modules[module.__name__] = import_module(self._place(module.__name__))


def give_public_name(public: str, package: ModuleType) -> None:
    """Let `import public` and `import public.module` mean `package` and its modules from now on."""
    # ahead of the finder of files, which would load a second copy
    sys.meta_path.insert(0, _PublicNames(public, package.__name__))
    sys.modules[public] = package
