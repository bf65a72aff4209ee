"""What OMLT calls a definition: a predictor, the indices of its inputs and outputs, bounds and scaling."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.core.predictor import as_predictor
from dovetail.predictors.onnx.file import metered, read_graph
from dovetail.predictors.onnx.module import OnnxGraph

Bounds = Mapping[Any, tuple[float, float]] | Sequence[tuple[float, float]]


Value = TypeVar("Value")


Node = dict[str, Any]
NOT_A_SUMMARY = (
    "a dictionary must be the summary of a linear tree, model.summary(): splits with their children, "
    "and leaves with their models; or give the linear tree itself, which has predict."
)


class Definition:
    """A predictor with all that a block of Pyomo's needs to know of it."""

    def __init__(
        self,
        predictor: Any,
        input_shape: Sequence[int],
        scaling_object: Any = None,
        scaled_input_bounds: Bounds | None = None,
        unscaled_input_bounds: Bounds | None = None,
    ) -> None:
        self._predictor, self._input_shape = predictor, input_shape
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
    def predictor(self) -> Any:
        """All that `add_predictor_constr` takes; what was trained elsewhere stays what it is."""
        return self._predictor

    @property
    def input_shape(self) -> Sequence[int]:
        """All axes of its input but an open one for samples, as OMLT counts them."""
        return self._input_shape

    @property
    def output_shape(self) -> Sequence[int]:
        """How its outputs are indexed."""
        return self._answered_shape

    @cached_property
    def _answered_shape(self) -> tuple[int, ...]:
        """As many outputs as the predictor gives, after a 0 where the inputs have it."""
        shape, size = self._input_shape, int(np.prod(self._input_shape))
        count = int(as_predictor(self._predictor).predict(np.zeros((1, size))).shape[1])
        return (1, count) if len(shape) > 1 and shape[0] == 1 else (count,)

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return int(np.prod(self.input_shape))

    @property
    def n_outputs(self) -> int:
        """How many outputs there are."""
        return int(np.prod(self.output_shape))

    @property
    def nodes(self) -> int:
        """Those of a graph whose edges the predictor reads behind its inputs; 0 where there is none."""
        return 0

    @property
    def layers(self) -> Iterator[Any]:
        """An `UnsupportedError`: what is no network has none."""
        raise UnsupportedError("trees have no layers; the tree itself is what is solved.")


class GradientBoostedTreeModel(Definition):
    """Trees from an ONNX model."""

    def __init__(
        self, onnx_model: Any, scaling_object: Any = None, scaled_input_bounds: Bounds | None = None
    ) -> None:
        shape = input_shape_of(onnx_graph(onnx_model))
        super().__init__(onnx_model, shape, scaling_object, scaled_input_bounds)
        self.onnx_model = onnx_model


class LinearTreeDefinition(Definition):
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
            return
        if not isinstance(lt_regressor, Mapping):
            raise OptionError(f"{NOT_A_SUMMARY} This is a {type(lt_regressor).__name__}.")
        nodes = LinearTreeNodes.of(lt_regressor)
        super().__init__(nodes.predict, (nodes.features,), *scaled)


def onnx_graph(model: Any) -> OnnxGraph:
    """A file or a `ModelProto` as it is read."""
    return read_graph(model, None, metered(model, None))


def input_shape_of(graph: OnnxGraph) -> tuple[int, ...]:
    """All axes of the input that have a size: an open one is that of the samples."""
    return tuple(size for size in graph.sizes if size is not None)


def _pairs(bounds: Bounds | None) -> dict[Any, tuple[float, float]] | None:
    if bounds is None:
        return None
    return {k: (float(low), float(high)) for k, (low, high) in by_index(bounds).items()}


def by_index(given: Mapping[Any, Value] | Iterable[Value]) -> dict[Any, Value]:
    """A table of one's own, by index.

    >>> by_index([0.5, 2.0]), by_index({(0, 1): 3.0})
    ({0: 0.5, 1: 2.0}, {(0, 1): 3.0})
    """
    return dict(given) if isinstance(given, Mapping) else dict(enumerate(given))


def indices(shape: Sequence[int]) -> Iterable[Any]:
    """Numbers for one axis, tuples for several."""
    return range(shape[0]) if len(shape) == 1 else itertools.product(*map(range, shape))


@dataclass(frozen=True, eq=False)
class LinearTreeNodes:
    """A linear tree by its summary: nodes by number.

    A summary has a dictionary for each node: `children`, `col` and `th` of a split (left where the column is
    at most the threshold), `models` of a leaf.
    """

    nodes: Mapping[Any, Node]
    root: Any

    @classmethod
    def of(cls, summary: Mapping[Any, Any]) -> LinearTreeNodes:
        """The tree; an `OptionError` where the summary is of none."""
        splits = [node for node in summary.values() if "children" in node]
        children = [child for node in splits for child in node["children"]]
        roots = set(summary) - set(children)
        complete = all(child in summary for child in children) and len(children) == len(set(children))
        leaves = [node for node in summary.values() if "children" not in node]
        if not splits or not complete or len(roots) != 1 or any("models" not in leaf for leaf in leaves):
            raise OptionError(NOT_A_SUMMARY)
        return cls(summary, roots.pop())

    @property
    def features(self) -> int:
        """Inputs of the tree: those of its linear models."""
        models = next(node["models"] for node in self.nodes.values() if "models" in node)
        return int(np.size(models.coef_))

    def predict(self, X: FloatArray) -> FloatArray:
        """What the linear model of each row's leaf says."""
        values = np.empty(len(X))
        for leaf, rows in self._reached(self.root, X, np.arange(len(X))):
            if rows.size:
                values[rows] = np.ravel(leaf["models"].predict(X[rows]))
        return values

    def _reached(self, k: Any, X: FloatArray, rows: np.ndarray) -> Iterator[tuple[Node, np.ndarray]]:
        """The leaves below a node, each with those of these rows that end in it."""
        node = self.nodes[k]
        if "children" not in node:
            yield node, rows
            return
        left = X[rows, node["col"]] <= node["th"]
        for child, part in zip(node["children"], (rows[left], rows[~left]), strict=True):
            yield from self._reached(child, X, part)
