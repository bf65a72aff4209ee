"""The coupling of the MIP and the networks in Algorithm 1: its form, weights and residuals."""
