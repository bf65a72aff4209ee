"""What a graph computes, step by step: the library has no use for it, its tests have."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.graph import Affine, Elementwise, Graph


def vectors(graph: Graph, X: FloatArray) -> list[FloatArray]:
    """Every vector, for each row of `X`: the inputs, then the steps."""
    found = [X]
    for step in graph.steps:
        read = [found[source] for source in step.sources]
        operation = step.operation
        if isinstance(operation, Affine):
            parts = [v @ weight.T for v, weight in zip(read, operation.weights, strict=True)]
            found.append(np.broadcast_to(sum(parts) + operation.bias, (len(X), step.size)))
        elif isinstance(operation, Elementwise):
            found.append(FUNCTIONS[operation.kind].value(read[0]))
        else:
            found.append(read[0] * read[1])
    return found


def values(graph: Graph, X: FloatArray) -> FloatArray:
    """The outputs."""
    return vectors(graph, X)[-1]
