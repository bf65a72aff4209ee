"""Records as a pandas DataFrame, for those who have pandas."""

from __future__ import annotations

from typing import Any

from dovetail.core.errors import MissingDependencyError


def frame(what: str, records: list[dict[str, Any]]) -> Any:
    """One row per record; `what` is the call that needs pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError(f"{what} needs pandas: pip install pandas.") from None
    return pd.DataFrame(records)
