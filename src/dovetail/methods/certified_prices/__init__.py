"""Prices on coupling rows from columns, and components whose least cost at those prices is proved."""

from dovetail.methods.certified_prices.method import CertifiedPrices, applies

__all__ = ["CertifiedPrices", "applies"]
