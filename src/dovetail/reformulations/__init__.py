"""Problems rewritten as easier ones, with a way back for solutions: one protocol, composed in a chain."""
