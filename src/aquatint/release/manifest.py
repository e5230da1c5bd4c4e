"""The manifest of a release file: plain JSON data, checked by pydantic at the edge and only there.

Meanings never change. A field that means something else needs a new format version, and every
version that was ever written stays readable; tests keep a golden file of each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isclose
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from aquatint.columns import Name
from aquatint.features import from_spec
from aquatint.features.algebra import leaves
from aquatint.features.attaching import networked_maps
from aquatint.features.grid import grid_of, sensitivity
from aquatint.release.model import Block, Noise, Release, Statement
from aquatint.schema import Schema

FORMAT = "aquatint-release"
FORMAT_VERSION = 1

Text = Annotated[str, Field(max_length=1000)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Part(_Strict):
    """One leaf of a block: its place, grid, sensitivity and noise, all recomputed by the reader."""

    coordinates: Annotated[int, Field(ge=1)]
    steps: Positive = Field(description="grid steps to one unit of the feature")
    l2_squared: int = Field(description="squared L2 sensitivity in grid steps")
    l1: int = Field(description="L1 sensitivity in grid steps")
    scale: Positive = Field(description="scale of the noise in grid steps")


class BlockEntry(_Strict):
    """One block; its integers are the array of the same name."""

    name: Name
    map: dict[str, Any] = Field(description="the feature map, by its kind and parameters")
    parts: list[Part]
    choice: Positive | None = Field(
        default=None,
        description="scale in grid steps of the noise on the scores by which the map's sets were "
        "chosen privately; absent if they were not",
    )

    @model_serializer(mode="wrap")
    def _without_absent(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {k: v for k, v in plain(self).items() if k != "choice" or v is not None}


class PrivacyEntry(_Strict):
    """The privacy statement."""

    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1)]
    rho: float | None = Field(description="zCDP; none for pure epsilon")
    zcdp_epsilon: float | None = Field(
        description="what zCDP alone would promise at the same delta"
    )
    protects: Text
    unit: Text
    rows_per_unit: int
    noise: Noise
    simulated: bool = Field(description="true: the noise was not real and nothing is protected")
    public: list[Text] = Field(description="what was taken as public, and is not protected")


class Member(_Strict):
    """Size and checksum of another member of the file."""

    bytes: Annotated[int, Field(ge=0)]
    sha256: Digest


class Manifest(_Strict):
    """Everything in a release file but its numbers."""

    format: Literal["aquatint-release"]
    format_version: Literal[1]
    created: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    versions: dict[Annotated[str, Field(max_length=50)], Annotated[str, Field(max_length=100)]]
    schema_: dict[str, Any] = Field(alias="schema", description="the public schema of the data")
    rows: Annotated[int, Field(ge=0, le=2**53)] | None = Field(
        description="only where it is public"
    )
    privacy: PrivacyEntry
    blocks: Annotated[list[BlockEntry], Field(min_length=1, max_length=10_000)]
    members: dict[Literal["arrays.safetensors", "README.md"], Member]


def assumed_public(release: Release) -> list[str]:
    """List what the release does not protect."""
    listed = [
        "the schema: column names, kinds, bounds, bins, categories and which column is the label",
        "the choice of feature maps, their parameters and seeds, and the shares of the budget",
    ]
    for network in sorted({m.network.label for b in release.blocks for m in networked_maps(b.map)}):
        listed.append(f"the network {network}, and all that it was trained on")
    if release.rows is not None:
        listed.append("the number of rows")
    if release.schema.privacy.person is not None:
        listed.append("the name of the column that identifies a person, but not its values")
    return listed


def to_manifest(release: Release, members: Mapping[Any, Member]) -> Manifest:
    """Describe a release."""
    privacy = release.schema.privacy
    statement = release.statement
    return Manifest.model_validate(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "created": release.created,
            "versions": release.versions,
            "schema": release.schema.to_dict(),
            "rows": release.rows,
            "privacy": PrivacyEntry(
                epsilon=statement.epsilon,
                delta=statement.delta,
                rho=release.loss.zcdp_rho if statement.delta else None,
                zcdp_epsilon=release.zcdp_epsilon,
                protects=privacy.protects,
                unit=privacy.unit,
                rows_per_unit=privacy.rows_per_unit,
                noise=statement.noise,
                simulated=statement.simulated,
                public=assumed_public(release),
            ),
            "blocks": [
                BlockEntry(name=b.name, map=b.map.spec(), parts=_parts(release, b), choice=b.choice)
                for b in release.blocks
            ],
            "members": members,
        }
    )


def _parts(release: Release, block: Block) -> list[Part]:
    out = []
    for leaf, scale in zip(leaves(block.map), block.scales, strict=True):
        l2_squared, l1 = sensitivity(leaf, release.schema.privacy)
        steps = grid_of(leaf).steps
        out.append(
            Part(coordinates=leaf.dim, steps=steps, l2_squared=l2_squared, l1=l1, scale=scale)
        )
    return out


def disagreement(manifest: Manifest, release: Release) -> str | None:
    """Say which stated fact does not follow from the release; free text is not compared."""
    again = to_manifest(release, manifest.members)
    said, found = manifest.privacy, again.privacy
    for name in ("protects", "unit", "rows_per_unit", "noise"):
        if getattr(said, name) != getattr(found, name):
            return f"privacy.{name}"
    for name in ("rho", "zcdp_epsilon"):
        one, other = getattr(said, name), getattr(found, name)
        if (one is None) is not (other is None) or not isclose(one or 0, other or 0, rel_tol=1e-6):
            return f"privacy.{name}"
    for entry, rebuilt in zip(manifest.blocks, again.blocks, strict=True):
        if entry.parts != rebuilt.parts:
            return f"the sensitivity of block {entry.name!r}"
    return None


def from_manifest(manifest: Manifest, arrays: dict[str, np.ndarray]) -> Release:
    """Rebuild a release; everything that can be recomputed is, and has to agree."""
    total = sum(array.size for array in arrays.values())
    blocks = []
    for entry in manifest.blocks:
        array = arrays[entry.name]
        array.setflags(write=False)
        feature_map = from_spec(entry.map, limit=max(1, total))
        scales = tuple(part.scale for part in entry.parts)
        noise = manifest.privacy.noise
        blocks.append(Block(entry.name, feature_map, array, scales, noise, entry.choice))
    said = manifest.privacy
    return Release(
        schema=Schema.from_dict(manifest.schema_),
        blocks=tuple(blocks),
        statement=Statement(said.epsilon, said.delta, said.simulated),
        rows=manifest.rows,
        created=manifest.created,
        versions=manifest.versions,
    )


def canonical(manifest: Manifest) -> bytes:
    """Write the one JSON text of a manifest: fields in the published order, no space, UTF-8."""
    data = manifest.model_dump(mode="json", by_alias=True)
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def json_schema() -> dict[str, Any]:
    """Give the published JSON Schema of the manifest."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Aquatint release manifest, format version {FORMAT_VERSION}",
        **Manifest.model_json_schema(by_alias=True),
    }
