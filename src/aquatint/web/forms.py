"""What a form holds, read as text, numbers and choices; what does not fit is said in a sentence."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import isfinite

from aquatint.errors import DataError


@dataclass(frozen=True)
class Form:
    """The fields of a form, each with the values it was sent."""

    fields: dict[str, list[str]] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """Give a field's text without the space around it."""
        return self.fields.get(name, [default])[-1].strip()

    def all(self, name: str) -> list[str]:
        """Give all values of a field that can be chosen several times."""
        return [value for value in self.fields.get(name, []) if value]

    def has(self, name: str) -> bool:
        """Whether a box was ticked."""
        return name in self.fields

    def choice(self, name: str, among: Collection[str], default: str | None = None) -> str:
        """Give a field that has to be one of several."""
        value = self.text(name, default or "")
        if value not in among:
            msg = f"choose one for {name}: {', '.join(list(among)[:10])}"
            raise DataError(msg)
        return value

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """Give a whole number within bounds, both included."""
        text = self.text(name)
        if not text and default is not None:
            return default
        try:
            value = int(text.replace(",", "").replace("_", "").replace(" ", "")[:20])
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            msg = f"{name}: give a whole number from {low:,} to {high:,}"
            raise DataError(msg)
        return value

    def number(self, name: str, what: str) -> float:
        """Give a number; what it may be is for others to say."""
        try:
            value = float(self.text(name).replace(" ", "")[:40])
        except ValueError:
            value = float("nan")
        if not isfinite(value):
            msg = f"{name}: give {what}"
            raise DataError(msg)
        return value
