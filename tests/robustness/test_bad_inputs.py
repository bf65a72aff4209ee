"""Bad inputs: each is refused by a typed error that names the item; none is guessed at, none hangs."""

import signal
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

import dovetail as dt
from tests.robustness import bad

pytestmark = pytest.mark.filterwarnings("ignore")

PATIENCE = 60
"""Seconds after which a call counts as hanging; it should take some hundredths."""


@contextmanager
def patience():
    def give_up(*_):
        raise TimeoutError(f"no answer within {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answer(case):
    """ "" for a good error, or what is wrong with it."""
    try:
        with patience():
            made = case.call()
    except dt.DovetailError as error:
        said = str(error)
        return (
            "" if any(word in said for word in case.words) and len(said) > 10 else f"does not name it: {said}"
        )
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return f"taken: {str(made)[:80]}"


def test_bad_inputs_are_refused_by_name(tmp_path, tallied):
    cases = bad.all_cases(tmp_path)
    assert len(cases) >= 400
    repeated = [label for label, count in Counter(case.label for case in cases).items() if count > 1]
    assert not repeated
    wrong = {case.label: said for case in cases if (said := answer(case))}
    assert not wrong, f"{len(wrong)} of {len(cases)}: " + "\n".join(f"{k}: {v}" for k, v in wrong.items())


def test_good_inputs_beside_the_bad_ones_are_taken(tmp_path):
    """The cases begin from things that are right, or their refusal would say nothing."""
    (tmp_path / "good.mps").write_text(bad.MPS)
    (tmp_path / "good.lp").write_text(bad.LP)
    assert dt.read(tmp_path / "good.mps").n_columns == 2
    assert dt.read(tmp_path / "good.lp").n_columns == 3
    assert dt.Result.from_json(bad.result().to_json()).x is not None
    assert dt.check(bad.problem(), np.zeros(3)) is not None
