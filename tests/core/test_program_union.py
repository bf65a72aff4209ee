"""Programs one after the other over the same inputs: each says what it said, and more can be made of both."""

import numpy as np

from dovetail.core.program import Recording
from dovetail.core.program_union import together


def recorded(seed):
    """y = (max of two sums, their product)."""
    rng = np.random.default_rng(seed)
    recording = Recording(3)
    sums = recording.sums(
        np.repeat([0, 1], 3), np.tile(np.arange(3), 2), rng.normal(size=6), rng.normal(size=2)
    )
    largest = recording.maxima(sums[None])
    product = recording.products(sums[:1], sums[1:])
    recording.formats.add("float64")
    return recording.program(np.concatenate([largest, product]))


def test_each_part_says_what_it_said():
    programs = [recorded(seed) for seed in range(3)]
    X = np.random.default_rng(9).normal(size=(20, 3))
    recording, places = together(programs)
    for program, outputs in zip(programs, places, strict=True):
        assert np.allclose(recording.program(outputs).values(X), program.values(X), rtol=0, atol=1e-15)


def test_a_recording_goes_on_behind_all_of_them():
    programs = [recorded(0), recorded(1)]
    X = np.random.default_rng(9).normal(size=(20, 3))
    recording, places = together(programs)
    found = recording.products(places[0], places[1])
    whole = recording.program(found)
    assert np.allclose(whole.values(X), programs[0].values(X) * programs[1].values(X), rtol=0, atol=1e-14)
    assert whole.formats == {"float64"}
    assert not whole.convolves
