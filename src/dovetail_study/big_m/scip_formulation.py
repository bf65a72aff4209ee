"""The formulation: a host and its networks as one model in SCIP, every neuron a variable (PySCIPOpt-ML).

PySCIPOpt-ML writes the layers. Two of its pitfalls are handled here: a big-M row needs finite inputs (without
them the row gets M = 0 and silently cuts off solutions), and a single class output is compared with 0.5
unless the network ends in a sigmoid. PySCIPOpt-ML multiplies weight by weight in Python, so the type of the
weights determines the time of writing (`PlainNumbers`).

SCIP's own presolve cannot be handled here: the written model contains every point of the problem
(tests/study/big_m/test_scip_formulation.py), but if one binary determines a whole network SCIP may cut off
points, in either formulation. See "Baseline: big-M" in docs/method.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import MissingDependencyError
from dovetail.core.linear import as_linear
from dovetail.core.mip import Mip
from dovetail.mip.own_thread import Mailbox, OwnThread
from dovetail.mip.program import LinearProgram
from dovetail.mip.scip import FOREVER, add_program, final_status, import_scip, interrupter, watched_model
from dovetail.networks.layers import Activation, Dense, Layer, thresholded
from dovetail.run.budget import Budget
from dovetail.run.memory import GB, give_back

CHUNK = 8
"""Samples formulated by one call: as a batch they share the work of reading the network."""
CENTRE = 0.5
"""PySCIPOpt-ML's threshold for a single class output if the network ends in a Linear layer."""
MEGABYTE = 2**20
"""Bytes, as SCIP counts them."""


@dataclass(frozen=True)
class Size:
    """How large a model is."""

    variables: int = 0
    constraints: int = 0
    terms: int = 0
    """Coefficients in all constraints."""

    def __add__(self, other: Size) -> Size:
        return Size(
            self.variables + other.variables, self.constraints + other.constraints, self.terms + other.terms
        )

    def __str__(self) -> str:
        return f"{self.variables:,} variables, {self.constraints:,} constraints, {self.terms:,} coefficients"


def formulation_size(
    layers: Sequence[Layer], samples: int, formulation: str = "bigm", *, classifies: bool = False
) -> Size:
    """The variables and constraints that PySCIPOpt-ML adds for a network, counted before anything is
    built."""
    variables = constraints = terms = width = 0
    last = len(layers) - 1
    for k, layer in enumerate(layers):
        if isinstance(layer, Dense):
            width, fan_in = layer.weight.shape
            own, rows, entries = 0, width, width * (fan_in + 1)
        elif layer.kind == "relu":
            own, rows, entries = (
                width,
                *((3 * width, 7 * width) if formulation == "bigm" else (2 * width, 5 * width)),
            )
        else:
            own, rows, entries = 0, width, 2 * width
        variables += own + (width if k < last or classifies else 0)
        constraints, terms = constraints + rows, terms + entries
    if classifies:  # a binary per class, a row that ties it to the column, and the conditions for it
        variables, constraints, terms = variables + 3 * width, constraints + 5 * width, terms + 8 * width
    return Size(samples * variables, samples * constraints, samples * terms)


class ScipFormulation:
    """A SCIP model that holds a host and, sample by sample, its networks."""

    def __init__(
        self, mip: Mip, lower: FloatArray, upper: FloatArray, *, seed: int = 0, budget: Budget | None = None
    ) -> None:
        self._scip, self._add_predictor = import_pyscipopt_ml()
        self.versions = (
            f"SCIP {self._scip.Model().version()}, PySCIPOpt {version('pyscipopt')}, "
            f"PySCIPOpt-ML {version('pyscipopt-ml')}"
        )
        self._model = watched_model(self._scip, budget or Budget())
        self._model.setParam("randomization/randomseedshift", seed % 2**31)
        self._model.setParam("misc/catchctrlc", False)  # dovetail handles Ctrl-C and returns the best point
        self._calls = 0
        self._abandoned = False
        try:
            self._columns = self._add_host(mip, lower, upper)
        except BaseException:  # out of time: the caller never gets the model and cannot free it
            self.free()
            raise

    def _add_host(self, mip: Mip, lower: FloatArray, upper: FloatArray) -> np.ndarray:
        """Rows, columns and objective of the host; the columns as SCIP's variables."""
        program = LinearProgram.of(mip)._replace(lower=lower, upper=upper)
        columns = add_program(self._scip, self._model, program)
        used = np.flatnonzero(mip.cost)
        cost = self._scip.quicksum(float(mip.cost[j]) * columns[j] for j in used)
        self._model.setObjective(cost + float(mip.offset), "minimize")
        return np.array(columns, dtype=object)

    def add(
        self,
        layers: Sequence[Layer],
        inputs: IntArray,
        outputs: IntArray,
        formulation: str,
        threshold: float | None = None,
    ) -> None:
        """Tie outputs to inputs; with a `threshold`, by class."""
        if threshold is not None:
            layers = thresholded(layers, outputs.shape[1], threshold, CENTRE)
        network = _sequential(layers)
        for first in range(0, len(inputs), CHUNK):
            self._calls += 1
            self._add_predictor(
                self._model,
                network,
                self._columns[inputs[first : first + CHUNK]],
                self._columns[outputs[first : first + CHUNK]],
                unique_naming_prefix=f"n{self._calls}_",
                output_type="regression" if threshold is None else "classification",
                formulation=formulation,
            )

    @property
    def size(self) -> tuple[int, int]:
        """Variables and constraints in the model as it stands."""
        return int(self._model.getNVars(transformed=False)), int(self._model.getNConss(transformed=False))

    def solve(
        self,
        budget: Budget,
        on_point: Callable[[FloatArray], None],
        on_node: Callable[[int], None],
        *,
        memory: float = np.inf,
    ) -> str:
        """Run SCIP with its own settings; points and numbers of nodes are reported as they come. SCIP's final
        status.

        SCIP may take `memory` more GB by its own count, which does not include its LPs, so the budget should
        also limit the memory of the process. Returns "abandoned" if SCIP did not end on request; the model
        cannot be read then.
        """
        model = self._model
        model.setParam("limits/time", min(budget.left, FOREVER))
        if np.isfinite(memory):
            held = model.getMemUsed() + model.getMemExternEstim()
            model.setParam("limits/memory", (held + memory * GB) / MEGABYTE)

        def work(mailbox: Mailbox) -> str:
            listener = _listener(self._scip, budget, mailbox, self._best, on_point, on_node)
            model.includeEventhdlr(listener, "dovetail", "reports what SCIP finds")
            said = final_status(model)
            if mailbox.closed:  # abandoned meanwhile, so that it must be freed here
                model.free()
                give_back()
            return said

        self._abandoned = True  # also if the waiting thread is interrupted
        said = OwnThread(work).wait(budget, interrupter(model))
        self._abandoned = said is None
        return said or "abandoned"

    def free(self) -> None:
        """Give SCIP's memory back now; model and event handler hold each other until they are collected."""
        if not self._abandoned:
            self._model.free()
            give_back()

    def points(self) -> list[FloatArray]:
        """All points SCIP holds, best first."""
        return [self._values(solution) for solution in self._model.getSols()]

    @property
    def bound(self) -> float:
        """SCIP's bound on all points of its model; infinite if it has none."""
        bound = float(self._model.getDualbound())
        return bound if abs(bound) < self._model.infinity() else -np.inf

    def _best(self) -> FloatArray:
        return self._values(self._model.getBestSol())

    def _values(self, solution: Any) -> FloatArray:
        return np.array([self._model.getSolVal(solution, variable) for variable in self._columns])


def import_pyscipopt_ml() -> tuple[Any, Any]:
    """PySCIPOpt and the function of PySCIPOpt-ML, or an error that says how to get them."""
    scip = import_scip('method "big-m"')
    try:
        from pyscipopt_ml.add_predictor import add_predictor_constr
    except ImportError:
        raise MissingDependencyError('method "big-m" needs PySCIPOpt-ML: pip install pyscipopt-ml.') from None
    return scip, add_predictor_constr


class PlainNumbers:
    """A parameter of torch's whose numbers come out as Python's.

    PySCIPOpt-ML multiplies them by variables one by one. With numpy's numbers each product is first tried
    as one of arrays, and takes four times as long.
    """

    def __init__(self, parameter: Any) -> None:
        self._array: np.ndarray = parameter.detach().numpy().astype(object)

    def detach(self) -> PlainNumbers:
        """Returns the object itself, as in torch."""
        return self

    def numpy(self) -> np.ndarray:
        """The numbers, as an array of Python's."""
        return self._array


def _sequential(layers: Sequence[Layer]) -> Any:
    """The layers as the torch module PySCIPOpt-ML reads, in float64."""
    from torch import nn

    class Linear(nn.Linear):
        def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
            return ((name, PlainNumbers(p)) for name, p in super().named_parameters(*args, **kwargs))

    activations = {
        "relu": nn.ReLU(),
        "sigmoid": nn.Sigmoid(),
        "tanh": nn.Tanh(),
        "softplus": nn.Softplus(),
        "softmax": nn.Softmax(dim=1),
    }
    parts: list[nn.Module] = []
    for layer in layers:
        if isinstance(layer, Activation):
            parts.append(activations[layer.kind])
            continue
        linear = as_linear(layer.weight, layer.bias)
        linear.__class__ = Linear
        parts.append(linear)
    return nn.Sequential(*parts)


def _listener(
    scip: Any,
    budget: Budget,
    mailbox: Mailbox,
    best: Callable[[], FloatArray],
    on_point: Callable[[FloatArray], None],
    on_node: Callable[[int], None],
) -> Any:
    """An event handler; made here, since its base class is only there when SCIP is."""
    kinds = scip.SCIP_EVENTTYPE
    caught = (kinds.BESTSOLFOUND, kinds.NODESOLVED)

    class Listener(scip.Eventhdlr):  # type: ignore[misc]
        def eventinit(self) -> None:
            for kind in caught:
                self.model.catchEvent(kind, self)

        def eventexit(self) -> None:
            for kind in caught:
                self.model.dropEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            if budget.over is None:
                report(event.getType(), int(self.model.getNNodes()))

    def report(kind: Any, nodes: int) -> None:
        if kind == kinds.BESTSOLFOUND:
            x = best()  # read here, while SCIP pauses
            mailbox.ask(lambda: on_point(x))
        elif kind & kinds.NODESOLVED:  # a mask: feasible, infeasible or branched
            mailbox.ask(lambda: on_node(nodes))

    return Listener()
