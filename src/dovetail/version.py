"""The version, in a file without imports, so that every module can import it."""

__version__ = "0.1.0"
