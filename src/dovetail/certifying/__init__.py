"""Certificates for bounds that are proved already: made from the problem and the bound alone."""
