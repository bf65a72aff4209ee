"""Shards as one problem: what they must have in common, the rows over all of them, and the check of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation, Worst
from dovetail.core.errors import ModelError
from dovetail.sharding.own_share import ShardAnswer, ShardFacts

SAME = 1e-12
"""Relative: sides of rows that shards may have worked out each for itself."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """What all shards say, and what each has."""

    facts: tuple[ShardFacts, ...]

    @classmethod
    def of(cls, facts: Sequence[ShardFacts]) -> Agreement:
        """A `ModelError` names the first shard that says something else."""
        first = facts[0]
        for other in facts[1:]:
            for about in dict.fromkeys((*first.stated, *other.stated)):
                _require_same(about, first, first.stated.get(about), other, other.stated.get(about))
            _require_same("sides of rows", first, first.row, other, other.row)
            for side in ("lower", "upper"):
                one, two = getattr(first, side), getattr(other, side)
                k = int(np.argmin(np.isclose(one, two, rtol=SAME, atol=0.0)))
                if not np.isclose(one[k], two[k], rtol=SAME, atol=0.0):
                    about = f"{side} of row {first.rows[k]}, which is that of all shards together,"
                    _require_same(about, first, float(one[k]), other, float(two[k]))
        return cls(tuple(facts))

    @property
    def totals(self) -> list[int]:
        """Blocks of each."""
        return [of_one.blocks for of_one in self.facts]

    @property
    def sign(self) -> float:
        """1 when minimising, -1 when maximising."""
        return 1.0 if self.facts[0].stated["sense"] == "min" else -1.0

    @property
    def limit(self) -> FloatArray:
        """(sides,) of all shards together, less what data use."""
        first = self.facts[0]
        row = np.array(first.row, dtype=np.int64)
        stated = np.where(first.sign > 0.0, first.upper[row], -first.lower[row])
        return np.asarray(stated - np.sum([stated - of_one.limit for of_one in self.facts], axis=0))

    def activity(self, answers: Sequence[ShardAnswer]) -> dict[str, float]:
        """What the coupling rows come to, by name; nothing where there are no answers."""
        if not answers:
            return {}
        total = np.sum([answer.activity for answer in answers], axis=0)
        return dict(zip(self.facts[0].rows, total.tolist(), strict=True))

    def violation(self, answers: Sequence[ShardAnswer]) -> Violation:
        """Of the answer as a whole: the worst of every kind over all shards, and of the rows over them."""
        first, worst = self.facts[0], {}
        for kind in (field.name for field in fields(Violation)):
            found = [
                replace(each, name=f"{of_one.name}: {each.name}") if each.name else each
                for of_one, answer in zip(self.facts, answers, strict=True)
                for each in [getattr(answer.violation, kind)]
            ]
            unknown = [each for each in found if np.isnan(each.amount)]
            worst[kind] = unknown[0] if unknown else max(found, key=lambda each: each.amount)
        total = np.array(list(self.activity(answers).values()))
        beyond = np.maximum(first.lower - total, total - first.upper)
        k = int(np.argmax(beyond))
        if beyond[k] > worst["rows"].amount:
            worst["rows"] = Worst(float(beyond[k]), first.rows[k])
        return Violation(**worst)


def _require_same(about: str, first: ShardFacts, one: object, other: ShardFacts, two: object) -> None:
    if one != two:
        raise ModelError(
            f"{other.name}: its {about} {'is' if two is not None else 'is missing:'} {two!r}, and that of "
            f"{first.name} is {one!r}; all shards must state the same."
        )
