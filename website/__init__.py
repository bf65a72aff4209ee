"""How the documentation site is made: mkdocs.yml says of what."""
