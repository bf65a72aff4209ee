"""How the two steps grow with the network: the network step with its parameters, the MIP step not at all."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import dovetail as dt
from benchmarks.made_up import made_up
from dovetail_study.experiment import ResultTable
from dovetail_study.statistics import exponent

SIZES = ("2x16", "4x32", "8x64", "16x128", "32x256", "64x512", "64x1024")
"""Those of E2, and one more: the power is taken over the three largest."""
ITERATIONS = 3
"""Their median is taken: the first one warms up."""


def run(n: int = 100) -> ResultTable:
    """The paper's settings (25 steps each time), untrained networks: what a step costs is the same."""
    table = ResultTable(
        "network_size",
        f"Time per step against the number of parameters: water, n = {n}",
        ["network", "parameters", "network step, ms", "MIP step, ms"],
    )
    method = replace(dt.DualDecomposition.paper(), iterations=ITERATIONS, tolerance=1e-12)
    parameters, seconds = [], []
    for size in SIZES:
        instance = made_up(n, size)
        trace = dt.solve(instance.problem, method, time_limit=600, log=False).trace
        network, mip = (median(trace.column(name)) for name in ("nn_seconds", "mip_seconds"))
        parameters.append(instance.training.parameters)
        seconds.append(network)
        table.rows.append([size, f"{parameters[-1]:,}", f"{1000 * network:.1f}", f"{1000 * mip:.1f}"])
    power = exponent(list(zip(parameters[-3:], seconds[-3:], strict=True)))
    table.reading = (
        f"Over the three largest networks the network step grows with parameters to the power {power:.2f} "
        "(wanted: at most 1.1; the paper's Theorem 2 says linear)."
    )
    return table
