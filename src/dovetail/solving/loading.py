"""The answer in the model that was solved, where its owner looks for it."""

from __future__ import annotations

import logging
from dataclasses import replace

from dovetail.core.foreign import Answer
from dovetail.run.result import Result

_log = logging.getLogger("dovetail")


def loaded(result: Result) -> Result:
    """The result, once its model has it; a refusal is told and the result stands, whatever was refused.

    Where no point was found, what an earlier solve loaded is withdrawn as far as the tool lets one.
    """
    origin = result.origin
    if origin is None:
        return result
    try:
        origin.load(Answer(result.x, result.objective, result.status.value, result.stop_reason.value))
    except Exception as refusal:  # of the tool's own, too: a solve that took an hour is not lost for it
        told = f"the values are in the result only: {refusal}"
        _log.warning(told)
        return replace(result, message=f"{result.message}; {told}")
    except BaseException as leaving:  # a second Ctrl-C, say
        leaving.result = result  # type: ignore[attr-defined]
        raise
    return result
