"""What the bench raises."""

from __future__ import annotations

from aquatint.errors import AquatintError


class EvaluationError(AquatintError):
    """The evaluation cannot be done as it was asked for."""
