"""The options of the default method, and the facts about a problem that select its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np

from dovetail.core.options import require_choice, require_count, require_flags
from dovetail.decomposition.plan import template_plan
from dovetail.linearised.propagation import Propagation
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.methods.cell_columns.method import tree_parts
from dovetail.methods.quadratic_mip import QuadraticPlan, quadratic_plan
from dovetail.run.context import SolveContext
from dovetail.run.failures import expendable
from dovetail.structure.structure import Structure, structure_of
from dovetail.structure.trees import TreeProblem

T = TypeVar("T")

MANY_INTEGERS = 2000
"""A MILP step over more integers finds no solution in its two seconds (dispatch with 10,000 binaries)."""
MANY_BLOCKS = 1000
"""With more equal blocks, methods that treat blocks one by one are left out: an LP over all takes minutes
from 10,000 on (water). With 2,000 blocks and 10 CPU s in turns with others, template pricing has no solution
of price ladders and kilns, and no estimate of the bound of doses and crews; alone it has all of them."""
MOST_NEURONS = 400
"""Largest number of neurons that may change sign: with many more SCIP finds no point in two minutes
(docs/results.md, E1)."""
MOST_CURVES = 5_000
"""Largest number of quadratic functions. Each of their planes takes half a millisecond before the first LP
and in each round."""


@dataclass(frozen=True)
class AutoOptions:
    """Options of the default method."""

    effort: int | None = None
    """Starts, rounds and neighbourhoods of each method; None: as many as time allows."""
    patience: int = 20
    """Number of starts in a row that end in a known local optimum before the search ends."""
    tables: bool = True
    exact: bool = True
    proof: int | None = None
    """The number of the only proof to run, among those that suit the problem; None: all."""
    block_prices: bool = True
    integer_search: bool = True
    bundle: int = 8
    """Number of linearisations that descents keep as cuts (see `SequentialLinear`)."""
    scaling: Literal["box", "none"] = "box"
    """Trust regions relative to each input's own box, or with one width for all."""

    def __post_init__(self) -> None:
        if self.effort is not None:
            require_count("Auto: effort", self.effort, at_least=1)
        require_count("Auto: patience", self.patience, at_least=1)
        require_count("Auto: bundle", self.bundle, at_least=0)
        if self.proof is not None:
            require_count("Auto: proof", self.proof, at_least=0)
        require_choice("Auto: scaling", self.scaling, ("box", "none"))
        flags = "tables", "exact", "block_prices", "integer_search"
        require_flags("Auto", self, *flags)


class Case(NamedTuple):
    """The context from which a fact is computed."""

    context: SolveContext
    may: AutoOptions
    known: Facts
    """The other facts."""

    @property
    def structure(self) -> Structure:
        """The structure of the problem."""
        return self.context.once(structure_of)

    def plan(self, work: Callable[[SolveContext], T], allowed: bool) -> T | None:
        """A method's plan for the problem, if it is allowed."""
        return self.context.once(work) if allowed else None

    def counted(self, work: Callable[[SolveContext], Any], allowed: bool) -> int:
        """The number of blocks, samples or components in a plan; 0 without one."""
        plan = self.plan(work, allowed)
        return 0 if plan is None else int(plan.count)

    @property
    def written_out(self) -> bool:
        """Whether a MIP of the whole problem may be considered."""
        return self.may.exact and not self.known.many

    @property
    def trees(self) -> TreeProblem | None:
        """The problem in cells, if all predictors are tree ensembles."""
        return self.structure.trees

    @property
    def unstable(self) -> int:
        """Number of neurons of all networks that may change sign."""
        layers = self.structure.relu_layers if self.written_out else None
        return MOST_NEURONS + 1 if layers is None else layers.unstable

    @property
    def quadratic(self) -> QuadraticPlan | None:
        """The plan of the quadratic functions, if there are few enough."""
        plan = self.plan(quadratic_plan, self.written_out and self.structure.curves <= MOST_CURVES)
        return None if plan is None or plan.unstable > MOST_NEURONS else plan


class Fact(Generic[T]):
    """An attribute of `Facts`: its default, and how it is computed."""

    def __init__(self, default: T, look_up: Callable[[Case], T]) -> None:
        self.default = default
        self._look_up = look_up

    def __set_name__(self, owner: type[Facts], name: str) -> None:
        self._name = name
        LOOKUPS[name] = self._look_up

    @overload
    def __get__(self, facts: None, owner: type[Facts]) -> Fact[T]: ...

    @overload
    def __get__(self, facts: Facts, owner: type[Facts]) -> T: ...

    def __get__(self, facts: Facts | None, owner: type[Facts]) -> Fact[T] | T:
        """Compute the fact on first use; the instance stores it."""
        if facts is None:
            return self
        found = self.default
        if facts.at is not None and (self._name == "blocks" or not facts.many_blocks):
            with expendable(f"fact: {self._name.replace('_', ' ')}"):
                found = LOOKUPS[self._name](Case(*facts.at, facts))
        vars(facts)[self._name] = found
        return found


LOOKUPS: dict[str, Callable[[Case], Any]] = {}
"""How each fact is computed."""


class Facts:
    """The facts that select parts, each computed on first use, so that no part is prepared before its turn.
    With many blocks only their number is computed. A fact whose computation fails keeps its default, which
    may exclude parts."""

    def __init__(self, at: tuple[SolveContext, AutoOptions] | None = None, **known: int | bool) -> None:
        """`at`: the context from which facts are computed; without it, facts that are not `known` keep their
        defaults."""
        self.at = at
        vars(self).update(known)

    blocks = Fact(0, lambda at: at.counted(template_plan, at.may.block_prices))
    """Number of components that share rows; 0 if they cannot be priced."""
    integers = Fact(0, lambda at: int(np.count_nonzero(at.structure.free_integers)))
    """Number of integer columns that can move, classes among them."""
    choices = Fact(0, lambda at: at.known.integers - at.structure.classes if at.may.integer_search else 0)
    """Number of these columns that are not classes."""
    decided = Fact(False, lambda at: not Propagation(at.context.once(scaled_problem)).holds_inputs)
    """Whether integers and equations determine all inputs of predictors. Then local search over the integers
    is exact and begins before descents; otherwise it needs continuous inputs from them."""
    unstable = Fact(MOST_NEURONS + 1, lambda at: at.unstable)
    """Number of neurons that may change sign if all networks are written out; a number above the limit if
    they cannot be."""
    tree_samples = Fact(0, lambda at: len(at.trees.samples) if at.trees else 0)
    """Number of samples, if all predictors are tree ensembles; otherwise 0."""
    whole = Fact(False, lambda at: False)
    """Whether all predictors became tables or rows."""
    trees_beside_others = Fact(False, lambda at: False)
    """Whether tree ensembles stand beside other predictors in the original problem."""
    tree_components = Fact(0, lambda at: at.counted(tree_parts, at.may.block_prices))
    """Number of components of tree ensembles that share rows; otherwise 0."""
    curves = Fact(0, lambda at: len(at.quadratic.curves) if at.quadratic else 0)
    """Number of quadratic functions, if everything else can be written as rows; otherwise 0."""
    branched = Fact(False, lambda at: at.may.exact)
    """Whether anything is to be proved."""

    @property
    def slopes(self) -> bool:
        """Whether any predictor has a slope: trees have none."""
        return self.tree_samples == 0

    @property
    def many_blocks(self) -> bool:
        """Whether there are too many blocks for parts that treat them one by one."""
        return self.blocks > MANY_BLOCKS

    @property
    def many(self) -> bool:
        """Whether there are too many integers for a MILP over all of them."""
        return self.integers > MANY_INTEGERS
