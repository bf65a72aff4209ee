"""Parts of a Pyomo model that write a predictor out which is tied to the model as well.

Pyomo's own writers and solvers need these rows; dovetail asks the predictor itself, leaves them out when it
reads the model, and fills their variables in when it hands an answer back. A copy of the model has the rows
and none of the ties: there they are read as rows like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Protocol
from weakref import ref

from dovetail.core.errors import ModelError


class WrittenPredictor(Protocol):
    """What the owner of such parts has to do for them."""

    revealed: list[Any]
    """Variables inside that rows of the model use: they are columns, tied to the predictor."""

    def reveal(self, variables: list[Any]) -> None:
        """Tie these variables inside to the predictor, and list them; a `ModelError` where that cannot be."""
        ...

    def fill(self) -> None:
        """Give all variables inside the values that the model's inputs mean."""
        ...


_parts: dict[int, tuple[ref[Any], WrittenPredictor]] = {}
"""By the identity of a component (Pyomo's variables cannot be keys themselves): variables inside, and the
constraints between them. What else their owner puts beside them is the owner's."""


def note_written(components: Iterable[Any], predictor: WrittenPredictor) -> None:
    """From now on these variables and constraints of Pyomo's are left to `predictor`."""
    for component in components:
        _parts[id(component)] = ref(component, partial(_forget, id(component))), predictor


def _forget(place: int, gone: object) -> None:
    _parts.pop(place, None)


def predictor_of(component: Any) -> WrittenPredictor | None:
    """Whom a variable or a constraint is left to, if to anybody."""
    return _parts[id(component)][1] if id(component) in _parts else None


def variables_in(blocks: Iterable[Any], kind: Any) -> Iterator[Any]:
    """The variables (of Pyomo's class `kind`) that are columns: of those inside, the ones that are tied."""
    inside = []
    for block in blocks:
        for component in block.component_objects(kind, descend_into=False):
            if predictor_of(component) is None:
                yield from component.values()
            else:
                inside.append(component)
    reveal(variable for component in inside for variable in component.values() if _has_limits(variable))
    for predictor in _predictors(inside):
        yield from predictor.revealed


def reveal(variables: Iterable[Any]) -> bool:
    """Tie those of these variables that are inside and not yet tied; whether there were any."""
    asked: dict[int, tuple[WrittenPredictor, list[Any]]] = {}
    for variable in variables:
        predictor = predictor_of(variable.parent_component())
        if predictor is not None and not any(variable is known for known in predictor.revealed):
            asked.setdefault(id(predictor), (predictor, []))[1].append(variable)
    for predictor, inside in asked.values():
        predictor.reveal(inside)
    return bool(asked)


def fill(blocks: Iterable[Any], kind: Any) -> None:
    """Give what is inside of written predictors its values."""
    found = (part for block in blocks for part in block.component_objects(kind, descend_into=False))
    for predictor in _predictors(found):
        predictor.fill()


def not_tied(variable: Any) -> ModelError:
    """What is said of a variable inside that cannot be tied."""
    return ModelError(
        f"{variable.name} is inside of a predictor that is written out, and a row, the objective or a limit "
        "uses it; only what goes into activations and comes out of them (zhat and z) can be used."
    )


def _predictors(components: Iterable[Any]) -> list[WrittenPredictor]:
    """Each once."""
    found = (predictor_of(component) for component in components)
    return list({id(predictor): predictor for predictor in found if predictor is not None}.values())


def _has_limits(variable: Any) -> bool:
    """Whether somebody has fixed a variable inside or given it bounds: none are made with any."""
    own = (0, 1) if variable.is_binary() else (None, None)
    return bool(variable.fixed or (variable.lb, variable.ub) != own)
