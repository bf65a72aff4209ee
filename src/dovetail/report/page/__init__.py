"""A result as a page, and several beside each other: what stands on it (Python), how it looks (templates).

One file holds everything: charts are inline SVG, the style and the short program are in it, and a policy
forbids the browser to load or run anything else. Names come from users, so that all text is escaped.
"""
