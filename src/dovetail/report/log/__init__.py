"""The log of a solve as text: what its lines say, how wide they are, and where they go (docs/log.md)."""
