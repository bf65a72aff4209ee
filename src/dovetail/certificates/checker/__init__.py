"""The checker of certificates: plain numpy, outward rounding, nothing shared with the provers."""
