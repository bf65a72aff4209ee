"""Whole algorithms: they take a problem and offer candidates to the incumbent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dovetail.core.table import Part, Table

if TYPE_CHECKING:  # this table is read with the package: it must load neither numpy nor torch
    from dovetail.run.context import Method

METHODS: Table[Method] = Table(
    "method",
    "methods",
    Part(
        "auto",
        "dovetail.methods.auto:Auto",
        "the best choice for the problem: tables, sequential LP, columns, neighbourhoods, exact MIP",
    ),
    Part(
        "dual-decomposition",
        "dovetail.methods.dual_decomposition:DualDecomposition",
        "the paper's Algorithm 1 with our defaults: scaled, adaptive rho, decaying steps",
    ),
    Part(
        "paper",
        "dovetail.methods.dual_decomposition:DualDecomposition.paper",
        "Algorithm 1 with the paper's settings: rho 10 and fixed, nothing scaled",
    ),
    Part(
        "paper-adaptive",
        lambda: METHODS.load("paper")(adaptive=True),
        "Algorithm 1 with the paper's settings and its adaptive rho",
    ),
    Part(
        "big-m",
        "dovetail_study.big_m.method:BigM",
        "AutoLinearized: networks written out neuron by neuron, one MILP for SCIP (PySCIPOpt-ML)",
        library="pyscipopt-ml",
        extra="scip",
    ),
    Part(
        "sequential-linear",
        "dovetail.methods.sequential_linear:SequentialLinear",
        "trust-region sequential (MI)LP with one-sided cuts, from many starts",
    ),
    Part(
        "integer-search",
        "dovetail.methods.integer_search:IntegerLocalSearch",
        "local search over integers, neighbours evaluated by the networks in batches",
    ),
    Part(
        "neighbourhood",
        "dovetail.methods.neighbourhood:Neighbourhood",
        "MILPs around the incumbent, most integers fixed; with many integers relax and fix first",
    ),
    Part(
        "single-step-gradient",
        "dovetail_study.single_step_gradient:SingleStepGradient",
        "SSG, the paper's Algorithm 2: gradient steps on a penalised relaxation",
    ),
    otherwise="or pass a method object",
)


def register_method(name: str, make: Callable[[], Method], text: str = "") -> None:
    """Give your own method a name: `solve(problem, name)` then solves with `make()`.

    A method object works without a name; names are for the command line and the log. `make` is the class, or
    a function that makes the object with its options; `text` describes the use of the method in one line.
    `dovetail.testing.MethodSuite` tests that a method keeps the promises of `solve`.

    >>> import dovetail as dt
    >>> import numpy as np
    >>> from dovetail.run.progress import Progress
    >>> class RandomSearch:
    ...     name = "random-search"
    ...     def solve(self, context):
    ...         rng, mip = np.random.default_rng(context.seed), context.problem.mip
    ...         progress = Progress(context, most=100)
    ...         while True:
    ...             value = context.incumbent.offer(rng.uniform(mip.lower, mip.upper), "random")
    ...             outcome = progress.record(value, value)
    ...             if outcome is not None:
    ...                 return outcome
    >>> dt.register_method("random-search", RandomSearch, "a hundred points at random")
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[-1.0, -9.0], upper=[1.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> bool(dt.solve(problem, "random-search", log=False).objective < 0.1)
    True
    """
    METHODS.add(Part(name, make, text))
