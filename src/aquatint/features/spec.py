"""From JSON back to a feature map, by a fixed list of kinds: nothing is imported by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aquatint.errors import PlanError
from aquatint.features.algebra import by_label, concat, product, scale
from aquatint.features.base import FeatureMap, Spec
from aquatint.features.cosines import Cosines
from aquatint.features.fourier import Fourier
from aquatint.features.hermite import Hermite
from aquatint.features.locations import Locations
from aquatint.features.marginals import Count, Marginals
from aquatint.features.moments import SecondMoment
from aquatint.features.named import named, projected_from
from aquatint.features.race import Race
from aquatint.features.smooth import Smooth
from aquatint.features.tones import Tones

MAX_DEPTH = 20
MAX_PARTS = 10_000
MAX_DIM = 1_000_000_000
Inner = Callable[[Spec], FeatureMap]


def from_spec(spec: Mapping[str, Any], *, limit: int = MAX_DIM) -> FeatureMap:
    """Rebuild a map from its spec; a malformed one, or more than `limit` features, is refused."""
    return _build(spec, limit, 0)


def _build(spec: Any, limit: int, depth: int) -> FeatureMap:
    kind = spec.get("kind") if isinstance(spec, Mapping) else None
    build = _KINDS.get(kind) if isinstance(kind, str) else None
    if build is None:
        msg = f"unknown feature map {kind!r}: known are {', '.join(sorted(_KINDS))}"
        raise PlanError(msg)
    if depth > MAX_DEPTH:
        msg = f"feature maps are nested more than {MAX_DEPTH} deep"
        raise PlanError(msg)
    try:
        built = build(dict(spec), lambda inner: _build(inner, limit, depth + 1))
        features = built.dim
    except (LookupError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        msg = f"the spec of a {kind!r} feature map is malformed: {error}"
        raise PlanError(msg) from None
    if features > limit:
        msg = f"the {kind!r} feature map has {features:,} features, more than the {limit:,} allowed"
        raise PlanError(msg)
    if built.spec() != dict(spec):
        msg = (
            f"the spec of a {kind!r} feature map does not rebuild to itself: "
            "it was altered, or drawn by an incompatible version"
        )
        raise PlanError(msg)
    return built


def _parts(spec: Spec, inner: Inner) -> FeatureMap:
    parts = spec["parts"]
    if not 1 <= len(parts) <= MAX_PARTS:
        msg = f"a concatenation has 1 to {MAX_PARTS} parts"
        raise ValueError(msg)
    return concat(*(inner(part) for part in parts))


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        msg = "a count is not a whole number"
        raise TypeError(msg)
    return value


def _names(columns: object) -> tuple[str, ...]:
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        msg = "columns are not named by text"
        raise TypeError(msg)
    return tuple(columns)


_KINDS: dict[str, Callable[[Spec, Inner], FeatureMap]] = {
    "count": lambda _s, _inner: Count(),
    "marginals": lambda s, _inner: Marginals(
        tuple((str(name), _whole(cells)) for name, cells in s["columns"]),
        tuple(tuple(s["columns"][place][0] for place in one) for one in s["sets"]),
        tuple((str(name), tuple(map(_whole, group))) for name, group in s.get("groups", [])),
    ),
    "fourier": lambda s, _inner: Fourier(
        tuple(s["columns"]),
        _whole(s["features"]),
        tuple(s["length_scales"]),
        s["kernel"],
        _whole(s["seed"]),
    ),
    "hermite": lambda s, _inner: Hermite(
        tuple(s["columns"]), _whole(s["order"]), s["rho"], s["span"]
    ),
    "cosines": lambda s, _inner: Cosines(
        _names(s["columns"]),
        _whole(s["order"]),
        tuple((s["columns"][a], s["columns"][b]) for a, b in s["pairs"]),
        _whole(s["pair_order"]),
        s["pair_share"],
    ),
    "locations": lambda s, _inner: Locations(
        _names(s["columns"]),
        tuple((str(name), _whole(cells)) for name, cells in s["cells"]),
        tuple(map(tuple, s["points"])),
        tuple(s["length_scales"]),
        s["kernel"],
    ),
    "smooth": lambda s, _inner: Smooth(
        _names(s["columns"]), tuple(map(tuple, s["frequencies"])), tuple(s["widths"])
    ),
    "second_moment": lambda s, inner: SecondMoment(inner(s["inner"])),
    "race": lambda s, _inner: Race(
        tuple(s["columns"]),
        _whole(s["repetitions"]),
        _whole(s["buckets"]),
        tuple(s["widths"]),
        _whole(s["seed"]),
    ),
    "perceptual": lambda s, _inner: named(s),
    "projected_moments": lambda s, _inner: projected_from(s),
    "tones": lambda s, _inner: Tones(
        _names([s["column"]])[0], _whole(s["channels"]), _whole(s["pixels"])
    ),
    "scaled": lambda s, inner: scale(inner(s["inner"]), s["weight"]),
    "concat": _parts,
    "product": lambda s, inner: product(inner(s["left"]), inner(s["right"])),
    "by_label": lambda s, inner: by_label(
        inner(s["inner"]), _names([s["label"]])[0], _whole(s["classes"])
    ),
}
