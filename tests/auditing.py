"""How an audit turns guesses into a proven epsilon: shared by the audits of one and two rounds.

A mechanism that is μ-GDP allows no test with Φ⁻¹(1 − false positives) − Φ⁻¹(false negatives) above
μ. Clopper–Pearson limits on the two error rates, at thresholds that are fixed beforehand from the
declared noise and never from the scores, therefore give a lower limit on μ that holds with
probability 1 − ALPHA, and with it one on ε at the declared δ.
"""

from scipy.stats import beta, norm

from aquatint.accounting import gaussian_epsilon

EPSILON, DELTA = 1.0, 1e-5
ALPHA = 1e-7
PLACES = (-1.0, -0.5, 0.0, 0.5, 1.0)  # thresholds, in standard deviations off the middle


def proven_epsilon(scores, inside, spread):
    """Give the ε at DELTA that the scores prove, at confidence 1 − ALPHA.

    `inside` says which canaries were in, `spread` is the standard deviation of a score.
    """
    present, absent = scores[inside], scores[~inside]
    level = 1 - ALPHA / (2 * len(PLACES))  # Bonferroni over both limits at every threshold
    best = 0.0
    for place in PLACES:
        false_positives = upper_limit(int((absent >= place * spread).sum()), len(absent), level)
        false_negatives = upper_limit(int((present < place * spread).sum()), len(present), level)
        best = max(best, norm.isf(false_positives) - norm.ppf(false_negatives))
    return gaussian_epsilon(DELTA, best) if best > 0 else 0.0


def upper_limit(hits, trials, level):
    """Give the Clopper–Pearson upper limit on a rate."""
    return float(beta.ppf(level, hits + 1, trials - hits)) if hits < trials else 1.0
