"""Template pricing: the decomposition for many equal blocks (docs/scale.md)."""

from dovetail.decomposition.method import TemplatePricing

__all__ = ["TemplatePricing"]
