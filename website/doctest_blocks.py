"""Examples in docstrings shown as code: to Markdown the `>>>` of doctest is a quotation of quotations."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", flags=re.MULTILINE)
"""From the first prompt to the next empty line: what was said belongs to it."""


class DoctestBlocks(griffe.Extension):
    """Puts a fence around each example of a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every object that is read."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
