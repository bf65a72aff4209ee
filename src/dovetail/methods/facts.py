"""What the default method may use, and what it sees of a problem before it chooses its phases."""

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
from dovetail.methods.component_prices.kinds import component_kinds
from dovetail.methods.component_prices.prices import applies
from dovetail.methods.quadratic_mip import QuadraticPlan, quadratic_plan
from dovetail.run.context import SolveContext
from dovetail.run.failures import expendable
from dovetail.structure.structure import Structure, structure_of
from dovetail.structure.trees import TreeProblem

T = TypeVar("T")

MANY_INTEGERS = 2000
"""A MILP step over more of them finds nothing in its two seconds; dispatch of 10,000 binaries showed it."""
MANY_BLOCKS = 2000
"""With more blocks that are the same up to their data, nothing that takes them one by one is tried: an LP
over all of them takes minutes from 10,000 on (water)."""
MOST_NEURONS = 400
"""Neurons that may change sign: far beyond it SCIP finds no point in two minutes (docs/results.md, E1)."""
MOST_CURVES = 5_000
"""Quadratic functions. Their planes are made one by one: half a millisecond to one each, before the first LP
and again in each round."""


@dataclass(frozen=True)
class AutoOptions:
    """Options of the default method: what may be used, and how much of it."""

    effort: int | None = None
    """Starts, rounds and neighbourhoods of each method; None: as many as the time allows."""
    patience: int = 20
    """Starts in a row that may end in a local optimum known before; then the search ends early."""
    tables: bool = True
    exact: bool = True
    proof: int | None = None
    """Of the proofs that suit the problem the one of this number alone, beside all searches; None: all."""
    template_pricing: bool = True
    column_generation: bool = True
    integer_search: bool = True
    bundle: int = 8
    """Linearisations that descents keep as cuts (see `SequentialLinear`)."""
    scaling: Literal["box", "none"] = "box"
    """Trust regions in units of each input's own box, or of one width for all."""

    def __post_init__(self) -> None:
        if self.effort is not None:
            require_count("Auto: effort", self.effort, at_least=1)
        require_count("Auto: patience", self.patience, at_least=1)
        require_count("Auto: bundle", self.bundle, at_least=0)
        if self.proof is not None:
            require_count("Auto: proof", self.proof, at_least=0)
        require_choice("Auto: scaling", self.scaling, ("box", "none"))
        flags = "tables", "exact", "template_pricing", "column_generation", "integer_search"
        require_flags("Auto", self, *flags)


class Case(NamedTuple):
    """What a fact is found out of."""

    context: SolveContext
    may: AutoOptions
    known: Facts
    """The others."""

    @property
    def structure(self) -> Structure:
        """Of the problem."""
        return self.context.once(structure_of)

    def plan(self, work: Callable[[SolveContext], T], allowed: bool) -> T | None:
        """What a method makes of the problem, where it is allowed to."""
        return self.context.once(work) if allowed else None

    def counted(self, work: Callable[[SolveContext], Any], allowed: bool) -> int:
        """How many blocks, samples or components that is; 0 where there is no plan."""
        plan = self.plan(work, allowed)
        return 0 if plan is None else int(plan.count)

    @property
    def written_out(self) -> bool:
        """Whether a MIP of the whole problem may be looked at."""
        return self.may.exact and not self.known.many

    @property
    def coupled(self) -> bool:
        """Whether components share rows."""
        return self.structure.parts.coupled

    @property
    def trees(self) -> TreeProblem | None:
        """The problem in cells, where all predictors are tree ensembles."""
        return self.structure.trees

    @property
    def unstable(self) -> int:
        """Neurons of all networks that may change sign."""
        layers = self.structure.relu_layers if self.written_out else None
        return MOST_NEURONS + 1 if layers is None else layers.unstable

    @property
    def alike(self) -> int:
        """Components of few kinds, each small enough for branch and bound of its own; else 0."""
        kinds = self.plan(component_kinds, self.may.exact and self.coupled)
        return sum(kind.members for kind in kinds or ())

    @property
    def quadratic(self) -> QuadraticPlan | None:
        """The plan of the quadratic functions, where there are few enough."""
        plan = self.plan(quadratic_plan, self.written_out and self.structure.curves <= MOST_CURVES)
        return None if plan is None or plan.unstable > MOST_NEURONS else plan


class Fact(Generic[T]):
    """An attribute of `Facts`: what holds where nothing is known, and how it is found out."""

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
        """Asked for the first time: an instance that knows it is not asked here."""
        if facts is None:
            return self
        found = self.default
        if facts.at is not None and (self._name == "blocks" or not facts.many_blocks):
            with expendable(f"fact: {self._name.replace('_', ' ')}"):
                found = LOOKUPS[self._name](Case(*facts.at, facts))
        vars(facts)[self._name] = found
        return found


LOOKUPS: dict[str, Callable[[Case], Any]] = {}
"""How each fact is found out."""


class Facts:
    """What the choice of phases rests on, each fact found out when it is first asked for: no part of a solve
    is prepared before its turn. Where blocks are many, nothing else is found out. A fact whose look-up fails
    keeps its default, which costs the phases that need it."""

    def __init__(self, at: tuple[SolveContext, AutoOptions] | None = None, **known: int | bool) -> None:
        """`at`: where they are found out; without, what is not `known` keeps its default."""
        self.at = at
        vars(self).update(known)

    blocks = Fact(0, lambda at: at.counted(template_plan, at.may.template_pricing))
    """That are the same up to their data and share rows; 0 where they are not."""
    integers = Fact(0, lambda at: int(np.count_nonzero(at.structure.free_integers)))
    """Integer columns that can move, classes among them."""
    choices = Fact(0, lambda at: at.known.integers - at.structure.classes if at.may.integer_search else 0)
    """Those beside classes."""
    decided = Fact(False, lambda at: not Propagation(at.context.once(scaled_problem)).holds_inputs)
    """Whether integers and equality rows decide all that predictors read. Then what local search over the
    integers sees is exact, and it begins before descents; else it needs the inputs that these find."""
    components = Fact(1, lambda at: at.structure.parts.count)
    priced = Fact(False, lambda at: at.may.column_generation and at.structure.classes > 0 and at.coupled)
    """Class outputs in several components that share rows."""
    unstable = Fact(MOST_NEURONS + 1, lambda at: at.unstable)
    """Neurons that may change sign if all networks are written out; too many where they cannot be."""
    certified = Fact(False, lambda at: at.may.exact and at.coupled and applies(at.context))
    """Components that share rows, each a ReLU network over such a set."""
    exact_blocks = Fact(0, lambda at: at.alike)
    """Components that share rows, of few kinds, each of them small enough for branch and bound; else 0."""
    tree_samples = Fact(0, lambda at: len(at.trees.samples) if at.trees else 0)
    """Samples, where all predictors are tree ensembles; else 0."""
    whole = Fact(False, lambda at: False)
    """Whether all predictors became tables or rows."""
    trees_beside_others = Fact(False, lambda at: False)
    """Tree ensembles beside other predictors, as the problem was given."""
    tree_components = Fact(0, lambda at: at.counted(tree_parts, at.may.column_generation))
    """Components of these that share rows; else 0."""
    curves = Fact(0, lambda at: len(at.quadratic.curves) if at.quadratic else 0)
    """Quadratic functions, where all else is rows, or predictors that can be written as rows; else 0."""
    branched = Fact(False, lambda at: at.may.exact)
    """Whether anything is to be proved."""

    @property
    def slopes(self) -> bool:
        """Whether anything has a slope: trees are steps."""
        return self.tree_samples == 0

    @property
    def many_blocks(self) -> bool:
        """Too many for all that takes them one by one."""
        return self.blocks > MANY_BLOCKS

    @property
    def many(self) -> bool:
        """Too many integers for a MILP over all of them."""
        return self.integers > MANY_INTEGERS
