"""What OMLT calls a definition: a predictor, the indices of its inputs and outputs, bounds and scaling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.core.predictor import as_predictor
from dovetail.predictors.onnx.file import metered, read_graph
from dovetail.predictors.onnx.graph import Graph
from dovetail_peers.compat.omlt.by_index import by_index
from dovetail_peers.compat.omlt.linear_tree_nodes import NOT_A_SUMMARY, LinearTreeNodes

Bounds = Mapping[Any, tuple[float, float]] | Sequence[tuple[float, float]]


class Definition(ABC):
    """A predictor with all that a block of Pyomo's needs to know of it."""

    def __init__(
        self,
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        self.scaling_object = scaling_object
        self.unscaled_input_bounds = _pairs(unscaled_input_bounds)
        """By index; those in a row are the inputs' in their order."""
        given = scaled_input_bounds is not None
        self.scaled_input_bounds = _pairs(scaled_input_bounds) if given else self._scaled()

    def _scaled(self) -> dict[Any, tuple[float, float]] | None:
        bounds = self.unscaled_input_bounds
        if bounds is None or self.scaling_object is None:
            return bounds
        low, high = (
            self.scaling_object.get_scaled_input_expressions({k: pair[side] for k, pair in bounds.items()})
            for side in (0, 1)
        )
        return {k: (low[k], high[k]) for k in bounds}

    @property
    @abstractmethod
    def predictor(self) -> Any:
        """All that `add_predictor_constr` takes."""

    @property
    @abstractmethod
    def input_shape(self) -> Sequence[int]:
        """How its inputs are indexed."""

    @property
    @abstractmethod
    def output_shape(self) -> Sequence[int]:
        """How its outputs are indexed."""

    @property
    def nodes(self) -> int:
        """Those of a graph whose edges the predictor reads behind its inputs; 0 where there is none."""
        return 0


class TrainedDefinition(Definition):
    """A predictor that was trained elsewhere and stays what it is."""

    def __init__(self, predictor: Any, input_shape: Sequence[int], *args: Any) -> None:
        super().__init__(*args)
        self._predictor, self._input_shape = predictor, input_shape

    @property
    def layers(self) -> Iterator[Any]:
        """An `UnsupportedError`: what is no network has none."""
        raise UnsupportedError("trees have no layers; the tree itself is what is solved.")

    @property
    def predictor(self) -> Any:
        """As it was given."""
        return self._predictor

    @property
    def input_shape(self) -> Sequence[int]:
        """All axes of its input but an open one for samples, as OMLT counts them."""
        return self._input_shape

    @cached_property
    def output_shape(self) -> Sequence[int]:
        """As many as the predictor gives."""
        return answered_shape(self._predictor, self._input_shape)

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return int(np.prod(self._input_shape))

    @property
    def n_outputs(self) -> int:
        """How many outputs there are."""
        return int(np.prod(self.output_shape))


class GradientBoostedTreeModel(TrainedDefinition):
    """Trees from an ONNX model."""

    def __init__(
        self, onnx_model: Any, scaling_object: Any = None, scaled_input_bounds: Bounds | None = None
    ) -> None:
        shape = input_shape_of(onnx_graph(onnx_model))
        super().__init__(onnx_model, shape, scaling_object, scaled_input_bounds)
        self.onnx_model = onnx_model


class LinearTreeDefinition(TrainedDefinition):
    """A tree with a linear model in each leaf, asked by its `predict`; or the summary of one."""

    def __init__(
        self,
        lt_regressor: Any,
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        scaled = scaling_object, scaled_input_bounds, unscaled_input_bounds
        self.is_scaled = scaling_object is not None or scaled_input_bounds is not None
        if hasattr(lt_regressor, "predict"):
            super().__init__(lt_regressor.predict, (int(lt_regressor.n_features_in_),), *scaled)
            self._summary = getattr(lt_regressor, "summary", None)
            return
        if not isinstance(lt_regressor, Mapping):
            raise OptionError(f"{NOT_A_SUMMARY} This is a {type(lt_regressor).__name__}.")
        nodes = LinearTreeNodes.of(lt_regressor, None)
        super().__init__(nodes.predict, (nodes.features,), *scaled)
        self._summary = lambda: lt_regressor

    @cached_property
    def _nodes(self) -> LinearTreeNodes:
        if self._summary is None:
            raise UnsupportedError("this tree has no summary() that would list its splits and leaves.")
        return LinearTreeNodes.of(self._summary(), self.scaled_input_bounds)

    @property
    def splits(self) -> dict[int, dict[Any, Any]]:
        """By number, below the number of the tree, which is 0."""
        return {0: self._nodes.splits}

    @property
    def leaves(self) -> dict[int, dict[Any, Any]]:
        """The same of leaves; `bounds` has the box of each."""
        return {0: self._nodes.leaves}

    @property
    def thresholds(self) -> dict[int, dict[Any, Any]]:
        """The same of the columns that are split: each split's threshold, least first."""
        return {0: self._nodes.thresholds}


def answered_shape(predictor: Any, input_shape: Sequence[int]) -> tuple[int, ...]:
    """As many outputs as the predictor gives, after a 0 where the inputs have it."""
    count = int(as_predictor(predictor).predict(np.zeros((1, int(np.prod(input_shape))))).shape[1])
    return (1, count) if len(input_shape) > 1 and input_shape[0] == 1 else (count,)


def onnx_graph(model: Any) -> Graph:
    """A file or a `ModelProto` as it is read."""
    return read_graph(model, None, metered(model, None))


def input_shape_of(graph: Graph) -> tuple[int, ...]:
    """All axes of the input that have a size: an open one is that of the samples."""
    return tuple(size for size in graph.sizes if size is not None)


def _pairs(bounds: Bounds | None) -> dict[Any, tuple[float, float]] | None:
    if bounds is None:
        return None
    return {k: (float(low), float(high)) for k, (low, high) in by_index(bounds).items()}
