"""The versions of ONNX's operators that are known here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail.core.errors import UnsupportedError

OLDEST, NEWEST = 7, 28
"""Opsets whose operators mean what is computed here. Up to 12, lists of axes and limits were attributes, and
a softmax was over all axes from one on: each operator's file says what it meant then. Before 7, arithmetic
broadcast in a way of its own."""


def supported_opset(imports: Iterable[Any], where: str) -> int:
    """The version that a model or function imports; `where` names both it and the file."""
    version = max((item.version for item in imports if item.domain in ("", "ai.onnx")), default=0)
    if version < OLDEST:
        raise UnsupportedError(
            f"{where} uses opset {version}; {OLDEST} to {NEWEST} are supported. Export it "
            f"again, or convert it: onnx.version_converter.convert_version(model, 17)."
        )
    if version > NEWEST:
        raise UnsupportedError(
            f"{where} uses opset {version}, newer than this dovetail knows; export it with "
            f"opset_version={NEWEST} or lower."
        )
    return int(version)
