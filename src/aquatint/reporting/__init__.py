"""The report: one page about a release, and the charts that it shares with the local page."""
