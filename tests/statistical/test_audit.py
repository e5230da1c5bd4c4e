"""A privacy audit: canaries go through the real sketch, under real OpenDP noise, at epsilon = 1.

Each of K categories has one canary row, which is in the data with probability one half. A canary
only moves its own cells, so the K cells are K independent guesses "was it in or not", and the score
of a guess is the log-likelihood ratio of the cells that the canary touches. How the guesses become
a proven ε is in auditing.py.

False alarm: the honest test fails with probability at most ALPHA = 1e-7 for its upper limit, and
less than 1e-20 for its lower one (the bound lies near 0.86 with a standard error of 0.02). Each
planted fault is missed with probability below 1e-9; the sums are beside the tests.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from auditing import DELTA, EPSILON, proven_epsilon

import aquatint as aq
from aquatint.accounting import gaussian_delta, gaussian_epsilon, gaussian_mu
from aquatint.curator import finishing, spending
from aquatint.errors import ReleaseError
from aquatint.features import Count, by_label, cosines, onehot
from aquatint.release import model

pytestmark = pytest.mark.filterwarnings("ignore:delta = 1e-05 is not below one over the number")
COUNT_SHARE = 0.001  # μ of the audited block is √0.999 of the whole: 0.05 % less


def canaries(number, *, label_counts=False):
    """Give a plan, the rows, and which canaries are in; the data are seeded, the noise is not."""
    schema = aq.Schema.from_dict(
        {
            "name": "canaries",
            "privacy": {"protects": "add or remove one row"},
            "columns": {"label": {"kind": "categorical", "categories": list(range(number))}},
        }
    )
    blocks = [("count", Count()), ("cells", onehot(schema.cells()))]
    shares = [COUNT_SHARE, 1 - COUNT_SHARE]
    if label_counts:
        blocks.append(("label counts", by_label(Count(), "label", number)))
        shares = [COUNT_SHARE, (1 - COUNT_SHARE) / 2, (1 - COUNT_SHARE) / 2]
    plan = aq.Plan(
        schema,
        tuple(
            aq.PlannedBlock(name, feature_map, share)
            for (name, feature_map), share in zip(blocks, shares, strict=True)
        ),
    )
    inside = np.random.default_rng(20240229).random(number) < 0.5
    return plan, pa.table({"label": np.flatnonzero(inside)}), inside


def log_likelihood_ratio(release, blocks):
    """Score "in against out": Σ (2y − 1)/2σ² over the cells of the canary, by the declared σ."""
    parts = [release.block(name) for name in blocks]
    return sum((2 * part.sum - 1) / (2 * part.stderr[0] ** 2) for part in parts)


def lower_bound(release, inside, blocks=("cells",)):
    """Give the ε at DELTA that the attack proves, at confidence 1 − ALPHA."""
    scores = log_likelihood_ratio(release, blocks)
    spread = np.sqrt(sum(release.block(name).stderr[0] ** -2 for name in blocks))
    return proven_epsilon(scores, inside, spread)


def release_of(plan, rows):
    return aq.sketch(rows, plan.schema, epsilon=EPSILON, delta=DELTA, plan=plan, progress=False)


def shorten_noise(monkeypatch, factor):
    """Plant the fault where noise is drawn; what the release states stays as it was."""
    honest = finishing.add_noise

    def short(integers, noised, *rest):
        return honest(integers, replace(noised, scale=factor * noised.scale), *rest)

    monkeypatch.setattr(finishing, "add_noise", short)


def test_the_honest_mechanism_stays_under_its_epsilon_and_the_audit_has_power():
    # K = 300,000: μ = 0.268, the limits cost 0.037, so the bound is near ε = 0.86 ± 0.02.
    plan, rows, inside = canaries(300_000)
    bound = lower_bound(release_of(plan, rows), inside)
    assert 0.5 < bound < EPSILON


def test_noise_twenty_per_cent_short_is_caught(monkeypatch):
    # μ = 0.335 (ε = 1.28), of which the limits cost 0.037: the bound on μ is 0.298 ± 0.0046 (ε near
    # 1.12), 6.5 standard errors from 0.268. Missed once in 1e10 runs.
    plan, rows, inside = canaries(300_000)
    shorten_noise(monkeypatch, 0.8)
    assert lower_bound(release_of(plan, rows), inside) > EPSILON


def test_halved_noise_is_caught(monkeypatch):
    # μ = 0.536 (ε = 2.17). K = 60,000: the bound on μ is 0.452 ± 0.011 (ε near 1.78), 17 standard
    # errors from 0.268.
    plan, rows, inside = canaries(60_000)
    shorten_noise(monkeypatch, 0.5)
    assert lower_bound(release_of(plan, rows), inside) > EPSILON


@pytest.fixture
def unaccounted_counts(monkeypatch):
    """Release class counts beside the cells, with noise of their own that nobody pays for."""
    calibrate = finishing.noise_of

    def forgetful(plan, budget):
        paid = plan.blocks[:2]
        shares = [COUNT_SHARE, 1 - COUNT_SHARE]
        small = replace(
            plan, blocks=tuple(replace(b, share=s) for b, s in zip(paid, shares, strict=True))
        )
        count, cells = calibrate(small, budget)
        return count, cells, cells

    for module in (finishing, spending):
        monkeypatch.setattr(module, "noise_of", forgetful)


def test_an_unaccounted_count_is_caught_by_the_audit(monkeypatch, unaccounted_counts):
    # Two views of each canary: μ = √2·0.268 = 0.379 (ε = 1.47). K = 110,000: the bound on μ is
    # 0.318 ± 0.0077 (ε near 1.21), 6.4 standard errors from 0.268. Missed once in 1e9 runs.
    monkeypatch.setattr(model, "check", lambda release: None)
    plan, rows, inside = canaries(110_000, label_counts=True)
    release = release_of(plan, rows)
    assert lower_bound(release, inside, ("cells", "label counts")) > EPSILON


def test_an_unaccounted_count_is_refused_by_the_release_itself(unaccounted_counts):
    plan, rows, _ = canaries(1_000, label_counts=True)
    with pytest.raises(ReleaseError, match=r"promises epsilon = 1, but its noise only gives 1\.4"):
        release_of(plan, rows)


def test_the_same_block_paid_for_stays_under_epsilon():
    # The control for the test above: both views released, both accounted for. K = 60,000: the
    # bound on μ is 0.19 ± 0.01 (ε near 0.7), 9 standard errors from either limit.
    plan, rows, inside = canaries(60_000, label_counts=True)
    bound = lower_bound(release_of(plan, rows), inside, ("cells", "label counts"))
    assert 0.3 < bound < EPSILON


def test_the_conversion_of_the_audit_is_the_exact_one():
    mu = gaussian_mu(EPSILON, DELTA)
    assert gaussian_delta(EPSILON, mu) == pytest.approx(DELTA, rel=1e-6)
    assert gaussian_epsilon(DELTA, mu) == pytest.approx(EPSILON, rel=1e-6)


def test_the_bound_itself_does_not_alarm_on_ideal_noise():
    # 200 audits of a numpy Gaussian with exactly the promised μ. Each exceeds ε with probability
    # ALPHA at most, so one alarm among them would come up once in 50,000 runs were it not seeded.
    rng = np.random.default_rng(1)
    sigma = 1 / gaussian_mu(EPSILON, DELTA)

    class Ideal:
        def __init__(self, values):
            self.values = values

        def block(self, name):
            return type("Block", (), {"sum": self.values, "stderr": np.array([sigma])})

    for _ in range(200):
        inside = rng.random(20_000) < 0.5
        assert lower_bound(Ideal(inside + sigma * rng.normal(size=20_000)), inside) < EPSILON


def released_cosines(number):
    """Release cosines by class; a canary at the lower end of its column attains the bound."""
    schema = aq.Schema.from_dict(
        {
            "name": "canaries",
            "privacy": {"protects": "add or remove one row"},
            "columns": {
                "label": {"kind": "categorical", "categories": list(range(number))},
                "x": {"kind": "numeric", "bounds": [0, 1], "bins": 2},
            },
        }
    )
    waves = cosines(["x"], 2, pair_order=0)
    blocks = (
        aq.PlannedBlock("count", Count(), COUNT_SHARE),
        aq.PlannedBlock("cosines", by_label(waves, "label", number), 1 - COUNT_SHARE),
    )
    inside = np.random.default_rng(20240229).random(number) < 0.5
    rows = pa.table({"label": np.flatnonzero(inside), "x": np.zeros(int(inside.sum()))})
    block = release_of(aq.Plan(schema, blocks), rows).block("cosines")
    along = block.sum.reshape(number, -1) @ waves.weights.numpy()  # the weights have norm one
    sigma = float(block.stderr[0])
    return proven_epsilon((2 * along - 1) / (2 * sigma**2), inside, 1 / sigma)


def test_cosines_stay_under_their_epsilon_and_halved_noise_is_caught(monkeypatch):
    # K = 60,000, as in the control above and in the test of halved noise: the bound on μ is 0.19 ±
    # 0.01 (ε near 0.7), and 0.452 ± 0.011 (ε near 1.78) under half the noise.
    assert 0.3 < released_cosines(60_000) < EPSILON
    shorten_noise(monkeypatch, 0.5)
    assert released_cosines(60_000) > EPSILON
