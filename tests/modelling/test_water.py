"""One problem in five tools and a file: the same program is read, and the same optimum comes back."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.foreign import locate
from dovetail.modelling.snapshot import take_snapshot
from dovetail_study.problems.water import water
from tests.modelling.written import TOOLS, canonical
from tests.tools import numbers


@pytest.fixture(scope="module")
def instance():
    return water(25, "2x16", seed=42)


@pytest.fixture(scope="module")
def ours(instance):
    """The program as `problems/water.py` builds it from arrays."""
    problem = instance.problem
    n, d = instance.samples.shape
    added = instance.treated + n * d
    return canonical(problem.mip, (instance.treated, added, added + n * d, instance.potable))


def place_of(origin, group):
    return locate(origin.model, origin.reading, "group", origin.model.unpack(group)).column


@pytest.mark.parametrize("tool", TOOLS)
class TestInEachTool:
    def test_the_program_that_is_read(self, tool, instance, ours):
        written = TOOLS[tool](instance.samples)
        session = take_snapshot(written.model)
        found = [place_of(session.origin, group) for group in written.groups]
        assert found[0].shape == instance.samples.shape
        assert canonical(session.problem.mip, found) == ours

    def test_the_proven_optimum_comes_back_in_its_own_variables(self, tool, instance):
        written = TOOLS[tool](instance.samples)
        constr = dt.add_predictor_constr(
            written.model, instance.network, written.x, written.y, output_type="classification"
        )
        result = dt.solve(written.model, time_limit=60, log=False)
        assert (result.status, result.objective) == ("optimal", 25.0)
        x, y = numbers(result.value(written.x)), numbers(result.value(written.y))
        assert x.shape == instance.samples.shape
        assert y.size == 25 and np.all(y == 1.0)
        added, removed = (numbers(result.value(part)) for part in (written.added, written.removed))
        assert np.allclose(instance.samples + added - removed, x, atol=2e-6)
        assert np.all(added.sum(axis=0) <= 2 + 1e-6) and np.all(removed.sum(axis=0) <= 2 + 1e-6)
        assert np.array_equal(constr.input_values, x)
        assert constr.output_values.shape == (25, 1)  # one row per sample, as the peers have it
        assert np.all(constr.get_error() == 0.0)


def test_from_a_file(instance, ours, tmp_path):
    written = TOOLS["highspy"](instance.samples)
    for suffix in ("mps", "lp", "mps.gz"):
        path = tmp_path / f"water.{suffix}"
        written.model.writeModel(str(path))
        problem = dt.Problem(dt.read(path))
        names = dict(zip(problem.mip.names, range(problem.mip.n_columns), strict=True))
        # HiGHS names unnamed columns by their places
        places = np.array([names[f"c{j}"] for j in range(problem.mip.n_columns)])
        held = [np.asarray(group) for group in written.groups]
        found = [places[[int(variable) for variable in group.flat]].reshape(group.shape) for group in held]
        assert canonical(problem.mip, found) == ours
    names = np.array(problem.mip.names)
    problem.add_predictor(
        instance.network, names[found[0]], names[found[3]][:, None], output_type="classification"
    )
    result = dt.solve(problem, time_limit=60, log=False)
    assert (result.status, result.objective) == ("optimal", 25.0)
