"""The host's LP with planes in place of networks that read few inputs each: a bound without binaries."""

from dovetail.methods.planes_lp.method import PlanesLp
from dovetail.methods.planes_lp.plan import planes_plan

__all__ = ["PlanesLp", "planes_plan"]
