"""How a result can be had again: the call as it would be written, versions, and no machine's name."""

import platform
from dataclasses import asdict, dataclass, field

import pytest

import dovetail as dt
from dovetail.run.record import read
from dovetail.run.result import Settings


def test_only_what_differs_from_the_default_is_said():
    settings = Settings.of(dt.DualDecomposition(rho=3.0), {"time_limit": 5.0, "start": ...})
    assert settings.call == "dt.solve(problem, dt.DualDecomposition(rho=3.0), time_limit=5.0, start=...)"
    assert settings.fields["iterations"] == "50"
    assert {"dovetail", "python", "torch"} <= set(settings.versions)
    assert platform.node() not in settings.machine.split(", ")


def test_a_call_can_be_made_again():
    made = dt.DualDecomposition.paper(adaptive=True)
    settings = Settings.of(made, {})
    assert eval(settings.method, {"dt": dt}) == made


@dataclass(frozen=True)
class Mine:
    name = "mine"
    weigh: object = field(default=len)
    also: object = field(default_factory=list)

    def solve(self, context):
        """Nothing."""


def test_methods_of_others_and_no_addresses():
    assert Settings.of(Mine(), {}).method == "Mine()"
    assert " at 0x" not in Settings.of(Mine(weigh=lambda: 0), {}).method


def test_a_solve_says_what_decided_it():
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=0.0, upper=[3.0, 9.0]))
    problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    result = dt.solve(problem, dt.DualDecomposition(iterations=1), gap=0.1, seed=7, log=False)
    assert result.settings.options == {"time_limit": "60.0", "seed": "7", "gap": "0.1"}


def test_files():
    settings = Settings.of(dt.DualDecomposition(), {"seed": 0})
    assert read("settings", asdict(settings), Settings) == settings
    with pytest.raises(ValueError, match="settings.machine is '3', no str"):
        read("settings", {**asdict(settings), "machine": 3}, Settings)
