"""A MIP solved by an external engine, and which of the engine's claims dovetail accepts.

Bound: for an LP, dovetail computes the bound itself (`dual_value`). For a MIP, the bound comes from
dovetail's own tree (`branch_and_bound`) if that tree closes. Otherwise the engine's bound counts, reduced by
the possible effect of the engine's tolerances, unless a known solution contradicts it or a relaxation is
unbounded.

Infeasible: dovetail's own tree proves infeasibility over constraints and bounds loosened by the check's
tolerance. Where that tree would be too large, all available engines must report infeasibility, and HiGHS a
second time without presolve. No other claim is accepted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import propagate
from dovetail.bounds.safe_lp import SafeLp
from dovetail.branching.mip_tree import Proof, branch_and_bound
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip
from dovetail.mip.answers import answers_in_turns, installed, loaded
from dovetail.mip.loaded_highs import FEASIBILITY, LoadedHighs, cost_unit
from dovetail.mip.program import LinearProgram
from dovetail.run.bound import GapLimit, Support
from dovetail.run.budget import Budget
from dovetail.run.engine import MipAnswer, MipStatus, Quadratic
from dovetail.run.failures import expendable

NODES = 500
"""Boxes of a confirming tree: random programs with up to twelve integers need fewer."""
SHARE, MOST_SECONDS = 0.1, 1.0
"""Share of the time left, and largest number of seconds, for one such tree."""


@dataclass(frozen=True)
class EngineSettings:
    """The settings of engines."""

    seed: int = 0
    threads: int = 1
    gap: GapLimit = GapLimit(0.0)  # noqa: RUF009  (frozen)


@dataclass(frozen=True, eq=False)
class Confirmed:
    """What is known about a program in minimisation form."""

    bound: float = -math.inf
    x: FloatArray | None = None
    """The best point found, for the check."""
    infeasible: bool = False
    unbounded: bool = False
    """The cost of the program or its relaxation falls without limit, according to the engine."""
    note: str = ""
    support: Support = Support.PROOF
    """Whose arithmetic proved the bound."""


def confirmed(
    mip: Mip,
    settings: EngineSettings,
    budget: Budget,
    *,
    in_turn: bool = False,
) -> Confirmed:
    """Solve `mip`, in minimisation form, and return the confirmed part of the answer. `in_turn`: use all
    engines (`mip.answers`)."""
    if not np.any(mip.integer):
        return _continuous(mip, settings, budget)
    program = mip.as_checked()
    answer = _best_in_turn(program, settings, budget) if in_turn else None
    if answer is None:
        session = loaded("highs", program, seed=settings.seed, threads=settings.threads)
        answer = session.solve(
            Quadratic.linear(program.cost, program.offset), budget=budget, gap=settings.gap.of_engine
        )
    if answer.status is MipStatus.INFEASIBLE:
        return _infeasible(mip, settings, budget)
    if answer.status is MipStatus.UNBOUNDED:
        return Confirmed(unbounded=True)
    return stands(program, answer, settings, budget)


def _best_in_turn(program: Mip, settings: EngineSettings, budget: Budget) -> MipAnswer | None:
    """The first deciding answer, otherwise the best point and the best bound; None if all engines fail."""
    goal, best = Quadratic.linear(program.cost, program.offset), None
    seed, threads, gap = settings.seed, settings.threads, settings.gap.of_engine
    for answer in answers_in_turns(program, goal, budget, _decides, seed=seed, threads=threads, gap=gap):
        if _decides(answer):
            return answer
        before = answer if best is None else best
        best = replace(min(before, answer, key=_value), bound=max(before.bound, answer.bound))
    return best


def _decides(answer: MipAnswer) -> bool:
    return answer.status is not MipStatus.LIMIT


def _value(answer: MipAnswer) -> float:
    return answer.value


def _continuous(mip: Mip, settings: EngineSettings, budget: Budget) -> Confirmed:
    answer = SafeLp(mip, seed=settings.seed, threads=settings.threads).minimise(mip.cost, mip.offset, budget)
    if answer.status is MipStatus.INFEASIBLE:
        return _infeasible(mip, settings, budget)
    return Confirmed(answer.bound, answer.x, unbounded=answer.status is MipStatus.UNBOUNDED)


def stands(
    mip: Mip,
    answer: MipAnswer,
    settings: EngineSettings,
    budget: Budget,
    cutoff: float = math.inf,
) -> Confirmed:
    """The part of an engine's answer to `mip`, for points up to `cutoff`, that can be relied on. If `mip`
    itself contains only such points, its bound claims nothing above the cutoff."""
    known = min(answer.value, cutoff)
    slack = 0.5 * settings.gap.allowed(known) if math.isfinite(known) else 0.0
    proof = _tree(mip, settings, budget, cutoff=known, slack=slack)
    value, x = (proof.value, proof.x) if proof.x is not None else (answer.value, answer.x)
    if proof.unbounded:  # HiGHS has called such programs optimal: its presolving lost their free columns
        return Confirmed(x=x, unbounded=True)
    bound, support = proof.bound, Support.PROOF
    said = answer.status is not MipStatus.INFEASIBLE  # "infeasible" needs a proof of our own
    if bound < min(value, cutoff) - slack and said:  # the tree did not close: the engine's word,
        word = answer.bound - hidden(mip, answer.x)
        if bound < word <= value:  # no known point contradicts it
            bound, support = word, Support.ENGINE
    return Confirmed(_finite(min(bound, cutoff)), x, support=support)


def hidden(mip: Mip, x: FloatArray | None) -> float:
    """How far an engine's bound may be off by its tolerance on reduced costs alone, in the user's units.

    A column whose reduced cost has the wrong sign, by less than the tolerance, may move across its whole
    width. An engine ends with a basis whose reduced costs are correct up to rounding. A reduced cost between
    0 and the tolerance is a coincidence, so that one column is allowed for: the widest. An unbounded column
    whose whole cost is within the tolerance may decrease without limit, unnoticed by the engine.
    """
    box, tolerance = propagate(mip), FEASIBILITY * cost_unit(mip.cost)
    width = box.upper - box.lower
    endless = ~np.isfinite(width)
    if np.any(endless & (mip.cost != 0.0) & (np.abs(mip.cost) <= tolerance)):
        return math.inf
    met = 1.0 if x is None else 1.0 + np.abs(x)
    return tolerance * float(np.max(np.where(endless, met, width), initial=0.0))


def _tree(
    mip: Mip, settings: EngineSettings, budget: Budget, *, cutoff: float = math.inf, slack: float = 0.0
) -> Proof:
    part = budget.part(min(SHARE * budget.left, MOST_SECONDS))
    return branch_and_bound(
        mip, part, cutoff=cutoff, slack=slack, nodes=NODES, seed=settings.seed, threads=settings.threads
    )


def has_no_point(mip: Mip, settings: EngineSettings, budget: Budget) -> bool:
    """Whether infeasibility of `mip` is proved, even within the tolerances of the check."""
    return _refuted(mip, settings, budget)[0]


def _refuted(mip: Mip, settings: EngineSettings, budget: Budget) -> tuple[bool, Proof]:
    loose = replace(mip.loosened(), cost=np.zeros(mip.n_columns), offset=0.0)
    proof = _tree(loose, settings, budget)
    if proof.bound == math.inf:
        return True, proof
    return proof.x is None and _all_say_infeasible(loose, settings, budget), proof


def _infeasible(mip: Mip, settings: EngineSettings, budget: Budget) -> Confirmed:
    """Confirm an answer "infeasible"."""
    refuted, proof = _refuted(mip, settings, budget)
    if refuted:
        return Confirmed(infeasible=True)
    own = _tree(mip.as_checked(), settings, budget)
    note = "HiGHS reported the model infeasible, which a second check did not confirm"
    return Confirmed(_finite(own.bound), own.x if own.x is not None else proof.x, note=note)


def _finite(bound: float) -> float:
    """Whether the bound of a tree is finite; a tree without any box gives no bound."""
    return bound if bound < math.inf else -math.inf


def _all_say_infeasible(mip: Mip, settings: EngineSettings, budget: Budget) -> bool:
    """Whether HiGHS on reversed rows without presolve, and SCIP if installed, agree on infeasibility."""
    part = budget.part(SHARE * budget.left)
    turned = slice(None, None, -1)
    reversed_rows = LinearProgram.of(mip)._replace(
        A=mip.A[turned], row_lower=mip.row_lower[turned].copy(), row_upper=mip.row_upper[turned].copy()
    )
    live = LoadedHighs(reversed_rows, seed=settings.seed + 1, threads=settings.threads)
    live.without_presolve()
    with expendable("second check of an infeasible MIP", EngineError):
        if live.run(part, settings.gap.of_engine)[0] is not MipStatus.INFEASIBLE:
            return False
        if "scip" not in installed():
            return True
        session = loaded("scip", mip, seed=settings.seed, threads=settings.threads)
        answer = session.solve(Quadratic.linear(mip.cost), budget=budget.part(SHARE * budget.left))
        return answer.status is MipStatus.INFEASIBLE
    return False
