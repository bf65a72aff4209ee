"""Proofs in arithmetic that cannot claim too much: boxes, dual values, rays."""
