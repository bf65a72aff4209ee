"""Which numbers CatBoost's categories are: a model keeps no more of them than a hash.

A category is hashed as the text it is written as: the lower half of CityHash64 (version 1.0; Pike and
Alakuijala, 2011). Numbers of categories are looked for among the first ones, with all that share a hash.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

NUMBERS = 2**16
"""0, 1, 2, ... that are looked for; another number has the hash of one of a thousand categories once in four
million."""

_WORD = 2**64 - 1
_SHORT, _LAST, _PAIR = 0x9AE16A3B2F90404F, 0xC949D7C7509E6557, 0x9DDFEA08EB382D69
"""The hash's own constants: of short texts, of their ends, of two words."""


def numbers_of(hashed: int) -> tuple[int, ...]:
    """Those that a split by one category means; none where the category is no such number."""
    return _known().get(hashed & 0xFFFFFFFF, ())


@cache
def _known() -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = defaultdict(tuple)
    for number in range(NUMBERS):
        found[category_hash(str(number))] += (number,)
    return dict(found)


def category_hash(text: str) -> int:
    """Of at most eight bytes."""
    content = text.encode()
    size = len(content)
    if size >= 4:
        first, last = (int.from_bytes(part, "little") for part in (content[:4], content[-4:]))
        return _of_two(size + (first << 3), last) & 0xFFFFFFFF
    begin, end = content[0] + (content[size >> 1] << 8), size + (content[-1] << 2)
    return (_mixed((begin * _SHORT ^ end * _LAST) & _WORD) * _SHORT) & 0xFFFFFFFF


def _of_two(one: int, other: int) -> int:
    first = _mixed((one ^ other) * _PAIR & _WORD)
    return _mixed((other ^ first) * _PAIR & _WORD) * _PAIR & _WORD


def _mixed(word: int) -> int:
    return word ^ (word >> 47)
