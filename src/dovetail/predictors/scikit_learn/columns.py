"""Transformers side by side: ColumnTransformer, each over columns of its own, and FeatureUnion, over all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from dovetail.predictors.scikit_learn.branches import joined
from dovetail.predictors.scikit_learn.modules import Pointwise, scale


class WriteTransform(Protocol):
    """A transformer as torch modules, first to last."""

    def __call__(self, estimator: Any) -> Iterator[nn.Module]:
        """What its `transform` computes."""
        ...


def column_transformer(estimator: Any, write: WriteTransform) -> Iterator[nn.Module]:
    """In the order of its list; what is dropped is not there, and the remainder comes last."""
    branches = []
    for name, inner, _ in estimator.transformers_:
        places = estimator._transformer_to_input_indices[name]  # columns by number, however they were named
        if len(places) == 0 or (isinstance(inner, str) and inner == "drop"):
            continue
        weight = (estimator.transformer_weights or {}).get(name)
        branches.append((places, _weighted([] if isinstance(inner, str) else write(inner), weight)))
    yield from joined(branches, estimator.n_features_in_)


def feature_union(estimator: Any, write: WriteTransform) -> Iterator[nn.Module]:
    """All read the same features."""
    branches = []
    every = np.arange(estimator.n_features_in_)
    for name, inner in estimator.transformer_list:
        if isinstance(inner, str) and inner == "drop":
            continue
        weight = (estimator.transformer_weights or {}).get(name)
        branches.append((every, _weighted([] if isinstance(inner, str) else write(inner), weight)))
    yield from joined(branches, every.size)


def _weighted(modules: Iterator[nn.Module] | list[nn.Module], weight: float | None) -> list[nn.Module]:
    """What comes out, times a weight if there is one."""
    made = [*modules]
    if weight is None:
        return made
    if made and all(isinstance(module, nn.Linear) for module in made):
        return [*made, scale(np.full(made[-1].out_features, weight))]
    return [*made, Pointwise(partial(torch.mul, torch.tensor(float(weight), dtype=torch.float64)))]
