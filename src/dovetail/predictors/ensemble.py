"""Several predictors of the same quantity as one: mean, minimum, maximum, or vote.

Networks trained on different samples of the data disagree where data is scarce, and maximising a single
network leads there. Maximising the minimum gives a decision that holds for all members.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Literal

import numpy as np
from scipy.linalg import block_diag

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import classes_of
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.options import require_choice
from dovetail.core.predictor import Predictor, RefittablePredictor, as_predictor
from dovetail.core.probe import class_threshold
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.networks.layers import Activation, Dense, Layer, program_of
from dovetail.networks.program import Program, Recording
from dovetail.predictors.trees.assembly import combined

How = Literal["mean", "min", "max", "vote"]
WEIGHTED = ("mean", "vote")


class Ensemble:
    """The "mean", "min", "max" or "vote" of several predictors with the same inputs.

    `predictors` is a list of anything that `add_predictor` takes; kinds may be mixed. `weights`, a number for
    each predictor, apply to "mean" and "vote". A vote is the share of predictors that choose a class: with
    one output the predictors with a value of at least 0.5 (a logit: 0), with k outputs those whose largest
    value is that of the class.

    Values of the predictors are used as they are. Gradients, bounds and proofs pass through mean, min and
    max; a vote is discontinuous.

    >>> import dovetail as dt, numpy as np
    >>> models = [lambda X: 3.0 - (X[:, 0] - 1.0) ** 2, lambda X: 3.0 - (X[:, 0] - 2.0) ** 2]
    >>> problem = dt.Problem(dt.Mip([0.0, 1.0], lower=[0.0, -9.0], upper=[4.0, 9.0], sense="max"))
    >>> block = problem.add_predictor(dt.Ensemble(models, "min"), inputs=[0], outputs=[1])
    >>> np.round(dt.solve(problem, time_limit=3, log=False).x, 2).tolist()
    [1.5, 2.75]
    """

    side_by_side = False
    """Whether the answers stay apart, and nothing is combined."""

    def __init__(self, predictors: Iterable[Any], how: How = "mean", *, weights: Any = None) -> None:
        require_choice("Ensemble: how", how, ("mean", "min", "max", "vote"))
        if isinstance(predictors, (str, bytes)) or not isinstance(predictors, Iterable):
            raise PredictorError(f"Ensemble takes a list of predictors, not {predictors!r}.")
        self.given: tuple[Any, ...] = tuple(predictors)
        """The predictors as they were passed."""
        self.members: tuple[Predictor, ...] = tuple(map(as_predictor, self.given))
        if not self.members:
            raise PredictorError("Ensemble: the list of predictors is empty.")
        self.how: How = how
        self.weights = _shares(weights, len(self.members), how)
        """The share of each predictor."""
        self._centres: tuple[float, ...] | None = None
        """The threshold of each member's single column in a vote."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Computed from the predictors' own answers, in float64."""
        said = self._answers(X)
        if self.how == "vote":
            said = [*map(classes_of, said, self._vote_centres(X))]
        if self.how in WEIGHTED:
            return np.asarray(sum(weight * values for weight, values in zip(self.weights, said, strict=True)))
        return np.asarray((np.minimum if self.how == "min" else np.maximum).reduce(said))

    def refitted(self, fit: Callable[[Any], Any]) -> Ensemble:
        """The same with every member trained again."""
        made = copy.copy(self)
        made.members = tuple(refitted(member, fit) for member in self.members)
        return made

    def _answers(self, X: FloatArray) -> list[FloatArray]:
        said = [member.predict(X) for member in self.members]
        if len({values.shape for values in said}) > 1:
            counts = ", ".join(str(values.shape[1]) for values in said)
            raise PredictorError(
                f"Ensemble: its predictors give {counts} outputs; they must be the same number."
            )
        return said

    def snapshot(self, device: str) -> Callable[[Any], Any]:
        """The members' differentiable copies, combined."""
        import torch

        copies, weights, how = [member.snapshot(device) for member in self.members], self.weights, self.how

        def forward(U: Any) -> Any:
            said = torch.stack([copy(U) for copy in copies])
            if how in ("min", "max"):
                return said.amin(dim=0) if how == "min" else said.amax(dim=0)
            if how == "mean":
                return torch.tensordot(said.new_tensor(weights), said, dims=1)
            centres = self._vote_centres(U.detach().cpu().numpy())
            ballots = [*map(classes_of, said.detach().cpu().numpy(), centres)]
            shares = said.new_tensor(np.tensordot(weights, np.array(ballots), axes=1))
            return shares + 0.0 * said.sum(dim=0)  # a constant with a graph: its gradient is 0

        return forward

    def describe(self, X: FloatArray) -> Description:
        """The properties that all members share."""
        each = [member.describe(X) for member in self.members]
        name = f"{self.how} of {', '.join(dict.fromkeys(one.name for one in each))}"
        features = {one.features for one in each} - {None, X.shape[1]}
        if features:
            return Description(name, features=features.pop())
        sigmoid = {one.ends_in_sigmoid for one in each}
        if self.how == "vote":
            self._centres = tuple(map(_centre, self.members, each, repeat(X)))
        return Description(
            name,
            device=each[0].device,
            features=next((one.features for one in each if one.features is not None), None),
            outputs=next((one.outputs for one in each if one.outputs is not None), None),
            feature_names=next((one.feature_names for one in each if one.feature_names), None),
            whole_features=tuple(sorted({feature for one in each for feature in one.whole_features})),
            dtypes=tuple(dict.fromkeys(dtype for one in each for dtype in one.dtypes)),
            has_float64_copy=all(one.has_float64_copy for one in each),
            smooth=self.how == "mean" and all(one.smooth for one in each),
            ends_in_sigmoid=True if self.how == "vote" else sigmoid.pop() if len(sigmoid) == 1 else None,
            is_classifier=all(one.is_classifier for one in each),
            is_multilabel=any(one.is_multilabel for one in each),
            other_forms=self._other_forms(each),
            layers=lambda: self._layers(each) if self.how == "mean" else _no_layers(name),
            trees=self._trees(each),
            program=None if self.how == "vote" else lambda count: self._program(each, count),
        )

    def _vote_centres(self, X: FloatArray) -> tuple[float, ...]:
        if self._centres is None:  # the owner calls this before the predictor is described
            self.describe(X)
        return self._centres or (0.0,) * len(self.members)

    def _other_forms(self, each: Sequence[Description]) -> tuple[object, ...]:
        """Binary classifiers may all give one column or two."""
        if not all(one.other_forms and one.ends_in_sigmoid for one in each):
            return ()
        weights = self.weights if self.how in WEIGHTED else None
        return (Ensemble([one.other_forms[0] for one in each], self.how, weights=weights),)

    def _program(self, each: Sequence[Description], features: int) -> Program:
        programs = [one.program(features) for one in each if one.program is not None]
        if len(programs) < len(each):
            raise UnsupportedError(f"{self.how} of predictors of which one is a black box has no bound")
        known = [program.arithmetic for program in programs if program.arithmetic is not None]
        coarsest = max(known, key=lambda one: one.roundoff) if len(known) == len(programs) else None
        layers = self._exact_layers(each, programs)
        if layers is not None:  # the arithmetic of one network; that of the mean itself is finer
            return program_of(layers, features, coarsest)
        recording, places = Recording.of_several(programs)
        found = self._joined(recording, np.array(places))
        recording.formats.add("float64")
        return replace(recording.program(found), arithmetic=coarsest)

    def _joined(self, recording: Recording, outputs: IntArray) -> IntArray:
        """The places of the ensemble's outputs, for (members, outputs) places of the members'."""
        if self.how == "mean":
            return _weighted_sum_places(recording.sums, outputs, self.weights)
        if self.how == "max":
            return recording.maxima(outputs.T.copy())
        negative = np.array(
            [_weighted_sum_places(recording.sums, one[None], np.array([-1.0])) for one in outputs]
        )
        return _weighted_sum_places(
            recording.sums, recording.maxima(negative.T.copy())[None], np.array([-1.0])
        )

    def _trees(self, each: Sequence[Description]) -> Callable[[], TreeEnsemble] | None:
        """A mean of tree ensembles without a link is a tree ensemble."""
        known = [one.trees for one in each if one.trees is not None]
        if self.how != "mean" or len(known) < len(each) or any(trees().link != "identity" for trees in known):
            return None

        def trees() -> TreeEnsemble:
            ensembles = [one() for one in known]
            return combined(ensembles, [*self._places(ensembles[0].outputs)])

        return trees

    def _places(self, outputs: int) -> Iterator[FloatArray]:
        """By member, the matrix from its outputs to those of a mean."""
        return (share * np.eye(outputs) for share in self.weights)

    def _layers(self, each: Sequence[Description]) -> tuple[Layer, ...]:
        """The layers of networks of the same form side by side, if every member has layers."""
        every = [one.layers() for one in each if one.layers is not None]
        kinds = {tuple("dense" if isinstance(one, Dense) else one.kind for one in layers) for layers in every}
        if (
            len(every) < len(each)
            or len(kinds) > 1
            or "softmax" in (form := kinds.pop())
            or form[-1:] != ("dense",)
        ):
            return _no_layers(f"{self.how} of networks that do not all have the same form")
        return tuple(self._side_by_side(every, depth) for depth in range(len(form)))

    def _exact_layers(
        self, each: Sequence[Description], programs: Sequence[Program]
    ) -> tuple[Layer, ...] | None:
        """The layers of a mean, if every predictor certainly computes its layers."""
        try:
            layers = self._layers(each) if self.how == "mean" else None
        except UnsupportedError:
            return None
        one_by_one = layers is not None and all(
            program.provenance == "layers" and len(program.operations) == len(layers) for program in programs
        )
        return layers if one_by_one else None

    def _side_by_side(self, every: Sequence[tuple[Layer, ...]], depth: int) -> Layer:
        layers = [layers[depth] for layers in every]
        if isinstance(layers[0], Activation):
            return layers[0]
        dense = [layer for layer in layers if isinstance(layer, Dense)]
        weights, biases = [layer.weight for layer in dense], [layer.bias for layer in dense]
        reads_inputs = not any(isinstance(layer, Dense) for layer in every[0][:depth])
        if depth == len(every[0]) - 1 and not self.side_by_side:
            weights = [share * weight for share, weight in zip(self.weights, weights, strict=True)]
            bias = np.asarray(sum(share * bias for share, bias in zip(self.weights, biases, strict=True)))
            if reads_inputs:
                return Dense(np.sum(weights, axis=0), bias)
            return Dense(np.concatenate(weights, axis=1), bias)
        stacked = np.concatenate(weights) if reads_inputs else block_diag(*weights)
        return Dense(stacked, np.concatenate(biases))


def refitted(predictor: Predictor, fit: Callable[[Any], Any]) -> Predictor:
    """A part of a predictor, trained again."""
    if not isinstance(predictor, RefittablePredictor):
        raise PredictorError(
            f"{type(predictor).__name__} has no fit; give refit=train, a function (X, y) -> a predictor."
        )
    return predictor.refitted(fit)


def _centre(member: Predictor, description: Description, X: FloatArray) -> float:
    """The threshold of a member's single column in a vote; with several columns the largest counts."""
    values = member.predict(X)
    centre = class_threshold(description, values) if values.shape[1] == 1 else 0.0
    if centre is None:
        raise PredictorError(
            f"Ensemble: every value of {description.name} lies in [0, 1], and nothing says whether these are "
            "probabilities or logits; in a vote, let it give logits (lambda X: f(X) - 0.5, of probabilities)."
        )
    return centre


def _shares(weights: Any, members: int, how: str) -> FloatArray:
    if weights is None:
        return np.full(members, 1.0 / members)
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if how not in WEIGHTED:
        raise PredictorError(f"Ensemble: weights belong to a mean or a vote, not to {how!r}.")
    if (
        found.shape != (members,)
        or not np.all(np.isfinite(found))
        or np.any(found < 0.0)
        or found.sum() <= 0.0
    ):
        raise PredictorError(
            f"Ensemble: weights is {weights!r}; give {members} numbers of at least 0, not all of them 0."
        )
    return np.asarray(found / found.sum())


def _weighted_sum_places(sums: Callable[..., IntArray], places: IntArray, weights: FloatArray) -> IntArray:
    """(members, outputs) places to places of the weighted sums over members."""
    members, outputs = places.shape
    rows = np.tile(np.arange(outputs), members)
    return sums(rows, places.reshape(-1), np.repeat(weights, outputs), np.zeros(outputs))


def _no_layers(name: str) -> tuple[Layer, ...]:
    raise UnsupportedError(f'{name} cannot be written out. method="auto" takes any predictor.')
