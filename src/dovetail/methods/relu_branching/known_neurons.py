"""What is known of a network's neurons over sets of inputs before a search over their signs begins."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.methods.relu_branching.sign_pairs import SignPairs


@dataclass(frozen=True, eq=False)
class KnownNeurons:
    """Of H neurons over K sets; it holds whatever is asked of the sets, and so at any prices."""

    lower: Tensor
    """(K, H) what each reads at least, and below at most."""
    upper: Tensor
    pairs: SignPairs | None = None
    """Of the first layer."""

    @classmethod
    def nothing(cls, count: int, neurons: int, like: Tensor) -> KnownNeurons:
        """They may read anything."""
        upper = torch.full((count, neurons), torch.inf, dtype=like.dtype, device=like.device)
        return cls(-upper, upper)

    def take(self, chosen: Tensor) -> KnownNeurons:
        """Over some of the sets, by index."""
        pairs = None if self.pairs is None else self.pairs.take(chosen)
        return KnownNeurons(self.lower[chosen], self.upper[chosen], pairs)

    def beside(self, lower: Tensor, upper: Tensor) -> KnownNeurons:
        """These neurons, then those of another layer, over the same sets."""
        return KnownNeurons(
            torch.cat([self.lower, lower], dim=1), torch.cat([self.upper, upper], dim=1), self.pairs
        )
