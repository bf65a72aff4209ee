"""Effort of the parts of branching, counted where the work is done (see `Work.effort`).

The constants are least squares over 2,500 calls in branching on ten problems of size 2, for 9 s each. The sum
of each part was within a third of its processor seconds on nearly all of them. Where a step counted 7.6 ms
and each box a little, three problems of four counted 0.3 to 0.6 of their processor seconds.
"""

from __future__ import annotations

from dovetail.run import work


def count_rows(boxes: int) -> None:
    """A propagation of rows over boxes."""
    work.count(effort=7.2e-4 + 3.5e-5 * boxes)


def count_ranges(samples: int, entries: int) -> None:
    """Count ranges and planes of `samples` samples of a network with `entries` weights each."""
    work.count(effort=3.4e-3 + samples * (2.0e-6 + 1.7e-9 * entries))


def count_intervals(samples: int, entries: int) -> None:
    """Count intervals of `samples` samples of a network."""
    work.count(effort=6.0e-4 + 3.4e-9 * samples * entries)


def count_leaves(samples: int) -> None:
    """Count the reachable leaves of `samples` samples of tree ensembles."""
    work.count(effort=1.6e-3 + 2.4e-5 * samples)


def count_multipliers(networks: int, entries: int) -> None:
    """Count bounds by multipliers of boxes with `entries` entries in total, through `networks` networks."""
    work.count(effort=2.1e-3 * (1 + networks) + 9.7e-9 * entries)


def count_cells(cells: int, entries: int) -> None:
    """Count planes over `cells` cells of a network's inputs."""
    work.count(effort=3.1e-3 + cells * (8.3e-6 + 2.4e-8 * entries))


def count_program(entries: int) -> None:
    """Count an LP over boxes of networks with `entries` weights."""
    work.count(effort=1.3e-3 + 4.5e-7 * entries)


def count_cuts(cells: int) -> None:
    """Count a search for a row that cuts off a point, where `cells` is the number of cells times inputs of
    a table."""
    work.count(effort=1.2e-3 + 2.8e-8 * cells)


def count_tables(leaves: int, cells: int) -> None:
    """Count a table of trees, by the numbers of leaves and of cells of all trees."""
    work.count(effort=8e-6 * leaves + 2.6e-9 * cells)


def of_plane_step(networks: int) -> float:
    """Seconds of a step by planes, whatever its boxes."""
    return 7.4e-3 + 1.3e-2 * networks


def of_plane_box(cells: int, entries: int) -> float:
    """Seconds of each box of such a step, by the numbers in its rows and the entries of all samples of
    networks."""
    return 5.0e-7 * cells + 4.6e-9 * entries
