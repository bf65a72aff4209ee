"""What is found where a point and the proof of its bound are looked at together."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from dovetail.certificates.checker.verification import Verification
from dovetail.core.check import Violation


@dataclass(frozen=True, repr=False)
class CertifiedViolation(Violation):
    """How far a point is from satisfying a problem, and what a certificate proves of that problem."""

    verification: Verification = field(kw_only=True)

    @classmethod
    def of(cls, violation: Violation, verification: Verification) -> CertifiedViolation:
        """Both together."""
        kinds = {place.name: getattr(violation, place.name) for place in fields(Violation)}
        return cls(**kinds, verification=verification)
