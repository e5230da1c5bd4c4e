"""Find the file of a public network by the hash that a release names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from safetensors import SafetensorError, safe_open

from aquatint.errors import PlanError
from aquatint.networks.files import FORMAT, load
from aquatint.networks.public import PublicNetwork

MOST_FILES = 100


def find(wanted: Iterable[PublicNetwork], folders: Iterable[Path]) -> list[PublicNetwork]:
    """Give those of the named networks whose files lie in the folders."""
    missing = {(network.architecture, network.sha256) for network in wanted}
    found: list[PublicNetwork] = []
    for path in _files(folders):
        if not missing:
            break
        if _architecture(path) not in {architecture for architecture, _ in missing}:
            continue
        try:
            network = load(path)
        except PlanError:
            continue  # damaged: whoever needs it is told that it is missing
        if (network.architecture, network.sha256) in missing:
            missing.remove((network.architecture, network.sha256))
            found.append(network)
    return found


def _files(folders: Iterable[Path]) -> list[Path]:
    seen: dict[Path, None] = {}
    for folder in folders:
        if folder.is_dir():
            seen |= dict.fromkeys(path.resolve() for path in sorted(folder.glob("*.safetensors")))
    return list(seen)[:MOST_FILES]


def _architecture(path: Path) -> str | None:
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
    except (OSError, SafetensorError):
        return None
    return metadata.get("architecture") if metadata.get("format") == FORMAT else None
