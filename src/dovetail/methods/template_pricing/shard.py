"""Some blocks of one template with their columns: all that pricing, the dual and the choice ask of them.

Blocks of a shard are nobody else's. What travels between shards is prices one way, and sums over blocks the
other: a few numbers per coupling row, whatever the number of blocks.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.methods.template_pricing.block_data import BlockData, Target, is_repeated, of, repeated, stored
from dovetail.methods.template_pricing.confirmed import confirmed
from dovetail.methods.template_pricing.device_blocks import device_blocks
from dovetail.methods.template_pricing.move_program import MoveProgram, one_row
from dovetail.methods.template_pricing.networks import TemplateNetworks
from dovetail.methods.template_pricing.oracle import Oracle
from dovetail.methods.template_pricing.pool import BlockPool
from dovetail.run.budget import Budget
from dovetail.structure.templates import Places

COLD = (0.4, 0.12, 1.2, 0.8)
"""Trust regions of descents from rest, in usual moves: they end in different places."""
WARM, WARM_RADIUS = 4, 0.12
"""Descents from the best columns so far."""
ROWS, DEVICE_ROWS = 1 << 14, 1 << 22
"""Descents at a time: their arrays stay in a core's cache; a GPU is not busy with fewer, and its memory may
ask for fewer (they are halved then)."""
COMMON_ROWS = 4
"""For each block, where descents go start by start: what all of them found is put together in the end."""
TOGETHER, DEVICE_TOGETHER = 1 << 11, 1 << 15
"""Blocks that are asked with all their starts at once: a start by itself would not busy a core, or a GPU."""
LITTLE = 1e-4
"""In units of a usual column's cost: a descent whose next step promises less is done."""
FEW = 2048
"""Blocks that say how far values differ."""
FAR = 4.0
"""Descents begin no farther from rest than that, in whole numbers or usual moves."""
MOST_WHOLE = 32
"""Combinations of integers that are all looked at, where a block has no other coordinates."""


@dataclass(frozen=True)
class PricingOptions:
    """How thoroughly blocks are asked."""

    places: int = 7
    """Columns per block: the first, and six more; with one alone rounds go in circles."""
    steps: int = 12


class Shard:
    """See above."""

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
        self.whole = _combinations(program)
        self.on_device = device_blocks(program, blocks, device)
        """Blocks that can be asked where their columns are; None where they cannot."""
        rests = None if self.on_device is None else self.on_device.rests
        networks = TemplateNetworks(program, blocks, device, self.data.dtype, rests)
        self._oracle = Oracle(self.data, networks, 0 if self.whole is not None else options.steps)
        places = options.places if self.whole is None else 1 + len(self.whole)
        self.pool = BlockPool(self.data, places, len(program.output_columns))
        on_cpu = torch.device(device).type == "cpu"
        self._rows, self._few = (ROWS, TOGETHER) if on_cpu else (DEVICE_ROWS, DEVICE_TOGETHER)
        self._pace = 0.0
        """Seconds that a block takes, at the least: kernels are compiled in the first call."""
        self._random = torch.Generator().manual_seed(0)
        self._begin()
        self._spread = self._floats(spread)
        """(q,) how far apart values of blocks at rest usually are, in the whole template."""
        self._targets = self.data.targets(self._spread)

    @property
    def count(self) -> int:
        """How many blocks."""
        return self.data.count

    @property
    def _sizes(self) -> Tensor:
        """(parts,) what a usual move is, and how much a usual output varies."""
        outputs = torch.where(self.data.classifies, 1.0, self._spread)
        return torch.cat([self.data.scale, self.data.scale, outputs, torch.zeros_like(outputs[:1])])

    @property
    def stake(self) -> float:
        """What a usual block has to win or lose by its outputs; by its moves where these cost nothing."""
        k = self.data.coordinates
        usual = (stored(self.data.cost).abs() * self._sizes).mean(dim=0)
        by_outputs = float(usual[2 * k :].sum())
        return by_outputs if by_outputs > 0.0 else float(usual.sum()) or 1.0

    @property
    def usual_use(self) -> FloatArray:
        """(R,) of the coupling sides by usual moves and outputs."""
        taken = (stored(self.data.use).abs() * self._sizes[self.data.use_part]).mean(dim=0)
        total = torch.zeros(self.data.sides, device=self.data.device).index_add_(0, self.data.use_side, taken)
        return total.double().cpu().numpy()

    def _begin(self) -> None:
        """First columns: every block at rest, if that meets its conditions."""
        program = self.program
        least = np.clip(0.0, one_row(program.lower), one_row(program.upper))
        holds, outputs = self._confirmed_rest(least)
        self._rests = holds
        """(N,) whose first column is the point at rest, confirmed here for good."""
        kept = self._rests.nonzero().ravel()
        moves = of(repeated(self._floats(least), self.count), kept)
        self.pool.rest(kept, moves, outputs.to(self.data.dtype)[kept])

    def _confirmed_rest(self, least: FloatArray) -> tuple[Tensor, Tensor]:
        """(N,) whether blocks at rest meet their conditions, and their outputs, in float64."""
        if self.on_device is not None:
            moves = self._tensor(least).expand(self.count, -1)
            return self.on_device.confirmed(self.everyone, moves, None)
        rest = np.broadcast_to(least, self.program.lower.shape)
        holds, outputs = confirmed(self.program, self._blocks, slice(None), rest, None)
        return self._tensor(holds), self._tensor(outputs)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, device=self.data.device)

    def _floats(self, array: FloatArray) -> Tensor:
        return torch.as_tensor(array, dtype=self.data.dtype, device=self.data.device)

    def undecided(self, prices: FloatArray, border: float) -> IntArray:
        """Blocks that are worth asking again: their best other column costs no more than their first at the
        prices, and the border."""
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
        prices: FloatArray,
        noise: float,
        unit: float,
        rng: np.random.Generator,
        budget: Budget,
    ) -> None:
        """Ask blocks for columns: descents from rest and from their best ones, each at shaken prices."""
        starts = len(COLD) + WARM if self.whole is None else len(self.whole)
        shaken = prices * np.exp(noise * rng.standard_normal((starts, len(prices))))
        for target in self._targets:
            left = self._worth_asking(self._tensor(which), target)
            while len(left) and not budget.over:
                begin, size = perf_counter(), max(1, self._rows // self._rows_per_block(starts))
                some = left[:size]
                if budget.left < self._pace * len(some):
                    return  # it would end too late
                if self._priced(some, target, self._floats(shaken), self._floats(prices), unit):
                    left = left[size:]
                    pace = (perf_counter() - begin) / len(some)
                    self._pace = min(pace, self._pace) if self._pace else pace

    def _priced(self, which: Tensor, target: Target, shaken: Tensor, prices: Tensor, unit: float) -> bool:
        """Whether so many blocks fit the memory; with too many, the next time there are half as many."""
        try:
            self._price_some(which, target, shaken, prices, unit)
            return True
        except torch.OutOfMemoryError:
            if len(which) == 1:
                raise
        torch.cuda.empty_cache()  # what the failed attempt held is free only now
        self._rows = max(1, len(which) * self._rows_per_block(len(shaken)) // 2)
        return False

    def _rows_per_block(self, starts: int) -> int:
        """Descents at once, and as much memory for what they find."""
        return COMMON_ROWS if self._common_costs else starts

    @property
    def _common_costs(self) -> bool:
        """Whether a move costs the same in all blocks: descents go start by start then, costs by the side."""
        return is_repeated(self.data.cost) and is_repeated(self.data.use)

    def _worth_asking(self, which: Tensor, target: Target) -> Tensor:
        """Without blocks at rest that no column of the target can beat, whatever the prices: it costs no less
        and uses no less of any side."""
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

    def _price_some(self, which: Tensor, target: Target, shaken: Tensor, prices: Tensor, unit: float) -> None:
        n, starts = len(which), self._starts(which)
        count = starts.shape[1]
        radius = torch.tensor([*COLD, *[WARM_RADIUS] * WARM][:count], device=self.data.device)
        if len(radius) < count:
            radius = torch.ones(count, device=self.data.device)
        costs, little = [self.data.part_costs(which, p) for p in shaken[:count]], LITTLE * unit
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
            which, moves.flatten(1, 2), outputs.flatten(1, 2), torch.isfinite(cost).flatten(1), prices, unit
        )

    def _starts(self, which: Tensor) -> Tensor:
        """(n, S, k) moves: at rest, and the best columns."""
        n, k = len(which), self.data.coordinates
        if self.whole is not None:
            return of(self.data.lower, which)[:, None, :] + self._floats(self.whole)
        cold = self._anywhere(which) if self._roams else self.data.zeros(n, len(COLD), k)
        return torch.cat([cold, self.pool.moves[which, 1 : 1 + WARM]], dim=1)

    @property
    def _roams(self) -> bool:
        """No slope leads from one whole number to the next, nor out of a number's local optimum; a class is
        reached from where the block rests, or not at all."""
        return self._oracle.values_cost or bool(self.data.whole.any())

    def _anywhere(self, which: Tensor) -> Tensor:
        """(n, starts, k) moves by chance, within limits and near enough to rest; the first two at rest."""
        far = FAR * torch.where(self.data.whole, torch.ones_like(self.data.scale), self.data.scale)
        lower = torch.maximum(of(self.data.lower, which), -far)[:, None, :]
        upper = torch.minimum(of(self.data.upper, which), far)[:, None, :]
        chance = torch.rand((len(which), len(COLD), self.data.coordinates), generator=self._random).to(lower)
        whole = torch.floor(lower + chance * (upper - lower + 1.0)).clamp(max=upper)
        moves = torch.where(self.data.whole, whole, lower + chance * (upper - lower))
        moves[:, 0] = 0.0
        moves[:, 1] = torch.where(self.data.whole, moves[:, 1], 0.0)
        return moves

    @property
    def everyone(self) -> Tensor:
        """Numbers of all blocks."""
        return torch.arange(self.count, device=self.data.device)

    def nth(self, place: int) -> Tensor:
        """(N,) this place where a block has so many columns, else the first."""
        if place >= self.pool.cost.shape[1]:
            return torch.zeros_like(self.everyone)
        return torch.where(torch.isfinite(self.pool.cost[:, place]), place, 0)

    def column(self, which: Tensor, place: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Moves and claimed outputs of one column of each block, in the format of the search."""
        return self.pool.moves[which, place].cpu().numpy(), self.pool.outputs[which, place].cpu().numpy()

    def true_column(self, place: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Moves of one column of every block, and what the owners' predictors say of it; what was claimed
        where no other column follows from that, since whoever takes the point asks them in any case."""
        moves, claimed = self.column(self.everyone, place)
        if not self.program.follows_outputs:
            return moves, claimed
        return moves, confirmed(self.program, self._blocks, slice(None), moves.astype(np.float64), None)[1]

    def write(self, place: Tensor, z: Tensor, places: Places, first: int) -> bool:
        """One column of every block into a point that is where the blocks are; False where they are not.

        `places` says where columns are in it, of blocks that are counted from `first`.
        """
        if self.on_device is None:
            return False
        moves, outputs = (
            part[self.everyone, place].double() for part in (self.pool.moves, self.pool.outputs)
        )
        if self.program.follows_outputs:
            outputs = self.on_device.confirmed(self.everyone, moves, None)[1]
        for j, values in enumerate(self.on_device.columns(moves, outputs)):
            at = places.column(j, first, first + self.count)
            z[at if isinstance(at, slice) else self._tensor(at)] = values
        return True

    @property
    def in_words(self) -> str:
        """How it is priced on a GPU; "" on a CPU."""
        return self._oracle.in_words

    def confirm(self, which: Tensor, place: Tensor, *, lasting: bool = True) -> tuple[Tensor, Tensor]:
        """(n,) whether columns hold by their owners' predictors, and (n, R) their use; others are struck, if
        that is to be `lasting`."""
        moves, outputs = self.pool.moves[which, place].double(), self.pool.outputs[which, place].double()
        holds = torch.ones_like(which, dtype=torch.bool)
        known = self._rests[which] & (place == 0) & self.data.classifies.all()  # the same in any format
        asked = (~known).nonzero().ravel()
        if len(asked):
            held, said = self._confirmed(which[asked], moves[asked], outputs[asked])
            holds[asked], outputs[asked] = held, said
            if lasting:
                self.pool.cost[which[~holds], place[~holds]] = torch.inf
        return holds, self.data.true_uses(which, self.data.parts(moves, outputs))

    def _confirmed(self, which: Tensor, moves: Tensor, claimed: Tensor) -> tuple[Tensor, Tensor]:
        if self.on_device is not None:
            return self.on_device.confirmed(which, moves, claimed)
        told = (of.cpu().numpy() for of in (which, moves, claimed))
        held, said = confirmed(self.program, self._blocks, *told)
        return self._tensor(held), self._tensor(said)


def usual_spread(program: MoveProgram, blocks: list[Block], device: str = "cpu") -> FloatArray:
    """(q,) how far apart values of blocks at rest are; some of them tell."""
    some = program.part(0, FEW)
    networks = TemplateNetworks(some, blocks, device, torch.float64)
    rest = torch.zeros((some.count, some.coordinates), dtype=torch.float64, device=device)
    values = networks.values(torch.arange(some.count, device=device), rest)
    spread = values.std(dim=0, correction=0).cpu().numpy()
    return np.where(spread > 0.0, spread, 1.0)


def _combinations(program: MoveProgram) -> FloatArray | None:
    """All steps from the lowest integers, where nothing else can move and they are few."""
    width = one_row(program.upper) - one_row(program.lower)
    if not np.all(program.whole) or program.coordinates == 0 or not np.all(np.isfinite(width)):
        return None
    most = width.max(axis=0)
    if np.prod(most + 1.0) > MOST_WHOLE:
        return None
    return np.array(list(itertools.product(*(np.arange(w + 1.0) for w in most))))
