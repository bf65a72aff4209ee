"""The benchmark problems by their public name: `dovetail.problems.water` is `dovetail_study.problems.water`.

The problems are files of the study. This is the only file of the library that imports the study, and no
other file of the library imports this one. Both names mean the same module: there is one of each class.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType

from dovetail_study import problems


def _place(name: str) -> str:
    """The name in the study of a module that has this public name."""
    return problems.__name__ + name.removeprefix(__name__)


class _PublicNames(MetaPathFinder, Loader):
    """Finds the modules of the study by their public names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module `dovetail.problems.NAME`, where the study has such a problem."""
        if not fullname.startswith(f"{__name__}.") or find_spec(_place(fullname)) is None:
            return None
        return spec_from_loader(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Put the study's own module in the place of the empty one that the import has made."""
        sys.modules[module.__name__] = import_module(_place(module.__name__))


sys.meta_path.insert(0, _PublicNames())  # ahead of the finder of files, which would load a second copy
sys.modules[__name__] = problems
