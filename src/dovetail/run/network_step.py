"""The network step: the input and the answer of a sub-solver.

For one block with n samples, the copies u (n, d) of its inputs minimise, sample by sample,

    nu'(phi(u) - y) + 1/2 |phi(u) - y|_V^2 + lambda'(u - x) + 1/2 |u - x|_W^2
    over  lower <= u <= upper  and  row_lower <= R_u u + R_v v(u) <= row_upper

where v(u) are the network's *values* (a regression's outputs, a classifier's logits) and
phi(u) are the *outputs* as gradients see them: the values themselves, or for a class, which has
no gradient, a `Surrogate`. The inputs form of the coupling has nu = d, V = 0, y = 0.

All tensors are float64 and live on one device.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from dovetail.core.block import Block
from dovetail.run.budget import Budget
from dovetail.run.work import Stopwatch

Surrogate = Literal["logit", "log-probability", "probability", "scaled-probability"]
"""The differentiable function that replaces a class in gradients. With one output column, functions of the
logit z:

    logit                z
    log-probability      log sigmoid(z) = -softplus(-z)
    probability          sigmoid(z)
    scaled-probability   sigmoid(z / spread), the spread a quarter of the typical |z|

With k columns: the log-odds of each class, log-softmax, softmax, and softmax of the scaled logits. The first
two have a gradient at every sample; probabilities have nearly none for samples far from the threshold.
"""
SURROGATES: tuple[Surrogate, ...] = get_args(Surrogate)

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from dovetail.core.predictor import Forward


def ends_in_probability(block: Block) -> bool:
    """Whether the block's network ends in a sigmoid, so that its logit has to be recovered."""
    return bool(block.description.ends_in_sigmoid) and 0.0 < block.threshold < 1.0


def relative_logit(raw: Tensor, threshold: float, probability: bool) -> Tensor:
    """A one-column classifier's raw output as a logit that is >= 0 exactly for class 1."""
    import torch

    if not probability:
        return raw - threshold
    tiny = 1e-15
    shift = torch.logit(torch.tensor(threshold, dtype=raw.dtype, device=raw.device), tiny)
    return torch.logit(raw, tiny) - shift


def decision_values(block: Block, raw: Tensor) -> Tensor:
    """(n, q) the values that decide a block's outputs: a regression's outputs, or the logits of a
    classifier."""
    if not block.classifies or raw.shape[1] > 1:
        return raw
    return relative_logit(raw, block.threshold, ends_in_probability(block))


@dataclass(frozen=True, eq=False)
class Rows:
    """Linear limits on one sample's own inputs and values: lower <= on_inputs u + on_values v <= upper.
    Shapes: on_inputs (n, m, d), on_values (n, m, q), lower and upper (n, m); a sample with fewer than m rows
    has free ones instead. `names` are the n x m names for messages."""

    on_inputs: Tensor
    on_values: Tensor
    lower: Tensor
    upper: Tensor
    names: tuple[tuple[str, ...], ...]

    def activity(self, u: Tensor, values: Tensor) -> Tensor:
        """(n, m) row activities at inputs `u` with network values `values`."""
        return (self.on_inputs @ u.unsqueeze(-1) + self.on_values @ values.unsqueeze(-1)).squeeze(-1)

    def take(self, which: Tensor) -> Rows:
        """The rows of some samples only."""
        names = tuple(name for name, taken in zip(self.names, which.tolist(), strict=True) if taken)
        return Rows(
            self.on_inputs[which],
            self.on_values[which],
            self.lower[which],
            self.upper[which],
            names,
        )


@dataclass(frozen=True, eq=False)
class NetworkBlock:
    """The part of a network step that does not change between iterations, for one block."""

    name: str
    forward: Forward
    smooth: bool
    classifies: bool
    probability: bool
    """The network ends in a sigmoid: values are its logits, recovered from the probability."""
    threshold: float
    spread: Tensor
    """(q,) the unit of values; for classes the divisor of logits."""
    lower: Tensor
    upper: Tensor
    scale: Tensor
    """(n, d) the length of a unit step in each input: box widths, or ones without scaling."""
    rows: Rows | None
    surrogate: Surrogate = "scaled-probability"
    """The function that replaces a class."""
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    kept: dict[str, Any] = field(default_factory=dict)
    """The state that a sub-solver keeps between iterations."""

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.lower.device

    def take(self, which: Tensor) -> NetworkBlock:
        """The block with some samples only."""
        return replace(
            self,
            lower=self.lower[which],
            upper=self.upper[which],
            scale=self.scale[which],
            rows=None if self.rows is None else self.rows.take(which),
        )

    def values(self, u: Tensor) -> Tensor:
        """(n, q) regression outputs, or logits relative to the class threshold."""
        raw = self.forward(u)
        if not self.classifies or raw.shape[1] > 1:
            return raw
        return relative_logit(raw, self.threshold, self.probability)

    def outputs(self, values: Tensor) -> Tensor:
        """(n, q) outputs in differentiable form."""
        import torch

        if not self.classifies:
            return values
        one = values.shape[1] == 1
        match self.surrogate:
            case "logit":
                return values if one else _log_odds(values)
            case "log-probability":
                return torch.nn.functional.logsigmoid(values) if one else torch.log_softmax(values, dim=1)
            case "probability":
                return torch.sigmoid(values) if one else torch.softmax(values, dim=1)
            case "scaled-probability":
                scaled = values / self.spread
                return torch.sigmoid(scaled) if one else torch.softmax(scaled, dim=1)


def _log_odds(values: Tensor) -> Tensor:
    """(n, k) log(p / (1 - p)) of each class: its logit less the log-sum-exp of all others'."""
    import torch

    own = torch.eye(values.shape[1], dtype=torch.bool, device=values.device)
    others = values.unsqueeze(1).masked_fill(own, -torch.inf)
    return values - torch.logsumexp(others, dim=2)


@dataclass(frozen=True, eq=False)
class AugmentedTerms:
    """The part of a network step that changes with each iteration: one block's multiplier and proximal
    terms, in objective units."""

    x: Tensor
    """(n, d) the MIP's inputs, the centre of the proximal term 1/2 |u - x|_W^2."""
    multiplier: Tensor
    """(n, d) lambda."""
    weight: Tensor
    """(n, d) the diagonal of W."""
    y: Tensor
    """(n, q) the MIP's outputs; 0 in the inputs form."""
    output_multiplier: Tensor
    """(n, q) nu; the outputs' cost d in the inputs form."""
    output_weight: Tensor
    """(n, q) the diagonal of V; 0 in the inputs form."""

    def value(self, u: Tensor, outputs: Tensor) -> Tensor:
        """(n,) the step's objective, sample by sample."""
        apart = u - self.x
        beyond = outputs - self.y
        return (self.multiplier * apart + 0.5 * self.weight * apart * apart).sum(dim=1) + (
            self.output_multiplier * beyond + 0.5 * self.output_weight * beyond * beyond
        ).sum(dim=1)

    def take(self, which: Tensor) -> AugmentedTerms:
        """The terms of some samples only."""
        return AugmentedTerms(
            self.x[which],
            self.multiplier[which],
            self.weight[which],
            self.y[which],
            self.output_multiplier[which],
            self.output_weight[which],
        )


@dataclass(frozen=True, eq=False)
class NetworkAnswer:
    """The copies that a sub-solver returns."""

    u: Tensor
    values: Tensor
    """(n, q) network values at `u`."""
    value: Tensor
    """(n,) the step's objective at `u`."""
    violation: Tensor
    """(n,) largest row violation that remains at `u`; 0 without rows."""
    note: str = ""
    """Problems of the step, for the log."""


class NnSolver(Protocol):
    """A sub-solver of network steps."""

    def refuses(self, block: NetworkBlock) -> str | None:
        """Why this sub-solver cannot take `block`, or None if it can."""
        ...

    def solve(
        self, block: NetworkBlock, terms: AugmentedTerms, start: Tensor, budget: Budget
    ) -> NetworkAnswer:
        """Minimise the step's objective from `start` (n, d)."""
        ...
