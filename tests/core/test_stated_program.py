"""Programs as they are stated: nothing is made before it is asked for, labels are not taken twice, and parts
say what the program that is written out says."""

import io

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.decomposition.owners import columns_of
from dovetail.decomposition.plan import template_plan
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome
from dovetail.run.problem_facts import untouched_inputs
from tests.structure.stated_problems import campaign, floors, treatments

SMALL = {"load": dt.Family(upper=2.0)}


def test_the_program_is_made_once():
    problem = dt.Problem(sense="min")
    problem.add_template(2, SMALL)
    assert problem.mip is problem.mip
    assert "mip" not in problem.add_template(2, SMALL, name="more").__dict__
    assert problem.mip.n_columns == 4


def test_columns_may_follow_a_template():
    problem = dt.Problem(dt.Mip([1.0], names=["price"]))
    problem.add_template(2, SMALL)
    more = problem.add_columns(np.zeros(1), np.ones(1), np.array([False]), ["late"])
    assert more.tolist() == [3]
    later = problem.add_template(1, SMALL, name="others")
    assert later["load"].columns.tolist() == [[4]]
    assert list(problem.mip.names) == ["price", "load[0]", "load[1]", "late", "others.load[0]"]
    assert problem.mip.upper.tolist() == [np.inf, 2.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("host", "families", "rows", "culprit"),
    [
        (dt.Mip([1.0], names=["load"]), SMALL, (), "family 'load'"),
        (dt.Mip([1.0], names=["load[0]"]), SMALL, (), "family 'load'"),
        (dt.Mip([1.0]), {"x": dt.Family()}, (), "family 'x'"),
        (dt.Mip([1.0], A=[[1.0]], row_lower=0.0, row_upper=1.0), SMALL, ("row",), "row 'row'"),
        (
            dt.Mip([1.0], A=[[1.0]], row_lower=0.0, row_upper=1.0, row_names=["top"]),
            SMALL,
            ("top",),
            "row 'top'",
        ),
    ],
)
def test_labels_that_are_taken(host, families, rows, culprit):
    problem = dt.Problem(host)
    with pytest.raises(dt.ModelError, match=f"{culprit}: there is already"):
        problem.add_template(
            2, families, rows=[dt.FamilyRow(dict.fromkeys(families, 1.0), name=name) for name in rows]
        )
    assert problem.mip is host


def test_two_templates_of_the_same_families_need_names():
    problem = dt.Problem(sense="min")
    problem.add_template(2, SMALL)
    with pytest.raises(dt.ModelError, match="family 'load': there is already"):
        problem.add_template(2, SMALL)
    problem.add_template(2, SMALL, name="b")
    with pytest.raises(dt.ModelError, match=r"family 'b\.load': there is already"):
        problem.add_template(2, SMALL, name="b")


@pytest.fixture(params=[treatments, campaign, floors], ids=lambda build: build.__name__)
def problem(request):
    return request.param(7)


def written(problem: dt.Problem) -> dt.Problem:
    """The same, as a plain program."""
    return problem.derived(problem.mip, problem.blocks)


def test_sizes_names_and_limits(problem):
    stated, mip = problem.stated, problem.mip
    assert (stated.n_columns, stated.n_rows, stated.nonzeros) == (mip.n_columns, mip.n_rows, mip.A.nnz)
    assert (stated.sense, stated.sign, stated.offset) == (mip.sense, mip.sign, mip.offset)
    for name in ("lower", "upper", "integer", "row_lower", "row_upper"):
        assert np.array_equal(getattr(stated, name), getattr(mip, name)), name
    assert [stated.column_name(j) for j in (0, 5)] == [mip.column_name(j) for j in (0, 5)]
    assert [stated.row_name(i) for i in (0, 2)] == [mip.row_name(i) for i in (0, 2)]
    sizes = np.concatenate([np.abs(entry).ravel() for part in stated.rows for entry in part.entries()])
    assert sizes.max() == np.abs(mip.A.data).max() and sizes.min() == np.abs(mip.A.data).min()


def test_values_at_points(problem):
    stated, mip = problem.stated, problem.mip
    x = 3.0 * np.random.default_rng(4).standard_normal(mip.n_columns)
    assert np.isclose(stated.objective(x), mip.objective(x), rtol=1e-12)
    assert np.allclose(stated.activity(x), mip.A @ x, rtol=1e-12, atol=1e-12)
    assert np.allclose(stated.activity(x, sizes=True), abs(mip.A) @ x, rtol=1e-12, atol=1e-12)
    whole = np.clip(x, mip.lower, mip.upper)
    whole[mip.integer] = np.round(whole[mip.integer])
    assert np.array_equal(stated.clipped(x), whole)


def test_the_check_says_the_same(problem):
    plain, rng = written(problem), np.random.default_rng(5)
    for _ in range(4):
        x = rng.standard_normal(problem.mip.n_columns)
        one, other = dt.check(problem, x), dt.check(plain, x)
        for kind in ("rows", "bounds", "integrality", "prediction", "precision", "rounding"):
            mine, theirs = getattr(one, kind), getattr(other, kind)
            assert mine.name == theirs.name and np.isclose(mine.amount, theirs.amount), kind


def test_what_inputs_were(problem):
    plain = written(problem)
    for block in problem.blocks:
        assert np.array_equal(
            untouched_inputs(problem, block), untouched_inputs(plain, block), equal_nan=True
        )


class AtRest:
    """Offers the blocks as they are, having made a plan for them."""

    name = "at-rest"

    def solve(self, context):
        """No more than that."""
        plan = context.once(template_plan)
        (program,), (template,) = plan.programs, plan.arrays
        x = plan.program.lower.copy()
        moves, outputs = torch.zeros((program.count, program.coordinates)), torch.zeros((program.count, 1))
        for j, values in enumerate(columns_of(program, moves, outputs)):
            x[template.places.column(j, 0, program.count)] = values.numpy()
        context.incumbent.offer(x, "rest")
        return MethodOutcome(StopReason.STALLED, 1)


def test_many_blocks_are_solved_without_being_written_out():
    problem = treatments(30_000, most=9.0)
    result = dt.solve(problem, AtRest(), log=io.StringIO())
    assert "mip" not in vars(problem.stated)
    assert result.violation.within() and np.isclose(result.bound, 30_000 + 2.5)
    assert dt.check(problem, result.x).within() and "mip" not in vars(problem.stated)
    assert result.names[5] == "good[4]" and result.facts.n_rows == 3 * 30_000 + 6
    values = problem.templates[0].values(result)
    assert np.array_equal(values["good"][:, 0], problem.predict(result.x)[1:30_001])
