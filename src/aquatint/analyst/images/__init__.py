"""Images from a release: generators that match its embedding, and a baseline without one."""
