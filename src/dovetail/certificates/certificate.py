"""A bound and its basis, to be kept, saved and verified.

A file holds the arrays in numpy's format with a JSON header; reading it runs no code.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.certificates.proof import CertificateKind, Leaves, ProofPart, ProofTree, arrays_of
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError
from dovetail.core.files import write_file

FORMAT = 2
LARGEST = 400_000_000
"""Largest number of bytes of arrays that are read; certificates above a quarter of that are not kept."""
SHORT = 1e-5
"""Relative: a certificate covers constraints relaxed as in the check, a bound often constraints as written.
A shortfall up to this still confirms the bound."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """A bound and what it is based on, for `dovetail.check` to verify.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, 2.0], A=[[1.0, 1.0]], row_lower=[3.0], row_upper=[9.0]))
    >>> result = dt.solve(problem, log=False)
    >>> result.certificate.kind.value, round(result.certificate.bound, 5)
    ('checked', 3.0)
    """

    kind: CertificateKind
    problem: str
    """The fingerprint of its problem."""
    bound: float
    """The bound in minimisation form."""
    source: str
    """The method that proved it; for an engine's tree the engine's name and version."""
    prices: FloatArray = field(default_factory=lambda: np.zeros(0))
    """(rows,) prices of the rows outside all parts."""
    parts: tuple[ProofPart, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all its arrays."""
        return self.prices.nbytes + sum(array.nbytes for part in self.parts for array in arrays_of(part))

    @property
    def leaves(self) -> int:
        """Number of leaves of all parts."""
        return sum(part.tree.used.size for part in self.parts)

    def save(self, path: str | Path) -> Path:
        """Write a file for `dovetail.read_certificate`."""
        return _write_file(self, Path(path))

    def __repr__(self) -> str:
        return (
            f"<Certificate: {self.kind.value}, bound {self.bound:.8g}, {self.source}, {self.leaves} leaves>"
        )


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate that `Certificate.save` wrote.

    `dovetail.check` verifies what the certificate proves.

    >>> import dovetail as dt, pathlib, tempfile
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, 2.0], A=[[1.0, 1.0]], row_lower=[3.0], row_upper=[9.0]))
    >>> result = dt.solve(problem, log=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = result.certificate.save(pathlib.Path(folder) / "bound.certificate")
    ...     again = dt.read_certificate(path)
    >>> dt.check(problem, result.x, certificate=again).verification.holds
    True
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as inside:
            if sum(entry.file_size for entry in inside.infolist()) > LARGEST:
                raise ValueError(f"its arrays have more than {LARGEST:,} bytes")
        with np.load(path, allow_pickle=False) as arrays:
            return _read(arrays)
    except FileNotFoundError:
        raise OptionError(f"there is no file {path}.") from None
    except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as reason:
        raise OptionError(f"{path} is not a certificate that was saved with save() ({reason}).") from None


def _write_file(certificate: Certificate, path: Path) -> Path:
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
    named |= {"variable": tree.variable, "at": tree.at, "children": tree.children, "uses": tree.uses}
    return named | {f"leaves.{place.name}": getattr(tree.leaves, place.name) for place in fields(Leaves)}


def _read(arrays: Any) -> Certificate:
    header = json.loads(bytes(arrays["header"]).decode())
    if header["format"] != FORMAT:
        raise ValueError(f"its format {header['format']!r} is not known")
    parts = tuple(_part(arrays, header, k) for k in range(int(header["parts"])))
    return Certificate(
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
    tree = ProofTree(places("variable"), numbers("at"), places("children"), leaves, places("uses"))
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
