"""The program of a problem as it was stated: a `Mip`, and templates that are not written out yet."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Literal

from dovetail.core.errors import ModelError
from dovetail.core.mip import Mip
from dovetail.core.names import label_of
from dovetail.core.template import Template
from dovetail.core.template_expansion import expanded


@dataclass(frozen=True, eq=False)
class StatedProgram:
    """Columns and rows that were said so far. It does not change: whoever adds to it gets another one."""

    host: Mip | None
    sense: Literal["min", "max"]
    """Of a program without a host."""
    waiting: tuple[Template, ...] = ()
    """What stands behind the host, in this order."""

    @cached_property
    def mip(self) -> Mip:
        """The program over all columns, made when it is first asked for."""
        if self.waiting:
            return expanded(self.host, self.sense, self.waiting)
        if self.host is None:
            raise ModelError("the problem has no columns; give it a Mip, or call add_template(...) first.")
        return self.host

    @property
    def n_columns(self) -> int:
        """Of the host and all blocks, whether they are written out or not."""
        own = 0 if self.host is None else self.host.n_columns
        return own + sum(template.n_columns for template in self.waiting)

    def with_mip(self, mip: Mip) -> StatedProgram:
        """The whole program replaced by one that has its columns, and more."""
        return replace(self, host=mip, waiting=())

    def with_template(self, template: Template) -> StatedProgram:
        """The program with more blocks behind it; labels that are taken are refused."""
        columns, rows = self._labels()
        for kind, taken, own in (
            ("family", columns, [family.label for family in template.families.values()]),
            ("row", rows, [row.label for row in (*template.rows, *template.coupling)]),
        ):
            for label in own:
                if label in taken:
                    raise ModelError(
                        f"{kind} {label!r}: there is already a {kind} or something else of that name in the "
                        "problem; call it something else, or give the template a name=."
                    )
        return replace(self, waiting=(*self.waiting, template))

    def column(self, row: str, key: Hashable) -> int:
        """A column that a coupling row names besides families, by name or index."""
        if isinstance(key, Integral) and 0 <= key < self.n_columns:
            return int(key)
        named = self.host is not None and self.host.names is not None
        if not named or not isinstance(key, str):
            raise ModelError(f"row {row} names {key!r}, which is no family and no column of the problem.")
        assert self.host is not None
        return int(self.host.resolve(f"row {row}", key))

    def _labels(self) -> tuple[set[str], set[str]]:
        """Names of all columns and rows, less their indices; those without names are called x and row."""
        columns, rows = set(), set()
        if self.host is not None:
            columns = {label_of(name) for name in self.host.names or ("x",)}
            rows = {label_of(name) for name in self.host.row_names or ("row",)}
        for template in self.waiting:
            columns |= {family.label for family in template.families.values()}
            rows |= {row.label for row in (*template.rows, *template.coupling)}
        return columns, rows
