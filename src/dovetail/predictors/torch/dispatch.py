"""Seeing every operation that torch carries out, at no more than that cost."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that torch's compiler knows nothing of: telling it would import it first, for two seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
