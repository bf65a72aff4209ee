"""Numbers of a phase's reason, as people write them."""

import pytest

from dovetail.methods.auto import in_words


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("{cuts} cuts: boxes", "4,156 cuts: boxes"),
        ("{one} samples of trees: cells", "1 sample of trees: cells"),
        ("{one} inputs are all: boxes", "1 inputs are all: boxes"),
        (
            "class outputs, {cuts} components that share rows",
            "class outputs, 4,156 components that share rows",
        ),
        ("no fact", "no fact"),
    ],
)
def test_in_words(why, said):
    assert in_words(why, {"cuts": 4156, "one": 1, "other": True}) == said
