"""What the analyst's page can do, a module for each card. None of it ever sees a private row."""
