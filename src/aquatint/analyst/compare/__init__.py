"""Whether two datasets differ, from their releases."""
