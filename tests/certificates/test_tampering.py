"""A certificate in which anything was changed proves less, or nothing; it never proves more."""

from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.certificates.certificate import read_certificate
from dovetail.certificates.checker.verification import leaf_boxes, verify
from dovetail.certificates.proof import CertificateKind
from tests.certificates.reference import (
    certificate_of,
    graphs_of,
    halvings,
    least_value,
    network,
    part_values,
    problem_of,
)
from tests.conftest import sample


@pytest.fixture(scope="module")
def made():
    problem = problem_of(network(3))
    values = part_values(problem)
    tree = halvings(values, 7, 2)
    return problem, certificate_of(problem, tree, leaf_minimum(values, tree))


def leaf_minimum(values, tree):
    boxes = leaf_boxes(tree, values.columns, values.integer, values.lower, values.upper, values.neurons, 3)
    return float(values.values(boxes, tree.leaves).value.min())


def looked_at(problem, certificate):
    return verify(problem, certificate, graphs_of(problem))


def with_part(certificate, **changes):
    (part,) = certificate.parts
    return replace(certificate, parts=(replace(part, **changes),))


def with_tree(certificate, **changes):
    return with_part(certificate, tree=replace(certificate.parts[0].tree, **changes))


def with_leaves(certificate, **changes):
    return with_tree(certificate, leaves=replace(certificate.parts[0].tree.leaves, **changes))


def test_what_is_true_holds(made):
    problem, certificate = made
    found = looked_at(problem, certificate)
    assert found.holds
    assert found.bound <= least_value(problem)
    assert found.bound >= least_value(problem) - 0.3


def test_a_bound_that_is_raised_is_caught(made):
    problem, certificate = made
    more = certificate.bound + 1e-5
    assert not looked_at(problem, replace(certificate, bound=more)).holds
    raised = with_part(replace(certificate, bound=more), value=more)
    found = looked_at(problem, raised)
    assert not found.holds or found.bound <= least_value(problem)  # halving a leaf may prove a little more
    wrong = least_value(problem) + 1e-4
    found = looked_at(problem, with_part(replace(certificate, bound=wrong), value=wrong))
    assert not found.holds
    assert "only the bound" in found.message


def test_a_leaf_that_is_dropped_is_caught(made):
    problem, certificate = made
    tree = certificate.parts[0].tree
    children = tree.children.copy()
    children[children == -len(tree.leaves)] = -1  # the last leaf is now the first once more
    shorter = replace(tree.leaves, objective=tree.leaves.objective[:-1], rows=tree.leaves.rows[:-1])
    assert "missing" in looked_at(problem, with_tree(certificate, children=children)).message
    assert not looked_at(problem, with_tree(certificate, children=children, leaves=shorter)).holds
    assert not looked_at(problem, with_leaves(certificate, objective=tree.leaves.objective[:-1])).holds


def test_splits_that_do_not_cover_are_caught(made):
    problem, certificate = made
    tree = certificate.parts[0].tree
    for children in (np.full_like(tree.children, -1), tree.children[:, ::-1] * 0, tree.children[:-1]):
        assert not looked_at(problem, with_tree(certificate, children=children)).holds
    back = tree.children.copy()
    back[-1, 0] = 0
    assert "back" in looked_at(problem, with_tree(certificate, children=back)).message
    nowhere = tree.at.copy()
    nowhere[0] = np.nan
    assert not looked_at(problem, with_tree(certificate, at=nowhere)).holds


def test_a_split_elsewhere_proves_no_more_than_is_true(made):
    problem, certificate = made
    for seed in sample(range(5), 2):
        rng = np.random.default_rng(seed)
        at = certificate.parts[0].tree.at + rng.normal(0, 0.3, len(certificate.parts[0].tree.at))
        found = looked_at(problem, with_tree(certificate, at=at))
        assert found.bound is None or found.bound <= least_value(problem)


def test_any_multipliers_are_sound(made):
    problem, certificate = made
    rows = certificate.parts[0].tree.leaves.rows
    for seed in sample(range(10), 3):
        rng = np.random.default_rng(seed)
        found = looked_at(problem, with_leaves(certificate, rows=rng.normal(0, 1, rows.shape)))
        assert found.bound is None or found.bound <= least_value(problem)
    bad = rows.copy()
    bad[0] = np.nan
    assert looked_at(problem, with_leaves(certificate, rows=bad)).bound <= least_value(problem)


def test_a_leaf_called_empty_is_not_believed(made):
    problem, certificate = made
    wrong = least_value(problem) + 0.01
    certificate = with_part(replace(certificate, bound=wrong), value=wrong)
    objective = np.zeros_like(certificate.parts[0].tree.leaves.objective)
    assert "gives no bound" in looked_at(problem, with_leaves(certificate, objective=objective)).message
    assert (
        "neither 0 nor 1" in looked_at(problem, with_leaves(certificate, objective=objective + 2.0)).message
    )


def test_another_problem_is_caught(made):
    problem, certificate = made
    other = problem_of(network(4))
    assert "another problem" in looked_at(other, certificate).message
    moved = problem.derived(replace(problem.mip, row_upper=[1.1]), problem.blocks)
    assert "another problem" in looked_at(moved, certificate).message
    assert not looked_at(problem, replace(certificate, problem="0" * 32)).holds


def test_prices_of_rows_that_a_part_has_are_caught(made):
    problem, certificate = made
    assert not looked_at(problem, replace(certificate, prices=np.ones(problem.mip.n_rows))).holds
    assert not looked_at(problem, replace(certificate, prices=np.ones(9))).holds
    assert not looked_at(problem, replace(certificate, parts=certificate.parts * 2)).holds
    part = replace(certificate.parts[0], columns=certificate.parts[0].columns[:-1])
    assert not looked_at(problem, replace(certificate, parts=(part,))).holds


def test_without_parts_only_the_host_is_left(made):
    problem, certificate = made
    found = looked_at(problem, replace(certificate, parts=()))
    assert not found.holds
    assert found.bound == pytest.approx(-50.2, abs=1e-4)


def test_an_engine_is_named(made):
    problem, certificate = made
    by_scip = replace(certificate, kind=CertificateKind.SOLVER, source="SCIP 10.0.2")
    assert str(looked_at(problem, by_scip)) == "not re-verified (solver: SCIP 10.0.2)"


def test_a_file_says_the_same(made, tmp_path):
    problem, certificate = made
    again = read_certificate(certificate.save(tmp_path / "a.certificate"))
    assert looked_at(problem, again) == looked_at(problem, certificate)
    assert again.size == certificate.size


@pytest.mark.parametrize("text", [b"", b"PK\x03\x04", b"not a file of arrays"])
def test_a_file_that_is_none_is_refused(text, tmp_path):
    path = tmp_path / "bad.certificate"
    path.write_bytes(text)
    with pytest.raises(dt.OptionError, match="not a certificate"):
        read_certificate(path)
    with pytest.raises(dt.OptionError, match="no file"):
        read_certificate(tmp_path / "missing")


def test_the_check_takes_a_certificate(made):
    problem, certificate = made
    x = problem.predict(np.array([0.0, 0.0, 0.0]))
    found = dt.check(problem, x, certificate=certificate)
    assert found.within()
    assert found.verification.holds
    with pytest.raises(dt.OptionError, match="read_certificate"):
        dt.check(problem, x, certificate="bound.certificate")
