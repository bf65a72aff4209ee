"""Pages in a real browser: drawn, sorted, searched, harmless, and readable in the dark and on a phone."""

from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.check import Violation, Worst
from dovetail.core.extrapolation import Extrapolation
from dovetail.report.page.number_text import visible
from dovetail.run.problem_facts import BlockFacts
from dovetail.run.trace import Gain, Trace
from tests.conftest import FULL
from tests.report.browser import Browser
from tests.report.hostile import HOSTILE
from tests.report.results import SETTINGS, nothing, result, row, treated


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


def hostile():
    """Every place of a page that shows text of others."""
    x = np.arange(60) % 5 * 1.5
    names = [*HOSTILE, *(f"{name}[{k}]" for k, name in enumerate(HOSTILE))]
    made = result(x, names=names, lower=0.0, upper=6.0)
    blocks = tuple(BlockFacts(name, name, 1, 1, 1, False) for name in HOSTILE)
    gains = [Gain(0.1 * (k + 1), float(k), name) for k, name in enumerate(HOSTILE)]
    options = dict.fromkeys(HOSTILE, HOSTILE[0])
    return replace(
        made,
        facts=replace(made.facts, blocks=blocks),
        trace=Trace([row(1), row(2)], gains, gains[:3]),
        violation=Violation(rows=Worst(1e-7, HOSTILE[0]), rounding=Worst(1.0, HOSTILE[8])),
        extrapolations=tuple(Extrapolation(name, 0, name, 9.0, 0.0, 1.0) for name in HOSTILE[:10]),
        message="; ".join(HOSTILE[:12]),
        method=HOSTILE[6],
        engine=HOSTILE[1],
        settings=replace(SETTINGS, method=HOSTILE[0], fields=options, options=options, machine=HOSTILE[8]),
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A small, a large, an empty, a hostile and a comparing page."""
    folder = tmp_path_factory.mktemp("pages")
    weeks = [f"{kind}[{t}]" for kind in ("setup", "make") for t in range(8)]
    small = result(np.linspace(0.0, 4.0, 16), names=weeks, integer=np.repeat([True, False], 8))
    other = result(np.linspace(0.0, 3.0, 16), names=weeks, objective=9.0)
    large = treated(2000 if FULL else 80)
    made = {"small": small, "large": large, "nothing": nothing(), "hostile": hostile()}
    paths = {name: each.report(folder / f"{name}.html") for name, each in made.items()}
    compared = {HOSTILE[0]: small, "b": other, "c": nothing()}
    return {**paths, "compared": dt.compare(compared, folder / "compared.html")}


CHARTS = {"small": 3, "large": 3, "nothing": 0, "hostile": 2, "compared": 1}
BESIDE = """[...document.querySelectorAll('h1,h2,p,li,dd,pre,figure,.scroll')]
  .filter((part) => part.getBoundingClientRect().right > innerWidth + 1).length"""
DRAWN = """[...document.querySelectorAll('.chart svg')].filter((svg) => svg.clientWidth > 200)
  .map((svg) => Math.max(...[...svg.querySelectorAll('.line')].map((line) => line.getTotalLength())))"""
OUTSIDE = """[...document.querySelectorAll('.chart svg')].flatMap((svg) => {
  const box = svg.viewBox.baseVal;
  if (!svg.getBoundingClientRect().width) return [];
  return [...svg.querySelectorAll('.line, .mark, text')].filter((part) => {
    const m = part.transform.baseVal.consolidate(), b = part.getBBox();
    const x = b.x + (m ? m.matrix.e : 0), y = b.y + (m ? m.matrix.f : 0);
    return x < -1 || y < -1 || x + b.width > box.width + 1 || y + b.height > box.height + 1;
  }).map((part) => part.outerHTML);
})"""


@pytest.mark.parametrize("width", [1100, 360])
@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_drawn_nothing_leaves_and_nothing_overflows(browser, pages, name, width):
    browser.open(pages[name], width=width)
    assert browser.requests == [pages[name].as_uri()]
    assert browser.said == []
    assert browser.run("document.scripts.length") == 1
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.run(BESIDE) == 0
    drawn = browser.run(DRAWN)
    assert len(drawn) == CHARTS[name]
    assert all(length > 100 for length in drawn)
    assert browser.run(OUTSIDE) == []


MARKUP = "img, iframe, b b, base, link, a:not(.skip), [onload], [onerror], [style]"
TALLEST = "Math.max(...[...document.querySelectorAll('tbody tr')].map((row) => row.offsetHeight))"


def test_hostile_names_are_text(browser, pages):
    browser.open(pages["hostile"])
    assert browser.run("window.harm === undefined")
    assert browser.run(f"document.querySelectorAll('{MARKUP}').length") == 0
    assert browser.run("document.querySelectorAll('h1').length") == 1
    text = browser.run("document.body.textContent")
    for name in HOSTILE:
        assert visible(name) in text, name
    assert browser.run(TALLEST) < 200


def test_values_are_read_by_pointer_and_by_key(browser, pages):
    browser.open(pages["small"])
    readout = "document.querySelector('.readout').textContent"
    assert "arrow keys" in browser.run(readout)
    browser.click("document.querySelector('.chart svg.wide')")
    assert "incumbent 17 by a MIP over the columns" in browser.run(readout)
    browser.run("document.querySelector('.chart svg.wide').focus()")
    browser.press("Home")
    assert browser.run(readout).startswith("0.50 s · incumbent 12")
    browser.press("ArrowRight")
    assert browser.run(readout).startswith("1.5 s · incumbent 15 by a descent from a random start · bound 40")
    browser.press("End")
    assert browser.run(readout).endswith("gap 17.6 %")


COLUMN = "[...document.querySelectorAll('#t2 tbody tr')].slice(0, 5).map(r => r.cells[1].textContent)"


def numbers(texts):
    return [float(text.replace("−", "-")) for text in texts]


def test_sorting_by_click_and_by_key(browser, pages):
    browser.open(pages["large"])
    given = browser.run(COLUMN)
    button = "document.querySelectorAll('#t2 th button')[1]"
    state = "document.querySelectorAll('#t2 thead th')[1].getAttribute('aria-sort')"
    browser.click(button)
    least = numbers(browser.run(COLUMN))
    assert browser.run(state) == "ascending"
    assert least == sorted(least) and least[0] < min(numbers(given))
    browser.run(f"{button}.focus()")
    browser.press("Enter", text="\r")
    most = numbers(browser.run(COLUMN))
    assert browser.run(state) == "descending"
    assert most == sorted(most, reverse=True) and most[0] > max(least)
    browser.press(" ", code="Space", text=" ")
    assert browser.run(COLUMN) == given
    assert browser.run(state) == "none"


def test_finding_rows(browser, pages):
    browser.open(pages["large"])
    rows = "[...document.querySelectorAll('#flips1 tbody tr')]"
    total = browser.run(f"{rows}.length")
    browser.run("document.querySelector('input[aria-controls=flips1]').focus()")
    browser.ask("Input.insertText", text="TURBIDITY")
    shown = f"{rows}.filter(r => !r.hidden && r.getBoundingClientRect().height)"
    found = browser.run(f"{shown}.length")
    assert 0 < found < total
    assert browser.run(f"{shown}.every(r => r.textContent.includes('Turbidity'))")
    assert browser.run("document.querySelector('.find output').textContent") == f"{found} of {total} rows"


FAINT = """(() => {
  const part = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) {
    const c = part(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; }
    return [255, 255, 255]; };
  const faint = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getBoundingClientRect().width || ['SCRIPT', 'STYLE', 'desc'].includes(e.tagName)) continue;
    const style = getComputedStyle(e);
    const a = light(part(e instanceof SVGElement ? style.fill : style.color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${e.outerHTML.slice(0, 80)}`);
  }
  return faint;
})()"""


@pytest.mark.parametrize(
    ("name", "dark"),
    [("small", True), ("small", False), ("large", True), ("nothing", False), ("compared", True)],
)
def test_text_can_be_read_in_light_and_in_the_dark(browser, pages, name, dark):
    browser.open(pages[name], dark=dark)
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(15, 20, 24)" if dark else "rgb(255, 255, 255)")
    assert browser.run(FAINT) == []


def test_the_policy_holds(browser, pages):
    browser.open(pages["small"])
    blocked = """new Promise((resolve) => {
      document.addEventListener('securitypolicyviolation', (event) => resolve(event.effectiveDirective));
      const image = new Image(); image.src = 'http://127.0.0.1:9/leak';
    })"""
    assert browser.run(blocked) == "img-src"


def test_print_shows_tables_whole_and_no_controls(browser, pages):
    browser.open(pages["large"], width=794, media="print")
    hidden = "[...document.querySelectorAll('.find, .readout')].every(e => !e.getBoundingClientRect().height)"
    assert browser.run(hidden)
    cut = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollHeight > e.clientHeight + 2).length"
    assert browser.run(cut) == 0
    shown = "[...document.querySelectorAll('#t2 tbody tr')].filter((row) => row.offsetHeight)"
    assert browser.run(f"{shown}.length") == 40
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


def test_names_for_those_who_do_not_see(browser, pages):
    browser.open(pages["large"])
    unnamed = "[...document.querySelectorAll('svg[role=img], [role=region], input')].filter(e => "
    unnamed += "!(e.getAttribute('aria-label') || e.labels?.length)).length"
    assert browser.run(unnamed) == 0
    assert browser.run("[...document.querySelectorAll('tbody th')].every(h => h.scope === 'row')")
    lost = "[...document.querySelectorAll('[aria-labelledby]')].filter(e => "
    lost += "!document.getElementById(e.getAttribute('aria-labelledby'))).length"
    assert browser.run(lost) == 0
