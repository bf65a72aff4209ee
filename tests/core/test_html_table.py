"""Tables for notebooks: whatever stands in them is text."""

from dovetail.core.words import facts, grid

EVIL = "<script>alert('1')</script>&"


def test_everything_is_escaped():
    for made in (facts(EVIL, [(EVIL, EVIL)]), grid(EVIL, [EVIL], [[EVIL, EVIL]])):
        assert "<script" not in made and made.count("&lt;script&gt;") >= 3 and "'" not in made


def test_lines():
    assert facts("t", [("a", "1"), ("b", "2")]).count("<tr>") == 2
    assert grid("t", ["a", "b"], [["1", "2"]] * 3).count("<tr>") == 4
