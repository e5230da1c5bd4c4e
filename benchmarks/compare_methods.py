"""Every two-sample test of the benchmark, by name."""

from __future__ import annotations

from compare_ours import OURS
from compare_paper import PAPER

METHODS = {**OURS, **PAPER}
