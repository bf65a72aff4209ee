"""Whole algorithms: a problem goes in, candidates go to the incumbent.

Methods are listed by name here and imported when asked for, so that `dovetail list` is quick.
"""

from __future__ import annotations

from dovetail.core.errors import OptionError
from dovetail.run.context import Method

METHODS = {
    "auto": "the best choice for the problem: tables, sequential LP, columns, neighbourhoods, exact MIP",
    "dual-decomposition": "the paper's Algorithm 1 with our defaults: scaled, adaptive rho, decaying steps",
    "paper": "Algorithm 1 with the paper's settings: rho 10 and fixed, nothing scaled",
    "paper-adaptive": "Algorithm 1 with the paper's settings and its adaptive rho",
    "big-m": "AutoLinearized: networks written out neuron by neuron, one MILP for SCIP (PySCIPOpt-ML)",
    "sequential-linear": "trust-region sequential (MI)LP with one-sided cuts, from many starts",
    "column-generation": "prices on coupling rows, columns from every component, joined by a master",
    "integer-search": "local search over integers, neighbours evaluated by the networks in batches",
    "neighbourhood": "for many integers: relax, fix, large neighbourhoods of critical components",
    "single-step-gradient": "SSG, the paper's Algorithm 2: gradient steps on a penalised relaxation",
}


def method_named(name: str) -> Method:
    """A method with the options its name stands for."""
    if name not in METHODS:
        raise OptionError(
            f"method {name!r} is not known; choose {', '.join(METHODS)}, or pass a method object."
        )
    if name == "auto":
        from dovetail.methods.auto import Auto

        return Auto()
    if name == "integer-search":
        from dovetail.methods.integer_search.method import IntegerLocalSearch

        return IntegerLocalSearch()
    if name == "neighbourhood":
        from dovetail.methods.neighbourhood import Neighbourhood

        return Neighbourhood()
    if name == "big-m":
        from dovetail.methods.big_m.method import BigM

        return BigM()
    if name == "sequential-linear":
        from dovetail.methods.sequential_linear import SequentialLinear

        return SequentialLinear()
    if name == "column-generation":
        from dovetail.methods.column_generation.method import ColumnGeneration

        return ColumnGeneration()
    if name == "single-step-gradient":
        from dovetail.methods.single_step_gradient import SingleStepGradient

        return SingleStepGradient()
    from dovetail.methods.dual_decomposition import DualDecomposition

    if name.startswith("paper"):
        return DualDecomposition.paper(adaptive=name == "paper-adaptive")
    return DualDecomposition()
