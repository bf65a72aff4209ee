"""Families over words: ``cement_wall``, ``cement_beam``, ``ash_wall``, ``ash_beam`` are two, over two words.

Only words that several labels have in common count: of ``net_cost`` and ``net_profit`` alone nobody knows
whether they are one thing.
"""

from __future__ import annotations

from collections.abc import Mapping

LEAST_WORDS, LEAST_LABELS = 2, 2
"""Of a family, and of those that have the same words."""


def word_families(names: Mapping[int, str]) -> dict[str, dict[str, int]]:
    """Columns by label and word, the words of families that go together in one order."""
    found: dict[str, dict[str, int]] = {}
    for column, name in names.items():
        label, _, word = name.rpartition("_")
        if label and word:
            found.setdefault(label, {})[word] = column
    together: dict[frozenset[str], list[str]] = {}
    for label, words in found.items():
        if len(words) >= LEAST_WORDS:
            together.setdefault(frozenset(words), []).append(label)
    return {
        label: {word: found[label][word] for word in found[labels[0]]}
        for labels in together.values()
        if len(labels) >= LEAST_LABELS
        for label in labels
    }
