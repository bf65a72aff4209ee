"""Proofs that can be looked at again: what a bound rests on, kept, saved, and re-verified by other code."""
