"""Certificates: the basis of a bound as arrays, saved, and verified by independent code."""
