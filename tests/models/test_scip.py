"""Reading PySCIPOpt models: the same program, whatever SCIP has done with it since, and left as it was."""

import gc
from itertools import product

import numpy as np
import pyscipopt
import pytest

import dovetail as dt
from dovetail.core.foreign import locate
from dovetail.modelling.snapshot import take_snapshot
from dovetail.models import foreign_model
from dovetail.models.scip import ScipModel
from tests.conftest import FULL
from tests.contexts import by_scipy

SEEDS = range(300 if FULL else 15)
KINDS = "BIC"


def silent():
    model = pyscipopt.Model()
    model.hideOutput()
    return model


class Written:
    """A random linear model, in SCIP and in arrays of the test's own, columns in order of creation."""

    def __init__(self, seed, *, bounded=False):
        rng = self.rng = np.random.default_rng(seed)
        n, rows = self.n, _ = int(rng.integers(3, 8)), 6
        self.model = silent()
        self.kinds = [KINDS[k] for k in rng.integers(len(KINDS), size=n)]
        integer = self.integer = np.array([kind != "C" for kind in self.kinds])
        self.lower, self.upper = (
            -rng.integers(0, 6, size=n).astype(float),
            rng.integers(0, 6, size=n) * 1.0,
        )
        if not bounded:
            self.lower[rng.random(n) < 0.2] = -np.inf
            self.upper[rng.random(n) < 0.2] = np.inf
        binary = np.array(self.kinds) == "B"
        self.lower[binary], self.upper[binary] = 0.0, 1.0
        self.cost = np.where(rng.random(n) < 0.7, rng.integers(-5, 6, size=n), 0) * 0.5
        self.offset, self.sense = float(rng.integers(-9, 9)), ("min", "max")[rng.integers(2)]
        self.variables = [
            self.model.addVar(
                name=f"v{j // 2}",  # each name twice
                vtype=self.kinds[j],
                lb=None if np.isinf(self.lower[j]) else self.lower[j],
                ub=None if np.isinf(self.upper[j]) else self.upper[j],
            )
            for j in range(n)
        ]
        self.x0 = np.where(integer, np.round(self.middle()), self.middle())
        self.A = np.where(rng.random((rows, n)) < 0.6, rng.integers(-4, 5, size=(rows, n)), 0) * 1.0
        self.A[:, 0] = np.where(np.any(self.A != 0, axis=1), self.A[:, 0], 1.0)
        activity = self.A @ self.x0
        self.row_lower = np.where(rng.random(rows) < 0.5, activity - rng.integers(0, 4, size=rows), -np.inf)
        self.row_upper = np.where(rng.random(rows) < 0.6, activity + rng.integers(0, 4, size=rows), np.inf)
        self.row_lower[0] = self.row_upper[0] = activity[0]
        self.constraints = [self.add(i) for i in range(rows)]
        objective = pyscipopt.quicksum(c * v for c, v in zip(self.cost, self.variables, strict=True))
        self.model.setObjective(objective + self.offset, {"min": "minimize", "max": "maximize"}[self.sense])

    def middle(self):
        return np.clip(np.zeros(self.n), self.lower, self.upper)

    def add(self, i):
        lower, upper = self.row_lower[i], self.row_upper[i]
        total = pyscipopt.quicksum(a * v for a, v in zip(self.A[i], self.variables, strict=True))
        if lower == upper:
            return self.model.addCons(total == lower, name="row")
        if np.isinf(lower) and np.isinf(upper):
            return self.model.addCons(total <= 1e20, name="row")
        if np.isinf(lower):
            return self.model.addCons(total <= upper, name="row")
        if np.isinf(upper):
            return self.model.addCons(total >= lower, name="row")
        return self.model.addCons(lower <= (total <= upper), name="row")

    def assert_read_as_written(self, reading):
        mip = reading.mip
        order = [reading.column[v.ptr()] for v in self.variables]
        assert (mip.n_columns, mip.sense, mip.offset) == (self.n, self.sense, self.offset)
        np.testing.assert_array_equal(mip.cost[order], self.cost)
        np.testing.assert_array_equal(mip.lower[order], self.lower)
        np.testing.assert_array_equal(mip.upper[order], self.upper)
        np.testing.assert_array_equal(mip.integer[order], self.integer)
        np.testing.assert_array_equal(mip.A.toarray()[:, order], self.A)
        np.testing.assert_array_equal(mip.row_lower, self.row_lower)
        np.testing.assert_array_equal(mip.row_upper, self.row_upper)


def optimum(mip):
    """The best objective value by scipy; None where there is none."""
    found = by_scipy(mip)
    return None if found is None else found[0]


def scip_optimum(model):
    model.optimize()
    return model.getObjVal() if model.getStatus() == "optimal" else None


def as_text(model, tmp_path):
    path = tmp_path / "model.cip"
    model.writeProblem(str(path), verbose=False)
    return path.read_text()


def feasible(mip, x):
    activity = mip.A @ x
    rows = np.all(activity >= mip.row_lower - 1e-6) and np.all(activity <= mip.row_upper + 1e-6)
    bounds = np.all(x >= mip.lower - 1e-6) and np.all(x <= mip.upper + 1e-6)
    return bool(rows and bounds and np.all(np.abs(x - np.round(x))[mip.integer] <= 1e-6))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_program_before_and_after_a_solve(seed, tmp_path):
    written = Written(seed)
    model, foreign = written.model, foreign_model(written.model)
    assert isinstance(foreign, ScipModel)
    before = as_text(model, tmp_path)
    written.assert_read_as_written(foreign.read())
    assert (as_text(model, tmp_path), model.getStage()) == (before, 1)
    best = scip_optimum(model)
    solved = (as_text(model, tmp_path), model.getStage(), model.getNSols())
    written.assert_read_as_written(foreign.read())
    assert (as_text(model, tmp_path), model.getStage(), model.getNSols()) == solved
    if best is not None:
        assert model.getObjVal() == best
        assert optimum(foreign.read().mip) == pytest.approx(best, abs=1e-5)
    model.freeTransform()
    written.assert_read_as_written(foreign.read())


@pytest.mark.parametrize("seed", SEEDS)
def test_points_are_judged_as_scip_judges_them(seed):
    written = Written(seed)
    model = written.model
    reading = foreign_model(model).read()
    variables = {v.ptr(): v for v in model.getVars()}
    seen = set()
    for k in range(20):
        x = written.x0 + written.rng.integers(-1, 2, size=written.n) * (k > 0)
        values = dict(zip((v.ptr() for v in written.variables), x, strict=True))
        point = model.createSol()
        for key in reading.keys:
            model.setSolVal(point, variables[key], values[key])
        ordered = np.array([values[key] for key in reading.keys])
        judged = model.checkSol(point, printreason=False, original=True)
        assert feasible(reading.mip, ordered) == judged
        assert reading.mip.objective(ordered) == pytest.approx(model.getSolObjVal(point))
        seen.add(judged)
    assert True in seen  # x0 itself


def test_what_was_changed_is_read_as_it_is_now():
    written = Written(5)
    model, foreign = written.model, foreign_model(written.model)
    model.delCons(written.constraints[1])
    rows = [0, 5, 2, 3, 4]  # SCIP fills the gap with the last
    for name in ("A", "row_lower", "row_upper"):
        setattr(written, name, getattr(written, name)[rows])
    model.chgRhs(written.constraints[0], 99.0)
    model.chgCoefLinear(written.constraints[2], written.variables[0], 7.5)
    model.chgVarUb(written.variables[1], 44.0)
    written.row_upper[0], written.A[2, 0], written.upper[1] = 99.0, 7.5, 44.0
    written.assert_read_as_written(foreign.read())


def test_an_infinity_of_the_owners_own():
    model = silent()
    model.setParam("numerics/infinity", 1e10)
    x = model.addVar(ub=1e10)
    model.addCons(x <= 1e10)
    mip = foreign_model(model).read().mip
    assert mip.upper[0] == mip.row_upper[0] == np.inf


def test_a_variable_that_is_an_integer_by_implication():
    model = silent()
    n, whole = model.addVar("n", vtype="I", ub=9), model.addVar("whole", vtype="M", ub=30)
    model.addCons(whole == 3 * n)
    reading = foreign_model(model).read()
    assert reading.mip.integer[reading.column[whole.ptr()]]


def test_a_copied_model():
    written = Written(7)
    copy = pyscipopt.Model(sourceModel=written.model)
    mip, own = foreign_model(copy).read().mip, foreign_model(written.model).read().mip
    assert optimum(mip) == pytest.approx(optimum(own))
    assert mip.A.shape == own.A.shape


CIP = """STATISTICS
  Problem name     : kinds
OBJECTIVE
  Sense            : minimize
VARIABLES
  [binary] <a>: obj=1, original bounds=[0,1]
  [binary] <b>: obj=1, original bounds=[0,1]
  [binary] <c>: obj=1, original bounds=[0,1]
  [integer] <y>: obj=1, original bounds=[0,2]
CONSTRAINTS
  [setppc] <s>: +<~a> +<b> +<c> <= 1;
  [logicor] <l>: logicor(<~a>,<b>);
  [varbound] <v>: <y>[I] +3<c>[B] >= 2;
  [knapsack] <k>: +2<~b> +3<c> <= 4;
  [linear] <li>: -2 <= +2<~a> -3<b> +1<y> <= 4;
  [and] <an>: <c> == and(<a>,<~b>);
END
"""


def test_kinds_of_rows_and_negated_variables_from_a_file(tmp_path):
    (tmp_path / "kinds.cip").write_text(CIP)
    model = silent()
    model.readProblem(str(tmp_path / "kinds.cip"))
    mip = foreign_model(model).read().mip
    place = [mip.names.index(name) for name in "abcy"]
    for a, b, c, y in product((0, 1), (0, 1), (0, 1), (0, 1, 2)):
        wanted = (
            1 - a + b + c <= 1
            and 1 - a + b >= 1
            and y + 3 * c >= 2
            and 2 * (1 - b) + 3 * c <= 4
            and -2 <= 2 * (1 - a) - 3 * b + y <= 4
            and c == (a and 1 - b)
        )
        x = np.empty(4)
        x[place] = a, b, c, y
        assert feasible(mip, x) == wanted


@pytest.mark.parametrize("parts", [1, 2, 4])
@pytest.mark.parametrize("kind", ["And", "Or"])
def test_logic_is_written_exactly(kind, parts):
    model = silent()
    variables = [model.addVar(vtype="B") for _ in range(parts + 1)]
    getattr(model, f"addCons{kind}")(variables[:-1], variables[-1])
    reading = foreign_model(model).read()
    for values in product((0.0, 1.0), repeat=parts + 1):
        x = np.empty(parts + 1)
        x[[reading.column[v.ptr()] for v in variables]] = values
        wanted = values[-1] == (min if kind == "And" else max)(values[:-1])
        assert feasible(reading.mip, x) == wanted


def with_random_indicators(written):
    """Indicators on a random model, as (binary, active, coefficients, limit), each a row <= limit."""
    model, rng = written.model, written.rng
    switches = [model.addVar("switch", vtype="B") for _ in range(2)]  # of equal names
    result = []
    for _ in range(3):
        entries = rng.integers(-3, 4, size=written.n).astype(float)
        limit, active, k = float(rng.integers(-6, 3)), int(rng.integers(2)), int(rng.integers(2))
        total = pyscipopt.quicksum(a * v for a, v in zip(entries, written.variables, strict=True) if a)
        if not np.any(entries):
            continue
        cons = (total <= limit) if rng.integers(2) else (-total >= -limit)
        model.addConsIndicator(cons, switches[k], activeone=bool(active))
        result.append((switches[k], active, entries, limit))
    return switches, result


@pytest.mark.parametrize("seed", SEEDS)
def test_indicators(seed, tmp_path):
    written = Written(seed, bounded=True)
    model = written.model
    switches, indicators = with_random_indicators(written)
    before = as_text(model, tmp_path)
    reading = foreign_model(model).read()
    assert as_text(model, tmp_path) == before
    own = {v.ptr() for v in (*written.variables, *switches)}
    assert set(reading.keys) == own  # no slacks
    rows = take_snapshot(model).problem.mip
    for _ in range(50):
        x = np.clip(written.x0 + written.rng.integers(-2, 3, size=written.n), written.lower, written.upper)
        on = {v.ptr(): float(written.rng.integers(2)) for v in switches}
        values = {v.ptr(): value for v, value in zip(written.variables, x, strict=True)} | on
        activity = written.A @ x
        wanted = np.all((activity >= written.row_lower) & (activity <= written.row_upper))
        for switch, active, entries, limit in indicators:
            wanted = wanted and (on[switch.ptr()] != active or entries @ x <= limit)
        assert feasible(rows, np.array([values[key] for key in reading.keys])) == wanted
    best = scip_optimum(model)
    mine = optimum(take_snapshot(model).problem.mip)
    assert mine == (best if best is None else pytest.approx(best, abs=1e-4))


def test_indicators_come_back_from_a_file(tmp_path):
    written = Written(11, bounded=True)
    with_random_indicators(written)
    as_text(written.model, tmp_path)
    again = silent()
    again.readProblem(str(tmp_path / "model.cip"))
    mip, own = (take_snapshot(model).problem.mip for model in (again, written.model))
    assert (mip.n_columns, mip.n_rows) == (own.n_columns, own.n_rows)
    assert optimum(mip) == pytest.approx(optimum(own))


def slack_model():
    model = silent()
    x, b = model.addVar("x", ub=9.0), model.addVar("b", vtype="B")
    return model, x, b, model.addConsIndicator(x <= 3, b, name="few")


@pytest.mark.parametrize("use", ["objective", "row"])
def test_a_slack_that_the_owner_uses_is_kept(use):
    model, x, b, few = slack_model()
    slack = model.getSlackVarIndicator(few)
    if use == "objective":
        model.chgVarUb(slack, 20.0)
        model.setObjective(2 * x - 3 * slack - b, "maximize")  # the slack is worth less than what it allows
    else:
        model.addCons(slack <= 4)
        model.setObjective(x - b, "maximize")
    reading = foreign_model(model).read()
    assert slack.ptr() in reading.column
    assert optimum(take_snapshot(model).problem.mip) == pytest.approx(scip_optimum(model))


def test_indicators_that_are_no_rows():
    model, x, b, _ = slack_model()
    model.chgVarUb(x, 1e20)
    (few,) = foreign_model(model).read().indicators
    assert few.name == "few"
    assert [block.name for block in take_snapshot(model).problem.blocks] == ["indicator few"]
    model = silent()
    x = model.addVar("x", ub=9.0)
    model.addConsIndicator(x <= 3, name="lonely")
    with pytest.raises(dt.ModelError, match="lonely has no binary"):
        foreign_model(model).read()
    model, _, b, _ = slack_model()
    model.chgVarType(b, "C")
    with pytest.raises(dt.ModelError, match="constraint few: b is continuous"):
        take_snapshot(model)


def test_an_indicator_that_was_removed():
    model, _, _, few = slack_model()
    model.delCons(few)
    mip = foreign_model(model).read().mip
    assert optimum(mip) is not None


REFUSED = {
    "disjunction": lambda m, b, x: m.addConsDisjunction([x[0] <= 1, x[1] >= 2], name="odd"),
    "neither linear nor quadratic": lambda m, b, x: m.addCons(pyscipopt.exp(x[0]) <= 2, name="odd"),
    "cumulative": lambda m, b, x: m.addConsCumulative(x, [1, 1, 1], [1, 1, 1], 2, name="odd"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refuses_what_is_not_taken_by_name(words):
    model = silent()
    b = [model.addVar(vtype="B") for _ in range(3)]
    x = [model.addVar(vtype="I", ub=5) for _ in range(3)]
    REFUSED[words](model, b, x)
    with pytest.raises(dt.UnsupportedError, match=f"constraint odd is .*{words}"):
        foreign_model(model).read()
    assert foreign_model(model).read(rows=False).mip.n_columns >= 6


def test_refuses_callbacks_that_say_more_than_the_model():
    class Lazy(pyscipopt.Conshdlr):
        def conslock(self, constraint, locktype, nlockspos, nlocksneg):
            pass

    model = silent()
    model.addVar()
    model.includeConshdlr(Lazy(), "tours", "no subtours", needscons=False)
    with pytest.raises(dt.UnsupportedError, match="handler of its own, tours"):
        foreign_model(model).read()
    model = silent()
    model.addVar()
    model.includePricer(pyscipopt.Pricer(), "routes", "more columns")
    with pytest.raises(dt.UnsupportedError, match="routes"):
        foreign_model(model).read()


def test_refuses_models_without_a_problem():
    model = silent()
    x = model.addVar()
    model.freeProb()
    with pytest.raises(dt.ModelError, match="freed"):
        foreign_model(model).read()
    with pytest.raises(dt.ModelError, match="freed"):
        foreign_model(model).key(x)


def test_reads_after_a_limit():
    model = silent()
    rng = np.random.default_rng(1)
    x = [model.addVar(vtype="B") for _ in range(40)]
    for _ in range(20):
        model.addCons(
            pyscipopt.quicksum(int(w) * v for w, v in zip(rng.integers(1, 50, 40), x, strict=True)) <= 400
        )
    model.setObjective(
        pyscipopt.quicksum(int(w) * v for w, v in zip(rng.integers(1, 50, 40), x, strict=True)), "maximize"
    )
    model.setParam("limits/nodes", 1)
    model.optimize()
    assert model.getStageName() == "SOLVING"
    foreign = foreign_model(model)
    assert foreign.read().mip.A.shape == (20, 40)
    with pytest.raises(dt.ModelError, match="freeTransform"):
        foreign.create((1, 1), binary=False, name="y")
    assert len(model.getVars()) == 40


def test_containers():
    model = silent()
    X = model.addMatrixVar((2, 3), name="X")
    z = model.addVar("z")
    foreign = foreign_model(model)
    reading = foreign.read(rows=False)
    assert foreign.unpack(X).shape == (2, 3)
    assert foreign.unpack(z).shape == ()
    found = locate(foreign, reading, "input_vars", foreign.unpack([X[1, 0], 4.0, z]))
    assert [reading.keys[j] for j in found.column[[0, 2]]] == [X[1, 0].ptr(), z.ptr()]
    assert found.number[1] == 4.0


def test_keys():
    model = silent()
    x, y = model.addVar("x", ub=3), model.addVar("y", ub=2)
    model.addCons(x + y <= 4)
    model.setObjective(x + y, "maximize")
    foreign = foreign_model(model)
    assert foreign.key(x) == x.ptr()
    late = model.addVar("late", ub=1)
    assert foreign.key(late) == late.ptr()
    model.optimize()
    transformed = model.getTransformedVar(x)
    assert foreign.key(transformed) == x.ptr()
    assert foreign.key(model.getVars()[0]) in {x.ptr(), y.ptr(), late.ptr()}
    model.freeTransform()
    for gone in (transformed, model.addVar("brief")):
        if gone is not transformed:
            model.delVar(gone)
        with pytest.raises(dt.ModelError, match="removed"):
            foreign.key(gone)
    for strange in (x + 1, 2 * x):
        with pytest.raises(dt.ModelError, match="is an expression"):
            foreign.key(strange)


def test_variables_of_other_models():
    model, other = silent(), silent()
    model.addVar("x")
    stranger = other.addVar("x")
    foreign = foreign_model(model)
    with pytest.raises(dt.ModelError, match="another model"):
        foreign.key(stranger)
    other.freeProb()
    with pytest.raises(dt.ModelError, match="another model"):
        foreign.key(stranger)
    del other
    gc.collect()
    with pytest.raises(dt.ModelError, match="another model"):
        foreign.key(stranger)


def test_a_constraint_with_a_variable_that_was_removed():
    model = silent()
    x, y = model.addVar("x"), model.addVar("y")
    model.addCons(x + y <= 4, name="pair")
    model.delVar(x)
    with pytest.raises(dt.ModelError, match="constraint pair has a variable that was removed"):
        foreign_model(model).read()


def test_what_cannot_be_created_or_discarded():
    model = silent()
    x = model.addVar("x", ub=3)
    foreign = foreign_model(model)
    made = foreign.create((1, 1), binary=True, name="y")
    used = model.addCons(x + made[0, 0] <= 2, name="uses")
    with pytest.raises(dt.ModelError, match="y_0_0 cannot be removed while it is in the constraint uses"):
        foreign.discard(made)
    model.setObjective(x, "maximize")
    model.optimize()
    value = model.getVal(x)
    with pytest.raises(dt.ModelError, match="freeTransform"):
        foreign.discard(made)
    with pytest.raises(dt.ModelError, match="freeTransform"):
        foreign.create((1, 1), binary=True, name="z")
    assert model.getVal(x) == value
    model.freeTransform()
    model.delCons(used)
    foreign.discard(made)
    assert [v.name for v in model.getVars()] == ["x"]
