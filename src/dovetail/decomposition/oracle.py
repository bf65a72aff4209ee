"""Pricing: for all blocks at once, a search for the cheapest solutions at given prices by sequential linear
steps.

In each step the networks are linearised. The most violated constraint (or the tightest, if none is violated)
is kept. The block's linear program within the trust region then has a closed form: every variable moves to
its cheaper end, and the missing amount of the constraint is made up variable by variable, cheapest per unit
first (a fractional knapsack). A step that neither reduces a violation nor the cost is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.decomposition.block_data import BlockData, Target, of, repeated, stored
from dovetail.decomposition.descent_rows import Batch, DescentRows, DescentState, RowValuesAndSlopes
from dovetail.decomposition.networks import TemplateNetworks
from dovetail.run import work
from dovetail.run.budget import Budget
from dovetail.run.optional_kernel import OptionalKernel, in_words

GROW, SHRINK = 1.6, 0.35
"""Factors of the trust region after an accepted and a rejected step."""
WIDEST = 4.0
"""Largest trust region in units of typical moves."""
FINE_STEPS = 3
"""Number of float32 steps at the end of a descent in bfloat16."""
COMPARED, APART = 256, 0.01
"""Number of rows of the first fused descents that are compared with torch, and the relative tolerance."""
HOLD, AS_GOOD = 0.95, 0.6
"""Fractions of these rows that must be valid (up to rounding), and that must be as good as with torch.
Descents that differ by a rounding part at the next kink: half of those become worse, half better."""
STEP_EFFORT, SCREEN_EFFORT = 1.1e-3, 4e-4
"""Seconds of a step of descents, and of a comparison of points, without the time of the networks (see
`Work.effort`)."""
MISSED = 1e12
"""Cost of a violated condition when points are compared."""
LEAST_SLOPE = 1e-9
"""A smaller slope counts as independence."""


@dataclass(frozen=True, eq=False)
class Found:
    """Per row: the cheapest point that satisfies all conditions; cost is infinite without one."""

    moves: Tensor
    outputs: Tensor
    cost: Tensor
    """The cost at the prices of the search."""


class Oracle:
    """Descents of many rows: each a block with its own start, trust region, target and prices."""

    def __init__(self, data: BlockData, networks: TemplateNetworks, steps: int) -> None:
        self._data, self._networks, self._steps = data, networks, steps
        numbers = stored(data.cost)[:, 2 * data.coordinates : -1][:, ~data.classifies]
        coupled = data.use_part >= 2 * data.coordinates
        inputs_only = (~data.classifies).nonzero().ravel() + 2 * data.coordinates
        priced = bool(torch.isin(data.use_part[coupled], inputs_only).any())
        self.values_cost = bool((numbers != 0.0).any()) or priced
        """Whether numeric outputs cost anything, directly or by their use."""
        self._only_classes = bool(data.classifies.all())
        self._some_whole = bool(data.whole.any())
        self._step = OptionalKernel("steps", self._fused_step)
        self._descents = OptionalKernel("descents", self._fused_descents)
        self._compared = False
        """Whether the first fused descents were compared with stepwise ones."""
        self.budget: Budget | None = None
        """Of a search for columns; None for descents that are not interrupted."""

    @property
    def in_words(self) -> str:
        """The kernels in use, and why others are not; "" on a CPU."""
        if torch.device(self._data.device).type == "cpu":
            return ""
        return in_words([self._descents, self._step])

    def _fused_step(self) -> Callable[..., Tensor] | None:
        return None if self._some_whole else fused_step(self._data.device, self._data.coordinates)

    def _fused_descents(self) -> Callable[..., tuple[Tensor, Tensor]] | None:
        """Whether one small network decides one class and there are no integers, so that a whole descent is
        one kernel."""
        data = self._data
        if torch.device(data.device).type != "cuda" or self._some_whole or self._steps == 0:
            return None
        if not self._only_classes or self.values_cost or self._networks.only is None:
            return None
        from dovetail.decomposition import triton_descent

        network, rest = self._networks.only
        return triton_descent.descents(
            network,
            rest,
            data.lower,
            data.upper,
            data.scale,
            self._steps,
            (GROW, SHRINK, WIDEST),
            LEAST_SLOPE,
        )

    def descend(
        self, which: Tensor, start: Tensor, radius: Tensor, part_costs: Tensor, target: Target, little: float
    ) -> Found:
        """Descents from (n, k) starts, with (n,) radii in units of typical moves, at (n, parts) costs;
        rows whose next step promises less than `little` are finished."""
        if target.on_values.shape[1] == 1 and not target.asks_moves:
            found = self._at_once(which, start, radius, part_costs, target, little)
            if found is not None:
                return found
        return self._step_by_step(which, start, radius, part_costs, target, little)

    def _step_by_step(
        self, which: Tensor, start: Tensor, radius: Tensor, part_costs: Tensor, target: Target, little: float
    ) -> Found:
        rows = self._rows(which, start, part_costs, target)
        begin = moves = self._within(start, rows)
        rough = max(0, self._steps - FINE_STEPS) if self._networks.gains_by_rough else 0
        if rough:
            end, radius = self._stepped(rows, moves, radius, target, rough, little, rough=True)
            moves = end.moves
        end, _ = self._stepped(rows, moves, radius, target, self._steps - rough, little)
        # once a row satisfies its conditions, it keeps satisfying them at lower and lower cost
        met = end.lack <= 0.0
        return Found(
            torch.where(met[:, None], end.moves, begin),
            target.classes.expand(len(start), -1) if end.outputs is None else end.outputs,
            torch.where(met, end.cost, torch.inf),
        )

    def _at_once(
        self, which: Tensor, start: Tensor, radius: Tensor, part_costs: Tensor, target: Target, little: float
    ) -> Found | None:
        """All steps of all rows in one kernel; None if there is none for such blocks."""
        fixed = self._fixed(part_costs, target)
        condition = target.on_values[:, 0, 0], target.least[:, 0], target.slip[:, 0]
        found = self._descents(which, start, radius, part_costs, fixed, condition)
        if found is None:
            return None
        answer = Found(found[0], target.classes.expand(len(start), -1), found[1])
        if not self._compared:
            self._compared = True
            some = slice(0, COMPARED)
            costs = part_costs[some]
            few = self._step_by_step(which[some], start[some], radius[some], costs, target, little)
            rows, there = self._rows(which[some], start[some], costs, target), found[0][some]
            seen = self._look(rows, there, rows.price(there), target, slopes=False)
            trouble = _trouble(found[1][some], torch.where(seen.lack > 0.0, torch.inf, seen.cost), few.cost)
            if trouble:
                self._descents.give_up(trouble)
                return None
        self._networks.count(len(start) * (1 + self._steps))
        return answer

    def _stepped(
        self, rows: DescentRows, moves: Tensor, radius: Tensor, target: Target, steps: int, little: float,
        *, rough: bool = False,
    ) -> tuple[DescentState, Tensor]:  # fmt: skip
        """The positions of rows after some steps, and their trust regions."""
        asks = steps > 0
        state = DescentState.at(
            self._look(rows, moves, rows.price(moves), target, slopes=asks, rough=rough), slopes=asks
        )
        batch = Batch(rows, state, radius)
        for step in range(steps):
            goal = self._goal(batch.rows, batch.state, batch.radius)
            spent = batch.rows.price(goal)
            going = batch.leave(batch.state.promise(goal, spent) < little)
            goal, spent = (goal, spent) if going is None else (goal[going], spent[going])
            if not len(goal) or self.over:
                break
            self._step_to(batch, goal, spent, target, slopes=step < steps - 1, rough=rough)
        return batch.end()

    def _step_to(
        self, batch: Batch, goal: Tensor, spent: Tensor, target: Target, *, slopes: bool, rough: bool
    ) -> None:
        """Move rows to their goals if that is an improvement."""
        work.count(effort=STEP_EFFORT)
        state, radius = batch.state, batch.radius
        new = self._look(batch.rows, goal, spent, target, slopes=slopes, rough=rough)
        kept = torch.where(
            state.lack > 0.0, new.lack < state.lack, (new.lack <= 0.0) & (new.cost < state.cost)
        )
        batch.radius = torch.where(kept, (radius * GROW).clamp(max=WIDEST), radius * SHRINK)
        state.update(new, kept, slopes=slopes)

    @property
    def over(self) -> bool:
        """Whether the time for columns is over; the other parts of a solve have their turns meanwhile."""
        return self.budget is not None and self.budget.over is not None

    def _goal(self, rows: DescentRows, state: DescentState, radius: Tensor) -> Tensor:
        """The goal of rows within the trust region."""
        right, left = rows.right, rows.left
        if state.slope is not None:
            right, left = right + state.slope, left - state.slope
        goal = self._step(
            state.moves, state.gain, state.short, radius, (right, left), (rows.lower, rows.upper),
            self._data.scale, LEAST_SLOPE,
        )  # fmt: skip
        if goal is not None:
            return goal
        size = radius[:, None] * self._data.scale
        low = torch.maximum(rows.lower, state.moves - size)
        high = torch.minimum(rows.upper, state.moves + size)
        goal = _cheapest(low, high, stored(right), stored(left), state, some_free=rows.some_free)
        return self._within(goal, rows)

    def screen(self, which: Tensor, moves: Tensor, part_costs: list[Tensor], target: Target) -> Tensor:
        """(n, S, G) costs of (n, G, k) moves at S times (n, parts) costs, without slopes; violated
        conditions cost more than anything else."""
        work.count(effort=SCREEN_EFFORT)
        n, tried, _ = moves.shape
        flat, every = moves.flatten(0, 1), which.repeat_interleave(tried)
        nothing = repeated(torch.zeros_like(stored(part_costs[0])[:1]), len(flat))
        rows = self._rows(every, flat, nothing, target)
        seen = self._look(rows, flat, torch.zeros_like(flat[:, 0]), target, slopes=False)
        outputs = target.classes.expand(len(flat), -1) if seen.outputs is None else seen.outputs
        parts = self._data.parts(flat, outputs).view(n, tried, -1)
        missed = (MISSED * (1.0 + seen.lack / (1.0 + seen.lack))).view(n, tried)
        costs = [(parts @ stored(cost)[:, :, None])[:, :, 0] for cost in part_costs]
        return torch.stack([torch.where(missed > MISSED, missed, cost) for cost in costs], dim=1)

    def _rows(self, which: Tensor, start: Tensor, part_costs: Tensor, target: Target) -> DescentRows:
        """The constant data of rows; integers stay where they begin."""
        data, k = self._data, self._data.coordinates
        costs, lower, upper = stored(part_costs), of(data.lower, which), of(data.upper, which)
        if self._some_whole:
            lower, upper = (torch.where(data.whole, start, limit) for limit in (lower, upper))
        return DescentRows(
            self._networks.rests(which), lower, upper,
            costs[:, :k], costs[:, k : 2 * k], costs[:, 2 * k : -1] * ~data.classifies,
            self._fixed(part_costs, target), of(target.on_values, which),
            of(target.on_moves, which) if target.asks_moves else None, of(target.least, which),
            of(target.slip, which),
            self.values_cost or bool((costs[:, : 2 * k] < 0.0).any()),
        )  # fmt: skip

    def _fixed(self, part_costs: Tensor, target: Target) -> Tensor:
        """(n,) the cost of the target's classes, and constant costs."""
        costs = stored(part_costs)
        of_classes = (costs[:, 2 * self._data.coordinates : -1] * target.classes).sum(dim=1)
        return repeated(of_classes + costs[:, -1], len(part_costs))

    def _within(self, moves: Tensor, rows: DescentRows) -> Tensor:
        return torch.minimum(torch.maximum(moves, rows.lower), rows.upper)

    def _look(
        self,
        rows: DescentRows,
        moves: Tensor,
        spent: Tensor,
        target: Target,
        *,
        slopes: bool,
        rough: bool = False,
    ) -> RowValuesAndSlopes:
        """The values of rows at moves with these costs; whether `slopes` will be needed there."""
        data = self._data
        values, pull = self._networks.linearised(rows.rests, moves, gradients=slopes, rough=rough)
        outputs, cost = None, spent + rows.fixed
        if not self._only_classes:
            outputs = torch.where(data.classifies, target.classes, values)
            cost = spent + ((rows.of_numbers * outputs).sum(dim=1) + rows.fixed)
        on_values, on_moves = rows.on_values, rows.on_moves
        slack = (on_values * values[:, None, :]).sum(dim=2) - rows.least
        if on_moves is not None:
            slack = slack + (on_moves * moves[:, None, :]).sum(dim=2)
        worst = slack.argmin(dim=1, keepdim=True) if slack.shape[1] > 1 else None

        def slopes_of(some: Tensor | None) -> tuple[Tensor, Tensor | None]:
            slope = pull(_some(rows.of_numbers, some), some) if self.values_cost else None
            if on_values.shape[1] == 0:
                return torch.zeros_like(_some(moves, some)), slope
            kept = None if worst is None else _some(worst, some)
            gain = pull(_of_kept(_some(on_values, some), kept), some)
            if on_moves is not None:
                gain = gain + _of_kept(_some(on_moves, some), kept)
            return gain, slope

        if on_values.shape[1] == 0:
            nothing = torch.zeros_like(cost)
            return RowValuesAndSlopes(moves, outputs, spent, cost, nothing, nothing - 1.0, slopes_of)
        lack = (-slack - rows.slip).clamp(min=0.0).sum(dim=1)
        short = -(slack if worst is None else slack.gather(1, worst))[:, 0]
        return RowValuesAndSlopes(moves, outputs, spent, cost, lack, short, slopes_of)


def fused_step(device: str, coordinates: int) -> Callable[..., Tensor] | None:
    """The closed form in one Triton kernel; None on a CPU, or with too many coordinates."""
    if torch.device(device).type != "cuda":
        return None
    from dovetail.decomposition import triton_step

    return triton_step.cheapest if coordinates <= triton_step.MOST_COORDINATES else None


def _trouble(said: Tensor, true: Tensor, by_torch: Tensor) -> str:
    """Why the kernel's costs are not trusted; "" if they belong to its points and are not worse than torch's
    from the same starts."""
    asked = torch.isfinite(said)
    holds = torch.isfinite(true) & ((said - true).abs() <= APART * (1.0 + true.abs()))
    if bool(asked.any()) and _part(holds[asked]) < HOLD:
        return "its values do not belong to its points"
    # rows that end elsewhere may be better or worse by chance
    as_good = torch.isinf(by_torch) | (said <= by_torch + APART * (1.0 + by_torch.abs()))
    return "" if _part(as_good) >= AS_GOOD else "it ends at worse points than the same steps by torch"


def _part(marks: Tensor) -> float:
    """The fraction of true entries."""
    return float(marks.double().mean())


def _some(array: Tensor, which: Tensor | None) -> Tensor:
    """A selection of the rows, or all rows."""
    return array if which is None else of(array, which)


def _of_kept(conditions: Tensor, worst: Tensor | None) -> Tensor:
    """(n, m) of (n, C, m): the entry of the active condition of each row."""
    if worst is None:
        return conditions[:, 0]
    return conditions.gather(1, worst[:, :, None].expand(-1, -1, conditions.shape[2]))[:, 0]


def _cheapest(
    low: Tensor, high: Tensor, right: Tensor, left: Tensor, state: DescentState, *, some_free: bool = True
) -> Tensor:
    """(n, k) moves between `low` and `high` of least cost that correct the violated condition to first
    order: `right` and `left` are costs on either side of 0, negative for `some_free`."""
    base = torch.minimum(low.clamp(min=0.0), high)
    if some_free:
        base = torch.where(right < 0.0, high, torch.where(left < 0.0, low, base))
    gain = state.gain
    missing = state.short - (gain * (base - state.moves)).sum(dim=1)
    rises = gain > 0.0
    room = torch.where(rises, high - base, base - low)
    price = torch.where(rises, torch.where(base < 0.0, -left, right), torch.where(base > 0.0, -right, left))
    size = gain.abs()
    amount = torch.where(size > LEAST_SLOPE, size * room, 0.0)
    size = size.clamp_(min=LEAST_SLOPE)
    order = torch.argsort(price / size, dim=1)
    sorted_amount = amount.gather(1, order)
    before = sorted_amount.cumsum(dim=1) - sorted_amount
    bought = torch.minimum((missing[:, None] - before).clamp(min=0.0), sorted_amount)
    taken = torch.zeros_like(amount).scatter_(1, order, bought) / size
    return base + torch.where(rises, taken, -taken)
