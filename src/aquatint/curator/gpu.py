"""Sums on a GPU: what has a kernel there may go there, and comes back as the same integers.

The sums of every batch are whole numbers, so it does not matter which batches a GPU adds up and
which the processor does. Before a map is trusted to a GPU, made-up public rows are summed by both:
where the integers differ, or the kernels cannot be had, the processor does the work.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from aquatint.curator.counting import cell_codes, counted_marginals, layout_of
from aquatint.curator.integers import l1_follows, norm_fits
from aquatint.errors import PlanError
from aquatint.features.algebra import ByLabel
from aquatint.features.base import FeatureMap, Rows
from aquatint.features.fourier import Fourier
from aquatint.features.frequencies import VALUE_STEPS
from aquatint.features.grid import grid_of
from aquatint.features.hermite import Hermite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aquatint.curator.gpu_kernels import Summed

WORTH = 2**25
"""Features or sets times rows of a batch from which on a GPU is taken unasked: a twentieth of a
second of one core. Starting a GPU takes seconds."""
_TRIAL_ROWS = 300

Sum = Callable[[FeatureMap, Rows], Tensor]


@dataclass(frozen=True)
class Place:
    """Where sums are made.

    Attributes
    ----------
    device
        The processor, or a GPU.
    asked
        Whether it was asked for: then all that has a kernel there goes there, however small.
    """

    device: torch.device
    asked: bool = False


HERE = Place(torch.device("cpu"))


def place_of(device: str | None) -> Place:
    """Say where sums are made: as asked, or on a GPU if torch sees one."""
    if device is None:
        return Place(torch.device("cuda")) if torch.cuda.is_available() else HERE
    try:
        place = Place(torch.device(device), asked=True)
        torch.empty(0, device=place.device)
    except (RuntimeError, AssertionError):
        msg = f"there is no device {device!r} here: leave it out, or say cpu"
        raise PlanError(msg) from None
    return place


def sum_there(
    leaf: FeatureMap, rows: Rows, place: Place, here: Sum
) -> tuple[Tensor, Tensor] | None:
    """Sum a leaf on a GPU; None if the processor is to do it.

    Parameters
    ----------
    leaf, rows, place
        What to sum, over which rows, and where.
    here
        The processor's way, to compare with.

    Returns
    -------
    total, doubtful
        The int64 sums, shape (dim,), and the numbers of the rows that are over a limit and were
        left out.
    """
    counts = counted_marginals(leaf) is not None
    inner = leaf.inner if isinstance(leaf, ByLabel) and not counts else leaf
    if place.device.type != "cuda" or not (counts or _has_kernel(inner)) or not len(rows):
        return None
    work = len(rows) * ((leaf.ones or 0) if counts else inner.dim)
    if not (place.asked or work >= WORTH) or not _is_trusted(leaf, place.device, here):
        return None
    try:
        return _summed(leaf, rows, place.device)
    except torch.OutOfMemoryError:  # others may use it too
        return None


def _has_kernel(inner: FeatureMap) -> bool:
    """Whether a dense map has one. It checks L2 norms, which must imply the L1 limit."""
    if type(inner) is not Fourier and type(inner) is not Hermite:
        return False
    bound = grid_of(inner).bound
    return norm_fits(bound) and l1_follows(bound) and int(bound.low) == -int(bound.high)


_TRUST: dict[tuple[FeatureMap, torch.device], bool] = {}
_ONE_BY_ONE = threading.Lock()


def _is_trusted(leaf: FeatureMap, device: torch.device, here: Sum) -> bool:
    """Whether the GPU gave the processor's integers for rows that are made up."""
    with _ONE_BY_ONE:
        if (leaf, device) not in _TRUST:
            _TRUST[leaf, device] = _agrees(leaf, device, here)
        return _TRUST[leaf, device]


def _agrees(leaf: FeatureMap, device: torch.device, here: Sum) -> bool:
    if find_spec("triton") is None:
        return False
    rows = made_up(leaf)
    try:
        total, doubtful = _summed(leaf, rows, device)
    except Exception as error:  # a compiler or a driver that is not there
        found = f"its kernels cannot be had ({type(error).__name__})"
    else:
        if not len(doubtful) and torch.equal(total, here(leaf, rows)):
            return True
        found = "it gave other integers than the processor for rows that are made up"
    msg = f"the GPU is not used for {leaf.kind} features: {found}"
    warnings.warn(msg, stacklevel=2)
    return False


def made_up(leaf: FeatureMap) -> Rows:
    """Make up public rows for a leaf, with missing values and the ends of the range."""
    dice = np.random.default_rng(0)
    values = np.rint(dice.random((_TRIAL_ROWS, len(leaf.reads[1]))) * VALUE_STEPS) / VALUE_STEPS
    values[dice.random(values.shape) < 0.05] = dice.choice([0.0, 1.0])
    values[0, :1] = np.nan
    cells = _cells_of(leaf)
    codes = {name: dice.integers(0, cells[name], _TRIAL_ROWS) for name in sorted(cells)}
    return Rows(
        {name: torch.from_numpy(code.astype(np.int32)) for name, code in codes.items()},
        {
            name: torch.from_numpy(column.astype(np.float32))
            for name, column in zip(sorted(leaf.reads[1]), values.T, strict=True)
        },
        _TRIAL_ROWS,
    )


def _cells_of(leaf: FeatureMap) -> dict[str, int]:
    base = counted_marginals(leaf)
    cells = {} if base is None else {name: dict(base.columns)[name] for name in base.reads[0]}
    while hasattr(leaf, "inner"):
        if isinstance(leaf, ByLabel):
            cells[leaf.label] = min(leaf.classes, cells.get(leaf.label, leaf.classes))
        leaf = leaf.inner
    return cells


def _summed(leaf: FeatureMap, rows: Rows, device: torch.device) -> tuple[Tensor, Tensor]:
    with torch.no_grad(), _own_stream(device):
        if counted_marginals(leaf) is not None:
            return _count(leaf, rows, device), torch.zeros(0, dtype=torch.int64)
        return _dense(leaf, rows, device)


class _Streams(threading.local):
    def __init__(self) -> None:
        self.held: dict[torch.device, torch.cuda.Stream] = {}


_STREAMS = _Streams()


@contextmanager
def _own_stream(device: torch.device) -> Iterator[None]:
    """Let each thread copy and compute by itself; on the processor, in tests, there is nothing."""
    if device.type != "cuda":
        yield
        return
    if device not in _STREAMS.held:
        _STREAMS.held[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(_STREAMS.held[device]):
        yield


def _count(leaf: FeatureMap, rows: Rows, device: torch.device) -> Tensor:
    from aquatint.curator.gpu_kernels import count_sets

    layout = layout_of(leaf)
    codes = torch.from_numpy(cell_codes(leaf, rows)).to(device)
    lines, strides, starts = (
        torch.from_numpy(part).to(device) for part in (layout.lines, layout.strides, layout.starts)
    )
    counts = count_sets(codes, lines, strides, starts, leaf.dim)
    return counts.cpu() * int(grid_of(leaf).bound.high)


def _dense(leaf: FeatureMap, rows: Rows, device: torch.device) -> tuple[Tensor, Tensor]:
    """Sum class by class; a row over a limit is left out and named."""
    # `_has_kernel` saw to it that it is one of the two.
    inner = cast("Fourier | Hermite", leaf.inner if isinstance(leaf, ByLabel) else leaf)
    if not isinstance(leaf, ByLabel):
        return _line(inner, rows, device)
    label = rows.codes[leaf.label].long()
    total = torch.zeros(leaf.classes, inner.dim, dtype=torch.int64)
    left = [torch.zeros(0, dtype=torch.int64)]
    for line in range(leaf.classes):
        chosen = torch.nonzero(label == line).flatten()
        if len(chosen):
            total[line], doubtful = _line(inner, rows.take(chosen), device)
            left.append(chosen[doubtful])
    return total.flatten(), torch.cat(left)


def _line(inner: Fourier | Hermite, rows: Rows, device: torch.device) -> tuple[Tensor, Tensor]:
    from aquatint.curator.gpu_kernels import kept

    bound = grid_of(inner).bound
    return kept(*_prepared(inner, rows, device), int(bound.l2_squared), int(bound.high))


def _prepared(
    inner: Fourier | Hermite, rows: Rows, device: torch.device
) -> tuple[Callable[[Tensor], Summed], Tensor]:
    """Bring rows to the device; give what sums them, and the steps of each row to give it."""
    from aquatint.curator.gpu_kernels import fourier_sum, hermite_sum, without_missing

    values = rows.matrix(inner.columns)
    steps = torch.full((len(rows),), grid_of(inner).steps, dtype=torch.float32, device=device)
    if isinstance(inner, Fourier):
        known = without_missing(values.to(device), steps)
        return partial(fourier_sum, known, *_waves(inner, device)), steps
    # The exponential is the processor's, so that what follows starts from the same bits.
    x, first = (each.to(device) for each in inner.start(values))
    return partial(hermite_sum, x, first, inner.factors.to(device)), steps


@lru_cache(maxsize=8)
def _waves(inner: Fourier, device: torch.device) -> tuple[Tensor, float, Tensor]:
    turns = float(inner.whole_turns)
    return inner.frequencies.to(device), turns, inner.sine.to(device)
