"""The private side: the only code that ever touches rows."""
