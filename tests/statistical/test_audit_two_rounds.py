"""A privacy audit of the default plan: what the second round counts, over cells the first merged.

Two columns have SIDE places each, and each pair of places has one canary, which is in the data with
probability one half. A place is two bins: a heavy one, which the known rows fill, and a light one,
where three canaries in ten are. The noisy histograms decide which light bins are merged with their
heavy neighbour, so the cells differ from run to run; a heavy bin always closes its group, so no two
canaries ever share a cell. The auditor reads the cells off the release, and knows everything but
which canaries were in and the noise.

The joint counts have 0.85 · 0.99 of the budget: μ = 0.246 of 0.268. False alarm: the honest test
fails with probability at most ALPHA = 1e-7 for its upper limit, below 1e-20 for its lower one, and
below 1e-12 for the cells being other than described. Faults are missed less than once in 1e20 runs.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from auditing import DELTA, EPSILON, proven_epsilon

import aquatint as aq
from aquatint.curator import finishing
from aquatint.curator.sketch import accumulate
from aquatint.errors import ReleaseError
from aquatint.features import Rows
from aquatint.features.marginals import Marginals

pytestmark = pytest.mark.filterwarnings("ignore:delta = 1e-05 is not below one over the number")
LIGHT = 0.3


class Scene:
    """Known rows, canaries, and which of them are in; the data are seeded, the noise is not."""

    def __init__(self, side):
        rng = np.random.default_rng(20240301)
        column = {"kind": "numeric", "bounds": [0, 2 * side], "bins": 2 * side}
        schema = aq.Schema.from_dict(
            {
                "name": "canaries",
                "privacy": {"protects": "add or remove one row"},
                "columns": {"a": column, "b": column},
            }
        )
        self.plan = aq.plan(schema)
        places = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
        self.known = 2 * places + 1
        self.canaries = 2 * places + (rng.random(places.shape) >= LIGHT)
        self.inside = rng.random(len(places)) < 0.5

    def release(self):
        bins = np.concatenate([self.known, self.canaries[self.inside]])
        return aq.sketch(
            table(bins), self.plan.schema, epsilon=EPSILON, delta=DELTA, plan=self.plan,
            progress=False,
        )  # fmt: skip

    def lower_bound(self, release):
        """Score each canary in its own cell of the joint counts, less what known rows put there."""
        block, fine = release.block("pairs"), self.plan.blocks[-1].map
        codes = torch.from_numpy(self.canaries.astype(np.int32))
        cells = block.map.cells(Rows({"a": codes[:, 0], "b": codes[:, 1]}, {}, len(codes)))[:, 0]
        assert len(cells.unique()) == len(cells), "two canaries share a cell"
        sums = [accumulate(table(b), self.plan).totals[-1] for b in (self.known, self.canaries)]
        known, moved = (fine.add_up(s.numpy(), block.map)[cells] / block.steps[0] for s in sums)
        sigma = block.stderr[0]
        off = block.sum[cells] - known
        scores = (2 * off * moved - moved**2) / (2 * sigma**2)
        return proven_epsilon(scores, self.inside, moved[0] / sigma)


def table(bins):
    return pa.table({"a": bins[:, 0] + 0.5, "b": bins[:, 1] + 0.5})


def test_the_plan_is_the_default_one_and_the_first_round_decides():
    scene = Scene(60)
    assert [b.name for b in scene.plan.blocks] == ["count", "columns", "pairs"]
    assert scene.plan.rebalance
    assert scene.plan.blocks[-1].merge == 10


def test_the_honest_second_round_stays_under_epsilon_and_the_audit_has_power():
    # K = 90,000: the bound on μ is 0.182 ± 0.008 (ε near 0.65), 11 standard errors from the ε of 1
    # and from that of 0.3.
    scene = Scene(300)
    release = scene.release()
    groups = release.block("pairs").map.counted
    assert 300 < groups["a"] < 600  # some light bins were merged, and some were not
    assert 300 < groups["b"] < 600
    assert 0.3 < scene.lower_bound(release) < EPSILON


def test_a_second_round_with_half_the_noise_is_caught(monkeypatch):
    # μ = 0.49. K = 40,000: the bound on μ is 0.396 ± 0.012 (ε near 1.54), 11 standard errors from
    # 0.268. What the release states stays as it was.
    honest, scene = finishing.add_noise, Scene(200)
    drawn = []

    def short(integers, noised, *rest):
        drawn.append(noised)
        factor = 0.5 if len(drawn) == 3 else 1.0
        return honest(integers, replace(noised, scale=factor * noised.scale), *rest)

    monkeypatch.setattr(finishing, "add_noise", short)
    assert scene.lower_bound(scene.release()) > EPSILON
    assert len(drawn) == 3


def test_merged_counts_with_every_row_counted_twice_are_caught(monkeypatch):
    # A canary moves its cell by two under noise made for one: μ = 0.49, as above.
    honest, scene = Marginals.add_up, Scene(200)
    monkeypatch.setattr(Marginals, "add_up", lambda *given: 2 * honest(*given))
    assert scene.lower_bound(scene.release()) > EPSILON


def test_the_control_with_as_many_canaries_stays_under_epsilon():
    # The same size as the two faults above: the bound on μ is 0.147 ± 0.010 (ε near 0.5).
    scene = Scene(200)
    assert scene.lower_bound(scene.release()) < EPSILON


def test_balancing_twice_is_refused_by_the_release_itself(monkeypatch):
    """Half of the budget to the histograms, and then 85 percent to the joint counts."""
    honest, said = finishing.rebalanced, iter([1.0, 1e9])

    def again(plan, budget, _):
        return replace(honest(plan, budget, next(said, 1e9)), rebalance=True)

    monkeypatch.setattr(finishing, "rebalanced", again)
    with pytest.raises(ReleaseError, match=r"promises epsilon = 1, but its noise only gives 1\.1"):
        Scene(60).release()


def test_a_second_round_that_forgets_the_first_is_refused_by_the_release_itself(monkeypatch):
    honest = finishing.noise_of

    def forgetful(plan, budget):
        if plan.rebalance:
            return honest(plan, budget)
        count, columns, pairs = plan.blocks
        whole = replace(pairs, share=1 - 2e-6)
        rest = (replace(count, share=1e-6), replace(columns, share=1e-6))
        return *honest(plan, budget)[:2], honest(replace(plan, blocks=(*rest, whole)), budget)[2]

    monkeypatch.setattr(finishing, "noise_of", forgetful)
    with pytest.raises(ReleaseError, match=r"promises epsilon = 1, but its noise only gives 1\.0"):
        Scene(60).release()
