"""The papers' plans by name, under bounds that are right: DP-MERF and DP-HP.

A recipe chooses blocks from public facts alone. Length scales are fractions of a column's declared
range, chosen by rules that are stated here, and are never read off the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from math import comb, pi, prod, sqrt
from typing import Literal

import numpy as np

from aquatint.accounting import gaussian_mu
from aquatint.errors import PlanError
from aquatint.features import Count, FeatureMap, by_label, concat, fourier, hermite, onehot, product
from aquatint.features.frequencies import uniforms
from aquatint.planning import Plan, PlannedBlock
from aquatint.recipe_parts import beside, label_of, numbers_and_others, settled_bins
from aquatint.schema import Privacy, Schema

COUNT_SHARE = 0.01
CLASS_SHARE = 0.05
USUAL_ROWS = 100_000
USUAL_DELTA = 1e-5
FEWEST_FEATURES = 100
MOST_FEATURES = 1_000
"""The error still falls with more features, but only with 1/√D, and training slows down with D."""
MOST_SUMMED = 2_000
MOST_MULTIPLIED = 700
MOST_PRODUCT = 100_000
MOST_DRAWS = 200
IMAGE_FEATURES, IMAGE_SPREAD = 10_000, 0.15
"""DP-MERF's random features of images, and the mean squared difference of pixels that the length
scale is made for: the paper's medians over d = 784 pixels, 105 and 127, are 0.13·d and 0.16·d."""
IMAGE_ORDER, IMAGE_DRAWS, IMAGE_GAMMA = 20, 10, 0.05
"""DP-HP's order of Hermite features for images, its epochs, in each of which a product kernel is
drawn, and γ (Table 9). There the sum kernel has order 100, which makes a step of training five
times as long for the same marginals of a pixel; and γ = 20 multiplies the sum kernel, which is
1/20 on the product kernels: ten pairs of pixels, which are not worth half of the budget."""
PRODUCT_NOISE = 2e-3
"""As many products are drawn as keep the noise of each below this share of the rows."""


def dp_merf(
    schema: Schema,
    *,
    features: int | None = None,
    length_scale: float | None = None,
    kernel: Literal["gaussian", "laplace"] | None = None,
    labelled: bool | None = None,
    rows: int | None = None,
    epsilon: float | None = None,
    seed: int = 0,
) -> Plan:
    """Plan DP-MERF (Harder, Adamczewski & Park 2021): random Fourier features of all columns.

    Numbers have Fourier features together, all other columns one-hot cells beside them (eq. 19).
    With a label there is one embedding per class (eq. 13–14), and the class counts are released
    too, for imbalanced data (eq. 17). Divided by the counts the embedding is that of eq. 18. The
    pixels of an image are numbers.

    Parameters
    ----------
    schema
        What is public about the table.
    features
        D; by default `feature_count` of the other arguments, for images the paper's 10,000.
    length_scale
        A fraction of each column's range; by default `usual_length_scale`, for d pixels √(0.15·d).
    kernel
        The paper's Gaussian kernel sees one scale, which there was read off private rows. The
        Laplace kernel's heavy-tailed frequencies see many, so that a public guess will do: it is
        the default for tables, and the Gaussian kernel for images.
    labelled
        Whether to condition on the schema's label; by default, if it has one without a range.
    rows, epsilon
        Public or guessed; they only set D.
    seed
        Public: the frequencies are drawn from it.

    Examples
    --------
    >>> ages = {"kind": "integer", "bounds": [0, 120]}
    >>> schema = Schema.from_dict({"name": "ages", "privacy": {"protects": "replace one row"},
    ...     "label": "ill", "columns": {"age": ages, "ill": {"kind": "boolean"}}})
    >>> [block.name for block in dp_merf(schema, rows=10_000, epsilon=1.0).blocks]
    ['classes', 'embedding']
    """
    settled, label = settled_bins(schema), label_of(schema, labelled)
    numbers, others = numbers_and_others(settled, label)
    classes = settled.cells()[label] if label else 1
    numeric = None
    if numbers:
        rule = feature_count(settled.privacy, rows=rows, epsilon=epsilon, classes=classes)
        chosen = kernel or ("gaussian" if settled.images else "laplace")
        usual = usual_length_scale(len(numbers), chosen)
        if settled.images:
            rule, usual = IMAGE_FEATURES, sqrt(IMAGE_SPREAD * len(numbers))
        scale, count = length_scale or usual, features or rule
        numeric = fourier(numbers, count, length_scale=scale, kernel=chosen, seed=seed)
    return _plan(settled, label, {"embedding": (beside(settled, numeric, numbers, others), 1.0)})


def feature_count(
    privacy: Privacy, *, rows: int | None = None, epsilon: float | None = None, classes: int = 1
) -> int:
    """Choose the number of random features D by the error bound of DP-MERF's Prop. 3.1.

    With noise of scale t = Δσ/m on each of the C·D coordinates of the mean of m rows, the expected
    error of the squared MMD is at most (eq. 12; the ratio of Gamma functions is below √(CD/2))

        t²·CD + 4t·√(CD) + 8·√(2π/D),

    noise on the left, approximation on the right. Its derivative is zero where
    t²C·D^{3/2} + 2t√C·D = 4√(2π): for little noise D = 2√(2π)/(t√C), as many features as a few
    times m·ε, and fewer where noise dominates. The result is kept between 100 and 1,000.

    >>> from aquatint.schema import Privacy
    >>> feature_count(Privacy(protects="replace one row"), rows=1_000, epsilon=0.5)
    316
    """
    moved = 2.0 if privacy.replaces else float(privacy.rows_per_unit)
    noise = moved / _signal(epsilon) * sqrt(classes) / (rows or USUAL_ROWS)

    def slope(root: float) -> float:
        return noise**2 * root**3 + 2 * noise * root**2 - 4 * sqrt(2 * pi)

    least, most = sqrt(FEWEST_FEATURES), sqrt(MOST_FEATURES)
    if slope(least) >= 0 or slope(most) <= 0:
        return FEWEST_FEATURES if slope(least) >= 0 else MOST_FEATURES
    from scipy.optimize import brentq  # half a second, for this alone

    return 2 * round(float(brentq(slope, least, most)) ** 2 / 2)


def usual_length_scale(columns: int, kernel: Literal["gaussian", "laplace"]) -> float:
    """Give a length scale for so many columns, as a fraction of their ranges.

    The kernel should tell typical rows apart and still see that they are related. Over d columns
    squared differences add up to something like d, and absolute differences likewise: so the
    Gaussian kernel's scale grows with √d and the Laplace kernel's with d.
    """
    return 0.1 * (sqrt(columns) if kernel == "gaussian" else columns)


def dp_hp(
    schema: Schema,
    *,
    order: int | None = None,
    product_order: int | None = None,
    product_columns: int = 2,
    draws: int | None = None,
    gamma: float | None = None,
    length_scale: float | None = None,
    product_length_scale: float | None = None,
    labelled: bool | None = None,
    rows: int | None = None,
    epsilon: float | None = None,
    seed: int = 0,
) -> Plan:
    """Plan DP-HP (Vinaroz et al. 2022): Hermite features, a sum kernel and product kernels.

    The sum kernel (eq. 9–10) has every column, numbers by Hermite features and others by one-hot
    cells as in DP-MERF's eq. 19. The product kernels (eq. 7–8) are on sets of columns drawn at
    random, E of them: the paper draws one per epoch, here all are released together. With a label
    there is one embedding per class (eq. 13–15). The pixels of an image are numbers.

    γ weighs the product kernels against the sum kernel (eq. 16). A plan does that by the budget: it
    is divided as for one embedding with γ/E as the weight of each product kernel and the same noise
    everywhere. A loss that weighs residuals by their known noise is then exactly eq. 16. Another γ
    for the loss alone, whatever the budget was, is an argument of the fit.

    Parameters
    ----------
    schema
        What is public about the table.
    order, product_order
        The highest order C of sum and product kernels; by default what is affordable, for images
        20.
    product_columns
        The columns of a product kernel.
    draws
        E, the number of product kernels; by default all sets of columns, or as many as `rows` and
        `epsilon` can bear.
    gamma
        γ; by default 1, for images 1/20.
    length_scale, product_length_scale
        Fractions of each column's range; by default what the order resolves (`resolved`).
    labelled
        Whether to condition on the schema's label; by default, if it has one without a range.
    rows, epsilon
        Public or guessed; they only set the number of draws.
    seed
        Public: the sets of columns are drawn from it.
    """
    settled, label = settled_bins(schema), label_of(schema, labelled)
    if gamma is None:
        gamma = IMAGE_GAMMA if settled.images else 1.0
    if not 0 < gamma < 1e6:
        msg = f"gamma must be positive, got {gamma}"
        raise PlanError(msg)
    numbers, others = numbers_and_others(settled, label)
    if order is None:
        affordable = max(10, min(100, MOST_SUMMED // max(1, len(numbers))))
        order = IMAGE_ORDER if settled.images else affordable
    numeric = None
    if numbers:
        numeric = hermite(numbers, order, length_scale=length_scale or resolved(order))
    blocks = {"sum": (beside(settled, numeric, numbers, others), 1.0)}
    width = min(product_columns, len(numbers) + len(others))
    if width > 1:
        if product_order is None:
            product_order = max(2, int(MOST_MULTIPLIED ** (1 / width)) - 1)
            product_order = min(product_order, IMAGE_ORDER) if settled.images else product_order
        scale = product_length_scale or resolved(product_order)
        factors: dict[str, FeatureMap] = {
            **{n: hermite((n,), product_order, length_scale=scale) for n in numbers},
            **{n: onehot({n: settled.cells()[n]}) for n in others},
        }
        classes = settled.cells()[label] if label else 1
        most = IMAGE_DRAWS if settled.images else MOST_DRAWS
        wanted = _bearable(rows, epsilon, most) if draws is None else draws
        chosen = _drawn(factors, width, classes, wanted, seed)
        if not chosen and (draws or product_columns > 2):
            msg = (
                f"no product of {width} columns was found that has at most {MOST_PRODUCT:,} "
                "features: ask for fewer product_columns"
            )
            raise PlanError(msg)
        products = [reduce(product, [factors[name] for name in some]) for some in chosen]
        if products:
            blocks["products"] = (concat(*products), gamma / len(products))
    return _plan(settled, label, blocks)


def resolved(order: int) -> float:
    """Give the length scale that Hermite features up to an order resolve.

    The c-th feature's weight falls with ρ^c. Where the last has a fiftieth of the first,
    ρ^C = 1/50, little is cut off; the length scale follows by 1/(2l²) = ρ/(1−ρ²), over the range
    of 4 that the unit interval is stretched to.

    >>> round(resolved(25), 2), round(resolved(100), 2)
    (0.1, 0.05)
    """
    rho = 0.02 ** (1 / max(order, 1))
    return sqrt((1 - rho**2) / (2 * rho)) / 4


def _bearable(rows: int | None, epsilon: float | None, most: int) -> int:
    """Give the most products whose noise, √E/μ of one row each, is small against the rows."""
    bearable = PRODUCT_NOISE * (rows or USUAL_ROWS) * _signal(epsilon)
    return int(min(max(bearable**2, 1), most))


def _signal(epsilon: float | None) -> float:
    """Give μ, one over the noise that a sensitivity of one needs."""
    if epsilon is not None and not 0 < epsilon <= 100:
        msg = f"epsilon must be above 0 and at most 100, got {epsilon}"
        raise PlanError(msg)
    return gaussian_mu(epsilon or 1.0, USUAL_DELTA)


def _drawn(
    factors: Mapping[str, FeatureMap], width: int, classes: int, draws: int, seed: int
) -> list[tuple[str, ...]]:
    """Draw different sets of columns whose product is not too large, each in the table's order."""

    def small(some: Sequence[str]) -> bool:
        return prod(factors[name].dim for name in some) * classes <= MOST_PRODUCT

    names = list(factors)
    if comb(len(names), width) <= 20 * draws:
        found = [some for some in combinations(names, width) if small(some)]
        order = np.argsort(uniforms(seed, (len(found),), "products"))[:draws]
        return [found[i] for i in sorted(order)]
    ranks = np.argsort(uniforms(seed, (20 * draws, len(names)), "products"), axis=1)[:, :width]
    sets = (tuple(names[i] for i in sorted(rank)) for rank in ranks)
    return list(dict.fromkeys(some for some in sets if small(some)))[:draws]


def _plan(
    schema: Schema, label: str | None, blocks: Mapping[str, tuple[FeatureMap, float]]
) -> Plan:
    """Add the row count where it is private and the class counts, and divide the budget.

    Blocks come with the weight of their kernel. Noise of one size on the features times √weight
    takes shares in proportion to the weight times the squared sensitivity.
    """
    planned = []
    if not schema.privacy.replaces:
        planned.append(PlannedBlock("count", Count(), COUNT_SHARE))
    if label is not None:
        planned.append(PlannedBlock("classes", onehot({label: schema.cells()[label]}), CLASS_SHARE))
    left = 1 - sum(block.share for block in planned)
    shares = {}
    for name, (part, weight) in blocks.items():
        bound = part.bound
        moved = bound.replace_l2_squared if schema.privacy.replaces else bound.l2_squared
        shares[name] = weight * float(moved)
    for name, (part, _) in blocks.items():
        whole = part if label is None else by_label(part, label, schema.cells()[label])
        planned.append(PlannedBlock(name, whole, left * shares[name] / sum(shares.values())))
    return Plan(schema, tuple(planned))
