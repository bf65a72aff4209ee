"""What a predictor says of itself: all that dovetail asks of it beside its answers and its gradients."""

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
"""By how much a small batch may differ from a large one, whose sums are taken in another order, relative to
1 + |value|; from the finest dtype to the coarsest. Forty roundoffs for the coarse ones, more for the fine,
where they cost nothing: only what depends on chance or on other rows differs by as much."""


@dataclass(frozen=True)
class Description:
    """A predictor as it was when it was asked; only the name must be given, the rest where it is known.

    >>> Description(name="price", dtypes=("float64", "float32")).narrowest_dtype
    'float32'
    """

    name: str
    """How messages call it."""
    device: str = "cpu"
    """Where it computes: "cpu", "cuda:0", ..."""

    features: int | None = None
    """How many features it takes. The description of a block has it; a predictor says it where it knows,
    and most of all when it was asked about rows of another number: they are then refused by name."""
    outputs: int | None = None
    """How many outputs it gives. The description of a block has it."""
    feature_names: tuple[str, ...] | None = None
    """What its features are called, in their order, if it was trained on a frame."""

    whole_features: tuple[int, ...] = ()
    """Features that have a meaning at whole numbers only: their columns must be integer."""

    dtypes: tuple[str, ...] = ("float64",)
    """What `predict` computes in, by numpy's names; several where parts of it differ."""
    has_float64_copy: bool = True
    """Whether `snapshot` computes in float64; False for code that insists on a lower precision."""

    smooth: bool = False
    """False where second derivatives carry nothing (ReLU networks, black boxes)."""
    ends_in_sigmoid: bool | None = None
    """True or False where the predictor shows it, None where nothing tells."""

    is_classifier: bool = False
    """Whether its owner trained it to tell classes apart, so that classes are meant unless somebody says."""
    is_multilabel: bool = False
    """Whether each output is a class of its own, so that the largest of them means nothing."""
    gives_class_number: bool = False
    """Whether its single output is the number of a class already: it is taken as it is, also where classes
    are asked for."""
    other_forms: tuple[object, ...] = field(default=(), compare=False)
    """What the same object may mean as well, where `outputs` has another number of columns: anything that
    `add_predictor` takes. A binary classifier gives one probability, or that of both classes."""

    layers: Callable[[], tuple[Layer, ...]] | None = field(default=None, compare=False)
    """Its layers, first to last, for methods that write networks out. Called when they are needed; an
    `UnsupportedError` names a part that is no such layer."""
    program: Callable[[int], Program] | None = field(default=None, compare=False)
    """What it does with one row of so many features: every operation, how that was found out, and the
    arithmetic it is carried out in. A bound of a network rests on it. As the layers, called when it is
    needed, and true of that moment; an `UnsupportedError` names what has no bound."""

    quadratic: Callable[[int], tuple[QuadraticFunction, ...]] | None = field(default=None, compare=False)
    """Its outputs, where all of them are quadratic functions of so many features: for methods that hand the
    whole to a solver of quadratic programs."""

    trees: Callable[[], TreeEnsemble] | None = field(default=None, compare=False)
    """Its trees in the flat form, for methods that know cells. Called when they are needed, and true of that
    moment; a `PredictorError` says what cannot be read."""
    why_no_trees: str = ""
    """What keeps trees inside it from being read, where it is nothing but trees behind something else."""

    @property
    def is_float64(self) -> bool:
        """Whether `predict` computes in float64, all of it, so that a float64 copy would say the same."""
        return all(dtype == "float64" for dtype in self.dtypes)

    @property
    def narrowest_dtype(self) -> str:
        """The coarsest of its dtypes; one that is not known counts as coarser than all."""
        order = list(ROUNDING)
        return max(self.dtypes, key=lambda dtype: order.index(dtype) if dtype in ROUNDING else len(order))

    @property
    def rounding(self) -> float:
        """By how much two evaluations of the same row may differ, relative to 1 + |value|."""
        return ROUNDING.get(self.narrowest_dtype, max(ROUNDING.values()))

    def layers_if_known(self) -> tuple[Layer, ...] | None:
        """The layers, or None where some part is no such layer."""
        try:
            return self.layers() if self.layers is not None else None
        except UnsupportedError:
            return None

    def trees_if_known(self) -> TreeEnsemble | None:
        """The trees, or None where it is none of these or cannot be read."""
        try:
            return self.trees() if self.trees is not None else None
        except PredictorError:
            return None

    def program_if_known(self, features: int) -> Program | None:
        """What it does with a row, or None where some operation has no bound."""
        try:
            return self.program(features) if self.program is not None else None
        except UnsupportedError:
            return None
