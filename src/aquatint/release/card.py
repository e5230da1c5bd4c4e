"""The card: what a release is and promises, in words for people, and for the public registry."""

from __future__ import annotations

import json
from typing import Any

from aquatint.release.model import Release

NOT_PRIVATE = "NOT PRIVATE: the noise was simulated for a benchmark. Do not publish this file."


def protected_change(release: Release) -> str:
    """Say in words what an attacker cannot tell."""
    privacy = release.schema.privacy
    if privacy.person is None:
        verb = "replaced by any other" if privacy.replaces else "added or left out"
        return f"whether any one row was {verb}"
    extra = (
        "" if privacy.rows_per_unit == 1 else f", who counts for at most {privacy.max_rows} rows"
    )
    return f"whether any one person{extra}, with all their rows, was in the data or not"


def promise(release: Release) -> str:
    """State the guarantee in one sentence, with its parameters."""
    said = release.statement
    if said.simulated:
        return NOT_PRIVATE
    kind = (
        f"{said.epsilon:g}-differentially private"
        if said.delta == 0
        else f"({said.epsilon:g}, {said.delta:g})-differentially private"
    )
    return (
        f"This release is {kind}: it protects {protected_change(release)}. "
        "Nothing that anyone computes from it can weaken that."
    )


def counted(release: Release) -> str:
    """Say what the count counts."""
    privacy = release.schema.privacy
    if privacy.person is None:
        return "number of rows"
    most = privacy.rows_per_unit
    return "number of persons" if most == 1 else f"rows, at most {most} a person"


def technical(release: Release) -> list[tuple[str, str]]:
    """List the facts behind the promise."""
    said = release.statement
    facts = [
        ("neighbouring datasets", release.schema.privacy.protects),
        ("unit of protection", release.schema.privacy.unit),
        ("noise", f"{said.noise} on exact integer sums, one joint release"),
        ("epsilon, delta", f"{said.epsilon:g}, {said.delta:g}"),
    ]
    if said.delta:
        facts += [
            ("rho (zCDP)", f"{release.loss.zcdp_rho:.6g}"),
            ("epsilon by zCDP alone", f"{release.zcdp_epsilon:.6g} at the same delta"),
        ]
    rows = (
        f"{release.rows:,} (public)" if release.rows is not None else f"about {release.count:,.0f}"
    )
    return [
        *facts,
        (counted(release), rows),
        ("made on", release.created),
    ]


NOT_COVERED = (
    "what everybody else's data say about a person (that smoking causes cancer, for one)",
    "anything else that is published: logs, error messages, timing, other releases of the data",
)


def card(release: Release) -> str:
    """Write the README that travels inside the file."""
    from aquatint.release.manifest import assumed_public

    lines = [
        "---",
        f"name: {json.dumps(release.schema.name)}",
        "tool: aquatint " + release.versions.get("aquatint", "?"),
        f"epsilon: {release.statement.epsilon!r}",
        f"delta: {release.statement.delta!r}",
        f"private: {str(release.private).lower()}",
        "---",
        f"# {_plain(release.schema.name)}: a differentially private release",
        "",
        promise(release),
        "",
        "This file holds noisy sums of features of the rows, and no row. It can be copied,",
        "published and used for ever; how often it is used makes no difference to privacy.",
        "",
        "## Facts",
        *(f"- {name}: {value}" for name, value in technical(release)),
        "",
        "## Taken as public, and not protected",
        *(f"- {item}" for item in assumed_public(release)),
        "",
        "## Not covered by the promise",
        *(f"- {item}" for item in NOT_COVERED),
        "",
        "## Blocks",
        *(f"- {b.name}: {b.map.kind}, {b.map.dim:,} numbers" for b in release.blocks),
        "",
        "## Use it",
        "`pip install aquatint`, then `aquatint show FILE`.",
        "",
    ]
    return "\n".join(lines)


def registry_entry(release: Release) -> dict[str, Any]:
    """Give the fields of the OpenDP/NIST registry of deployments, as far as the file knows them."""
    from aquatint.release.manifest import assumed_public

    said, privacy = release.statement, release.schema.privacy
    return {
        "name": release.schema.name,
        "data_curator": None,
        "intended_use": None,
        "data_product_type": "summary statistics (noisy mean embedding)",
        "dp_flavor": "pure DP" if said.delta == 0 else "approximate DP (zero-concentrated DP)",
        "privacy_loss": {
            "epsilon": said.epsilon,
            "delta": said.delta,
            "rho": release.loss.zcdp_rho if said.delta else None,
        },
        "privacy_unit": privacy.unit,
        "unit_description": privacy.protects,
        "contributions_per_unit": privacy.rows_per_unit if privacy.unit == "person" else 1,
        "model": "central (trusted curator)",
        "data_domain": {name: c.kind for name, c in release.schema.columns.items()},
        "unprotected_quantities": assumed_public(release),
        "mechanisms": [
            {"mechanism": said.noise, "block": b.name, "coordinates": b.map.dim}
            for b in release.blocks
        ],
        "composition": "one joint release; the loss of the blocks adds up exactly",
        "post_processing": "unlimited",
        "implementation": release.versions,
        "publication_date": release.created,
        "is_private": release.private,
    }


def _plain(text: str) -> str:
    """Keep a name from being read as markup."""
    return "".join(c if c.isprintable() else " " for c in text).replace("<", "(").replace(">", ")")
