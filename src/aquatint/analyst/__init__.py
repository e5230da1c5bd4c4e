"""What an analyst does with a release alone: no module here can see a private row."""
