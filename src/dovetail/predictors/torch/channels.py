"""Pictures as torch has them."""

from __future__ import annotations

from torch import Tensor, nn


class ChannelsFirst(nn.Module):
    """(n, height, width, channels) to (n, channels, height, width)."""

    def forward(self, pictures: Tensor) -> Tensor:
        """The same numbers in another order."""
        return pictures.permute(0, 3, 1, 2)
