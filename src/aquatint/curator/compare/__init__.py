"""Two-sample tests by a curator who holds both datasets: what leaves here was paid for."""
