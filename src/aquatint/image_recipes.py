"""Plans for images by name: DP-MEPF's perceptual features, and a baseline without a generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aquatint.errors import PlanError
from aquatint.features import (
    Count,
    FeatureMap,
    Perceptual,
    by_label,
    onehot,
    projected_moments,
    tones,
)
from aquatint.features.perceptual import Balance
from aquatint.networks.public import PublicNetwork, Size
from aquatint.planning import Plan, PlannedBlock
from aquatint.recipe_parts import label_of, settled_bins
from aquatint.schema import Schema

COUNT_SHARE = 0.01
CLASS_SHARE = 0.01
TONE_SHARE = 0.02
GAUSSIAN_SHARE = 0.5
MEAN_WEIGHT = 0.75
STOPPING_NOISE = 10.0
"""How many times wider the noise of the validation block is (DP-MEPF §3.2)."""


def dp_mepf(
    schema: Schema,
    network: PublicNetwork,
    *,
    layers: Sequence[str] | None = None,
    moments: Sequence[int] = (1,),
    input_size: int | Size | None = None,
    pool: int | None = None,
    balance: Balance = "rows",
    nonnegative: bool | None = None,
    split: bool = False,
    labelled: bool | None = None,
    class_share: float = CLASS_SHARE,
    tone_share: float = TONE_SHARE,
    stopping: bool | str | Sequence[str] | None = None,
    stopping_network: PublicNetwork | None = None,
    stopping_noise: float = STOPPING_NOISE,
    gaussian: PublicNetwork | None = None,
    gaussian_share: float = GAUSSIAN_SHARE,
) -> Plan:
    """Plan DP-MEPF (Harder et al. 2023): perceptual features of a public network.

    The block ``"perceptual"`` holds the moments of the layers, one embedding per class with a label
    (eq. 4), and ``"classes"`` the class counts. For early stopping (§3.2) a block ``"stopping"``
    holds both moments of one late layer, averaged over the image and not by class, with noise of
    its own that is really added and paid for.

    Parameters
    ----------
    schema
        What is public about the images; one column of them.
    network
        The public network.
    layers, moments, input_size, pool, balance, nonnegative, split
        As `Perceptual` takes them.
    labelled
        Whether to condition on the schema's label; by default, if it has one.
    class_share
        The share of the budget for the class counts.
    tone_share
        The share of the budget for the block ``"tones"``: how often every tone occurs among the
        pixels of all images, which drawn images are then given. 0 leaves it out, as the paper does.
    stopping
        True for a validation block of the network's last layer, or the layers to take.
    stopping_network
        Another public network for it; by default the same one.
    stopping_noise
        How many times wider its noise is than that of the perceptual block.
    gaussian
        A public projection for a block ``"gaussian"`` as `pixel_gaussian` has it. A generator
        matches these moments too, since features that are averaged over images tell little of their
        widest variations; and some images may be drawn from the Gaussian itself.
    gaussian_share
        The share of the budget for it.

    Examples
    --------
    >>> from aquatint.networks import resnet18
    >>> schema = Schema.from_dict({"name": "digits", "label": "digit",
    ...     "privacy": {"protects": "replace one row"},
    ...     "columns": {"image": {"kind": "image", "size": [8, 8], "channels": 1},
    ...                 "digit": {"kind": "categorical", "categories": ["0", "1"]}}})
    >>> tiny = PublicNetwork.of(resnet18(width=2), input_size=8, architecture="resnet18")
    >>> [block.name for block in dp_mepf(schema, tiny, stopping=True).blocks]
    ['classes', 'perceptual', 'stopping', 'tones']
    """
    settled, label = settled_bins(schema), label_of(schema, labelled)
    column = one_image(settled)
    main = Perceptual(
        network,
        column=column,
        layers=layers,
        moments=moments,
        input_size=input_size,
        pool=pool,
        balance=balance,
        nonnegative=nonnegative,
        split=split,
    )
    blocks = {"perceptual": (_by_class(main, label, settled), 1.0)}
    if stopping:
        if not stopping_noise > 0:
            msg = f"stopping_noise is a positive factor, got {stopping_noise}"
            raise PlanError(msg)
        validation = _validation(stopping_network or network, column, stopping)
        blocks["stopping"] = (validation, stopping_noise)
    aside: dict[str, tuple[FeatureMap, float]] = {}
    if tone_share:
        aside["tones"] = (tones(column, settled.images[column]), tone_share)
    if gaussian is not None:
        aside["gaussian"] = (_gaussian(gaussian, settled, label), gaussian_share)
    return image_plan(settled, label, blocks, class_share, aside)


def pixel_gaussian(
    schema: Schema,
    network: PublicNetwork,
    *,
    labelled: bool | None = None,
    mean_weight: float = MEAN_WEIGHT,
) -> Plan:
    """Plan the baseline without a generator: a Gaussian per class in a public view of the pixels.

    One block, ``"gaussian"``, holds the count, the mean and the second moment of every class in the
    coordinates of a public projection, jointly: see `features.projected_moments` for its bound.

    Parameters
    ----------
    schema
        What is public about the images; one column of them.
    network
        A projection, from `networks.public_projection` or ``aquatint pretrain``.
    labelled
        Whether to condition on the schema's label; by default, if it has one.
    mean_weight
        How much the mean weighs against the second moment.
    """
    settled, label = settled_bins(schema), label_of(schema, labelled)
    part = _gaussian(network, settled, label, mean_weight)
    planned = []
    if not settled.privacy.replaces:
        planned.append(PlannedBlock("count", Count(), COUNT_SHARE))
    left = 1 - sum(block.share for block in planned)
    planned.append(PlannedBlock("gaussian", part, left))
    return Plan(settled, tuple(planned))


def _gaussian(
    network: PublicNetwork, schema: Schema, label: str | None, mean_weight: float = MEAN_WEIGHT
) -> FeatureMap:
    """Give count, mean and second moment in a public view of the pixels, by class with a label."""
    if network.architecture != "projection":
        msg = f"a Gaussian of pixels needs a public projection, not {network.architecture}"
        raise PlanError(msg)
    part = projected_moments(network, column=one_image(schema), mean_weight=mean_weight)
    return _by_class(part, label, schema)


def one_image(schema: Schema) -> str:
    """Give the name of the one image column."""
    if len(schema.images) != 1:
        msg = f"the recipe is for one column of images, and the schema has {len(schema.images)}"
        raise PlanError(msg)
    return next(iter(schema.images))


def _validation(
    network: PublicNetwork, column: str, stopping: bool | str | Sequence[str]
) -> Perceptual:
    """Take both moments of one late layer, averaged over the image as its final pooling would."""
    if isinstance(stopping, bool):
        stopping = Perceptual(network, column=column).layers[-1:]
    layers = (stopping,) if isinstance(stopping, str) else tuple(stopping)
    return Perceptual(network, column=column, layers=layers, moments=(1, 2), pool=1)


def _by_class(part: FeatureMap, label: str | None, schema: Schema) -> FeatureMap:
    return part if label is None else by_label(part, label, schema.cells()[label])


def image_plan(
    schema: Schema,
    label: str | None,
    blocks: dict[str, tuple[FeatureMap, float]],
    class_share: float,
    aside: Mapping[str, tuple[FeatureMap, float]] | None = None,
) -> Plan:
    """Add the row count where it is private and the class counts, and divide the budget.

    Blocks come with how wide their noise is to be, relative to each other. A share is in proportion
    to the squared sensitivity over the squared width. What is `aside` has a share of its own.
    """
    planned = []
    if not schema.privacy.replaces:
        planned.append(PlannedBlock("count", Count(), COUNT_SHARE))
    if label is not None:
        planned.append(PlannedBlock("classes", onehot({label: schema.cells()[label]}), class_share))
    last = [PlannedBlock(name, *part) for name, part in (aside or {}).items()]
    left = 1 - sum(block.share for block in (*planned, *last))
    if not (0 < left < 1 or not (planned or last)):
        names = ", ".join(block.name for block in (*planned, *last))
        msg = f"the shares of {names} must leave something, and leave {left:g}: lower one of them"
        raise PlanError(msg)
    shares = {}
    for name, (part, width) in blocks.items():
        bound = part.bound
        moved = bound.replace_l2_squared if schema.privacy.replaces else bound.l2_squared
        shares[name] = float(moved) / width**2
    for name, (part, _) in blocks.items():
        planned.append(PlannedBlock(name, part, left * shares[name] / sum(shares.values())))
    return Plan(schema, (*planned, *last))
