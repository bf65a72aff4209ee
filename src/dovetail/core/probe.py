"""Tests of a predictor before it is accepted: shapes, NaN, randomness, rows that influence each other, and
the threshold of a classifier."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.batch_rounding import APART, double_copy
from dovetail.core.block import Block
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.options import require_number
from dovetail.core.predictor import Predictor, as_predictor
from dovetail.core.words import several
from dovetail.networks.layers import Layer, evaluate

PROBES = 16
MORE_THAN_HALF = float(np.nextafter(0.5, 1.0))
"""The smallest probability for which `predict` of estimators chooses the second class."""
REACH = 10.0
"""If a column has an infinite bound, probes stay within this distance of the finite bound, or of 0."""

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
    """The block, if the predictor passes the tests; otherwise an error that says what failed."""
    require_number(f"{name}: epsilon", epsilon, at_least=0.0)
    if threshold is not None:
        require_number(f"{name}: threshold", threshold)
    points = probe_points(mip, inputs)
    predictor, description = _fitting(name, predictor, points, inputs, outputs.shape[1])
    classifies = classifies and not description.gives_class_number
    _require_whole(name, description, mip, inputs)
    values = _evaluate(name, predictor, points)
    if values.shape != (len(points), outputs.shape[1]):
        raise PredictorError(
            f"{name}: the predictor turns {points.shape} inputs into {values.shape} outputs, but "
            f"outputs has {several(outputs.shape[1], 'variable')} per sample; the numbers must be equal."
        )
    description = replace(description, features=inputs.shape[1], outputs=outputs.shape[1])
    _require_determinism(name, predictor, description, points, values)
    _require_independent_rows(name, predictor, description, points, values)
    if classifies and description.is_multilabel:
        raise PredictorError(
            f"{name}: {description.name} was trained on several labels at once: its probabilities are "
            "independent, and the largest has no meaning. Take them as numbers with "
            "output_type='regression', and limit them by constraints of the model."
        )
    one_column = classifies and outputs.shape[1] == 1
    if threshold is not None and not one_column:
        raise PredictorError(
            f"{name}: threshold= belongs to a classification with one output; "
            "k outputs are the one-hot of the largest value. Leave it out."
        )
    if one_column and threshold is None:
        threshold = _threshold(name, description, values)
    _tell_dtypes(description)
    return Block(name, predictor, description, inputs, outputs, classifies, float(threshold or 0.0), epsilon)


def _require_whole(name: str, description: Description, mip: Mip, inputs: IntArray) -> None:
    """Refuse continuous columns for features that must be integer."""
    for feature in description.whole_features:
        columns = inputs[:, feature]
        lower, upper = mip.lower[columns], mip.upper[columns]
        fixed = (lower == upper) & (np.round(lower) == lower)
        between = columns[~(mip.integer[columns] | fixed)]
        if between.size:
            raise PredictorError(
                f"{name}: feature {feature} of {description.name} accepts integers only, and variable "
                f"{mip.column_name(int(between[0]))} is continuous; make it integer."
            )


def described(name: str, predictor: Predictor, mip: Mip, inputs: IntArray) -> Description:
    """The predictor's description for these inputs; the number of outputs is always known."""
    points = probe_points(mip, inputs)
    description = _describe(name, predictor, points, inputs)
    return replace(description, outputs=int(_evaluate(name, predictor, points).shape[1]))


def _require_unchanged(block: Block, points: FloatArray) -> None:
    """Refuse a predictor that was changed after it was added, if it no longer fits."""
    values = _evaluate(block.name, block.predictor, points)
    if values.shape != (len(points), block.outputs.shape[1]):
        raise PredictorError(
            f"{block.name}: the predictor has been changed since it was added: it now gives "
            f"{values.shape[1]} outputs, not {block.outputs.shape[1]}. Build the problem again."
        )


def renewed(mip: Mip, block: Block) -> Block:
    """The block with the current description of its predictor, because owners train predictors between
    solves. The same block if nothing changed; an error if the predictor no longer fits."""
    points = probe_points(mip, block.inputs)
    _require_unchanged(block, points)
    try:
        description = _describe(block.name, block.predictor, points, block.inputs)
    except PredictorError:  # the old description stays in use
        return block
    sizes = {"features": block.inputs.shape[1], "outputs": block.outputs.shape[1]}
    description = replace(description, **sizes)
    return block if description == block.description else replace(block, description=description)


def _fitting(
    name: str, predictor: Predictor, points: FloatArray, inputs: IntArray, outputs: int
) -> tuple[Predictor, Description]:
    """The predictor, or its alternative form with this number of outputs."""
    first = _describe(name, predictor, points, inputs)
    if first.outputs not in (None, outputs):
        for form in map(as_predictor, first.other_forms):
            description = _describe(name, form, points, inputs)
            if description.outputs == outputs:
                return form, description
    return predictor, first


def _describe(name: str, predictor: Predictor, points: FloatArray, inputs: IntArray) -> Description:
    with _errors_name_block(name, points):
        description = predictor.describe(points)
    if description.features not in (None, inputs.shape[1]):
        raise PredictorError(
            f"{name}: inputs has {several(inputs.shape[1], 'variable')} per sample (shape {inputs.shape}), "
            f"but {description.name} takes {several(description.features, 'feature')}; give one variable per "
            "feature, in the order of its training data."
        )
    return description


def _tell_dtypes(description: Description) -> None:
    if not description.is_float64:
        copied = (
            "a float64 copy"
            if description.has_float64_copy
            else "the same dtype, because its code allows no other"
        )
        own = " and ".join(description.dtypes)
        _log.info("%s computes in %s; gradients use %s", description.name, own, copied)


def probe_points(mip: Mip, inputs: IntArray, count: int = PROBES) -> FloatArray:
    """Seeded random points of the input box, distributed over the samples. A fixed input, up to the tolerance
    of the check, has exactly its value: it may be a category, which a predictor rounds."""
    rng = np.random.default_rng(0)
    rows = inputs[np.linspace(0, len(inputs) - 1, count).astype(int)]
    lower, upper = within_reach(mip.lower[rows], mip.upper[rows])
    points = np.where(upper - lower > 4.0 * TOLERANCE, rng.uniform(lower, upper), 0.5 * (lower + upper))
    return np.where(mip.integer[rows], np.round(points), points)


def within_reach(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The box with infinite sides cut to `REACH` from the finite bound, or around 0."""
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - REACH, -REACH))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + REACH, REACH))
    return low, high


@contextmanager
def _errors_name_block(name: str, points: FloatArray) -> Iterator[None]:
    """Errors raised inside name the block."""
    try:
        yield
    except PredictorError as reason:
        raise PredictorError(f"{name}: {reason}") from reason
    except Exception as reason:
        raise PredictorError(
            f"{name}: the predictor failed on a batch of shape {points.shape}: "
            f"{type(reason).__name__}: {reason}{_advice(reason)}"
        ) from reason


def _advice(reason: Exception) -> str:
    """Advice if an error is about sizes; other errors of a function need none."""
    sizes = ("shape", "dimension", "size", "feature", "broadcast", "index")
    told = any(word in str(reason).lower() for word in sizes)
    return ". inputs must have as many variables per sample as it has features." if told else ""


def _evaluate(name: str, predictor: Predictor, points: FloatArray) -> FloatArray:
    with _errors_name_block(name, points):
        values = predictor.predict(points)
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        i, o = (int(k) for k in bad[0])
        raise PredictorError(
            f"{name}: the predictor gives {values[i, o]} (output {o}) at {points[i].tolist()}; "
            "check its weights and the bounds of its inputs."
        )
    return values


def _answers_differ(a: FloatArray, b: FloatArray, description: Description) -> bool:
    return not np.all(np.abs(a - b) <= description.rounding * (1.0 + np.abs(a)))  # NaN counts as a difference


def _require_determinism(
    name: str, predictor: Predictor, description: Description, points: FloatArray, values: FloatArray
) -> None:
    if _answers_differ(values, _evaluate(name, predictor, points), description):
        raise PredictorError(
            f"{name}: the predictor gives different values for the same inputs; "
            "a predictor must be deterministic (fix its random draws)."
        )


def _require_independent_rows(
    name: str, predictor: Predictor, description: Description, points: FloatArray, values: FloatArray
) -> None:
    reason: PredictorError | None = None
    try:
        alone = _evaluate(name, predictor, points[:1])
        elsewhere = _evaluate(name, predictor, points[::-1])[::-1]
        same = not (
            _answers_differ(values[:1], alone, description) or _answers_differ(values, elsewhere, description)
        )
        same = same or _differ_by_rounding(predictor, description, points, values, alone, elsewhere)
    except PredictorError as failure:  # the predictor evaluated the whole batch but fails on a part of it
        same, reason = False, failure
    if not same:
        raise PredictorError(
            f"{name}: the value for one sample changes with the other samples in the batch; samples must "
            "not influence each other (an LSTM or attention layer without batch_first=True, or a "
            "normalisation over the batch, does this)." + (f" Alone: {reason}" if reason else "")
        )


def _differ_by_rounding(
    predictor: Predictor,
    description: Description,
    points: FloatArray,
    values: FloatArray,
    alone: FloatArray,
    elsewhere: FloatArray,
) -> bool:
    """Whether the difference between batches is only the network's rounding. Where large terms cancel, a
    float32 result may be off by more than any fixed fraction; the float64 copy shows by how much. Without a
    copy, the largest result stands for the terms."""
    if description.is_float64:
        return False
    copy = double_copy(predictor, description)
    if copy is None:
        rounding = description.rounding * (1.0 + np.max(np.abs(values), axis=0))
    else:
        rounding = APART * np.max(np.abs(copy(points) - values), axis=0)
    return bool(
        np.all(np.abs(values[:1] - alone) <= rounding) and np.all(np.abs(values - elsewhere) <= rounding)
    )


def _threshold(name: str, description: Description, values: FloatArray) -> float:
    threshold = class_threshold(description, values)
    if threshold is None:
        raise PredictorError(
            f"{name}: every probed value lies in [0, 1], and nothing says whether these are "
            "probabilities or logits; give threshold=0.5 or threshold=0."
        )
    _log.info("%s: class 1 where the value is >= %g", name, threshold)
    return threshold


def class_threshold(description: Description, values: FloatArray) -> float | None:
    """The value from which on the class is 1; None if values could be probabilities or logits. In a tie
    classifiers choose the first class; in tree ensembles all points of a leaf may be tied."""
    if description.ends_in_sigmoid is None and np.all((values >= 0.0) & (values <= 1.0)):
        return None
    if not description.ends_in_sigmoid:
        return 0.0
    return MORE_THAN_HALF if description.is_classifier else 0.5


def computes(mip: Mip, block: Block, layers: Sequence[Layer]) -> bool:
    """Whether a block's predictor gives the same values as its layers (a hook may change the values)."""
    return not difference(mip, block, lambda X: evaluate(layers, X))


def difference(
    mip: Mip, block: Block, values: Callable[[FloatArray], FloatArray], count: int = PROBES
) -> str:
    """Where a block's predictor differs from a function at points of its box by more than rounding, in
    words; "" if nowhere."""
    points = probe_points(mip, block.inputs, count)
    ours, truth = values(points), block.predictor.predict(points)
    if ours.shape != truth.shape:
        return f"an array of shape {truth.shape[1:]} per sample instead of {ours.shape[1:]}"
    tolerance = 1e-9 if block.description.is_float64 else 1e-4
    near = np.isclose(ours, truth, rtol=tolerance, atol=tolerance * np.max(np.abs(truth)))
    if near.all():
        return ""
    i, o = np.argwhere(~near)[0]
    return f"{truth[i, o]:.6g} instead of {ours[i, o]:.6g} for output {o} at the inputs {points[i].tolist()}"
