"""Tools that build the documentation site (mkdocs.yml)."""
