"""Looking at a predictor before it is accepted: a few evaluations that catch what would ruin a solve.

Shapes, NaN, chance, rows that influence each other, and which threshold a classifier means.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.errors import PredictorError
from dovetail.core.layers import Layer, evaluate
from dovetail.core.mip import Mip
from dovetail.core.options import require_number
from dovetail.core.predictor import Formed, Predictor, Rounded, Traits

PROBES = 16
REACH = 10.0
"""Where a column has no finite bound the probes stay within this distance of what bound there is, or of 0."""

_log = logging.getLogger("dovetail")


def accept(
    *,
    name: str,
    predictor: Predictor,
    mip: Mip,
    inputs: IntArray,
    outputs: IntArray,
    classifies: bool,
    threshold: float | None,
    epsilon: float,
) -> Block:
    """The block, if the predictor behaves; otherwise an error that says how it does not."""
    require_number(f"{name}: epsilon", epsilon, at_least=0.0)
    if threshold is not None:
        require_number(f"{name}: threshold", threshold)
    predictor = _formed(name, predictor, inputs.shape[1], outputs.shape[1], classifies)
    _require_features(name, predictor, inputs)
    points = probe_points(mip, inputs)
    values = _evaluate(name, predictor, points)
    if values.shape != (len(points), outputs.shape[1]):
        raise PredictorError(
            f"{name}: the predictor turns {points.shape} inputs into {values.shape} outputs, but "
            f"outputs has {outputs.shape[1]} columns per sample; they must be the same number."
        )
    _require_determinism(name, predictor, points, values)
    _require_independent_rows(name, predictor, points, values)
    traits = predictor.examine(points)
    one_column = classifies and outputs.shape[1] == 1
    if threshold is not None and not one_column:
        raise PredictorError(
            f"{name}: threshold= belongs to a classification with one output column; "
            "k columns are the one-hot of the largest value. Leave it out."
        )
    if one_column and threshold is None:
        threshold = _threshold(name, traits, values)
    return Block(name, predictor, traits, inputs, outputs, classifies, float(threshold or 0.0), epsilon)


def outputs_of(name: str, predictor: Predictor, mip: Mip, inputs: IntArray) -> int:
    """How many outputs a predictor gives per sample."""
    _require_features(name, predictor, inputs)
    return int(_evaluate(name, predictor, probe_points(mip, inputs)).shape[1])


def _formed(name: str, predictor: Predictor, inputs: int, outputs: int, classifies: bool) -> Predictor:
    """The form of the predictor that these columns ask for."""
    if not isinstance(predictor, Formed):
        return predictor
    try:
        return predictor.formed(inputs, outputs, classifies=classifies)
    except PredictorError as reason:
        raise PredictorError(f"{name}: {reason}") from reason


def _require_features(name: str, predictor: Predictor, inputs: IntArray) -> None:
    features = getattr(predictor, "features", None)
    if features is not None and features != inputs.shape[1]:
        raise PredictorError(
            f"{name}: inputs has {inputs.shape[1]} columns per sample (shape {inputs.shape}), but "
            f"{predictor.name} takes {features} features; give one column per feature."
        )


def require_unchanged(mip: Mip, block: Block) -> None:
    """Refuse a predictor that was changed, after it was added, into one that does not fit any more."""
    points = probe_points(mip, block.inputs)
    values = _evaluate(block.name, block.predictor, points)
    if values.shape != (len(points), block.outputs.shape[1]):
        raise PredictorError(
            f"{block.name}: the predictor has been changed since it was added: it now gives "
            f"{values.shape[1]} outputs, not {block.outputs.shape[1]}. Build the problem again."
        )


def probe_points(mip: Mip, inputs: IntArray, count: int = PROBES) -> FloatArray:
    """Seeded random points of the inputs' box, spread over the samples."""
    rng = np.random.default_rng(0)
    rows = inputs[np.linspace(0, len(inputs) - 1, count).astype(int)]
    points = rng.uniform(*within_reach(mip.lower[rows], mip.upper[rows]))
    return np.where(mip.integer[rows], np.round(points), points)


def within_reach(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The box, cut where it is infinite to a stretch of `REACH` from what bound there is, or around 0."""
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - REACH, -REACH))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + REACH, REACH))
    return low, high


def _evaluate(name: str, predictor: Predictor, points: FloatArray) -> FloatArray:
    try:
        values = predictor.predict(points)
    except PredictorError as reason:
        raise PredictorError(f"{name}: {reason}") from reason
    except Exception as reason:
        raise PredictorError(
            f"{name}: the predictor failed on a batch of shape {points.shape}: "
            f"{type(reason).__name__}: {reason}. inputs must have as many columns as it has features."
        ) from reason
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        i, o = (int(k) for k in bad[0])
        raise PredictorError(
            f"{name}: the predictor gives {values[i, o]} (output {o}) at {points[i].tolist()}; "
            "check its weights and the bounds of its inputs."
        )
    return values


def _differ(a: FloatArray, b: FloatArray, predictor: Predictor) -> bool:
    tolerance = 1e-9 if predictor.exact else 1e-4
    if isinstance(predictor, Rounded):
        tolerance = max(tolerance, predictor.rounding)
    return not np.all(np.abs(a - b) <= tolerance * (1.0 + np.abs(a)))  # so that NaN differs


def _require_determinism(name: str, predictor: Predictor, points: FloatArray, values: FloatArray) -> None:
    if _differ(values, _evaluate(name, predictor, points), predictor):
        raise PredictorError(
            f"{name}: the predictor gives different values for the same inputs; "
            "a predictor must be deterministic (fix its random draws)."
        )


def _require_independent_rows(
    name: str, predictor: Predictor, points: FloatArray, values: FloatArray
) -> None:
    reason: PredictorError | None = None
    try:
        alone = _evaluate(name, predictor, points[:1])
        elsewhere = _evaluate(name, predictor, points[::-1])[::-1]
        same = not (_differ(values[:1], alone, predictor) or _differ(values, elsewhere, predictor))
    except PredictorError as failure:  # it answered the whole batch, and fails on a part of it
        same, reason = False, failure
    if not same:
        raise PredictorError(
            f"{name}: the value for one sample changes with the other samples in the batch; rows must "
            "not influence each other (an LSTM or attention layer without batch_first=True, or a "
            "normalisation over the batch, does this)." + (f" Alone: {reason}" if reason else "")
        )


def _threshold(name: str, traits: Traits, values: FloatArray) -> float:
    if traits.ends_in_sigmoid is None and np.all((values >= 0.0) & (values <= 1.0)):
        raise PredictorError(
            f"{name}: every probed value lies in [0, 1], and nothing says whether these are "
            "probabilities or logits; give threshold=0.5 or threshold=0."
        )
    threshold = 0.5 if traits.ends_in_sigmoid else 0.0
    _log.info("%s: class 1 where the value is >= %g", name, threshold)
    return threshold


def computes(mip: Mip, block: Block, layers: Sequence[Layer]) -> bool:
    """Whether a block's predictor computes what its layers say (a hook, for one, may change it)."""
    points = probe_points(mip, block.inputs)
    ours, truth = evaluate(layers, points), block.predictor.predict(points)
    if ours.shape != truth.shape:
        return False
    tolerance = 1e-9 if block.predictor.exact else 1e-4
    return bool(np.allclose(ours, truth, rtol=tolerance, atol=tolerance * np.max(np.abs(truth))))
