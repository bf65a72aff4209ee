"""Numbers of a phase's reason, as people write them."""

import pytest

from dovetail.methods.auto import in_words
from dovetail.methods.facts import Facts


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("{unstable} cuts: boxes", "4,156 cuts: boxes"),
        ("{curves} samples of trees: cells", "1 sample of trees: cells"),
        ("{curves} inputs are all: boxes", "1 inputs are all: boxes"),
        (
            "class outputs, {unstable} components that share rows",
            "class outputs, 4,156 components that share rows",
        ),
        ("no fact", "no fact"),
    ],
)
def test_in_words(why, said):
    assert in_words(why, Facts(unstable=4156, curves=1, priced=True)) == said
