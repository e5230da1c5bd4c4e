"""What the tests of scale share: a plan with maps of every kind of kernel, and equality of sums."""

import torch

from aquatint.features import Count, by_label, fourier, hermite, onehot, pairs, triples
from aquatint.planning import Plan, PlannedBlock

NUMBERS = ["age", "height", "weight"]


def plan_of(schema):
    """Counts, joint counts, joint counts by class and dense features."""
    cells = schema.cells()
    maps = {
        "count": Count(),
        "cells": onehot(cells) + 0.5 * pairs(cells),
        "by class": by_label(triples(cells, [("age", "job", "ill")]), "sex", cells["sex"]),
        "dense": fourier(NUMBERS, 12) + hermite(NUMBERS, 4, length_scale=0.2),
    }
    return Plan(schema, tuple(PlannedBlock(name, m, 0.25) for name, m in maps.items()))


def same(found, wanted):
    """Whether two private sums are the same integers, rows and notes."""
    assert found.rows == wanted.rows
    assert found.notes == wanted.notes
    assert all(torch.equal(a, b) for a, b in zip(found.totals, wanted.totals, strict=True))
    return True
