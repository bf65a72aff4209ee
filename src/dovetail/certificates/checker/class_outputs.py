"""Classes: what is known of them from their logits, and of logits from their classes.

class k of several:   logit_k - logit_j >= -slack[k, j]  for every j
class 1 of one:       logit >= -slack[0],     class 0:  logit <= slack[1]
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dovetail.certificates.checker.boxes import Boxes
from dovetail.certificates.checker.joint_graph import JointGraph, Sample
from dovetail.certificates.checker.planes import Known, Ranges
from dovetail.certificates.checker.rounding import down, gamma, up
from dovetail.core.arrays import BoolArray, FloatArray


class ClassOutputs:
    """The class outputs of a part; `place` says where its columns are."""

    def __init__(self, joint: JointGraph, place: dict[int, int]) -> None:
        self._logits = [
            (sample, at, np.array([place[int(j)] for j in sample.outputs])) for sample, at in joint.logits
        ]
        self._first = joint.regression.size
        self.count = int(joint.classes.size)
        index = {int(j): k for k, j in enumerate(joint.variables)}
        self.groups = [
            np.array([index[int(j)] for j in sample.outputs])
            for sample, _ in joint.logits
            if sample.outputs.size > 1
        ]
        """Of several classes one is 1: variables that belong together."""

    def know(self, boxes: Boxes, known: Known) -> None:
        """A class of one logit that is fixed says on which side of 0 it is."""
        for sample, place, at in self._logits:
            if at.size == 1:
                one, zero = boxes.lower[:, at] > 0.5, boxes.upper[:, at] < 0.5
                known.lower[place] = np.where(one, -sample.slack[0], -np.inf)
                known.upper[place] = np.where(zero, sample.slack[1], np.inf)

    def decided(self, boxes: Boxes, ranges: Ranges) -> Boxes:
        """Classes whose logits say which they are."""
        lower, upper = boxes.lower.copy(), boxes.upper.copy()
        for sample, place, at in self._logits:
            low, high = ranges.lower[place], ranges.upper[place]
            if at.size == 1:
                lost, won = high < -sample.slack[0], low > sample.slack[1]
                upper[:, at] = np.where(lost, np.minimum(upper[:, at], 0.0), upper[:, at])
                lower[:, at] = np.where(won, np.maximum(lower[:, at], 1.0), lower[:, at])
                continue
            for k in range(at.size):  # beaten by some other class for sure
                beaten = down(low - high[:, [k]]) > sample.slack[k]
                beaten[:, k] = False
                lost = beaten.any(axis=1)
                upper[lost, at[k]] = np.minimum(upper[lost, at[k]], 0.0)
            none = (upper[:, at] < 0.5).all(axis=1)
            lower[none, at[0]] = 1.0  # one of them has to be 1: there is nothing
        return replace(boxes, lower=lower, upper=upper)

    def add_conditions(
        self,
        given: FloatArray,
        boxes: Boxes,
        ranges: Ranges,
        rows: FloatArray,
        off: FloatArray,
        coefficients: FloatArray,
        moved: FloatArray,
    ) -> None:
        """What logits must be, times numbers: added to coefficients of columns (`rows`, which
        may be `off` by so much) and of logits."""
        first, shift = 0, self._first
        for sample, place, at in self._logits:
            one = boxes.lower[:, at] > 0.5
            mine = given[:, first : first + at.size]
            logits = slice(shift + first, shift + first + at.size)
            if at.size == 1:
                # logit >= -slack_0 - far (1 - y)   and   logit <= slack_1 + far y
                zero, won = boxes.upper[:, at] < 0.5, mine > 0.0
                slack = np.where(won, sample.slack[0], sample.slack[1])
                beyond = np.where(won, -ranges.lower[place], ranges.upper[place]) - slack
                far = np.where(won & one | ~won & zero, 0.0, up(np.maximum(beyond, 0.0)))
                use = np.where(np.isfinite(slack) & np.isfinite(far), mine, 0.0)
                slack, far = np.where(use == 0.0, 0.0, slack), np.where(use == 0.0, 0.0, far)
                off[:, at] += gamma(1) * (np.abs(rows[:, at]) + np.abs(use * far))
                rows[:, at] += use * far
                coefficients[:, logits] -= use
                moved -= (np.abs(use) * (slack + np.where(won, far, 0.0)) * (1.0 + gamma(2)))[:, 0]
            else:
                self._winners(
                    np.maximum(mine, 0.0), one, sample, place, ranges, coefficients[:, logits], moved
                )
            first += at.size

    @staticmethod
    def _winners(
        given: FloatArray,
        one: BoolArray,
        sample: Sample,
        place: int,
        ranges: Ranges,
        coefficients: FloatArray,
        moved: FloatArray,
    ) -> None:
        """Of several classes the one that is fixed is not beaten by any other, but for the slack."""
        for k in range(one.shape[1]):
            slack = np.where(np.isfinite(sample.slack[k]), sample.slack[k], 0.0)
            use = np.where(one[:, [k]] & np.isfinite(sample.slack[k]), given, 0.0)
            use[:, k] = 0.0
            coefficients += use
            coefficients[:, k] -= use.sum(axis=1)
            inexact = use.sum(axis=1) * ranges.size(place).max(axis=1) + use @ slack
            moved -= use @ slack + gamma(4 * one.shape[1]) * inexact
