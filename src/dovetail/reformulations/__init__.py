"""Problems rewritten as others that are easier, with the way back: one protocol, composed in a chain."""
