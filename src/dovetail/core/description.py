"""The properties that a predictor declares, in addition to its answers and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dovetail.core.errors import PredictorError, UnsupportedError

if TYPE_CHECKING:  # this file is imported with the package: it must not load numpy
    from dovetail.core.quadratic import QuadraticFunction
    from dovetail.core.tree_ensemble import TreeEnsemble
    from dovetail.networks.layers import Layer
    from dovetail.networks.program import Program

ROUNDING = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 0.15}
"""Allowed difference between a small batch and a large one, whose sums are taken in another order, relative
to 1 + |value|, by dtype. Forty roundoffs for coarse dtypes, more for fine ones: only a predictor that
depends on chance or on other rows differs by more."""


@dataclass(frozen=True)
class Description:
    """A predictor's description at one moment; only the name is required.

    >>> Description(name="price", dtypes=("float64", "float32")).narrowest_dtype
    'float32'
    """

    name: str
    """The name used in messages."""
    device: str = "cpu"
    """Where it computes: "cpu", "cuda:0", ..."""

    features: int | None = None
    """Number of features. A block's description always has the number; a predictor states it if known, so
    that a wrong number is refused by name."""
    outputs: int | None = None
    """Number of outputs. A block's description always has it."""
    feature_names: tuple[str, ...] | None = None
    """Names of the features in order, if the predictor was trained on a frame."""

    whole_features: tuple[int, ...] = ()
    """Features that are defined at integers only: their variables must be integer."""

    dtypes: tuple[str, ...] = ("float64",)
    """The dtypes that `predict` computes in, by numpy's names."""
    has_float64_copy: bool = True
    """Whether `snapshot` computes in float64; False for code that insists on a lower precision."""

    smooth: bool = False
    """False if second derivatives are useless (ReLU networks, black boxes)."""
    ends_in_sigmoid: bool | None = None
    """Whether the predictor ends in a sigmoid; None if not known."""

    is_classifier: bool = False
    """Whether the predictor was trained as a classifier, so that classes are the default."""
    is_multilabel: bool = False
    """Whether each output is a separate class, so that the index of the largest output has no meaning."""
    gives_class_number: bool = False
    """Whether its single output is the number of a class, which is used unchanged when classes are asked
    for."""
    other_forms: tuple[object, ...] = field(default=(), compare=False)
    """Other predictors that the same object may stand for if `outputs` has another number of columns. A
    binary classifier gives one probability, or those of both classes."""

    layers: Callable[[], tuple[Layer, ...]] | None = field(default=None, compare=False)
    """A function that returns its layers, first to last, for methods that write networks out. It raises an
    `UnsupportedError` that names the first unsupported part."""
    program: Callable[[int], Program] | None = field(default=None, compare=False)
    """A function that returns the program for one row with the given number of features: every operation,
    how it was recognised, and the arithmetic it is computed in. Bounds of networks use it. It raises an
    `UnsupportedError` that names an operation without bounds."""

    quadratic: Callable[[int], tuple[QuadraticFunction, ...]] | None = field(default=None, compare=False)
    """Its outputs as quadratic functions, if all of them are, for methods that pass them to a solver of
    quadratic programs."""

    trees: Callable[[], TreeEnsemble] | None = field(default=None, compare=False)
    """A function that returns its trees in flat form, for methods that use cells. It raises a
    `PredictorError` that says what cannot be read."""
    why_no_trees: str = ""
    """Why trees inside the predictor cannot be read, if the predictor consists of preprocessing steps and
    trees."""

    @property
    def is_float64(self) -> bool:
        """Whether all of `predict` computes in float64, so that a float64 copy would give the same
        answers."""
        return all(dtype == "float64" for dtype in self.dtypes)

    @property
    def narrowest_dtype(self) -> str:
        """The coarsest of its dtypes; an unknown dtype counts as coarser than all."""
        order = list(ROUNDING)
        return max(self.dtypes, key=lambda dtype: order.index(dtype) if dtype in ROUNDING else len(order))

    @property
    def rounding(self) -> float:
        """By how much two evaluations of the same row may differ, relative to 1 + |value|."""
        return ROUNDING.get(self.narrowest_dtype, max(ROUNDING.values()))

    def layers_if_known(self) -> tuple[Layer, ...] | None:
        """The layers, or None if a part is not a supported layer."""
        try:
            return self.layers() if self.layers is not None else None
        except UnsupportedError:
            return None

    def trees_if_known(self) -> TreeEnsemble | None:
        """The trees, or None if the predictor is not made of trees or they cannot be read."""
        try:
            return self.trees() if self.trees is not None else None
        except PredictorError:
            return None

    def program_if_known(self, features: int) -> Program | None:
        """The program, or None if an operation has no bound."""
        try:
            return self.program(features) if self.program is not None else None
        except UnsupportedError:
            return None
