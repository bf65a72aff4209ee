"""Valid bounds of networks over sets of inputs, by linear planes (CROWN)."""
