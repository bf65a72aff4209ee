"""A result as a page, and several results side by side: contents in Python, layout in templates.

One file holds everything: charts are inline SVG, style and script are included, and a policy forbids the
browser to load or run anything else. All text is escaped, because names come from users.
"""
