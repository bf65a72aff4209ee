"""What runs the cases of a sweep, wherever that is."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from dovetail.sweeping.cases import Case
from dovetail.sweeping.row import SweepRow


class CaseRunner(Protocol):
    """Solves cases and yields their rows as they come, in any order, one for each case.

    A case that fails, or takes its process with it, is a row with an error; only what no case could survive
    (nothing can be started, `build` is not there) is raised. Closing the generator ends what still runs.
    """

    def rows(self, cases: Sequence[Case]) -> Generator[SweepRow, None, None]:
        """The rows, as they come."""
        ...
