"""Run the command line with ``python -m aquatint``."""

from aquatint.cli import main

main()
