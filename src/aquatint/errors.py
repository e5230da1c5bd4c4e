"""The errors that Aquatint raises on purpose: each says what is wrong and what to do next."""

from __future__ import annotations


class AquatintError(Exception):
    """Base of every error raised on purpose; its text is one sentence with the way out."""


class SchemaError(AquatintError):
    """The schema is malformed, or leaves out what must never be read off private data."""


class DataError(AquatintError):
    """The data cannot be read, or does not fit the schema."""


class BudgetError(AquatintError):
    """The privacy parameters are out of range or cannot be met."""


class LedgerError(AquatintError):
    """The ledger refuses: unknown dataset, other terms, or too little left."""


class PlanError(AquatintError):
    """The plan does not fit the schema."""


class ReleaseError(AquatintError):
    """The release file is damaged, hostile, or of a version this library does not know."""
