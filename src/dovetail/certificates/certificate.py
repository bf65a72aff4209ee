"""A bound and what it rests on, to be kept, saved, and looked at again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dovetail.certificates.files import Contents, read_contents, write_contents
from dovetail.certificates.proof import CertificateKind, ProofPart, arrays_of
from dovetail.core.arrays import FloatArray

SHORT = 1e-5
"""Relative: a certificate is of constraints as loose as the check, a bound often of constraints as written.
One that falls short of its bound by no more than this still confirms it."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """A bound and what it rests on.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, 2.0], A=[[1.0, 1.0]], row_lower=[3.0], row_upper=[9.0]))
    >>> result = dt.solve(problem, log=False)
    >>> result.certificate.kind.value, round(result.certificate.bound, 5)
    ('checked', 3.0)
    """

    kind: CertificateKind
    problem: str
    """The fingerprint of the problem it belongs to."""
    bound: float
    """In minimisation form."""
    source: str
    """What proved it; of an engine's tree its name and version."""
    prices: FloatArray = field(default_factory=lambda: np.zeros(0))
    """(rows,) of the rows that no part has."""
    parts: tuple[ProofPart, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all its arrays."""
        return self.prices.nbytes + sum(array.nbytes for part in self.parts for array in arrays_of(part))

    @property
    def leaves(self) -> int:
        """Of all parts."""
        return sum(len(part.tree.leaves) for part in self.parts)

    def save(self, path: str | Path) -> Path:
        """Write it to a file that `dovetail.read_certificate` reads."""
        contents = Contents(self.kind, self.problem, self.bound, self.source, self.prices, self.parts)
        return write_contents(contents, Path(path))

    def __repr__(self) -> str:
        return (
            f"<Certificate: {self.kind.value}, bound {self.bound:.8g}, {self.source}, {self.leaves} leaves>"
        )


def read_certificate(path: str | Path) -> Certificate:
    """A certificate that was saved with `Certificate.save`.

    It is read, not believed: `dovetail.check` says what it proves.

    >>> import dovetail as dt, pathlib, tempfile
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, 2.0], A=[[1.0, 1.0]], row_lower=[3.0], row_upper=[9.0]))
    >>> result = dt.solve(problem, log=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = result.certificate.save(pathlib.Path(folder) / "bound.certificate")
    ...     again = dt.read_certificate(path)
    >>> dt.check(problem, result.x, certificate=again).verification.holds
    True
    """
    return Certificate(*read_contents(Path(path)))
