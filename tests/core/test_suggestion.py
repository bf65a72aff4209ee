"""What was probably meant: columns, methods, options, names of the package."""

import pytest

import dovetail as dt
from dovetail.core.words import MOST_WORDS, did_you_mean, with_suggestions


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


def problem():
    return dt.Problem(dt.Mip([1.0, 1.0], upper=1.0, names=["cement", "strength"]))


@pytest.mark.parametrize(
    ("mistake", "error", "meant"),
    [
        (lambda: dt.solve(problem(), timelimit=3), TypeError, "time_limit"),
        (lambda: dt.solve(problem(), "atuo"), dt.OptionError, "auto"),
        (lambda: problem().add_predictor(abs, ["cemnt"], ["strength"]), dt.ModelError, "cement"),
        (lambda: dt.add_predictor_constr(problem(), abs, [0], [1], treshold=1.0), TypeError, "threshold"),
        (lambda: dt.Auto(scaling="boxes"), dt.OptionError, "box"),
        (lambda: dt.Probem, AttributeError, "Problem"),
    ],
)
def test_where_users_misspell(mistake, error, meant):
    with pytest.raises(error, match=f"did you mean '{meant}'"):
        mistake()
