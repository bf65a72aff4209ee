"""Adam's direction: a few lines, because the library's own costs more than a pass through a small network."""

from __future__ import annotations

from torch import Tensor


class Adam:
    """Adam's direction, with its usual constants.

    Not `torch.optim.Adam`: its first step imports the compiler (1.4 s), and its bookkeeping for
    parameter groups costs more than a pass through a small network.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._mean: Tensor | None = None
        self._square: Tensor | None = None

    def __call__(self, slope: Tensor) -> Tensor:
        """The direction for a gradient; the state moves on."""
        self._steps += 1
        if self._mean is None or self._square is None:
            self._mean, self._square = 0.1 * slope, 0.001 * slope * slope
        else:
            self._mean.lerp_(slope, 0.1)
            self._square.mul_(0.999).addcmul_(slope, slope, value=0.001)
        mean = self._mean / (1.0 - 0.9**self._steps)
        square = self._square / (1.0 - 0.999**self._steps)
        return mean / square.sqrt_().add_(1e-8)


def steepest(slope: Tensor) -> Tensor:
    """The gradient itself."""
    return slope
