"""Where numbers come from: which lines of the results file, which commits, machines and seeds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from dovetail_study.experiment import SEEDS, Record
from dovetail_study.statistics import distinct

FIELDS = (
    "method",
    "network",
    "n",
    "budgets",
    "init",
    "grid",
    "family",
    "instance",
    "rho",
    "step",
    "device",
    "seed",
)
"""The fields that select a line, besides its experiment."""
UNSAID = "not recorded"
FULL, DIGITS = 40, 10
"""Digits of a commit's name, as many as distinguish it from all others."""


def recipe(used: Sequence[Record], every: Sequence[Record]) -> str:
    """The lines behind a number, for a reader: fields and their values, and the number of lines.

    Only fields that exclude lines are named. If more lines have these values than were used (cells are not a
    full grid), both numbers are given.
    """
    if not used:
        return "none"
    left, parts = list(every), []
    for name in FIELDS:
        values = sorted({row.get(name) for row in used}, key=order)
        narrower = [row for row in left if row.get(name) in values]
        if len(narrower) < len(left):
            left = narrower
            parts.append(f"{name} {' or '.join(map(_in_words, values))}")
    count = f"{len(used)}" if len(left) == len(used) else f"{len(used)} of {len(left)}"
    lines = "line" if len(left) == 1 else "lines"
    return "; ".join([f"{', '.join(distinct(used, 'experiment'))}: {count} {lines}", *parts])


def in_order(rows: Iterable[Record], name: str) -> list[Any]:
    """The values of a field, sorted, because rows are in the order in which their runs ended."""
    return sorted(distinct(rows, name), key=order)


def order(value: object) -> tuple[int, list[Any]]:
    """The sort key of values: numbers by size, networks by depth and width, words by the alphabet."""
    if value is None:
        return 0, []
    if not isinstance(value, str):
        return 1, [value]
    return 2, [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", value)]


def _in_words(value: object) -> str:
    return "absent" if value is None else str(value)


def places(rows: Iterable[Record]) -> Counter[str]:
    """The number of rows by commit, machine, and number of concurrent runs."""
    return Counter(_place(row) for row in rows)


def _place(row: Record) -> str:
    threads, shared = row.get("threads"), row.get("shared")
    said = f"commit {_commit(row)} on {_machine_in_words(row)}"
    if threads is not None:
        said += f", {threads} {'thread' if threads == 1 else 'threads'} a run"
    return said if shared is None else f"{said}, {shared} at a time"


def _machine_in_words(row: Record) -> str:
    """The machine, and the accelerator where there is one."""
    machine, device = row.get("machine") or UNSAID, row.get("device")
    return str(machine) if device in (None, "cpu") else f"{device} ({machine})"


def mixture(rows: Iterable[Record]) -> str:
    """A note on a verdict whose rows were made on several machines, with the number on each."""
    made = Counter(_machine_in_words(row) for row in rows)
    return (
        f" [{', '.join(f'{count} lines of {where}' for where, count in made.items())}]"
        if len(made) > 1
        else ""
    )


def commits(rows: Iterable[Record]) -> list[str]:
    """The commits that made the rows."""
    return list(dict.fromkeys(map(_commit, rows)))


def _commit(row: Record) -> str:
    """The first digits of a commit, with the mark for changed files; a version unchanged."""
    said = str(row.get("commit") or UNSAID)
    return said if len(said) < FULL else said[:DIGITS] + ("+" if said.endswith("+") else "")


def caption(rows: Sequence[Record]) -> str:
    """The origin of a table's numbers: commits, machines, and seeds if they are not the paper's five."""
    made = places(rows)
    if not made:
        return ""
    if len(made) == 1:
        said = f"All of {next(iter(made))}."
    else:
        mixed = "Rows of several commits" if len(commits(rows)) > 1 else _differences(rows)
        said = f"{mixed}: {'; '.join(f'{count} of {place}' for place, count in made.items())}."
    return f"*{len(rows)} {'line' if len(rows) == 1 else 'lines'}. {said}{_seeds(rows)}*"


def _differences(rows: Sequence[Record]) -> str:
    """The differences between rows of one commit."""
    machines = {_machine_in_words(row) for row in rows}
    return "Rows of several machines" if len(machines) > 1 else "Rows of one machine, not equally full"


def _cell(row: Record) -> tuple[object, ...]:
    """The chosen fields besides method and seed.

    For drawn problems (families) rho is not a setting: it follows from L, which differs between seeds.
    """
    left_out = {"method", "seed", "device", *(("rho",) if row.get("family") is not None else ())}
    return tuple(row.get(name) for name in FIELDS if name not in left_out)


def _seeds(rows: Sequence[Record]) -> str:
    """Where cells have fewer than the paper's five seeds, and which seeds are not the paper's."""
    methods: dict[str, list[str]] = {}
    for method in distinct(rows, "method"):
        cells: dict[tuple[object, ...], set[int]] = {}
        for row in rows:
            if row["method"] == method:
                cells.setdefault(_cell(row), set()).add(row["seed"])
        own = (tuple(sorted(each & set(SEEDS))) for each in cells.values())
        for seeds, count in Counter(own).items():
            if len(seeds) < len(SEEDS):
                part = "" if count == len(cells) else f" ({count} of {len(cells)} cells)"
                methods.setdefault(", ".join(map(str, seeds)), []).append(f"{method}{part}")
    parts = [f"{seeds or 'none'} for {', '.join(whose)}" for seeds, whose in methods.items()]
    its_own = any(row["seed"] in SEEDS for row in rows)
    fewer = f" Fewer than the paper's five seeds: {'; '.join(parts)}." if parts and its_own else ""
    others = sorted({row["seed"] for row in rows} - set(SEEDS))
    return fewer + (f" Seeds that are not the paper's: {', '.join(map(str, others))}." if others else "")
