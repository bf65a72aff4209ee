"""Figures: panels of lines, bars or heat maps, described as data and drawn here, as PNG and SVG.

Colours are told apart in print by markers and labels too. A missing value is drawn as a dash or left out,
never as zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import dovetail as dt

Point = tuple[float, float]
MARKERS, DASHES = "osD^vPX*", ("-", "--", "-.", ":")
"""Styles that differ in black and white: another marker for every series, another dash for every third."""
CROWDED = 4
"""With more bars per group the numbers are rotated, so that they do not overlap."""
WIDE, LONG = 44, 28
"""Letters of a panel's title in one line, and of all names on an x axis before they are turned."""


@dataclass(frozen=True)
class LinesPanel:
    """Series of points."""

    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[Point]]
    log_x: bool = False
    log_y: bool = False
    ticks: Mapping[float, str] | None = None
    """Names for places on the x axis."""
    level: tuple[float, str] | None = None
    """A horizontal line and what it means."""


@dataclass(frozen=True)
class Bars:
    """Groups of bars, one bar per series."""

    title: str
    y: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float]]
    log_y: bool = False


@dataclass(frozen=True)
class HeatMap:
    """A grid of numbers."""

    title: str
    x: str
    y: str
    columns: Sequence[str]
    rows: Sequence[str]
    values: Sequence[Sequence[float]]
    unit: str
    limits: tuple[float, float]
    log: bool = False
    """Colours by the logarithm."""


Panel = LinesPanel | Bars | HeatMap


@dataclass(frozen=True)
class Drawing:
    """A figure of one experiment."""

    title: str
    panels: Sequence[Panel]
    across: int = 3


def save(drawing: Drawing, folder: Path, name: str) -> list[Path]:
    """Draw the figure to `name`.png and `name`.svg."""
    plt = _pyplot()
    count = len(drawing.panels)
    across = min(drawing.across, count)
    down = math.ceil(count / across)
    with plt.rc_context({"font.size": 9, "svg.hashsalt": "dovetail", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(
            down, across, figsize=(4.6 * across, 4.0 * down + 0.3), squeeze=False, layout="constrained"
        )
        place = _places(drawing.panels)
        for axis, panel in zip(axes.flat, drawing.panels, strict=False):
            _draw(axis, panel, place)
        for axis in axes.flat[count:]:
            axis.set_axis_off()
        _legend(figure, axes.flat[:count])
        figure.suptitle(drawing.title, fontsize=11)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
        figure.savefig(paths[0], dpi=150)
        figure.savefig(paths[1], metadata={"Date": None})
        plt.close(figure)
    return paths


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise dt.MissingDependencyError(
            "figures need matplotlib: pip install matplotlib. The results file is complete without; "
            "run the same command again with --resume."
        ) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _places(panels: Sequence[Panel]) -> dict[str, int]:
    """Series by number, over all panels: a series looks the same in each."""
    labels = (label for panel in panels if not isinstance(panel, HeatMap) for label in panel.series)
    return {label: number for number, label in enumerate(dict.fromkeys(labels))}


def _draw(axis: Any, panel: Panel, place: Mapping[str, int]) -> None:
    axis.set_title(fill(panel.title, WIDE), fontsize=10)
    if isinstance(panel, HeatMap):
        _heat_map(axis, panel)
    elif isinstance(panel, Bars):
        _bars(axis, panel, place)
    else:
        _lines(axis, panel, place)


def _lines(axis: Any, panel: LinesPanel, place: Mapping[str, int]) -> None:
    for label, points in panel.series.items():
        k = place[label]
        known = sorted((x, y) for x, y in points if math.isfinite(x) and math.isfinite(y))
        if known:
            xs, ys = zip(*known, strict=True)
            marker = MARKERS[k % len(MARKERS)] if len(known) <= 30 else None
            dash = DASHES[k // 3 % len(DASHES)]
            axis.plot(
                xs, ys, dash, color=f"C{k % 10}", marker=marker, markersize=4, label=label, linewidth=1.4
            )
    if panel.level is not None:
        axis.axhline(panel.level[0], color="0.5", linestyle=":", linewidth=1.2, label=panel.level[1])
    axis.set_xlabel(panel.x)
    axis.set_ylabel(panel.y)
    if panel.log_x:
        axis.set_xscale("log")
    if panel.log_y:
        axis.set_yscale("log")
    if panel.ticks is not None:
        axis.set_xticks(list(panel.ticks), labels=list(panel.ticks.values()))
        axis.minorticks_off()
        if sum(map(len, panel.ticks.values())) > LONG:
            axis.tick_params(axis="x", labelrotation=30)
    axis.grid(alpha=0.3)


def _bars(axis: Any, panel: Bars, number: Mapping[str, int]) -> None:
    width, crowded = 0.8 / max(1, len(panel.series)), len(panel.series) > CROWDED
    room = 0.25 if crowded else 0.12
    heights = [v for values in panel.series.values() for v in values if v > 0]
    low, high = min(heights, default=1.0) / 3, max(heights, default=1.0)
    for k, (label, values) in enumerate(panel.series.items()):
        for i, value in enumerate(values):
            place = i + (k - (len(panel.series) - 1) / 2) * width
            known = math.isfinite(value) and (value > 0 or not panel.log_y)
            floor = low if panel.log_y else 0.0
            height = value if known else floor
            axis.bar(
                place,
                height - floor,
                0.92 * width,
                floor,
                color=f"C{number[label] % 10}",
                label=None if i else label,
            )
            text = f"{value:.3g}" if known else "–"
            turned = 90 if crowded else 0
            axis.annotate(text, (place, height), ha="center", va="bottom", fontsize=7, rotation=turned)
    axis.set_xticks(range(len(panel.groups)), labels=panel.groups)
    axis.set_ylabel(panel.y)
    if panel.log_y:
        axis.set_yscale("log")
        axis.set_ylim(low, high * (high / low) ** room)
    else:
        axis.margins(y=room)
    axis.grid(axis="y", alpha=0.3)


def _heat_map(axis: Any, panel: HeatMap) -> None:
    norm = "log" if panel.log else "linear"
    image = axis.imshow(panel.values, norm=norm, clim=panel.limits, cmap="viridis", aspect="auto")
    axis.figure.colorbar(image, ax=axis, label=panel.unit, fraction=0.05)
    for i, row in enumerate(panel.values):
        for j, value in enumerate(row):
            there = math.isfinite(value)
            dark = not there or image.norm(value) > 0.6
            text = f"{value:.2g}" if there and value < 10 else f"{value:.0f}" if there else "–"
            axis.text(j, i, text, ha="center", va="center", color="black" if dark else "white", fontsize=8)
    axis.set_xticks(range(len(panel.columns)), labels=panel.columns)
    axis.set_yticks(range(len(panel.rows)), labels=panel.rows)
    axis.set_xlabel(panel.x)
    axis.set_ylabel(panel.y)


def _legend(figure: Any, axes: Any) -> None:
    """One for all panels, below them: the same series has the same colour in each."""
    labelled: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label, handle)
    if labelled:
        across = min(len(labelled), max(2, round(figure.get_figwidth() / 2.6)))
        figure.legend(
            labelled.values(), labelled.keys(), fontsize=7, ncols=across, frameon=False,
            loc="outside lower center",
        )  # fmt: skip
