"""Line numbers of TOML keys: every key that tomllib finds is found, on the line where a reader sees it."""

import random
import tomllib

import pytest

from dovetail.problem_file.document import line_numbers

TEXT = '''# a comment with [brackets] and = signs
model = "plan.lp"  # "quoted" # twice
a.b . "c.d".'e' = 1
when = 1979-05-27 07:32:00

[[predictor]]
file = 'a\\b.onnx'
inputs = [
  "x[1]",  # ["not", "these"]
  "y",
  [ 1, 2,
    3 ],
]
note = """one
[predictor]  two \\""" three""""
[predictor.options]
deep = { one = 1, two.three = [ { four = 4 } ] }
[[predictor]]
file = """
x"""
literal = \'\'\'
key = "no key"
it's\'\'\'\'
[predictor.options]
last = [[]]
[[predictor.layer]]
[[predictor.layer]]
width = +1_000
["odd ] name".x]
y = []
[method]
'''


def paths(value, at=()):
    """Every table, key and entry in what tomllib made."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*at, name)
            yield from paths(inner, (*at, name))
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            yield (*at, k)
            yield from paths(inner, (*at, k))


def line_of(text):
    return next(k for k, line in enumerate(TEXT.splitlines(), start=1) if text in line)


def test_every_path_has_a_line():
    assert set(line_numbers(TEXT)) == set(paths(tomllib.loads(TEXT)))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("model",), "model ="),
        (("a", "b", "c.d", "e"), "a.b"),
        (("predictor", 0), "[[predictor]]"),
        (("predictor", 0, "inputs", 1), '"y"'),
        (("predictor", 0, "inputs", 2, 1), "[ 1, 2"),
        (("predictor", 0, "inputs", 2, 2), "3 ],"),
        (("predictor", 0, "options", "deep", "two", "three", 0, "four"), "deep ="),
        (("predictor", 1, "literal"), "literal"),
        (("predictor", 1, "options", "last", 0), "last"),
        (("predictor", 1, "layer", 1, "width"), "width"),
        (("odd ] name", "x", "y"), "y = []"),
        (("method",), "[method]"),
    ],
)
def test_lines_are_those_a_reader_sees(path, text):
    assert line_numbers(TEXT)[path] == line_of(text)
    assert line_numbers(TEXT.replace("\n", "\r\n"))[path] == line_of(text)


def test_the_second_table_of_an_array_is_not_the_first():
    lines = line_numbers(TEXT)
    assert lines["predictor", 1] > lines["predictor", 0, "options"] > lines["predictor", 0]
    assert lines["predictor", 1, "options"] > lines["predictor", 1]


STRINGS = ['"a#b"', "'a\"b'", '"""a\n"#"""', "'''\n[x]\n'''", '"\\"="', '""""""', "''", '"\\\\"', '"""q"""""']
NAMES = ["a", "b-1", '"c d"', "'e.f'", '"g\\"]"', "1979", '"\\u00e9"']


def written(rng, depth=0):
    """A random value, as text."""
    kind = rng.randrange(6 if depth < 3 else 4)
    if kind < 2:
        return rng.choice(STRINGS)
    if kind < 4:
        return rng.choice(["1", "-2.5e3", "true", "inf", "2020-01-01", "07:32:00", "0xff"])
    if kind == 4:
        gap = rng.choice(["", "\n", " # ] comment\n"])
        entries = [written(rng, depth + 1) + gap for _ in range(rng.randrange(4))]
        return f"[{gap}{(',' + gap).join(entries)}{rng.choice(['', ',']) if entries else ''}{gap}]"
    names = rng.sample(NAMES, rng.randrange(4))
    return "{" + ", ".join(f"{name} = {written(rng, depth + 1)}" for name in names) + "}"


@pytest.mark.parametrize("seed", range(20))
def test_random_files(seed):
    rng = random.Random(seed)
    text = "".join(f"{name} = {written(rng)}\n" for name in rng.sample(NAMES, 3))
    for number in range(rng.randrange(6)):
        header = rng.choice(["[[many]]", f"[one{number}.two]", f"[ one{number} . 'x y' ]"])
        text += f"{header} # c\n" + "".join(f"{n}.k = {written(rng)}\n" for n in rng.sample(NAMES, 2)) + "\n"
    found = line_numbers(text)
    assert set(found) == set(paths(tomllib.loads(text))), text
    lines = text.split("\n")
    for path, line in found.items():  # a key stands on the line that is named
        if isinstance(path[-1], str) and path[-1].isalnum() and path[-1].isascii():
            assert path[-1] in lines[line - 1], (path, line, text)
