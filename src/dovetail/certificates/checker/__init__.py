"""The checker of certificates: plain numpy, outward rounding, no code shared with the provers."""
