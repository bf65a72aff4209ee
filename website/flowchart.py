"""A flowchart of single words (`a --> b`, as mermaid writes it) drawn as inline SVG.

Drawing mermaid in the browser would take a script from elsewhere; the site has none.
"""

import re
from html import escape

WIDTH, LAYER, LETTER, ROOM = 760, 62, 7.2, 26
"""Of the picture, from layer to layer, of a letter, and around a word; in pixels."""


def drawn(text: str) -> str:
    """The picture of all arrows, each pointing down."""
    arrows = re.findall(r"^\s*(\w+) --> (\w+)\s*$", text, flags=re.MULTILINE)
    depth = _depths(arrows)
    layers = [[name for name in depth if depth[name] == level] for level in range(max(depth.values()) + 1)]
    places = _places(_ordered(layers, arrows))
    lines = [_arrow(places[above], places[below]) for above, below in arrows]
    boxes = [_box(name, *place) for name, place in places.items()]
    height = len(layers) * LAYER + 10
    return (
        f'<svg class="figure" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="flowchart">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto">'
        f'<path class="head" d="M0 0 8 4 0 8z"/></marker></defs>{"".join(lines)}{"".join(boxes)}</svg>\n'
    )


def _depths(arrows: list[tuple[str, str]]) -> dict[str, int]:
    """The longest way from the top, so that every arrow points down."""
    depth = {name: 0 for pair in arrows for name in pair}
    for _ in depth:
        for above, below in arrows:
            depth[below] = max(depth[below], depth[above] + 1)
    return depth


def _ordered(layers: list[list[str]], arrows: list[tuple[str, str]]) -> list[list[str]]:
    """Each layer by the mean place of what points to it: fewer crossings."""
    place = {name: i / max(1, len(layers[0]) - 1) for i, name in enumerate(layers[0])}
    for layer in layers[1:]:
        above = {name: [place[one] for one, other in arrows if other == name] for name in layer}
        layer.sort(key=lambda name: sum(above[name]) / len(above[name]))
        place |= {name: (i + 0.5) / len(layer) for i, name in enumerate(layer)}
    return layers


def _places(layers: list[list[str]]) -> dict[str, tuple[float, float]]:
    """The middle of each word; those of a layer share the width by their length."""
    places = {}
    for level, layer in enumerate(layers):
        widths = [len(name) * LETTER + ROOM for name in layer]
        gap = (WIDTH - sum(widths)) / (len(layer) + 1)
        left = gap
        for name, width in zip(layer, widths, strict=True):
            places[name] = (left + width / 2, level * LAYER + 30.0)
            left += width + gap
    return places


def _arrow(above: tuple[float, float], below: tuple[float, float]) -> str:
    (x, y), (u, v) = above, below
    start, end, bend = y + 15, v - 15, LAYER / 2
    return (
        f'<path class="arrow" d="M{x:.0f} {start:.0f}C{x:.0f} {start + bend:.0f} {u:.0f} {end - bend:.0f} '
        f'{u:.0f} {end:.0f}" marker-end="url(#tip)" opacity="0.6"/>'
    )


def _box(name: str, x: float, y: float) -> str:
    width = len(name) * LETTER + ROOM - 8
    return (
        f'<rect class="box" x="{x - width / 2:.0f}" y="{y - 14:.0f}" width="{width:.0f}" height="28" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" font-size="13">{escape(name)}</text>'
    )
