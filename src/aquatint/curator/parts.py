"""Many files in: a path, a folder, a pattern or an address becomes one table in a fixed order."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from aquatint.curator.files import ARROW, CSV, PARQUET, Part, away, read_part
from aquatint.curator.source import cut
from aquatint.errors import DataError
from aquatint.schema import Schema

_ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_PATTERN = re.compile(r"[*?\[]")


class Position(NamedTuple):
    """How far a table was read: so many parts, and so many rows of the next."""

    parts: int = 0
    rows: int = 0


START = Position()


class Files:
    """Files read as one table, part by part in the order of their names.

    Parameters
    ----------
    parts
        The files.
    schema, wanted
        What is declared, and the columns to read.
    rows
        The largest batch.
    """

    def __init__(
        self, parts: tuple[Part, ...], schema: Schema, wanted: list[str], rows: int
    ) -> None:
        self.parts = parts
        self._schema, self._wanted, self._rows = schema, wanted, rows
        self._bytes = max(1, sum(part.size for part in parts))
        self._share = 0.0

    def walk(self, start: Position = START) -> Iterator[tuple[Position, pa.RecordBatch]]:
        """Give every batch from a position on, each with the position after it."""
        before = sum(part.size for part in self.parts[: start.parts])
        for number, part in enumerate(self.parts[start.parts :], start=start.parts):
            rows = start.rows if number == start.parts else 0

            def tell(share: float, before: int = before, size: int = part.size) -> None:
                self._share = (before + share * size) / self._bytes

            read = read_part(part, self._schema, self._wanted, self._rows, rows, tell)
            for batch in cut(read, self._rows):
                rows += batch.num_rows
                yield Position(number, rows), batch
            before += part.size
            self._share = before / self._bytes

    def open(self) -> Iterator[pa.RecordBatch]:
        """Give every batch."""
        for _, batch in self.walk():
            yield batch

    def share(self) -> float:
        """Tell which share of the bytes was read."""
        return self._share


def find_parts(data: str | Path) -> tuple[Part, ...]:
    """Find the files that a path, a folder, a pattern or an address stands for, by name."""
    text = str(data)
    found = _stored(text) if _ADDRESS.match(text) else _local(text)
    for part in found:
        if part.kind not in PARQUET | ARROW | CSV:
            msg = f"cannot tell what {part.name} is: use .csv, .tsv, .parquet, .arrow or .feather"
            raise DataError(msg)
    return tuple(sorted(found, key=lambda part: part.place))


def _local(text: str) -> list[Part]:
    path = Path(text)
    if path.is_dir():
        inside = [p for p in path.rglob("*") if p.is_file() and _shown(p.relative_to(path).parts)]
        return [_on_disk(p, str(p)) for p in inside] or _nothing(text, "the folder holds no file")
    if path.exists():
        return [_on_disk(path, path.name)]
    if not _PATTERN.search(text):
        return _nothing(text, "it does not exist")
    matched = [Path(p) for p in glob.glob(text, recursive=True)]  # noqa: PTH207  # text, not a Path
    files = [_on_disk(p, str(p)) for p in matched if p.is_file()]
    return files or _nothing(text, "no file matches")


def _on_disk(path: Path, name: str) -> Part:
    known = os.stat(path)  # noqa: PTH116
    return Part(name, fs.LocalFileSystem(), str(path), known.st_size, known.st_mtime_ns)


def _shown(parts: tuple[str, ...]) -> bool:
    """Whether a file of a folder is data, and not what Spark and others leave beside it."""
    return not any(part.startswith(("_", ".")) for part in parts)


def _stored(text: str) -> list[Part]:
    """List files in a store; what is shown of its address is the scheme and the path."""
    scheme = text.split("://", 1)[0].lower()
    base, pattern = _split(text)
    root = "…"  # what is not understood may hold a password
    try:
        system, root = fs.FileSystem.from_uri(base)
        info = system.get_file_info(root)
        if info.is_file and not pattern:
            return [_kept(scheme, system, info)]
        listed = system.get_file_info(fs.FileSelector(root, recursive=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, KeyError) as error:
        msg = f"cannot read {scheme}://{root}: {away(error) or 'pyarrow cannot open that address'}"
        raise DataError(msg) from None
    found = []
    for info in listed:
        below = info.path[len(root) :].strip("/").split("/")
        if info.is_file and (_matches(below, pattern) if pattern else _shown(tuple(below))):
            found.append(_kept(scheme, system, info))
    return found or _nothing(f"{scheme}://{root}", "no file matches")


def _split(text: str) -> tuple[str, list[str]]:
    """Cut an address into the folder before any pattern, and the pattern by folders."""
    address, mark, options = text.partition("?")
    first = re.search(r"[*\[]", address)
    if first is None:
        return address.rstrip("/") + mark + options, []
    base = address[: first.start()].rpartition("/")[0]
    return base + mark + options, address[len(base) + 1 :].split("/")


def _matches(path: list[str], pattern: list[str]) -> bool:
    return len(path) == len(pattern) and all(map(fnmatchcase, path, pattern))


def _kept(scheme: str, system: Any, info: Any) -> Part:
    return Part(f"{scheme}://{info.path}", system, info.path, info.size or 0, info.mtime_ns or 0)


def _nothing(text: str, why: str) -> list[Part]:
    msg = f"cannot read {text}: {why}; give CSV, Parquet or Arrow files"
    raise DataError(msg)
