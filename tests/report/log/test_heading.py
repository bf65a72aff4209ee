"""The first lines say what is solved."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.report.log.heading import MOST_BLOCKS, heading, legend
from dovetail.report.log.table import cells
from tests.report.log.test_layout import HOSTILE
from tests.small import knapsack, linear_net


def test_of_a_small_problem():
    text = "\n".join(heading(knapsack(), "dovetail", 79))
    for part in (
        "dovetail",
        "maximise" if knapsack().mip.sense == "max" else "minimise",
        "1 constraint, 5 variables",
    ):
        assert part in text
    assert "(4 integer)" in text and "price: Linear; 1 sample, 4 inputs -> 1 output, values" in text


def test_where_there_is_no_network_that_is_said():
    """Whoever forgot the predictor should see it in the first lines."""
    text = "\n".join(heading(dt.Problem(dt.Mip(cost=[1.0], upper=1.0)), "dovetail", 79))
    assert "network     none" in text


def many(count):
    problem = dt.Problem(dt.Mip(cost=np.ones(2 * count), upper=1.0))
    for k in range(count):
        problem.add_predictor(linear_net([1.0]), [2 * k], [2 * k + 1], name=f"net{k}")
    return problem


def test_many_networks_are_counted():
    lines = list(heading(many(MOST_BLOCKS + 3), "dovetail", 79))
    assert sum(line.startswith("network") for line in lines) == MOST_BLOCKS
    assert lines[-1].strip() == "and 3 others"


@pytest.mark.parametrize("name", HOSTILE)
def test_names_do_no_harm(name):
    problem = dt.Problem(dt.Mip(cost=[1.0, 1.0], upper=1.0))
    problem.add_predictor(linear_net([1.0]), [0], [1], name=f"[red]{name}")
    for width in (20, 59, 79):
        lines = list(heading(problem, "dovetail", width))
        assert all(line.isprintable() and cells(line) <= width for line in lines)
        assert sum(line.startswith("status") for line in lines) == 0


def test_the_legend_explains_the_columns():
    plain, residuals = (
        " ".join(" ".join(legend(residuals=both, width=79)).split()) for both in (False, True)
    )
    for word in ("MIP only:", "evaluations:"):
        assert word in plain and word in residuals
    assert "(incumbent)" in plain and "--:" in plain
    assert "residual:" in residuals and "rho:" in residuals and "residual:" not in plain
