"""Parts of a Pyomo model that write a predictor out which is tied to the model as well.

Pyomo's own writers and solvers need these rows; dovetail asks the predictor itself, leaves them out when it
reads the model, and fills their variables in when it hands an answer back. A copy of the model has rows and no
ties: there they are read as rows like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol
from weakref import WeakKeyDictionary

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


_parts: WeakKeyDictionary[Any, WrittenPredictor] = WeakKeyDictionary()


def note_written(parts: Iterable[Any], predictor: WrittenPredictor) -> None:
    """From now on these blocks and constraints of Pyomo's are left to `predictor`."""
    for part in parts:
        _parts[part] = predictor


def is_written(part: Any) -> bool:
    """Whether a block or a constraint is left to its predictor."""
    return part in _parts


def written_in(blocks: Iterable[Any]) -> list[WrittenPredictor]:
    """The predictors that are written out in some of these blocks, each once."""
    found = (_parts[block] for block in blocks if block in _parts)
    return list({id(predictor): predictor for predictor in found}.values())


def variables_in(blocks: Iterable[Any], kind: Any) -> Iterator[Any]:
    """The variables (of Pyomo's class `kind`) that are columns: those inside only where rows use them."""
    inside: list[Any] = []
    for block in blocks:
        if block in _parts:
            inside.append(block)
        else:
            yield from block.component_data_objects(kind, active=True, descend_into=False)
    for predictor in written_in(inside):
        yield from predictor.revealed


def reveal(variables: Iterable[Any]) -> bool:
    """Tie those of these variables that are inside and not yet tied; whether there were any."""
    asked: dict[int, tuple[WrittenPredictor, list[Any]]] = {}
    for variable in variables:
        predictor = _parts.get(variable.parent_block())
        if predictor is not None and not any(variable is known for known in predictor.revealed):
            asked.setdefault(id(predictor), (predictor, []))[1].append(variable)
    for predictor, inside in asked.values():
        predictor.reveal(inside)
    return bool(asked)


def not_tied(variable: Any) -> ModelError:
    """What is said of a variable inside that cannot be tied."""
    return ModelError(
        f"{variable.name} is inside of a predictor that is written out, and a row or the objective uses it; "
        "only what goes into its layers and comes out of them (z and zhat) can be used."
    )
