"""Real files: what is in them is read, what they lack is named; the environment may say where they are."""

import numpy as np
import pytest

import dovetail as dt
from dovetail_study.problems import adversarial, diet, water, wine
from dovetail_study.problems.data import complete_rows

SMALL = {"epochs": 1, "allow_constant": True}


def labelled(rows, features, target):
    """Columns of a file by their names: a made-up table, the target last."""
    X, y = rows
    return {**dict(zip(features, X.T, strict=True)), target: y}


def digits():
    rng = np.random.default_rng(0)
    return rng.integers(0, 17, (200, adversarial.PIXELS)), np.arange(200) % 10


KINDS = {
    "water": (water.FILE, labelled(water.look_alike(5, 60), water.FEATURES, "Potability"),
              lambda data: water.water(5, "1x4", data=data, **SMALL).samples),
    "wine": (wine.FILE, {"": np.arange(120), **labelled(wine.look_alike(5, 120), wine.FEATURES, "quality")},
             lambda data: wine.wine(1, 6, "1x4", data=data, **SMALL).market.features),
    "adversarial": (adversarial.FILE, labelled(digits(), adversarial.FEATURES, "target"),
                    lambda data: adversarial.adversarial("1x4", data=data, epochs=3).image),
}  # fmt: skip
"""The file, what it holds, and what an instance takes from it."""


def write(path, table, leave_out=None, **entries):
    """A table with quoted names; `entries` replace the first ones of their columns."""
    kept = {name: [f"{value:.8g}" for value in column] for name, column in table.items() if name != leave_out}
    for name, entry in entries.items():
        kept[name][0] = entry
    lines = [",".join(f'"{name}"' for name in kept), *map(",".join, zip(*kept.values(), strict=True))]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_read(kind, tmp_path, monkeypatch):
    file, table, taken = KINDS[kind]
    write(tmp_path / file, table)
    *features, target = [name for name in table if name]
    X, y = complete_rows(tmp_path / file, features, target)
    assert np.allclose(
        np.column_stack([X, y]), np.column_stack([table[name] for name in (*features, target)])
    )
    found = taken(tmp_path)
    monkeypatch.setenv("DOVETAIL_DATA", str(tmp_path))
    assert np.array_equal(taken(None), found)
    write(tmp_path / file, table, **{features[0]: ""})
    assert len(complete_rows(tmp_path / file, features, target)[0]) == len(X) - 1  # a row with a gap


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_file_lacks_is_named(kind, tmp_path):
    file, table, taken = KINDS[kind]
    name = [name for name in table if name][3]
    with pytest.raises(dt.OptionError, match=f"{file} is not there"):
        taken(tmp_path)
    write(tmp_path / file, table, leave_out=name)
    with pytest.raises(dt.OptionError, match=f"no column '{name}'"):
        taken(tmp_path)
    write(tmp_path / file, table, **{name: "many"})
    with pytest.raises(dt.OptionError, match=f"'{name}' has the entry 'many'"):
        taken(tmp_path)


def test_diets_are_read_by_the_names_of_foods(tmp_path):
    X, liked, _ = diet.look_alike(3, 50)
    write(tmp_path / diet.DIETS, labelled((X, liked), diet.FOODS, "label"), leave_out="Dates")
    (tmp_path / diet.TABLES).touch()
    with pytest.raises(dt.OptionError, match="palatable_data.csv has no column 'Dates'"):
        diet.diet(data=tmp_path)
