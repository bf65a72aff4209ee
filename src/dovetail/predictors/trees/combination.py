"""Weighted sums of tree ensembles are tree ensembles: means of them, and several side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.core.tree_ensemble import TreeEnsemble


def combined(ensembles: Sequence[TreeEnsemble], weights: Sequence[FloatArray]) -> TreeEnsemble:
    """sum of weights[i] times the outputs of ensembles[i]; a weight is (outputs in all, outputs of its own).

    A link is no weighted sum: what has one is refused.
    """
    if any(one.link != "identity" for one in ensembles):
        raise PredictorError("a sum of what trees give behind a link is no tree ensemble.")
    offsets = np.cumsum([0, *(len(one.feature) for one in ensembles[:-1])])
    return TreeEnsemble(
        features=ensembles[0].features,
        feature=np.concatenate([one.feature for one in ensembles]),
        threshold=np.concatenate([one.threshold for one in ensembles]),
        left=np.concatenate([one.left + begin for one, begin in zip(ensembles, offsets, strict=True)]),
        right=np.concatenate([one.right + begin for one, begin in zip(ensembles, offsets, strict=True)]),
        value=np.concatenate([one.value @ by.T for one, by in zip(ensembles, weights, strict=True)]),
        roots=np.concatenate([one.roots + begin for one, begin in zip(ensembles, offsets, strict=True)]),
        base=np.asarray(sum(by @ one.base for one, by in zip(ensembles, weights, strict=True))),
        dtype="float32" if any(one.dtype == "float32" for one in ensembles) else "float64",
    )
