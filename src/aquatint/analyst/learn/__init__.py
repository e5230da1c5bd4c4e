"""Models trained from a release: scikit-learn estimators on rows that cost no privacy."""
