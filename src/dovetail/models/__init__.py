"""Foreign models: read into a `Mip`, one file per library."""
