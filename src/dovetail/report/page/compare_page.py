"""`dovetail.compare`: several results as one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dovetail.core.errors import OptionError
from dovetail.core.file_writing import write_file
from dovetail.report.page import comparison
from dovetail.report.page.chart import SHAPES
from dovetail.report.page.templates import render

MOST = 24
"""Results on one page: their columns stand beside each other."""


def compare(results: Sequence[Any] | Mapping[str, Any], path: str | Path) -> Path:
    """Write a page with several results beside each other: figures, courses, decisions, settings.

    `results` are `dovetail.Result`s, or such by name; without names they are called by their methods. The
    page needs nothing else, like that of `Result.report`.

    >>> import dovetail as dt, tempfile
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> results = {name: dt.solve(problem, name, log=False) for name in ("auto", "dual-decomposition")}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dt.compare(results, f"{folder}/both.html").name
    'both.html'
    """
    named = isinstance(results, Mapping)
    listed = list(results.values()) if isinstance(results, Mapping) else list(results)
    for result in listed:
        if not hasattr(result, "trace") or not hasattr(result, "objective"):
            raise OptionError(f"compare takes results of dovetail.solve, not {type(result).__name__}.")
    if not 2 <= len(listed) <= MOST:
        raise OptionError(f"compare takes 2 to {MOST} results; these are {len(listed)}.")
    names = [str(name) for name in results] if named else _names(listed)
    return write_file(path, _page(listed, names))


def _names(results: Sequence[Any]) -> list[str]:
    """Their methods, with a number where there are several of one."""
    methods = [result.method for result in results]
    return [
        method if methods.count(method) == 1 else f"{method} {methods[: k + 1].count(method)}"
        for k, method in enumerate(methods)
    ]


def _page(results: Sequence[Any], names: Sequence[str]) -> str:
    compared = comparison.entries(results, names)
    columns = [comparison.figures(entry) for entry in compared]
    rows = zip(comparison.FIGURES, zip(*columns, strict=True), strict=True)
    table, instead = comparison.differences(compared)
    place = comparison.best(results)
    subtitle = "" if place is None else f"Best objective: {columns[place][1]}, by {compared[place].name}."
    return render(
        "compare.html",
        compared=compared,
        best=place,
        subtitle=subtitle,
        figures=[{"name": name, "texts": texts} for name, texts in rows],
        course=comparison.courses_figure(compared),
        differences=table,
        no_differences=instead,
        settings=comparison.settings_rows(compared),
        shapes=[*SHAPES, SHAPES[0]],
    )
