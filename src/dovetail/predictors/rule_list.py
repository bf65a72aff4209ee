"""Rule lists: the first rule whose conditions hold gives the output.

Tariffs, price breaks and step functions are rule lists, and rule learners print them. A rule list is a tree
that checks one condition after the other. The part after a failed condition is repeated for each way to
reach it, without the branches that cannot be reached any more (`trees/assembly.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import PredictorError
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.core.words import did_you_mean
from dovetail.predictors.derived import numbers
from dovetail.predictors.trees.assembly import LinePieces, ReadTree, assembled, threshold_piece
from dovetail.predictors.trees.predictor import TreePredictor

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}


class Condition(NamedTuple):
    """A feature, compared with a number."""

    feature: int
    comparison: str
    number: float

    def holds(self, X: FloatArray) -> BoolArray:
        """(n,) whether the condition holds for each row."""
        return np.asarray(COMPARISONS[self.comparison](X[:, self.feature], self.number))

    def pieces(self) -> LinePieces:
        """The pieces that satisfy the condition."""
        here, below = self.number, float(np.nextafter(self.number, -np.inf))
        if self.comparison in ("==", "!="):
            only = LinePieces(np.array([below, here]), np.array([False, True, False]))
            return only.turned(self.comparison == "!=")
        cut = threshold_piece(here if self.comparison in ("<=", ">") else below)
        return cut.turned(self.comparison in (">", ">="))


class RuleList(TreePredictor):
    """If-then rules as a predictor: `rules` are pairs of conditions and a value, and the first rule that
    holds counts.

    A condition is (feature, comparison, number), with "<=", "<", ">=", ">", "==" or "!="; all conditions of
    a rule must hold. `otherwise` is the value if no rule holds. Values are numbers, or lists with a number
    for each output. `features` is the number of features, or a list of their names.

    Rule lists can be proved like any tree.

    >>> import dovetail as dt
    >>> price = dt.RuleList([([("amount", ">=", 50)], 2.0), ([("amount", ">", 10)], 3.0)], 4.0, ["amount"])
    >>> problem = dt.Problem(dt.Mip([0.02, 1.0], lower=[5.0, 0.0], upper=[99.0, 9.0]))
    >>> block = problem.add_predictor(price, inputs=[0], outputs=[1])
    >>> [round(float(value), 3) for value in dt.solve(problem, time_limit=10, log=False).x]
    [50.0, 2.0]
    """

    feature_names: tuple[str, ...] | None = None
    is_classifier = False

    def __init__(
        self, rules: Iterable[tuple[Iterable[Any], Any]], otherwise: Any, features: int | Sequence[str]
    ) -> None:
        self.name = "RuleList"
        self.feature_names = None if isinstance(features, int) else tuple(map(str, features))
        self._features = features if isinstance(features, int) else len(features)
        pairs = [_pair(number, rule) for number, rule in enumerate(rules)]
        self._rules = [[self._condition(one) for one in conditions] for conditions, _ in pairs]
        wanted = "a number, or one for each output"
        values = [
            numbers("RuleList: a value", value, wanted)
            for value in [*(value for _, value in pairs), otherwise]
        ]
        if len({value.size for value in values}) > 1:
            sizes = sorted({value.size for value in values})
            raise PredictorError(
                f"RuleList: values have {sizes[0]} and {sizes[1]} numbers; give each as many."
            )
        self._values = np.stack(values)

    def answer(self, X: FloatArray) -> FloatArray:
        """The values by the rules themselves, without the tree."""
        if X.shape[1] != self._features:
            raise PredictorError(f"RuleList: samples have {X.shape[1]} features, not {self._features}.")
        chosen = np.full(len(X), len(self._rules))
        for number in reversed(range(len(self._rules))):
            held = [condition.holds(X) for condition in self._rules[number]]
            chosen[np.logical_and.reduce(held) if held else slice(None)] = number
        return np.asarray(self._values[chosen])

    def read(self) -> TreeEnsemble:
        """One node for each condition, then one leaf for each rule and one for `otherwise`."""
        rules = [*self._rules, []]
        sizes = [len(conditions) for conditions in rules]
        begin, count = np.cumsum([0, *sizes]), sum(sizes)
        leaves = count + np.arange(len(rules))
        first = [int(begin[r]) if sizes[r] else int(leaves[r]) for r in range(len(rules))]
        root, nodes = first[0], count + len(rules)
        feature, left, right = np.zeros(nodes, dtype=np.int64), np.full(nodes, -1), np.full(nodes, -1)
        pieces = {}
        for r, conditions in enumerate(rules):
            for k, condition in enumerate(conditions):
                node = int(begin[r]) + k
                feature[node], pieces[node] = condition.feature, condition.pieces()
                left[node] = leaves[r] if k == sizes[r] - 1 else node + 1
                right[node] = first[r + 1]
        value = np.concatenate([np.zeros((count, self._values.shape[1])), self._values])
        base = np.zeros(self._values.shape[1])
        if root >= count:  # the first rule has no conditions, or there is no rule
            leaf = ReadTree(feature[:1] * 0, np.zeros(1), left[-1:], left[-1:], value[root : root + 1])
            return assembled([leaf], features=self._features, base=base)
        tree = ReadTree(feature, np.zeros(nodes), left, right, value, pieces)
        return assembled([tree], features=self._features, base=base)

    def _condition(self, given: Any) -> Condition:
        if not isinstance(given, (tuple, list)) or len(given) != 3 or given[1] not in COMPARISONS:
            raise PredictorError(
                f"RuleList: {given!r} is no condition; give (feature, comparison, number), with one of "
                f"{', '.join(COMPARISONS)}."
            )
        feature, comparison, number = given
        if isinstance(feature, str):
            names = self.feature_names or ()
            if feature not in names:
                raise PredictorError(
                    f"RuleList: no feature is called {feature!r}{did_you_mean(feature, names)}."
                )
            feature = names.index(feature)
        if not (0 <= int(feature) < self._features and np.isfinite(number)):
            raise PredictorError(f"RuleList: {given!r} is no condition of {self._features} features.")
        return Condition(int(feature), str(comparison), float(number))


def _pair(number: int, rule: Any) -> tuple[list[Any], Any]:
    if not isinstance(rule, (tuple, list)) or len(rule) != 2 or isinstance(rule[0], str):
        raise PredictorError(f"RuleList: rule {number} is {rule!r}; give a list of conditions, and a value.")
    return [*rule[0]], rule[1]
