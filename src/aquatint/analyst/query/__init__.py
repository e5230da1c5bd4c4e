"""Questions about a release, answered from the release alone."""
