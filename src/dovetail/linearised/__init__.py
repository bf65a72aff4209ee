"""The problem seen from one point: networks replaced by their values and slopes there, in a live LP."""
