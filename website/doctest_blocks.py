"""Examples in docstrings as code blocks: Markdown would read `>>>` as a quotation."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", flags=re.MULTILINE)
"""From the first prompt to the next empty line, the output included."""


class DoctestBlocks(griffe.Extension):
    """Puts a fence around each example of a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Put the fences into the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
