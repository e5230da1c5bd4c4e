"""How much work a fit is worth, by the noise of what it is fitted to: that is public."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from typing import Any

from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.descent import MEMORY
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.terms import Pairs, Singles, Term

WIDE = 600
"""A table with more atoms than this is fitted with fewer components."""
NOISE, SHORT = (0.001, 0.004), 0.8
"""If joint counts have noise of at most the first share of the rows, Adam's memory is short; from
the second on it is the default, and steps become fewer; docs/results/notes.md has the trials."""
FEWEST_STEPS, MOST_STEPS = 75, 880
CLEAR = 0.0003
"""With noise of so small a share of the rows, a fit has the most steps."""
MODERATE = 0.002
"""With noise of a smaller share of the rows, there are twice as many components of one class."""
MANY_CLASSES, MOST_CLASSES = 16, 50
"""The same with more classes than the first; with more than the second, components are of any."""
CLEARLY = 1.5
CAUTION = 2.0
"""Where columns by label have so many times the budget of pairs, steps go by their noise, which is
taken to be so many times what it is: with twice the steps, sparse columns follow it;
docs/results/notes.md has the trials."""


def told_apart(label: str | None, terms: Iterable[Term], atoms: Atoms) -> int:
    """Say how many classes of a label components may have one each of, or none.

    There are some if columns, or pairs of them, were counted by the label.
    """
    counted = (term for term in terms if isinstance(term, (Pairs, Singles)) and term.sets)
    views = (term.classes for term in counted)
    if label is None or not any(view is not None and view.names == (label,) for view in views):
        return 0
    place = atoms.slices[label]
    classes = place.stop - place.start
    return classes if classes <= MOST_CLASSES else 0


def effort_for(atoms: Atoms, terms: Sequence[Term], classes: int) -> Effort:
    """Spend less on a wide table, whose steps are dearer; go by the noise of the joint counts.

    Where columns are counted by the classes of a label as well, and have clearly more of the budget
    than pairs, steps go by their noise. A block of s sets with a part β of the budget has noise in
    proportion to √(s/β). `classes` are those that components have one each of.
    """
    settings: dict[str, Any] = {"fits": 2} if atoms.total > WIDE else {}
    pairs = [(term.deviation, term.sets) for term in terms if isinstance(term, Pairs)]
    columns = [
        (float(term.deviation.max()), term.sets)
        for term in terms
        if isinstance(term, Singles) and term.classes is not None and term.sets
    ]
    if not pairs:
        return Effort(**settings)
    most = max(pairs)[0]
    if classes:
        settings |= {"by_class": True, "components": components_for(most, classes)}
    if _budget(columns) > CLEARLY * _budget(pairs):
        most = CAUTION * max(columns)[0]
    return Effort(steps=steps_for(most), memory=memory_for(most), **settings)


def _budget(counts: Iterable[tuple[float, int]]) -> float:
    """Add up, in some unit, what was spent on blocks of such noise and numbers of sets."""
    return sum(sets / noise**2 for noise, sets in counts)


def memory_for(noise: float) -> float:
    """Choose Adam's memory by the noise of a joint count, as a share of the rows.

    A table that reaches its noise floor stops pulling, and its gradients are gone at once. A long
    memory holds the steps down by what they were. Where noise is small that leaves sharp tables
    unfitted; where it is large it keeps a fit from following the noise.
    """
    low, high = NOISE
    place = log(min(max(noise, low), high) / low) / log(high / low)
    return float(1 - (1 - SHORT) ** (1 - place) * (1 - MEMORY) ** place)


def steps_for(noise: float) -> int:
    """Choose the number of steps by the noise of a joint count, as a share of the rows.

    A fit finds first what many tables have in common, and the noise of each one later: the
    stronger the noise, the earlier it is best to stop. Where there is hardly any, more steps still
    find more.
    """
    if noise >= NOISE[0]:
        return max(round(Effort.steps * min(NOISE[1] / noise, 1.0)), FEWEST_STEPS)
    place = log(NOISE[0] / max(noise, CLEAR)) / log(NOISE[0] / CLEAR)
    return round(Effort.steps + (MOST_STEPS - Effort.steps) * place)


def components_for(noise: float, classes: int) -> int:
    """Choose the number of components of one class each by the noise of a joint count.

    With little noise tables tell more than half as many components for each class can hold, and
    with many classes there would be few families.
    """
    return Effort.components * (2 if noise < MODERATE or classes > MANY_CLASSES else 1)
