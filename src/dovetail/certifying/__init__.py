"""Makes certificates for bounds that are proved already, from the problem and the bound alone."""
