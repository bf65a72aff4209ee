"""How the MIP and the networks are held together: which form, with what weight, how far apart."""
