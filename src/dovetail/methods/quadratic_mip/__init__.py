"""Quadratic functions between the rows of a MIP: tangents and envelopes for HiGHS, the functions themselves
for SCIP."""

from dovetail.methods.quadratic_mip.method import QuadraticMip
from dovetail.methods.quadratic_mip.plan import QuadraticPlan, quadratic_plan

__all__ = ["QuadraticMip", "QuadraticPlan", "quadratic_plan"]
