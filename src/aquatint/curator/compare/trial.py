"""What every test is to the front door: noise that is known beforehand, numbers, a conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from aquatint.accounting import Noised
from aquatint.comparison import CompareError, Difference
from aquatint.release.model import Noise
from aquatint.schema import Schema


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What was found, from noisy numbers alone; the fields are those of a `Comparison`."""

    reject: bool
    method: str
    null: str
    statistic: float | None = None
    pvalue: float | None = None
    sizes: tuple[float, float] | None = None
    differences: tuple[Difference, ...] = ()


class Trial(Protocol):
    """One test of two samples."""

    @property
    def noise(self) -> Noise:
        """Which noise is added."""

    @property
    def noised(self) -> tuple[Noised, ...]:
        """The sensitivity and noise of each vector, from public facts (and private sizes)."""

    def exact(self, *, progress: bool) -> list[np.ndarray]:
        """Read the rows: private int64 vectors, one for each of `noised`."""

    def conclude(self, noisy: Sequence[np.ndarray]) -> Conclusion:
        """Decide, by the noisy vectors and public facts alone."""


def need_public_sizes(schema: Schema, test: str, sizes: tuple[int, int]) -> int:
    """Give the number of rows of each of two samples whose rows are taken in pairs.

    Adding or removing a row would break the pairs, so the relation has to be one that keeps sizes.
    """
    if not schema.privacy.replaces:
        msg = (
            f'{test} takes rows in pairs, which needs protects = "replace one row" with public '
            "numbers of rows: use permutation or tcmc for this schema"
        )
        raise CompareError(msg)
    if sizes[0] != sizes[1]:
        msg = (
            f"{test} takes rows in pairs, and there are {sizes[0]:,} and {sizes[1]:,} of them: "
            "use permutation or tcmc, or give as many rows on both sides"
        )
        raise CompareError(msg)
    return sizes[0]
