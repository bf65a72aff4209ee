"""Steps of a network as planes go through them: affine ones for good, others between ranges."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class LoadedAffine:
    """An affine step on the device."""

    weights: tuple[Tensor, ...]
    backwards: tuple[Tensor, ...]
    """The same in the kind of numbers that go backwards."""
    sizes: tuple[Tensor, ...]
    """|weight|, transposed."""
    bias: Tensor
    rate: Tensor
    """Of what rounding can do, relative to |W| |v| + |b|: in here and in the deployed network."""
    more: Tensor
    """What else it can do."""


@dataclass(frozen=True, eq=False)
class Carrying:
    """How weights A >= 0 and their negative parts go through a nonlinear step: A below + (A)^- gap."""

    below: tuple[Tensor, ...]
    gap: tuple[Tensor, ...]
    """Slopes above less those below, one per source like them."""
    offset: Tensor
    """Of the lines below; all rounding of this step and of the affine ones that it reads is taken off."""
    offset_gap: Tensor

    def take(self, sets: Tensor | slice) -> Carrying:
        """On some of the sets."""
        return Carrying(
            tuple(part[sets] for part in self.below),
            tuple(part[sets] for part in self.gap),
            self.offset[sets],
            self.offset_gap[sets],
        )
