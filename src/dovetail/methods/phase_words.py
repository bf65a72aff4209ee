"""The section line of a phase: its reason, with the facts of the problem as people write numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dovetail.core.amounts import several

COUNTED = re.compile(r"\{(\w+)\} (\w+)s(?=:| of)")
"""A number of things that no verb follows, which would have to change with it."""


def in_words(why: str, facts: Mapping[str, Any]) -> str:
    """The reason with its facts: "4,156 cuts: ...", "1 sample of ..."."""
    why = COUNTED.sub(lambda found: several(facts[found[1]], found[2]), why)
    return why.format(**{name: f"{fact:,}" if type(fact) is int else fact for name, fact in facts.items()})
