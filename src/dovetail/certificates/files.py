"""Certificates as files: the arrays in numpy's own format, one header in JSON; nothing in them is run."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dovetail.certificates.proof import CertificateKind, Leaves, ProofPart, ProofTree
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError
from dovetail.core.file_writing import write_file

FORMAT = 1
LARGEST = 400_000_000
"""Bytes of arrays that are read: certificates are not kept above a quarter of that."""


class Contents(NamedTuple):
    """What a certificate is made of, in the order of its fields."""

    kind: CertificateKind
    problem: str
    bound: float
    source: str
    prices: FloatArray
    parts: tuple[ProofPart, ...]


def write_contents(certificate: Contents, path: Path) -> Path:
    """Write it; what is there already is replaced."""
    header = {
        "format": FORMAT, "kind": certificate.kind.value, "problem": certificate.problem,
        "bound": certificate.bound.hex(), "source": certificate.source, "parts": len(certificate.parts),
        "values": [part.value.hex() for part in certificate.parts],
        "row": [part.row for part in certificate.parts],
    }  # fmt: skip
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}
    arrays["prices"] = certificate.prices
    for k, part in enumerate(certificate.parts):
        for name, array in _arrays(part).items():
            arrays[f"{k}.{name}"] = array
    text = io.BytesIO()
    np.savez_compressed(text, **arrays)
    return write_file(path, text.getvalue())


def _arrays(part: ProofPart) -> dict[str, np.ndarray]:
    tree = part.tree
    named: dict[str, np.ndarray] = {"columns": part.columns, "rows": part.rows, "defined": part.defined}
    named["variable"], named["at"], named["children"] = tree.variable, tree.at, tree.children
    return named | {f"leaves.{place.name}": getattr(tree.leaves, place.name) for place in fields(Leaves)}


def read_contents(path: Path) -> Contents:
    """What was written; `OptionError` where it is no such file."""
    try:
        with zipfile.ZipFile(path) as inside:
            if sum(entry.file_size for entry in inside.infolist()) > LARGEST:
                raise ValueError(f"it holds more than {LARGEST:,} bytes")
        with np.load(path, allow_pickle=False) as arrays:
            return _read(arrays)
    except FileNotFoundError:
        raise OptionError(f"there is no file {path}.") from None
    except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as reason:
        raise OptionError(f"{path} is not a certificate that was saved with save() ({reason}).") from None


def _read(arrays: Any) -> Contents:
    header = json.loads(bytes(arrays["header"]).decode())
    if header["format"] != FORMAT:
        raise ValueError(f"its format {header['format']!r} is not known")
    parts = tuple(_part(arrays, header, k) for k in range(int(header["parts"])))
    return Contents(
        CertificateKind(header["kind"]),
        str(header["problem"]),
        float.fromhex(header["bound"]),
        str(header["source"]),
        _numbers(arrays["prices"]),
        parts,
    )


def _part(arrays: Any, header: dict[str, Any], k: int) -> ProofPart:
    def numbers(name: str) -> np.ndarray:
        return _numbers(arrays[f"{k}.{name}"])

    def places(name: str) -> np.ndarray:
        return _places(arrays[f"{k}.{name}"])

    leaves = Leaves(**{place.name: numbers(f"leaves.{place.name}") for place in fields(Leaves)})
    tree = ProofTree(places("variable"), numbers("at"), places("children"), leaves)
    value, row = float.fromhex(header["values"][k]), int(header["row"][k])
    return ProofPart(places("columns"), places("rows"), tree, value, places("defined"), row)


def _numbers(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "f":
        raise ValueError("numbers are missing")
    return array.astype(np.float64)


def _places(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "i":
        raise ValueError("indices are missing")
    return array.astype(np.int64)
