"""The version, in a file that imports nothing: everything may ask for it."""

__version__ = "0.1.0"
