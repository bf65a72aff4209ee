"""The palatable diet: the model in plain numpy, seeds, real or look-alike data, a small .xlsx by hand."""

import zipfile
from xml.sax.saxutils import escape

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import dovetail as dt
from dovetail_study.problems import data as files
from dovetail_study.problems import diet as module
from dovetail_study.problems.diet import FOODS, NUTRIENTS, diet, look_alike


@pytest.fixture(scope="module")
def instance():
    return diet("2x8", seed=1, epochs=8)


def palatability(instance, amounts):
    with torch.no_grad():
        return instance.network(torch.tensor(np.atleast_2d(amounts))).numpy()[:, 0]


def test_the_rows_say_what_the_docstring_says(instance):
    """A made-up diet that meets all needs, by numpy, is feasible for dt.check; half of it is not."""
    X, _, needs = look_alike(1)
    likes = palatability(instance, X)
    feeds = (X @ needs.nutrition >= needs.required).all(axis=1)
    eaten = (likes >= instance.problem.mip.lower[-1]) & (likes <= 1.0)
    best = X[np.flatnonzero(feeds & eaten)[0]]
    x = np.append(best, palatability(instance, best))
    assert dt.check(instance.problem, x).within()
    assert instance.problem.mip.objective(x) == pytest.approx(float(best @ needs.price))
    unwanted = np.append(X[np.argmin(likes)], likes.min())
    assert dt.check(instance.problem, unwanted).bounds.name == "palatability"
    less = x.copy()
    less[:-1] = 0.5 * best
    short = needs.required - 0.5 * best @ needs.nutrition
    assert dt.check(instance.problem, less).rows.amount == pytest.approx(short.max())
    assert dt.check(instance.problem, less).rows.name == NUTRIENTS[int(np.argmax(short))]


def test_palatability_costs_something(instance):
    """The cheapest diet without the network is unpalatable; with it, an answer is dearer and checked."""
    mip = instance.problem.mip
    bounds = list(zip(mip.lower, mip.upper, strict=True))
    free = linprog(mip.cost, A_ub=-mip.A, b_ub=-mip.row_lower, bounds=bounds)
    assert palatability(instance, free.x[:-1])[0] < mip.lower[-1]
    result = dt.solve(instance.problem, dt.Auto(effort=1, exact=False), log=False)
    amounts = result.value(instance.foods)
    assert dt.check(instance.problem, result.x).within()
    assert result.objective > free.fun
    assert result.objective == pytest.approx(amounts @ instance.needs.price)
    assert palatability(instance, amounts)[0] >= mip.lower[-1] - 1e-6


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write_xlsx(path, sheets):
    """The least that is an .xlsx: words shared, numbers in place, empty cells left out."""
    words: list[str] = []

    def cell(place, value):
        if isinstance(value, str):
            words.append(value)
            return f'<c r="{place}" t="s"><v>{len(words) - 1}</v></c>'
        return f'<c r="{place}"><v>{value!r}</v></c>'

    with zipfile.ZipFile(path, "w") as file:
        for k, table in enumerate(sheets.values()):
            rows = "".join(
                f'<row r="{i + 1}">'
                + "".join(cell(f"{letters(j)}{i + 1}", v) for j, v in enumerate(row) if v is not None)
                + "</row>"
                for i, row in enumerate(table)
            )
            xml = f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'
            file.writestr(f"xl/worksheets/sheet{k}.xml", xml)
        names = "".join(f'<sheet name="{n}" r:id="r{k}"/>' for k, n in enumerate(sheets))
        file.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{names}</sheets></workbook>',
        )
        ties = "".join(
            f'<Relationship Id="r{k}" Target="worksheets/sheet{k}.xml"/>' for k in range(len(sheets))
        )
        file.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{ties}</Relationships>")
        shared = "".join(f"<si><t>{escape(word)}</t></si>" for word in words)
        file.writestr("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">{shared}</sst>')


def letters(j):
    return chr(ord("A") + j) if j < 26 else f"A{letters(j - 26)}"


def tables():
    """Sheets with the foods in another order than the diets have them."""
    _, _, needs = look_alike(3)
    turned = FOODS[::-1]
    return {
        "nutr_val": [
            ["Food", *NUTRIENTS],
            *[[food, *needs.nutrition[FOODS.index(food)].tolist()] for food in turned],
        ],
        "FoodCost": [
            ["Supplier", *turned],
            ["Elsewhere", *[1.0] * 25],
            ["Amman S", *needs.price[::-1].tolist()],
        ],
        "nutr_req": [["Type", *NUTRIENTS], ["Person", *needs.required.tolist()]],
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "WFP").mkdir()
    X, liked, _ = look_alike(3, 200)
    rows = [(*FOODS, "label"), *np.column_stack([X, liked]).tolist()]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (tmp_path / "WFP" / "palatable_data.csv").write_text(text + "\n")
    write_xlsx(tmp_path / "WFP" / "instance_data.xlsx", tables())
    return tmp_path


def test_reads_real_files_and_finds_foods_by_name(folder, monkeypatch):
    given = diet("1x4", data=folder, epochs=1, allow_constant=True)
    _, _, needs = look_alike(3)
    assert given.needs.nutrition == pytest.approx(needs.nutrition)
    assert given.needs.price == pytest.approx(needs.price)
    assert given.needs.required == pytest.approx(needs.required)
    monkeypatch.setenv("DOVETAIL_DATA", str(folder))
    again = diet("1x4", epochs=1, allow_constant=True)
    assert np.array_equal(again.needs.price, given.needs.price)


def test_what_a_file_lacks_is_named(folder):
    path = folder / "WFP" / "instance_data.xlsx"
    for spoil, message in (
        (lambda s: s.pop("FoodCost"), "no sheet 'FoodCost'"),
        (lambda s: s["nutr_val"].pop(3), "no row for 'Wheat'"),
        (lambda s: s["FoodCost"].pop(), "no row for 'Amman S'"),
        (lambda s: s["nutr_req"][0].remove("Fat(g)"), r"no column 'Fat\(g\)'"),
        (lambda s: s["nutr_req"].pop(), r"no column 'Energy\(kcal\)'"),
        (lambda s: s["nutr_req"][1].__setitem__(2, "much"), r"'Protein\(g\)' has the entry 'much'"),
        (lambda s: s["nutr_req"][1].__setitem__(2, None), r"'Protein\(g\)' has an empty entry"),
    ):
        sheets = tables()
        spoil(sheets)
        write_xlsx(path, sheets)
        with pytest.raises(dt.OptionError, match=message):
            module._read_needs(path)
    path.write_text("not a zip")
    with pytest.raises(dt.OptionError, match="cannot be read as an .xlsx"):
        module._read_needs(path)
    path.unlink()
    with pytest.raises(dt.OptionError, match="instance_data.xlsx is not there"):
        diet(data=folder)


def test_a_sheet_is_read_by_its_cells(tmp_path):
    path = tmp_path / "a.xlsx"
    write_xlsx(path, {"other": [["z"]], "one": [["a", "b", "c"], [1.5, None, "x & y"], [None, 2.0]]})
    assert files.read_sheet(path, "one") == [
        {"a": "1.5", "b": "", "c": "x & y"},
        {"a": "", "b": "2.0", "c": ""},
    ]
