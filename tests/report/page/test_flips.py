"""Before and after: who flipped, what was changed for it, and names taken from wherever they are."""

from dataclasses import replace

import numpy as np

from dovetail.report.page.flips import flips
from dovetail.run.problem_facts import BlockFacts, Untouched
from tests.report.results import FEATURES, nothing, result, treated


def test_every_flip_and_every_change_is_told():
    made = treated(50)
    (told,) = flips(made)
    untouched = made.facts.blocks[0].untouched
    before, after = untouched.classes[:, 0], made.x[:50]
    assert sum(sample.flipped for sample in told.samples) == int((before != after).sum()) > 0
    assert f"{int((before != after).sum())} flipped" in told.sentence
    moved = made.x[untouched.inputs] - untouched.values
    by_name = {sample.name: sample for sample in told.samples}
    for i in np.flatnonzero(np.abs(moved).max(axis=1) > 0.05):
        told_of = {feature for feature, _, _ in by_name[str(i)].changes}
        assert {FEATURES[k] for k in np.flatnonzero(np.abs(moved[i]) > 0.05)} <= told_of
    assert {feature.name for feature in told.features} <= set(FEATURES)
    assert max(max(f.raised_share, f.lowered_share) for f in told.features) == 1.0


def test_flipped_ones_come_first_and_few_are_shown():
    (told,) = flips(treated(2000))
    flags = [sample.flipped for sample in told.samples]
    assert flags == sorted(flags, reverse=True)
    assert len(told.samples) == 100 and "more were changed" in told.left_out


def test_classes_that_nobody_asked_for():
    made = treated(20)
    block = made.facts.blocks[0]
    unknown = replace(block.untouched, classes=np.full((20, 1), np.nan))
    facts = replace(made.facts, blocks=(replace(block, untouched=unknown),))
    (told,) = flips(replace(made, facts=facts))
    assert "unknown for 20" in told.sentence
    assert {sample.before for sample in told.samples} == {"?"}


def test_features_by_the_predictors_own_names_or_by_number():
    made = treated(20)
    block = replace(made.facts.blocks[0], features=tuple(f"own {f}" for f in FEATURES))
    (told,) = flips(replace(made, facts=replace(made.facts, blocks=(block,))))
    assert all(feature.name.startswith("own ") for feature in told.features)
    (unnamed,) = flips(replace(made, names=None))
    assert all(feature.name.startswith("input ") for feature in unnamed.features)


def test_one_of_several_classes():
    inputs, outputs = np.array([[0], [1]]), np.array([[2, 3, 4], [5, 6, 7]])
    classes = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    untouched = Untouched(inputs, outputs, np.zeros((2, 1)), classes)
    block = BlockFacts("kind", "Sequential", 2, 1, 3, True, (), untouched)
    made = result([0.5, 0.0, 0, 0, 1, 0, 1, 0])
    (told,) = flips(replace(made, facts=replace(made.facts, blocks=(block,))))
    assert told.sentence == "1 of 2 samples changed; 1 flipped."
    (sample,) = told.samples
    assert (sample.before, sample.after, sample.changes[0][2]) == ("0", "2", "+0.5")


def test_nothing_to_tell():
    assert flips(result()) == []
    assert flips(nothing()) == []
