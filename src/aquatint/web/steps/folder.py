"""The one folder that the studio may look into: nothing above it, and nothing through a link."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aquatint.errors import DataError

DATA = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
PACKED = (".gz", ".zst", ".bz2")
MOST = 1_000
LONGEST = 1_000


@dataclass(frozen=True)
class Entry:
    """A file or a folder to choose."""

    path: str
    name: str
    folder: bool
    size: str


class Folder:
    """A folder and what lies below it, by relative paths only."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            msg = f"{root} is not a folder: give one that holds your data with --folder"
            raise DataError(msg)
        self.root = root.resolve()

    @property
    def name(self) -> str:
        """The folder as a person would write it from where the studio was started."""
        here = Path.cwd()
        inside = self.root.is_relative_to(here) and self.root != here
        return str(self.root.relative_to(here) if inside else self.root)

    def inside(self, relative: str) -> Path:
        """Give the path that a relative one means, if it lies inside; links are followed first."""
        try:
            path = (self.root / relative).resolve()
        except (OSError, ValueError, RuntimeError):
            path = self.root.parent
        if len(relative) > LONGEST:
            path = self.root.parent
        hidden = any(part.startswith(".") for part in Path(relative).parts if part != ".")
        if hidden or Path(relative).is_absolute() or not path.is_relative_to(self.root):
            msg = "that path is not inside the studio's folder: choose a file from the list"
            raise DataError(msg)
        return path

    def relative(self, path: Path) -> str:
        """Give a path as the studio writes it."""
        return path.relative_to(self.root).as_posix()

    def listing(self, relative: str = "") -> list[Entry]:
        """List folders and data files; hidden ones, and links that lead out, are left out."""
        here = self.inside(relative)
        if not here.is_dir():
            msg = "there is no such folder here: choose one from the list"
            raise DataError(msg)
        found = []
        for path in sorted(here.iterdir(), key=lambda p: (p.is_file(), p.name.lower()))[:MOST]:
            try:
                self.inside(self.relative(here / path.name))
            except DataError:
                continue
            if path.is_dir():
                found.append(Entry(self.relative(path), path.name, True, ""))
            elif is_data(path):
                size = readable_size(path.stat().st_size)
                found.append(Entry(self.relative(path), path.name, False, size))
        return found

    def files(self, *suffixes: str) -> list[str]:
        """Name the files of the folder itself that end in certain ways."""
        return sorted(
            p.name for p in self.root.iterdir() if p.suffix in suffixes and p.name[0] != "."
        )


def is_data(path: Path) -> bool:
    """Whether a file looks like a table."""
    packed = path.suffix.lower() in PACKED
    return (Path(path.stem).suffix if packed else path.suffix).lower() in DATA


def readable_size(size: float) -> str:
    """Write a number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:,.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return ""
