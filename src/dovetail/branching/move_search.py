"""Branching over the moves of inputs: cells of a closed-form set, independent of the structure of the
network.

The move up and the move down of one input are one signed number: since both cost, no best solution uses
both. A cell is a box of such numbers; the set over a cell has the same form, measured from the cell's own
corner. Reduced costs shrink cells (the removed part reaches the limit), and a cell is divided where the
plane changes most. The method serves networks of four and more layers with few inputs, on a GPU with
millions of cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dovetail.bounds.planes.domain import gamma
from dovetail.bounds.planes.moves import Moves
from dovetail.bounds.planes.network_planes import Ranges
from dovetail.branching.frontier import Parts
from dovetail.branching.set_search import SetSearch
from dovetail.branching.targets import Neurons, Targets

TINY = 1e-9
"""Cells with no wider number are not divided."""
MOST_CELLS = 20_000_000
"""Largest number of open cells in memory, without a GPU."""
OPEN_SHARE, COPIES = 0.5, 3
"""Share of a GPU's memory for open cells; number of copies while some leave."""
SPLIT_SHARE, WORK_SHARE = 1 / 16, 0.25
"""Fraction of the open cells divided at a time on a GPU, and share of its memory for their computation."""
NUMBERS = 8
"""Float64 numbers per value of the network while a cell is bounded."""
TRIED = 4096
"""Number of cells of a batch whose points are evaluated: this takes a quarter of the time of their bounds."""
WIDTH = 64
"""Size of matrices that test how a device multiplies."""
WIDER = 1e-9
"""Relative, and absolute: margin of cuts."""


@dataclass(frozen=True, eq=False)
class Cells(Parts):
    """P cells."""

    low: Tensor
    """(P, k) lower limits of signed moves."""
    high: Tensor
    choice: Tensor
    """(P,) the signed move to divide next."""
    sign: Tensor
    """(P, H) for all inputs of ReLUs: 1 or -1 if the sign is known, else 0."""

    def children(self) -> Cells:
        """Lower and upper half of the first cell, then of the second, ..."""
        halves = self.take(torch.arange(len(self), device=self.target.device).repeat_interleave(2))
        rows = torch.arange(len(halves), device=self.target.device)
        middle = 0.5 * (halves.low[rows, halves.choice] + halves.high[rows, halves.choice])
        lower = rows % 2 == 0
        halves.high[rows[lower], halves.choice[lower]] = middle[lower]
        halves.low[rows[~lower], halves.choice[~lower]] = middle[~lower]
        return halves


class SignedMoves:
    """Moves as signed numbers: pairs of opposite directions, and single ones."""

    def __init__(self, domain: Moves, costs: Tensor) -> None:
        D, m = domain.directions, domain.directions.shape[1]
        may_pair = bool((costs >= 0.0).all()) and not bool(domain.least.isfinite().any())
        opposite = (D[:, :, None] + D[:, None, :] == 0.0).all(0) & (D != 0.0).any(0)[:, None]
        plus, minus, used = [], [], set[int]()
        table = opposite.cpu().tolist()
        for j in range(m):
            partner = next((i for i in range(j + 1, m) if may_pair and table[j][i] and i not in used), -1)
            if j not in used:
                plus.append(j)
                minus.append(partner)
                used.update({j, partner})
        self.plus = torch.tensor(plus, device=D.device)
        minus_of = torch.tensor(minus, device=D.device)
        self._paired = minus_of >= 0
        self._minus = minus_of[self._paired]

    def whole(self, domain: Moves) -> tuple[Tensor, Tensor]:
        """(K, k) the limits of all sets."""
        high = domain.limit[:, self.plus]
        low = torch.zeros_like(high)
        low[:, self._paired] = -domain.limit[:, self._minus]
        return low, high

    def limits(self, low: Tensor, high: Tensor, moves: int) -> tuple[Tensor, Tensor]:
        """(P, m) the limits of moves in cells."""
        least, most = (low.new_zeros(len(low), moves) for _ in range(2))
        least[:, self.plus], most[:, self.plus] = low.clamp(min=0.0), high.clamp(min=0.0)
        least[:, self._minus] = (-high[:, self._paired]).clamp(min=0.0)
        most[:, self._minus] = (-low[:, self._paired]).clamp(min=0.0)
        return least, most

    def cut(self, low: Tensor, high: Tensor, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        """Cells within new (P, m) limits of moves."""
        up_least, up_most = least[:, self.plus], most[:, self.plus]
        high = torch.where(high > 0.0, torch.minimum(high, up_most), high)
        low = torch.where(up_least > 0.0, torch.maximum(low, up_least), low)
        down_least, down_most = torch.zeros_like(low), torch.full_like(low, torch.inf)
        down_least[:, self._paired], down_most[:, self._paired] = least[:, self._minus], most[:, self._minus]
        low = torch.where(low < 0.0, torch.maximum(low, -down_most), low)
        high = torch.where(down_least > 0.0, torch.minimum(high, -down_least), high)
        return low, high


class MoveSearch(SetSearch[Cells]):
    """One search over cells."""

    def __init__(
        self, targets: Targets, batch: int = 512, most_nodes: int | None = None, tolerance: float = 1e-7
    ) -> None:
        self._signed = SignedMoves(targets.domain, targets.costs)
        self._neurons = Neurons(targets.planes.graph)
        self._planes = targets.planes
        if targets.shift.device.type != "cpu" and multiplies_in_single(targets.shift.device):
            self._planes = targets.planes.of_kind(torch.float32)
        memory, graph = memory_of(targets.shift.device), targets.planes.graph
        self._most_at_once = int(WORK_SHARE * memory / (8 * NUMBERS * sum(graph.sizes)))
        if most_nodes is None:
            bytes_each = self._neurons.count + 16 * (len(self._signed.plus) + 2)
            most_nodes = int(OPEN_SHARE * memory / (COPIES * bytes_each)) or MOST_CELLS
        super().__init__(targets, batch, most_nodes, tolerance)

    def _at_once(self) -> int:
        many = min(int(SPLIT_SHARE * len(self.frontier)), self._most_at_once // 2)
        return max(super()._at_once(), many)

    def _roots(self) -> Cells:
        low, high = self._signed.whole(self.targets.domain)
        like = self.targets.shift
        target = torch.arange(self.targets.count, device=like.device)
        sign = torch.zeros(len(target), self._neurons.count, dtype=torch.int8, device=like.device)
        cells = Cells(target, torch.full_like(like, -torch.inf), low, high, torch.zeros_like(target), sign)
        return self._bounded(cells)

    def _expanded(self, taken: Cells) -> Cells:
        tiny = (taken.high - taken.low).amax(1) < TINY
        found = self._bounded(taken.take(~tiny).children())
        self._put_aside(taken.take(tiny))
        return found

    def _bounded(self, parts: Cells) -> Cells:
        """Cells with bounds, cut, and the next division; points are tried too."""
        cells = parts
        self._counted(len(cells))
        if not len(cells):
            return cells
        root = self.targets.take(cells.target)
        least, most = self._signed.limits(cells.low, cells.high, root.costs.shape[1])
        domain, empty = root.domain.within(least, most)
        spent = (root.costs * least).sum(1)
        spent = spent - gamma(least.shape[1] + 4) * (root.costs.abs() * least).sum(1)
        local = replace(root, domain=domain, cutoff=root.cutoff - spent)
        ranges = self._planes.ranges(domain, self._known(cells.sign))
        planes = self._planes.planes(root.rows[:, None], ranges)
        slopes, offset = planes.slopes[:, 0], planes.offset[:, 0]
        value = local.value_of(slopes, offset) + spent
        bound = torch.fmax(cells.bound, value.nan_to_num(-torch.inf, torch.inf, -torch.inf))
        bound = torch.where(empty, torch.inf, bound)
        self._try_points(cells.target, least, local, slopes, offset)
        low, high = self._cut(cells, local, slopes, offset, least, most, spent)
        bound = torch.where((low > high).any(1), torch.inf, bound)
        along, width = (slopes @ self.targets.domain.directions)[:, self._signed.plus].abs(), high - low
        choice = (along * width + TINY * width).argmax(1)
        return Cells(cells.target, bound, low, torch.maximum(low, high), choice, self._signs(ranges))

    def _try_points(
        self, target: Tensor, least: Tensor, local: Targets, slopes: Tensor, offset: Tensor
    ) -> None:
        """Evaluate the minimisers of planes, in the first cells, whose parents had the lowest bounds."""
        some = torch.arange(min(len(target), TRIED), device=target.device)
        local, slopes, offset = local.take(some), slopes[some], offset[some]
        self._try(target[some], least[some] + local.guess(slopes, offset)[1])
        if local.condition:  # the cheapest point is on the plane, slightly before the network's own border
            self._try(target[some], least[some] + local.domain.minimiser(slopes))

    def _known(self, sign: Tensor) -> Ranges:
        """What the signs of a cell's parent imply for its neurons."""
        endless = torch.tensor(torch.inf, dtype=torch.float64, device=sign.device)
        sizes = self.targets.planes.graph.sizes
        known = Ranges([-endless] * len(sizes), [endless] * len(sizes))
        for place, part in self._neurons.cut(sign).items():
            known.lower[place] = torch.where(part > 0, 0.0, -endless)
            known.upper[place] = torch.where(part < 0, 0.0, endless)
        return known

    def _signs(self, ranges: Ranges) -> Tensor:
        lower, upper = self._neurons.joined(ranges.lower), self._neurons.joined(ranges.upper)
        return (lower >= 0.0).to(torch.int8) - (upper <= 0.0).to(torch.int8)

    def _cut(
        self,
        cells: Cells,
        local: Targets,
        slopes: Tensor,
        offset: Tensor,
        least: Tensor,
        most: Tensor,
        spent: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Cut by reduced costs: the bound of the removed part reaches the limit, so that this part is
        closed."""
        limit = self.limit[cells.target]
        domain = local.domain
        free = replace(domain, least=domain.least - torch.inf, most=domain.most + torch.inf)
        shifted = offset + local.shift
        price = torch.ones_like(offset)
        if local.condition:
            price = free.condition_price(slopes, shifted, local.costs).price
        weighed = price[:, None] * slopes
        value = free.minimum(weighed[:, None], (price * shifted)[:, None], local.costs)[:, 0] + spent
        reduced = weighed @ domain.directions + local.costs
        noise = gamma(slopes.shape[1] + 8) * (weighed.abs() @ domain.directions.abs() + local.costs.abs())
        size = (reduced.abs() - noise).clamp(min=0.0)
        room = (limit - value).clamp(min=0.0)[:, None] / torch.where(size > 0.0, size, 1.0)
        room = torch.where((size > 0.0) & room.isfinite(), room * (1.0 + WIDER) + WIDER, torch.inf)
        end = least + domain.limit  # where the value was taken: the row may end a move before its cell does
        new_most = torch.where(reduced > 0.0, torch.minimum(most, least + room), most)
        new_least = torch.where(reduced < 0.0, torch.maximum(least, end - room), least)
        was_cut = ((new_most < most) | (new_least > least)).any(1)
        self._close_at(cells.target[was_cut], limit[was_cut])
        return self._signed.cut(cells.low, cells.high, new_least, new_most)


def memory_of(device: torch.device) -> int:
    """Memory of a GPU in bytes; 0 without one."""
    return int(torch.cuda.get_device_properties(device).total_memory) if device.type == "cuda" else 0


def multiplies_in_single(device: torch.device) -> bool:
    """Whether products of float32 matrices have float32 accuracy there (not TF32). Tested whenever a search
    begins, by the setting and on the device."""
    try:
        if torch.get_float32_matmul_precision() != "highest":
            return False
    except RuntimeError:  # torch's two settings for this disagree
        return False
    near = torch.full((WIDTH, WIDTH), 1.0 + 2.0**-20, device=device)
    return torch.equal(near @ torch.eye(WIDTH, device=device), near)
