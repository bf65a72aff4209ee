"""What was probably meant: the nearest word, where there is one."""

import pytest

from dovetail.core.suggestion import MOST_WORDS, did_you_mean, with_suggestions


def test_the_nearest_word_or_none():
    assert did_you_mean("Cement", ["cement", "ash"]) == "; did you mean 'cement'?"
    assert did_you_mean("timelimit", ["time_limit"]) == "; did you mean 'time_limit'?"
    assert did_you_mean("water", ["cement", "ash"]) == ""
    assert did_you_mean(7, []) == ""


def test_only_so_many_words_are_compared():
    words = (f"w{k}" for k in range(10 * MOST_WORDS))
    did_you_mean("banana", words)
    assert next(words) == f"w{MOST_WORDS}"


def test_functions_keep_their_face():
    @with_suggestions
    def bake(bread, *, minutes=30):
        """Bake."""
        return bread, minutes

    assert bake("rye", minutes=5) == ("rye", 5)
    assert (bake.__name__, bake.__doc__) == ("bake", "Bake.")
    with pytest.raises(TypeError, match=r"bake\(\) got an unexpected .* 'minute'; did you mean 'minutes'\?"):
        bake("rye", minute=5)
