"""scikit-learn's Gaussian processes as networks: the mean, and the standard deviation.

    mean = K alpha                          K: kernel values of a row with the training rows
    variance = k(x, x) - |L^-1 K|^2         L: the Cholesky factor of the training rows' kernel matrix

Kernels are functions of squared distances, convex for RBF, Matern 3/2 and 5/2. Where variances are small,
both differ from zero by rounding only, which the root enlarges: deviations are compared by their squares.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.errors import PredictorError
from dovetail.networks.kernel_expansion import (
    CONSTANT,
    GAUSS,
    MATERN32,
    MATERN52,
    KernelExpansion,
    KernelLines,
    Profile,
    Term,
    rational,
)
from dovetail.networks.program import Recording
from dovetail.predictors.torch.operations import named, solved
from dovetail.predictors.torch.traced import Traced, as_traced

Value = Tensor | float


def _distance(U: Tensor, X: Tensor, scale: Any) -> Tensor:
    """(n, training rows) squared distances in units of the length scales."""
    by = 1.0 / torch.as_tensor(np.broadcast_to(scale, X.shape[1:]).copy(), dtype=X.dtype)
    return torch.square((U * by)[:, None, :] - X * by).sum(dim=2)


def _matern(kernel: Any, U: Tensor, X: Tensor) -> Tensor:
    apart = _distance(U, X, kernel.length_scale)
    if kernel.nu == 0.5:
        return torch.exp(-named("root", apart))
    if kernel.nu in (1.5, 2.5):
        return named("matern32" if kernel.nu == 1.5 else "matern52", apart)
    if kernel.nu == np.inf:
        return torch.exp(-0.5 * apart)
    raise PredictorError(
        f"a Matern kernel with nu={kernel.nu} has no formula; dovetail takes 0.5, 1.5, 2.5, inf."
    )


def _rational(kernel: Any, U: Tensor, X: Tensor) -> Tensor:
    apart = _distance(U, X, kernel.length_scale * np.sqrt(2.0 * kernel.alpha))
    return torch.exp(-kernel.alpha * torch.log(1.0 + apart))


def _power(kernel: Any, value: Value) -> Value:
    if kernel.exponent not in (1, 2, 3, 4):
        raise PredictorError(f"a kernel to the power {kernel.exponent} has no bound; dovetail takes 1 to 4.")
    return value if kernel.exponent == 1 else value ** int(kernel.exponent)


Between = Callable[[Any, Tensor, Tensor], Value]
Alone = Callable[[Any, Tensor], Value]

KERNELS: dict[str, tuple[Between, Alone]] = {
    "ConstantKernel": (lambda k, U, X: float(k.constant_value), lambda k, U: float(k.constant_value)),
    "WhiteKernel": (lambda k, U, X: 0.0, lambda k, U: float(k.noise_level)),
    "RBF": (lambda k, U, X: torch.exp(-0.5 * _distance(U, X, k.length_scale)), lambda k, U: 1.0),
    "Matern": (_matern, lambda k, U: 1.0),
    "RationalQuadratic": (_rational, lambda k, U: 1.0),
    "DotProduct": (
        lambda k, U, X: U @ X.T + float(k.sigma_0) ** 2,
        lambda k, U: torch.square(U).sum(dim=1, keepdim=True) + float(k.sigma_0) ** 2,
    ),
    "Sum": (
        lambda k, U, X: between(k.k1, U, X) + between(k.k2, U, X),
        lambda k, U: alone(k.k1, U) + alone(k.k2, U),
    ),
    "Product": (
        lambda k, U, X: between(k.k1, U, X) * between(k.k2, U, X),
        lambda k, U: alone(k.k1, U) * alone(k.k2, U),
    ),
    "Exponentiation": (
        lambda k, U, X: _power(k, between(k.kernel, U, X)),
        lambda k, U: _power(k, alone(k.kernel, U)),
    ),
}
"""By scikit-learn's class: values of rows with the training rows, and of each row with itself."""


def between(kernel: Any, U: Tensor, X: Tensor) -> Value:
    """The kernel's values of rows with the training rows; a number if all are equal."""
    return _rules(kernel)[0](kernel, U, X)


def alone(kernel: Any, U: Tensor) -> Value:
    """The kernel's value of each row with itself."""
    return _rules(kernel)[1](kernel, U)


def _rules(kernel: Any) -> tuple[Between, Alone]:
    name = type(kernel).__name__
    if name not in KERNELS or type(kernel).__module__ != "sklearn.gaussian_process.kernels":
        raise PredictorError(
            f"a Gaussian process with the kernel {name} cannot be written as a network, only with "
            f"{', '.join(KERNELS)} of scikit-learn."
        )
    return KERNELS[name]


class GaussianProcess(nn.Module):
    """The mean, or mean and standard deviation of each output side by side."""

    def __init__(self, estimator: Any) -> None:
        super().__init__()
        self._kernel, self._deviation = estimator.kernel_, False
        self._lower = np.asarray(estimator.L_, dtype=np.float64)
        alpha = np.asarray(estimator.alpha_, dtype=np.float64).reshape(len(self._lower), -1)
        spread, centre = (
            np.broadcast_to(part, alpha.shape[1])
            for part in (estimator._y_train_std, estimator._y_train_mean)
        )
        for name, array in (
            ("X", estimator.X_train_),
            ("alpha", alpha),
            ("spread", spread),
            ("centre", centre),
        ):
            self.register_buffer(name, torch.tensor(np.array(array, dtype=np.float64)))
        self.X: Tensor
        self.alpha: Tensor
        self.spread: Tensor
        self.centre: Tensor
        self.forward(self.X[:1])  # refuses kernels without a formula

    def with_deviation(self) -> GaussianProcess:
        """The same process with its standard deviation."""
        made = copy.copy(self)
        made._deviation = True
        return made

    def forward(self, U: Tensor) -> Tensor:
        """One row per sample."""
        if isinstance(U, Traced) and self._lines is not None:
            return self._as_one_operation(U, self._lines)
        return self._formula(U)

    def _formula(self, U: Tensor) -> Tensor:
        K = between(self._kernel, U, self.X)
        if not isinstance(K, Tensor):
            K = U @ (0.0 * self.X.T) + K
        mean = self.spread * (K @ self.alpha) + self.centre
        if not self._deviation:
            return mean
        variance = alone(self._kernel, U) - torch.square(solved(self._lower, K)).sum(dim=1, keepdim=True)
        return torch.cat([mean, named("root", variance) * self.spread], dim=1)

    def _as_one_operation(self, U: Traced, lines: KernelLines) -> Tensor:
        """The formula as a program of its own inside an operation that has planes as a whole."""
        inner = Recording(U.shape[1])
        row = Traced(torch.arange(U.shape[1])[None], inner, U.dtype, U.device)
        made = as_traced(self._formula(row), row)
        operation = KernelExpansion(U.flat.copy(), inner.program(made.flat.copy()), lines)
        return U.new(U.recording.add(operation, U.flat), made.shape)

    @property
    def _lines(self) -> KernelLines | None:
        """Planes of the whole; None for kernels that have none, and where rounding hides the noise."""
        terms = [*_terms(self._kernel, 1.0, self.X.shape[1])]
        if not all(isinstance(term, (Term, float)) for term in terms):
            return None
        noise = sum(term for term in terms if isinstance(term, float))
        arrays = (getattr(self, name).numpy() for name in ("X", "alpha", "spread", "centre"))
        lines = KernelLines(tuple(t for t in terms if isinstance(t, Term)), *arrays)
        if not self._deviation:
            return lines
        K, _ = lines.kernel(self.X)
        rest = np.linalg.eigvalsh(self._lower @ self._lower.T - K.numpy())
        certain = rest[0] > 1e-12 * len(K) * lines.size
        return replace(lines, lower=self._lower, noise=noise) if certain else None


def _terms(kernel: Any, factor: float, features: int) -> Iterator[Term | float | None]:
    """A kernel as a sum of terms of distances and noise; None for parts that are neither."""
    name, scale = type(kernel).__name__, np.ones(features)
    if name == "Sum":
        yield from _terms(kernel.k1, factor, features)
        yield from _terms(kernel.k2, factor, features)
    elif name == "Product":
        parts = kernel.k1, kernel.k2
        constant = next((one for one in parts if type(one).__name__ == "ConstantKernel"), None)
        other = parts[0] if constant is parts[1] else parts[1]
        yield from [None] if constant is None else _terms(other, factor * constant.constant_value, features)
    elif name == "WhiteKernel":
        yield float(factor * kernel.noise_level)
    elif name == "ConstantKernel":
        yield Term(float(factor * kernel.constant_value), CONSTANT, scale)
    else:
        profile = _profile(kernel)
        scale = scale * getattr(kernel, "length_scale", 1.0)
        yield None if profile is None else Term(float(factor), profile, scale)


def _profile(kernel: Any) -> Profile | None:
    name = type(kernel).__name__
    if name == "RationalQuadratic":
        return rational(float(kernel.alpha))
    if name == "Matern":
        return {1.5: MATERN32, 2.5: MATERN52, np.inf: GAUSS}.get(kernel.nu)
    return GAUSS if name == "RBF" else None


def gaussian_process(estimator: Any) -> Iterator[nn.Module]:
    """The mean."""
    if not hasattr(estimator, "X_train_"):
        raise PredictorError(f"{type(estimator).__name__} is not trained yet; call its fit first.")
    yield GaussianProcess(estimator)
