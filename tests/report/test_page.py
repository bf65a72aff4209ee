"""Pages as files: the same from a result and from its file, small, whole or not there, refused in words."""

import re
from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.report.page.result_page import result_page
from dovetail.run.trace import Trace
from tests.report.hostile import HOSTILE
from tests.report.results import nothing, result, treated

MOST_BYTES = 500_000


def test_a_result_read_from_its_file_makes_the_same_page(tmp_path):
    problem = dt.Problem(
        dt.Mip([0.0, 0.0, 1.0], [[1, -1, 0]], [0.3], [0.3], [0, 0, 0], [1, 1, 1.0], sense="max")
    )
    problem.add_predictor(lambda X: X - 0.5, [0], [2], output_type="classification", threshold=0.0)
    solved = dt.solve(problem, dt.DualDecomposition(iterations=3), log=False)
    for made in (solved, nothing(), treated(40), result(names=None)):
        page = made.report(tmp_path / "page.html").read_text(encoding="utf-8")
        assert page == result_page(dt.Result.from_json(made.to_json()))
    assert "1 flipped" in result_page(solved)


def test_a_large_result_stays_small(tmp_path):
    assert treated(2000).report(tmp_path / "water.html").stat().st_size < MOST_BYTES
    names = [f"flow[{i},{j}]" for i in range(1000) for j in range(98)] + [
        f"n{'q' * (k % 50)}{k}z" for k in range(2000)
    ]
    rng = np.random.default_rng(0)
    many = result(rng.normal(size=100_000), names=names, lower=-9.0, upper=9.0)
    page = many.report(tmp_path / "many.html")
    assert page.stat().st_size < MOST_BYTES
    assert "Left out: 97,800 others" in page.read_text()


def test_thirty_hostile_names_a_thousand_times_stay_small(tmp_path):
    names = [f"{name}[{k}]" for k in range(100) for name in HOSTILE]
    made = result(np.ones(len(names)), names=names, message=HOSTILE[-6] * 100)
    assert made.report(tmp_path / "page.html").stat().st_size < MOST_BYTES


def test_the_policy_names_what_may_run():
    page = result_page(result())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"<[^>]*\s(on\w+|style|src|href=\"?(?!#))\s*=", page.replace("<style>", ""))


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(dt.OptionError, match="cannot be written"):
        result().report(tmp_path / "nowhere" / "page.html")
    with pytest.raises(dt.OptionError, match="cannot be written"):
        result().report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_comparing(tmp_path):
    one, other = result(names=["a", "b", "c"]), result([1.0, 3.0, 2.5], names=["a", "b", "c"], objective=19.0)
    page = dt.compare([one, other, nothing()], tmp_path / "all.html").read_text()
    assert "Best objective: 19, by auto 2" in page
    assert "1 of 3 variables differ" in page
    assert "17.6 %" in page and "MIP only" not in page
    named = dt.compare({"<b>mine": one, "again": one}, tmp_path / "two.html").read_text()
    assert "&lt;b&gt;mine" in named and "All of them are the same solution." in named
    foreign = dt.compare([one, replace(other, names=("x", "y", "z"))], tmp_path / "x.html").read_text()
    assert "different variables" in foreign
    mixed = result(sense="min")
    assert "Best objective" not in dt.compare([one, mixed], tmp_path / "y.html").read_text()
    unseen = replace(
        one, trace=Trace([], one.trace.incumbents, one.trace.bounds[:1]), bound=40.0, bound_source="host"
    )
    page = dt.compare([one, unseen], tmp_path / "u.html").read_text()
    assert "40 (MIP only)" in page and "135 %" not in page
    assert "Fewer than two" in dt.compare([one, nothing()], tmp_path / "z.html").read_text()


@pytest.mark.parametrize("few", [[], [None], ["a result", "another"]])
def test_what_cannot_be_compared_is_refused(tmp_path, few):
    with pytest.raises(dt.OptionError, match="compare takes"):
        dt.compare(few, tmp_path / "page.html")
    with pytest.raises(dt.OptionError, match="2 to 24"):
        dt.compare([result()] * 25, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
