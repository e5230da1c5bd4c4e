"""Scripts of the benchmarks, for tests: they are no package, and find each other by name."""

import importlib
import os
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
pytest.importorskip("sklearn")


def fetch(name):
    """Import a script of the benchmarks; it may set variables, which are put back."""
    before = dict(os.environ)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))
        os.environ.clear()
        os.environ.update(before)
