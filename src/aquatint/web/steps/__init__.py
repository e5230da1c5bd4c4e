"""The curator's way to a release, a module for each step. Only the last one reads rows."""
