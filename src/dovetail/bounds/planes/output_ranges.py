"""Ranges of all vectors of a network, those of its outputs by planes as well."""

from __future__ import annotations

import torch

from dovetail.bounds.planes.domain import Domain
from dovetail.bounds.planes.network_planes import NetworkPlanes, Ranges


def output_ranges(planes: NetworkPlanes, domain: Domain) -> Ranges:
    """Over each of the sets; `NetworkPlanes.ranges` has planes only for what a nonlinear step reads."""
    ranges = planes.ranges(domain)
    one = torch.eye(planes.graph.outputs, dtype=torch.float64, device=ranges.lower[-1].device)
    below = planes.planes(torch.cat([one, -one]), ranges)
    least = domain.minimum(below.slopes, below.offset)
    ranges.lower[-1] = torch.fmax(ranges.lower[-1], least[:, : len(one)])
    ranges.upper[-1] = torch.fmin(ranges.upper[-1], -least[:, len(one) :])
    return ranges
