"""Template pricing: many blocks that are the same up to their data, priced all at once."""

from dovetail.decomposition.method import TemplatePricing

__all__ = ["TemplatePricing"]
