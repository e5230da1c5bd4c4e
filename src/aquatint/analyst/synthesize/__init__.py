"""Synthetic tables from a release: fit once, draw for ever, at no further privacy cost."""
