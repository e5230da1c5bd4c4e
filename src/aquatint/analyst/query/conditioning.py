"""What is known of a Gaussian vector once noisy sums of its entries were seen.

Before that, a vector c of J entries has covariance Σ = D − (1 − s²/Δ)·d·dᵀ/Δ + T·Tᵀ, where D has d
on its diagonal, Δ = Σ d, and the columns of T add up to zero: so 1ᵀ·Σ·1 = s². Seen are A·c + noise,
where A has one line of zeros and ones for each of P sets of entries. The answer takes a system of J
equations, or one of P: whichever is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_array

from aquatint.analyst.synthesize.threads import one_thread


@dataclass(frozen=True, eq=False)
class Seen:
    """Noisy sums over sets of entries.

    Attributes
    ----------
    parts
        For each table, the set that each of the J entries is in.
    above
        How far the sums of each table are above what was expected.
    variances
        Of the noise of each.
    """

    parts: Sequence[np.ndarray]
    above: Sequence[np.ndarray]
    variances: Sequence[np.ndarray]

    @property
    def sets(self) -> int:
        """How many there are."""
        return sum(map(len, self.above))

    @cached_property
    def sums(self) -> csr_array:
        """A: it adds entries up over sets, shape (P, J)."""
        starts = np.cumsum([0, *map(len, self.above)])[:-1]
        lines = np.concatenate([part + at for part, at in zip(self.parts, starts, strict=True)])
        size = len(self.parts[0])
        places = np.tile(np.arange(size), len(self.parts))
        return csr_array((np.ones(len(lines)), (lines, places)), shape=(self.sets, size))

    @cached_property
    def information(self) -> np.ndarray:
        """Aᵀ·V⁻¹·A, for each two entries the sum of one over the variance of the sets with both.

        What a table tells is added to that of a finer one as long as there is one, set by set:
        entries are many more.
        """
        order = sorted(range(len(self.parts)), key=lambda i: len(self.above[i]))
        told = {i: np.diag(1 / self.variances[i]) for i in order}
        size = len(self.parts[0])
        out = np.zeros((size, size))
        for place, coarse in enumerate(order):
            for fine in order[place + 1 :]:
                onto = np.zeros(len(self.above[fine]), dtype=np.intp)
                onto[self.parts[fine]] = self.parts[coarse]
                if np.array_equal(onto[self.parts[fine]], self.parts[coarse]):
                    told[fine] += told[coarse][onto[:, None], onto]
                    break
            else:
                out += told[coarse][self.parts[coarse][:, None], self.parts[coarse]]
        return out


@dataclass(frozen=True, eq=False)
class Before:
    """Σ, by its parts.

    Attributes
    ----------
    spread
        d.
    total
        s², the variance of the sum of all entries.
    tilts
        T, shape (J, t).
    """

    spread: np.ndarray
    total: float
    tilts: np.ndarray

    @property
    def looser(self) -> float:
        """1/s² − 1/Δ: how much better the sum is known than the spread alone would have it."""
        return float(1 / self.total - 1 / self.spread.sum())

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """Give Σ times vectors of J entries."""
        whole = self.spread.sum()
        along = self.spread @ vectors
        less = (1 - self.total / whole) / whole * along
        found = self.spread[:, None] * (vectors - less)
        return np.asarray(found + self.tilts @ (self.tilts.T @ vectors))


@dataclass(frozen=True, eq=False)
class After:
    """What is known of some sums of c.

    Attributes
    ----------
    moved
        How far what was seen moves their means.
    covariance
        Of their errors.
    noise
        The part of it that comes from noise.
    explained
        How far each would be moved on average: the variance of what moves it.
    """

    moved: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    explained: np.ndarray


def condition(before: Before, seen: Seen, asked: np.ndarray) -> After:
    """Give what is known of sums of c, weighted as asked; the last is the sum of all entries.

    Parameters
    ----------
    before
        What was known before.
    seen
        What was seen.
    asked
        Weights of the entries, shape (J, m).
    """
    few = 0 < seen.sets < len(asked)
    return _by_sets(before, seen, asked) if few else _by_entries(before, seen, asked)


def _by_sets(before: Before, seen: Seen, asked: np.ndarray) -> After:
    """Solve (A·Σ·Aᵀ + V)·x = A·Σ·asked."""
    sums, variance = seen.sums, np.concatenate(seen.variances)
    whole = before.spread.sum()
    matrix = (sums.multiply(before.spread) @ sums.T).toarray()
    along, tilts = sums @ before.spread, sums @ before.tilts
    matrix -= (1 - before.total / whole) / whole * np.outer(along, along)
    matrix += tilts @ tilts.T
    matrix[np.diag_indices_from(matrix)] += variance
    shown = sums @ before.times(asked)
    solved = solve(matrix, shown)
    rest = asked - sums.T @ solved
    noise = solved.T @ (variance[:, None] * solved)
    covariance = rest.T @ before.times(rest) + noise
    return After(
        solved.T @ np.concatenate(seen.above),
        covariance,
        noise + before.looser * np.outer(covariance[:, -1], covariance[:, -1]),
        np.einsum("ij,ij->j", shown, solved),
    )


def _by_entries(before: Before, seen: Seen, asked: np.ndarray) -> After:
    """Solve (Σ⁻¹ + Aᵀ·V⁻¹·A)·x = asked."""
    scale = np.sqrt(before.spread)  # entries in units of their own spread: all of like size
    told = np.zeros((len(scale), len(scale)))
    push = np.zeros(len(scale))
    if seen.parts:
        told += seen.information
        for part, above, variance in zip(seen.parts, seen.above, seen.variances, strict=True):
            push += (above / variance)[part]
    told += before.looser
    told *= scale[:, None]
    told *= scale
    scaled = asked * scale[:, None]
    more = before.tilts / scale[:, None]
    whole = told - more @ solve(np.eye(more.shape[1]) + more.T @ more, more.T)
    whole[np.diag_indices_from(whole)] += 1.0
    solved = solve(whole, scaled)
    within = np.einsum("ij,ij->j", scaled, solved)
    first = np.einsum("ij,ij->j", asked, before.times(asked))
    return After(
        solved.T @ (scale * push),
        scaled.T @ solved,
        solved.T @ (told @ solved),
        first - within,
    )


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve a symmetric positive system on one thread: it is small, and a machine may be busy."""
    with one_thread():
        factor = torch.linalg.cholesky(torch.from_numpy(matrix))
        return torch.cholesky_solve(torch.from_numpy(right), factor).numpy()
