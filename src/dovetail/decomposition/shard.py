"""Some blocks of one template with their columns, for pricing, the dual function and the choice.

Shards exchange prices one way and sums over blocks the other: a few numbers per coupling row, whatever the
number of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import HAIR
from dovetail.decomposition.block_data import BlockData, Target, is_repeated, of, repeated, stored
from dovetail.decomposition.modes import Digit, Rungs, digits_of, ladders_of, modes_of
from dovetail.decomposition.move_program import MoveProgram, one_row
from dovetail.decomposition.networks import TemplateNetworks
from dovetail.decomposition.oracle import Oracle
from dovetail.decomposition.owners import Owners
from dovetail.decomposition.pool import BlockPool
from dovetail.decomposition.proof import BlockBounds, BlockProof
from dovetail.run.budget import Budget

COLD = (0.4, 0.12, 1.2, 0.8)
"""Trust regions of descents from rest, in units of typical moves."""
WARM, WARM_RADIUS = 4, 0.12
"""Number and trust region of descents from the best columns so far."""
ROWS, DEVICE_ROWS = 1 << 14, 1 << 22
"""Number of descents at a time: small enough for a core's cache, large enough for a GPU (halved if memory
runs out)."""
COMMON_ROWS = 4
"""Rows per block if descents run start by start."""
TOGETHER, DEVICE_TOGETHER = 1 << 11, 1 << 15
"""Number of blocks with all their starts in one batch."""
LITTLE = 1e-4
"""In units of a typical column's cost: a descent ends if the predicted gain of its next step is smaller."""
ANCHORS = 4
"""Number of price vectors for which columns are kept: the current one, the last one, and perturbed ones."""
FEW = 2048
"""Number of blocks that measure the spread of values."""
FAR = 4.0
"""Largest distance of trial points from rest, in units of typical moves."""
ON_A_LINE, IN_SPACE, MOST_TRIED = 9, 32, 512
"""Numbers of points compared by value before the best descend: for one coordinate, for several, and with all
modes of a block."""
STARTS_ON_A_LINE, STARTS_IN_SPACE = 2, 4
"""Numbers of trial points from which descents start; with several coordinates in addition to the best
columns so far."""
MOST_PLACES, COLUMNS_BESIDE = 32, 4
"""Largest number of a block's columns, and of its columns in addition to the best of each mode if modes
are few."""
FEW_MODES, BEST_MODES = 8, 8
"""With at most this number of modes descents start from the best points of each mode; with more, from
those of the best modes."""
SWEEPS, CHAINS = 2, 3
"""Sweeps over all digits of a block with too many modes, and number of starting points."""
MOST_ENTRIES = 1 << 15
"""Largest number of entries of a block's conditions for proofs, which need them for 1,024 boxes at once
(0.3 GB). With trees written as constraints there are millions, and preparing the proof alone took 5 s."""
FEW_FREE = 3
"""Number of continuous coordinates up to which points all over the box are compared by value. (Three classes
by two numbers, n = 300: 10.29 from rest, 8.70 so.)"""
NEAR_BEST = 0.4
"""Trust region of a descent from the best of many points, in units of typical moves."""


@dataclass(frozen=True)
class PricingOptions:
    """The effort of pricing."""

    places: int = 7
    """Columns per block: the first, and six more; with one alone rounds cycle."""
    steps: int = 12


class Shard:
    """The blocks of a shard with their columns."""

    def __init__(
        self,
        program: MoveProgram,
        blocks: list[Block],
        options: PricingOptions,
        device: str,
        spread: FloatArray,
    ) -> None:
        self.program, self._blocks = program, blocks
        self.data = BlockData(program, blocks, device)
        self._digits = digits_of(program)
        self.owners = Owners(program, blocks, device)
        self.ladders = ladders_of(program, blocks, self.owners.rests)
        self._modes = None if self.ladders else modes_of(program, self._digits)
        self._free = (~self.data.whole).nonzero().ravel()
        self._slides = len(self._free) > len(self.ladders)
        """Whether descents are useful."""
        self._known = self._modes is not None and len(self._free) == 0 and len(self._modes) < MOST_PLACES
        """Whether all possible points of a block are compared and kept."""
        rests = self.owners.rests if self.owners.here else None
        self._networks = TemplateNetworks(program, blocks, device, self.data.dtype, rests)
        self._oracle = Oracle(self.data, self._networks, options.steps if self._slides else 0)
        modes = 0 if self._modes is None else len(self._modes)
        places = 1 + modes if self._known else max(options.places, min(modes, FEW_MODES) + COLUMNS_BESIDE)
        self.pool = BlockPool(self.data, places, len(program.output_columns))
        on_cpu = torch.device(device).type == "cpu"
        self._rows, self._few = (ROWS, TOGETHER) if on_cpu else (DEVICE_ROWS, DEVICE_TOGETHER)
        self._pace = 0.0
        """Least seconds per block, because kernels are compiled in the first call."""
        self._random = torch.Generator().manual_seed(0)
        self._begin()
        self._spread = self._floats(spread)
        """(q,) typical spread of values of blocks at rest, in the whole template."""
        self._targets = self.data.targets(self._spread)

    @property
    def count(self) -> int:
        """Number of blocks."""
        return self.data.count

    @property
    def steerable(self) -> BoolArray:
        """(R,) sides whose use small steps change, by continuous coordinates or outputs; none for classes,
        which a step may change."""
        data, k = self.data, self.data.coordinates
        found = np.zeros(data.sides, dtype=bool)
        if not bool(data.classifies.any() | data.whole.all()):
            part, whole = data.use_part.cpu().numpy(), self.program.whole
            steered = np.concatenate(
                [~whole, ~whole, np.ones(data.cost.shape[1] - 2 * k - 1, dtype=bool), [False]]
            )
            found[data.use_side.cpu().numpy()[steered[part]]] = True
        return found

    @property
    def _sizes(self) -> Tensor:
        """(parts,) the typical size of moves, and the spread of outputs."""
        outputs = torch.where(self.data.classifies, 1.0, self._spread)
        return torch.cat([self.data.scale, self.data.scale, outputs, torch.zeros_like(outputs[:1])])

    @property
    def stake(self) -> float:
        """The possible gain of a typical block by its outputs, or by its moves if outputs have no cost."""
        k = self.data.coordinates
        usual = (stored(self.data.cost).abs() * self._sizes).mean(dim=0)
        by_outputs = float(usual[2 * k :].sum())
        return by_outputs if by_outputs > 0.0 else float(usual.sum()) or 1.0

    @property
    def usual_use(self) -> FloatArray:
        """(R,) typical use of the coupling sides."""
        taken = (stored(self.data.use).abs() * self._sizes[self.data.use_part]).mean(dim=0)
        total = torch.zeros(self.data.sides, device=self.data.device).index_add_(0, self.data.use_side, taken)
        return total.double().cpu().numpy()

    def _begin(self) -> None:
        """The first columns: every block at rest, if that satisfies its conditions."""
        program = self.program
        least = np.clip(0.0, one_row(program.lower), one_row(program.upper))
        moves = self._tensor(least).expand(self.count, -1)
        holds, outputs = self.owners.confirmed(self.everyone, moves, None)
        self._rests = holds
        """(N,) blocks whose first column is the confirmed point at rest."""
        kept = self._rests.nonzero().ravel()
        moves = of(repeated(self._floats(least), self.count), kept)
        self.pool.rest(kept, moves, outputs.to(self.data.dtype)[kept])

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, device=self.data.device)

    def _floats(self, array: FloatArray) -> Tensor:
        return torch.as_tensor(array, dtype=self.data.dtype, device=self.data.device)

    def undecided(self, prices: FloatArray, border: float) -> IntArray:
        """Blocks that should be searched again: their second-best column costs no more than the best one
        plus a margin at the prices."""
        if self._known:  # all that there is was found in the first round
            return np.flatnonzero(torch.isinf(self.pool.cost).all(dim=1).cpu().numpy())
        if self._roams:  # results at other prices are a poor prediction
            return np.arange(self.count)
        price = self._floats(prices)
        best = torch.empty(self.count, device=self.data.device)
        for part in torch.arange(self.count, device=self.data.device).split(self._rows):  # type: ignore[no-untyped-call]
            priced = self.pool.priced(price, part)
            first = torch.where(torch.isfinite(priced[:, 0]), priced[:, 0], torch.inf)
            best[part] = priced[:, 1:].min(dim=1).values - first
        return (torch.isnan(best) | (best < border)).nonzero().ravel().cpu().numpy()

    def price(
        self,
        which: IntArray,
        anchors: FloatArray,
        noise: float,
        unit: float,
        rng: np.random.Generator,
        budget: Budget,
        most: int | None = None,
    ) -> None:
        """Search columns at the first of the prices: descents from rest, from the best columns, or from the
        best of many points, each at perturbed prices, `most` per block. Columns are kept for the other
        prices too."""
        prices, self._oracle.budget = anchors[0], budget
        shaken = prices * np.exp(noise * rng.standard_normal((len(COLD) + WARM, len(prices))))
        anchors = np.concatenate([anchors, shaken[: ANCHORS - len(anchors)]])
        starts = self._tried if self._screens else min(len(COLD) + WARM, most or len(COLD) + WARM)
        for target in self._targets:
            left = self._worth_asking(self._tensor(which), target)
            while len(left) and not budget.over:
                begin, size = budget.seconds, max(1, self._rows // self._rows_per_block(starts))
                some = left[:size]
                if budget.left < self._pace * len(some):
                    break  # the next piece would end too late
                if self._priced(some, target, self._floats(shaken), self._floats(anchors), unit, most):
                    left = left[size:]
                    pace = (budget.seconds - begin) / len(some)
                    self._pace = min(pace, self._pace) if self._pace else pace
        self._oracle.budget = None

    def _priced(
        self, which: Tensor, target: Target, shaken: Tensor, anchors: Tensor, unit: float, most: int | None
    ) -> bool:
        """Whether this number of blocks fits into memory; otherwise the number is halved."""
        try:
            self._price_some(which, target, shaken, anchors, unit, most)
            return True
        except torch.OutOfMemoryError:
            if len(which) == 1:
                raise
        torch.cuda.empty_cache()  # memory of the failed attempt is free only now
        self._rows = max(1, len(which) * self._rows_per_block(len(shaken)) // 2)
        return False

    def _rows_per_block(self, starts: int) -> int:
        """Memory per block, in rows: simultaneous descents, and the same amount for their results."""
        return COMMON_ROWS if self._common_costs and not self._screens else starts

    @property
    def _common_costs(self) -> bool:
        """Whether moves cost the same in all blocks, so that descents run start by start."""
        return is_repeated(self.data.cost) and is_repeated(self.data.use)

    def _worth_asking(self, which: Tensor, target: Target) -> Tensor:
        """Without blocks at rest that no column of the target can beat at any prices."""
        data, k = self.data, self.data.coordinates
        if self._oracle.values_cost or target.on_values.shape[1] > len(data.class_groups):
            return which
        by_moves = data.use_part < 2 * k
        cost, use = stored(data.cost), stored(data.use)
        if bool((cost[:, : 2 * k] < 0.0).any()) or bool((use[:, by_moves] < 0.0).any()):
            return which
        rests, classes = self.pool.outputs[which, 0], target.classes
        more = data.parts(rests.new_zeros((len(which), k)), classes - rests)
        more[:, -1] = 0.0
        no_less = (data.costs(which, more) >= 0.0) & (data.uses(which, more) >= 0.0).all(dim=1)
        return which[~(no_less & torch.isfinite(self.pool.cost[which, 0]))]

    def _price_some(
        self, which: Tensor, target: Target, shaken: Tensor, anchors: Tensor, unit: float, most: int | None
    ) -> None:
        n, little = len(which), LITTLE * unit
        prices = torch.cat([anchors[:1], shaken[1:]]) if self._screens else shaken
        costs = [self.data.part_costs(which, p) for p in prices]
        if self._screens:
            starts, priced = self._screened(which, target, costs)
            radius = torch.full((starts.shape[1],), NEAR_BEST, device=self.data.device)
            if len(self._free) > 1:  # existing columns continue from their points
                starts = torch.cat([starts, self.pool.moves[which, 1 : 1 + WARM]], dim=1)
                priced = [*priced, *range(len(COLD), len(COLD) + WARM)]
                radius = torch.cat([radius, torch.full((WARM,), WARM_RADIUS, device=radius.device)])
        else:
            cold = self.data.zeros(n, len(COLD), self.data.coordinates)
            starts, priced = torch.cat([cold, self.pool.moves[which, 1 : 1 + WARM]], dim=1), range(len(costs))
            radius = torch.tensor([*COLD, *[WARM_RADIUS] * WARM], device=self.data.device)
            radius = radius[: starts.shape[1]]
        starts, radius = starts[:, :most], radius[:most]
        count = starts.shape[1]
        costs = [costs[p] for p in priced][:count]
        if self._common_costs and n > self._few:
            found = [
                self._oracle.descend(which, starts[:, s], radius[s].expand(n), costs[s], target, little)
                for s in range(count)
            ]
        else:
            part_costs = torch.stack(costs, dim=1)
            every = which.repeat_interleave(count)
            found = [
                self._oracle.descend(
                    every, starts.flatten(0, 1), radius.repeat(n), part_costs.flatten(0, 1), target, little
                )
            ]
        moves, outputs, cost = (
            torch.stack(
                [getattr(one, name).reshape(n, -1, *getattr(one, name).shape[1:]) for one in found], dim=1
            )
            for name in ("moves", "outputs", "cost")
        )
        self.pool.merge(
            which, moves.flatten(1, 2), outputs.flatten(1, 2), torch.isfinite(cost).flatten(1), anchors, unit
        )

    @property
    def _roams(self) -> bool:
        """Whether local moves are needed, because no slope leads from one integer to the next, or out of a
        local optimum."""
        return self._oracle.values_cost or bool(self.data.whole.any()) or bool(self.ladders)

    @property
    def _screens(self) -> bool:
        """Whether descents begin at the best of many points; with many coordinates they begin at rest."""
        return self._roams or len(self._free) <= FEW_FREE

    @property
    def _tried(self) -> int:
        """Largest number of points of a block compared together."""
        if self._modes is not None:
            return len(self._modes) * (self._places_tried + WARM)
        rungs = [1 + (2 * ladder.cuts + 3).bit_length() for ladder in self.ladders]
        return max([len(digit.levels) for digit in self._digits] + rungs)

    @property
    def _places_tried(self) -> int:
        """Points of the continuous coordinates, for each mode."""
        if not len(self._free):
            return 1
        assert self._modes is not None
        most = ON_A_LINE if len(self._free) == 1 else IN_SPACE
        return max(2, min(most, MOST_TRIED // len(self._modes) - WARM))

    def _limits(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """(n, k) limits of trial points."""
        lower, upper, far = of(self.data.lower, which), of(self.data.upper, which), FAR * self.data.scale
        near, wide = torch.minimum(torch.maximum(-far, lower), upper), torch.minimum(far, upper)
        whole = self.data.whole
        return torch.where(whole, lower, near), torch.where(whole, upper, torch.maximum(wide, near))

    @cached_property
    def _proof(self) -> BlockProof | None:
        """The prover; None if a move has no limit, if operations of a network are not known, or if there are
        too many conditions."""
        if not all(np.all(np.isfinite(one_row(limit))) for limit in (self.program.lower, self.program.upper)):
            return None
        if self.data.true_conditions[0][0].numel() > MOST_ENTRIES:
            return None
        rests = (
            self.owners.rests if self.owners.here or torch.device(self.data.device).type == "cpu" else None
        )
        try:
            return BlockProof(self.program, self._blocks, self.data, self._digits, rests)
        except UnsupportedError:
            return None

    def prove(
        self, which: IntArray, prices: FloatArray, tolerance: float, most: int, unit: float, budget: Budget
    ) -> tuple[Tensor, BlockBounds] | None:
        """(n,) costs of the best columns of some blocks at prices, and proved bounds with at most `most`
        boxes for each; better points become columns."""
        if self._proof is None:
            return None
        mine, at = self._tensor(which), self._tensor(prices)
        known = self.pool.priced(at, mine).min(dim=1).values.double()
        found = self._proof.prove(mine, at, known, tolerance, most, budget)
        better = found.better.nonzero().ravel()
        if len(better):
            self.add(mine[better], found.moves[better, None], at, unit)
        return known, found

    def add(self, which: Tensor, moves: Tensor, prices: Tensor, unit: float) -> None:
        """Descents from (n, S, k) promising points, added as columns."""
        (n, starts, k), at = moves.shape, prices.to(self.data.dtype)
        every, moves = which.repeat_interleave(starts), moves.to(self.data.dtype).reshape(n * starts, k)
        radius = torch.full((n * starts,), WARM_RADIUS, device=self.data.device)
        costs = self.data.part_costs(every, at)
        for target in self._targets:
            one = self._oracle.descend(every, moves, radius, costs, target, LITTLE * unit)
            found = torch.isfinite(one.cost).view(n, starts)
            self.pool.merge(
                which, one.moves.view(n, starts, k), one.outputs.view(n, starts, -1), found, at[None], unit
            )

    def _screened(self, which: Tensor, target: Target, costs: list[Tensor]) -> tuple[Tensor, Sequence[int]]:
        """(n, S, k) promising points, and the costs with which each begins."""
        if self._modes is None:
            return self._by_digits(which, target, costs)
        lower, upper = self._limits(which)
        points = self._spread_points(lower, upper)
        if len(self._free) == 1:
            warm = self.pool.moves[which, 1 : 1 + WARM]
            points = torch.cat([points, torch.where(self.data.whole, points[:, :1], warm)], dim=1)
        modes = self._floats(self._modes)
        tried = points[:, None, :, :].repeat(1, len(modes), 1, 1)
        at = lower[:, None, :] + modes
        tried = torch.where(self.data.whole, torch.minimum(at, upper[:, None, :])[:, :, None, :], tried)
        if self._known:
            return tried[:, :, 0], [0] * len(modes)
        places = points.shape[1]
        starts = STARTS_ON_A_LINE if len(self._free) == 1 else STARTS_IN_SPACE if len(self._free) else 1
        apart = len(modes) <= FEW_MODES
        starts = starts if apart else max(2, starts // 2)
        value = self._oracle.screen(which, tried.flatten(1, 2), costs[:starts], target)
        value = value.view(len(which), starts, len(modes), places)
        chosen, priced = [], list[int]()
        rows = torch.arange(len(which), device=value.device)[:, None]
        for start in range(starts):
            part = slice(None) if start == 0 or places < starts else slice(start - 1, None, starts - 1)
            best, place = value[:, start, :, part].min(dim=2)
            place = place if start == 0 or places < starts else place * (starts - 1) + start - 1
            count = len(modes) if apart else min(len(modes), BEST_MODES)
            mode = best.topk(count, dim=1, largest=False).indices
            chosen.append(tried[rows, mode, place.gather(1, mode)])
            priced += [start] * count
        return torch.cat(chosen, dim=1), priced

    def _spread_points(self, lower: Tensor, upper: Tensor) -> Tensor:
        """(n, P, k) points of the continuous coordinates: one evenly spaced between its limits, several at
        random, and at rest."""
        count, free = self._places_tried, len(self._free)
        points = lower.clamp(min=0.0).minimum(upper)[:, None, :].repeat(1, count, 1)
        if free == 1:
            part = torch.linspace(0.0, 1.0, count)[:, None]
        else:
            part = torch.rand((len(lower), count, free), generator=self._random)
        if free:
            low, high = lower[:, None, self._free], upper[:, None, self._free]
            spread = low + part.to(low) * (high - low)
            points[:, (0 if free == 1 else 1) :, self._free] = spread[:, (0 if free == 1 else 1) :]
        return points

    def _by_digits(self, which: Tensor, target: Target, costs: list[Tensor]) -> tuple[Tensor, Sequence[int]]:
        """For blocks with too many modes: one digit after the other at its best level, from the best column
        and from random points."""
        lower, upper = self._limits(which)
        n, rows, chosen = len(which), torch.arange(len(which), device=self.data.device), []
        known = torch.isfinite(self.pool.cost[which, 1])[:, None]
        digits: list[Digit | Rungs] = [
            *self._digits,
            *(ladder.of(which, lower, upper) for ladder in self.ladders),
        ]
        for chain in range(CHAINS):
            chance = torch.rand((n, lower.shape[1] + len(digits)), generator=self._random).to(lower)
            moves = torch.where(self.data.whole, lower, lower + chance[:, : lower.shape[1]] * (upper - lower))
            for number, digit in enumerate(digits):
                moves = digit.by_chance(moves, lower, upper, chance[:, lower.shape[1] + number])
            if chain == 0:
                moves = torch.where(known, self.pool.moves[which, 1], moves)
            for _ in range(SWEEPS):
                for digit in digits:
                    if self._oracle.over:
                        break
                    levels = digit.at(moves, lower, upper)
                    value = self._oracle.screen(which, levels, costs[chain : chain + 1], target)[:, 0]
                    moves = levels[rows, value.argmin(dim=1)]
            chosen.append(moves[:, None, :])
        priced = list(range(CHAINS))
        if not self._slides:
            near = [digit.at(moves, lower, upper) for moves in (chosen[0][:, 0],) for digit in digits]
            chosen += near
            priced += [0] * sum(one.shape[1] for one in near)
        return torch.cat(chosen, dim=1), priced

    @property
    def everyone(self) -> Tensor:
        """Numbers of all blocks."""
        return torch.arange(self.count, device=self.data.device)

    def column(self, which: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        """Moves, within their limits, and claimed outputs of one column of each block, in float64."""
        return self.data.within(which, self.pool.moves[which, place]), self.pool.outputs[
            which, place
        ].double()

    @property
    def in_words(self) -> str:
        """How pricing runs on a GPU; "" on a CPU."""
        return self._oracle.in_words

    def confirm(self, which: Tensor, place: Tensor, *, lasting: bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """(n,) whether columns pass by their owners' predictors, their (n, q) outputs, and (n, parts);
        others are removed if `lasting`."""
        moves, outputs = self.column(which, place)
        holds = torch.ones_like(which, dtype=torch.bool)
        known = self._rests[which] & (place == 0) & self.data.classifies.all()  # the same in any format
        asked = (~known).nonzero().ravel()
        if len(asked):
            holds[asked], outputs[asked] = self.owners.confirmed(which[asked], moves[asked], outputs[asked])
            if lasting:
                self.pool.cost[which[~holds], place[~holds]] = torch.inf
        return holds, outputs, self.data.parts(moves, outputs)

    def pulls(self, which: Tensor, moves: Tensor) -> Tensor:
        """(n, q, k) derivatives of outputs by moves."""
        q, k = len(self.data.classifies), self.data.coordinates
        _, pull = self._networks.linearised(self._networks.rests(which), moves.to(self.data.dtype))
        each = torch.eye(q, dtype=self.data.dtype, device=self.data.device)
        rows = [pull(one.expand(len(which), -1), None).double() for one in each]
        return torch.stack(rows, dim=1) if rows else moves.new_zeros((len(which), 0, k))

    def outputs(self, which: Tensor, moves: Tensor) -> Tensor:
        """(n, q) the predictors' outputs at (n, k) moves."""
        return self.owners.confirmed(which, moves, None)[1]

    def slopes(self, which: Tensor, moves: Tensor, outputs: Tensor, reach: float) -> Slopes:
        """The effect of steps of at most `reach` typical moves from (n, k) moves with these outputs."""
        data, k = self.data, self.data.coordinates
        pull = self.pulls(which, moves)
        right = moves >= 0.0
        on_moves, on_outputs, least = (of(array, which) for array in data.true_conditions)
        parts = data.true_uses_of_parts(which)
        own = torch.where(right[:, None, :], parts[..., :k], -parts[..., k : 2 * k])
        use = own + parts[..., 2 * k : -1] @ pull
        met = (on_moves @ moves[:, :, None] + on_outputs @ outputs[:, :, None])[:, :, 0]
        lower, upper = (of(limit, which) for limit in data.true_limits)
        if np.isfinite(reach):
            lower = torch.where(right, lower.clamp(min=0.0), lower)
            upper = torch.where(right, upper, upper.clamp(max=0.0))
        size = torch.where(data.whole, 0.0, reach * data.scale.double())
        length = (self.stake / data.scale).expand(len(which), k)
        back, forth = torch.maximum(lower - moves, -size), torch.minimum(upper - moves, size)
        for ladder in self.ladders:
            down, up = ladder.between(which, moves)
            back[:, ladder.column] = torch.maximum(back[:, ladder.column], down)
            forth[:, ladder.column] = torch.minimum(forth[:, ladder.column], up)
        by_steps = on_moves + on_outputs @ pull
        found = (which, length, use, by_steps, least - met, back.clamp(max=0.0), forth.clamp(min=0.0))
        return Slopes(*(array.cpu().numpy() for array in found))


@dataclass(frozen=True, eq=False)
class Slopes:
    """Some blocks at their current points, to first order: use and conditions per move."""

    block: IntArray
    length: FloatArray
    """(n, k) the cost of a step's length: a typical move costs as much as the typical possible gain of a
    block."""
    use: FloatArray
    """(n, R, k)."""
    on_moves: FloatArray
    """(n, C, k) on_moves step >= least."""
    least: FloatArray
    """(n, C)."""
    lower: FloatArray
    """(n, k) lower limits of steps."""
    upper: FloatArray

    @property
    def without_rows(self) -> Slopes:
        """The same without coupling rows."""
        return replace(self, use=self.use[:, :0])


def usual_spread(program: MoveProgram, blocks: list[Block], device: str = "cpu") -> FloatArray:
    """(q,) the spread of values of some blocks at rest; of typical moves if all blocks are equal there."""
    some = program.part(0, FEW)
    networks = TemplateNetworks(some, blocks, device, torch.float64)
    usual = np.random.default_rng(0).uniform(-1.0, 1.0, (some.count, some.coordinates)) * program.scale
    found = []
    for moves in (np.zeros_like(usual), np.clip(usual, some.lower, some.upper)):
        at = torch.as_tensor(np.where(program.whole, np.round(moves), moves), device=device)
        found.append(networks.values(torch.arange(some.count, device=device), at))
    least = HAIR * (1.0 + torch.cat(found).abs().amax(dim=0))
    rest, moved = (values.std(dim=0, correction=0) for values in found)
    spread = torch.where(rest > least, rest, moved)
    return np.asarray(torch.where(spread > least, spread, 1.0).cpu().numpy())
