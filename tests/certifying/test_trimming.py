"""What single rows and multipliers cut off boxes: no feasible point, and what is left still closes."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.certificates.checker.boxes import Boxes
from dovetail.certificates.checker.verification import verify
from dovetail.certificates.proof import Leaves
from dovetail.certifying import growing
from dovetail.certifying.certify import certify
from dovetail.certifying.leaf_multipliers import LeafPrograms
from dovetail.certifying.trimming import cuts_by_multipliers, cuts_by_rows
from dovetail.cli.init_command import write_example
from dovetail.problem_file.description import FileDescription
from tests.certificates.reference import graphs_of
from tests.conftest import volume


def programs(integer_upper=10.0):
    """min x + z, 3 <= x - y, z <= 10: x >= 3 and y <= 7 follow from the row, z <= 5 from the cost."""
    return LeafPrograms(
        cost=np.array([1.0, 0.0, 1.0]),
        rows=np.array([[[1.0, -1.0, 0.0]]]),
        low=np.array([[3.0]]),
        high=np.array([[np.inf]]),
        lower=np.zeros((1, 3)),
        upper=np.array([[10.0, 10.0, integer_upper]]),
        host=1,
        regression=np.zeros(0, dtype=np.int64),
    )


def test_rows_and_the_cost_cut():
    (cuts,) = cuts_by_rows(programs(), np.array([False, False, True]), target=5.0)
    found = {(cut.column, cut.above): cut for cut in cuts}
    assert set(found) == {(0, False), (0, True), (1, True), (2, True)}
    assert found[0, False].at == pytest.approx(3.0, abs=1e-4)
    assert found[1, True].at == pytest.approx(7.0, abs=1e-4)
    assert found[2, True].at == 5.5  # between whole numbers
    # the row's own multiplier shows a piece to be empty; the cost needs none
    assert (found[0, False].leaf.objective[0], found[0, False].leaf.rows[0, 0]) == (0.0, 1.0)
    assert (found[2, True].leaf.objective[0], found[2, True].leaf.rows[0, 0]) == (1.0, 0.0)


def test_multipliers_cut_where_their_value_reaches_the_target():
    boxes = Boxes(np.zeros((1, 2)), np.full((1, 2), 10.0), np.zeros((1, 0)))
    leaves = Leaves(np.ones(1), np.zeros((1, 0)))
    (cuts,) = cuts_by_multipliers(
        boxes, np.arange(2), np.array([[2.0, -0.1]]), np.array([1.0]), leaves, np.zeros(2, dtype=bool), 7.0
    )
    ((column, at),) = [(cut.column, cut.at) for cut in cuts]  # 1 + 2 x >= 7 from x = 3 on; y would need 60
    assert column == 0
    assert at == pytest.approx(3.0, abs=1e-4)


@pytest.fixture(scope="module")
def mixes(tmp_path_factory):
    """The example of `dovetail init`: three mixes over nine inputs that share trucks and ash."""
    folder = tmp_path_factory.mktemp("example")
    write_example(folder)
    problem = FileDescription.read(folder / "problem.toml").problem()
    return problem, dt.solve(problem, log=False)


def test_a_certificate_proves_what_the_solve_has_proved(mixes):
    problem, result = mixes
    assert result.status == "optimal"
    certificate = result.certificate
    assert certificate.bound == pytest.approx(result.bound, rel=1e-8)
    assert verify(problem, certificate, graphs_of(problem)).holds


@volume("without cuts a certificate is not done in five seconds, which are waited for")
def test_cutting_off_is_what_makes_it_short(mixes, monkeypatch):
    problem, result = mixes
    short = certify(problem, result.bound, "boxes", 20.0)
    monkeypatch.setattr(growing, "cuts_by_rows", lambda programs, *_: [[] for _ in programs.lower])
    monkeypatch.setattr(growing, "cuts_by_multipliers", lambda boxes, *_: [[] for _ in boxes.lower])
    assert certify(problem, result.bound, "boxes", 5.0).bound < result.bound - 1.0
    assert short.bound == pytest.approx(result.bound, rel=1e-8)


def test_pieces_that_do_not_close_are_boxes_like_any_other(mixes, monkeypatch):
    """Multipliers that prove nothing: the proof takes longer, and stands."""
    problem, _ = mixes
    rows = growing.cuts_by_rows

    def useless(programs, *rest):
        return [
            [type(c)(c.column, c.at, c.above, programs.leaves(np.zeros(1), np.zeros(programs.low.shape)[:1]))
             for c in cuts] for cuts in rows(programs, *rest)
        ]  # fmt: skip

    monkeypatch.setattr(growing, "cuts_by_rows", useless)
    aim = 3700.0  # six trucks are not enough, and that takes networks
    certificate = certify(problem, aim, "boxes", 20.0)
    found = verify(problem, certificate, graphs_of(problem))
    assert found.holds
    assert found.bound == pytest.approx(aim, rel=1e-8)
