"""The one description of a problem: each question is answered once, and for the form that it is about."""

import numpy as np
import pytest
from torch import nn

import dovetail as dt
from dovetail.bounds.box import Box
from dovetail.structure.colours import of_numbers
from dovetail.structure.structure import Structure, structure_of
from tests.contexts import context_of
from tests.small import linear_net


def blocks(n=3):
    """n networks of one input each, and a row over all inputs."""
    net = nn.Sequential(linear_net([[1.0], [-1.0]]), nn.ReLU(), linear_net([1.0, 1.0]))
    row = np.append(np.ones(n), np.zeros(n))
    mip = dt.Mip(np.ones(2 * n), row[None], [-np.inf], [0.5 * n], lower=-9.0, upper=9.0)
    problem = dt.Problem(mip)
    problem.add_predictor(net, np.arange(n)[:, None], n + np.arange(n)[:, None])
    return problem


def test_a_solve_has_one_whatever_part_of_it_asks():
    context = context_of(blocks())
    one = context.once(structure_of)
    assert context.part(0.5).once(structure_of) is one and one.budget is context.budget
    assert one.tight_box is one.tight_box and one.proved_parts is one.parts


def test_what_it_says():
    structure = Structure(blocks())
    assert (structure.samples, structure.classes, structure.curves) == (3, 0, 0)
    assert structure.parts.count == 3 and structure.parts.coupled
    assert [one.number for one in structure.one_sample_each] == [0, 1, 2]
    ((columns, rows),) = structure.kinds(1)
    assert columns.tolist() == [[0, 3], [1, 4], [2, 5]] and rows.size == 0
    (template,) = structure.templates.arrays
    assert template.count == 3 and structure.templates.sides.limit.tolist() == [1.5]
    assert structure.trees is structure.loose_trees is None and not structure.quadratic
    (block,) = structure.problem.blocks
    assert structure.planes(block) is structure.planes(block)


def test_bounds_are_proved_of_the_relaxed_problem():
    problem = blocks()
    apart = problem.derived(dt.Mip(np.ones(6), lower=-9.0, upper=9.0), problem.blocks)
    structure = Structure(problem, apart)
    assert structure.parts.coupled and not structure.proved_parts.coupled
    assert structure.loose.mip.n_rows == 0 and structure.reached.problem is structure.loose


def test_a_known_box_is_taken():
    box = Box(np.zeros(6), np.ones(6))
    assert Structure(blocks(), known_box=box).tight_box is box


@pytest.mark.parametrize("equation", [False, True])
def test_prices_of_sides_and_of_rows(equation):
    problem = blocks()
    mip = dt.Mip(np.ones(6), problem.mip.A, [1.5 if equation else -np.inf], [1.5], lower=-9.0, upper=9.0)
    sides = Structure(problem).parts.sides(mip)
    assert sides.count == 1 + equation
    prices = np.array([0.5, 0.0])[: sides.count]
    assert np.array_equal(sides.side_prices(sides.row_prices(prices, 1)), prices)
    assert np.array_equal(sides.matrix(mip).toarray(), np.outer(sides.sign, mip.A.toarray()[0]))


def test_kinds_are_not_told_where_the_two_problems_have_other_rows():
    problem = dt.Problem(dt.Mip([1.0] * 4, [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]], 0.0, 2.0, -1.0, 1.0))
    fewer = dt.Problem(dt.Mip([1.0] * 4, [[1.0, 1.0, 1.0, 1.0]], 0.0, 2.0, -1.0, 1.0))
    for k, made in enumerate((problem, fewer)):
        for column in (0, 2):
            made.add_predictor(linear_net([[2.0]]), [column], [column + 1], name=f"{k} {column}")
    assert Structure(problem).kinds(8) is not None
    assert not Structure(problem, relaxed=fewer).same_rows
    assert Structure(problem, relaxed=fewer).kinds(8) is None


def test_numbers_that_differ_by_rounding_have_one_colour():
    values = np.array([1.0, 0.5, 3.0, -4.0, 0.1 + 0.2, 0.0])
    moved = np.array(
        [np.nextafter(1.0, 0.0), np.nextafter(0.5, 0.0), 3.0, np.nextafter(-4.0, 0.0), 0.3, -0.0]
    )
    assert np.array_equal(of_numbers(values), of_numbers(moved))
    ends = of_numbers(np.array([np.inf, -np.inf, 0.0, 1.0]))
    assert np.unique(ends).size == 4
