"""The log of a solve as text: its lines, their width, and where they go (docs/log.md)."""
