"""The release file: a stored, byte-stable zip of a manifest, the arrays and a card for people.

No pickle, no code. The reader trusts nothing: it allows three member names, caps every size before
reading, checks the sums, imports nothing by name, and recomputes the privacy loss from the noise.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from typing import IO, NoReturn

import safetensors
from pydantic import ValidationError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from aquatint.errors import AquatintError, ReleaseError
from aquatint.release.card import card
from aquatint.release.manifest import (
    FORMAT,
    FORMAT_VERSION,
    Manifest,
    Member,
    canonical,
    disagreement,
    from_manifest,
    to_manifest,
)
from aquatint.release.model import Release

MANIFEST, ARRAYS, CARD = "manifest.json", "arrays.safetensors", "README.md"
LIMITS = {MANIFEST: 64 << 20, ARRAYS: 4 << 30, CARD: 1 << 20}
_EPOCH = (1980, 1, 1, 0, 0, 0)


def to_bytes(release: Release) -> bytes:
    """Give the bytes of the release file; the same release always gives the same."""
    arrays = save_arrays({block.name: block.integers for block in release.blocks})
    text = card(release).encode()
    members = {ARRAYS: _member(arrays), CARD: _member(text)}
    manifest = canonical(to_manifest(release, members))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in ((MANIFEST, manifest), (ARRAYS, arrays), (CARD, text)):
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, content)
    return buffer.getvalue()


def save(release: Release, path: str | Path) -> None:
    """Write a release file atomically: it is there whole, or not at all."""
    content = to_bytes(release)
    with reserved(path, len(content)) as file:
        file.write(content)


@contextmanager
def reserved(path: str | Path, size: int, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """Secure the room for a file beside its final place, then put it there when all went well.

    The room is really written, so that a full disk shows before a privacy budget is spent.
    """
    target = Path(path)
    if target.is_dir():
        msg = f"cannot write {target}: it is a folder; give the name of a file"
        raise ReleaseError(msg)
    try:
        handle, beside = mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "r+b") as file:
                for start in range(0, size, 1 << 20):
                    file.write(bytes(min(1 << 20, size - start)))
                _settle(file)
                file.seek(0)
                yield file
                file.truncate()
                _settle(file)
            Path(beside).chmod(mode)
            Path(beside).replace(target)
        finally:
            Path(beside).unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or error
        msg = f"cannot write {target}: {why}; free some room or choose another place"
        raise ReleaseError(msg) from None


def _settle(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def load(path: str | Path) -> Release:
    """Open a release file from anyone; whatever is wrong with it is said in one sentence."""
    name = Path(path).name
    try:
        size = Path(path).stat().st_size
        if size > sum(LIMITS.values()):
            _refuse(name, f"it has {size:,} bytes, more than a release may have")
        with Path(path).open("rb") as file:
            return from_file(file, size, name)
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror or error}"
        raise ReleaseError(msg) from None


def from_file(file: IO[bytes], size: int, name: str) -> Release:
    """Read a release from an open file."""
    members = _members(file, size, name)
    manifest = _manifest(members[MANIFEST], name)
    for member in (ARRAYS, CARD):
        said = manifest.members.get(member)  # type: ignore[call-overload]  # a plain name
        if said is None or said != _member(members[member]):
            _refuse(name, f"the checksum of {member} does not match: it was damaged or altered")
    try:
        arrays = load_arrays(members[ARRAYS])
        if sorted(arrays) != sorted(entry.name for entry in manifest.blocks):
            _refuse(name, "its arrays are not those that its manifest lists")
        release = from_manifest(manifest, arrays)
        wrong = disagreement(manifest, release)
        if wrong is not None:
            _refuse(name, f"its manifest states {wrong} otherwise than follows from its contents")
    except ReleaseError as error:
        _refuse(name, str(error).removeprefix(f"{name} is not a valid release: "))
    except (AquatintError, safetensors.SafetensorError, ValidationError) as error:
        _refuse(name, str(error).splitlines()[0])
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError, RecursionError):
        _refuse(name, "its contents do not fit together")
    return release


def _members(file: IO[bytes], size: int, name: str) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if [entry.filename for entry in entries] != [MANIFEST, ARRAYS, CARD]:
                _refuse(name, f"it should hold {MANIFEST}, {ARRAYS} and {CARD}, in this order")
            for entry in entries:
                stored = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 0x1
                if not stored or entry.compress_size != entry.file_size:
                    _refuse(name, f"{entry.filename} is compressed or encrypted")
                if entry.file_size > min(LIMITS[entry.filename], size):
                    _refuse(name, f"{entry.filename} is larger than allowed")
            return {entry.filename: archive.read(entry) for entry in entries}
    except (
        zipfile.BadZipFile,
        EOFError,
        NotImplementedError,
        ValueError,
        RuntimeError,
        OverflowError,
    ):
        _refuse(name, "it is damaged, cut short or not a release file")


def _manifest(content: bytes, name: str) -> Manifest:
    try:
        data = json.loads(content, parse_constant=_no_constants)
    except (ValueError, RecursionError):
        _refuse(name, "its manifest is not plain JSON")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        _refuse(name, "its manifest is not that of a release")
    version = data.get("format_version")
    if version != FORMAT_VERSION:
        newer = isinstance(version, int) and version > FORMAT_VERSION
        _refuse(
            name,
            f"it has format version {str(version)[:20]}, this Aquatint knows {FORMAT_VERSION}"
            + (": install a newer Aquatint" if newer else ""),
        )
    try:
        return Manifest.model_validate(data)
    except (ValidationError, RecursionError) as error:
        first = (
            error.errors()[0]
            if isinstance(error, ValidationError)
            else {"loc": (), "msg": "too deep"}
        )
        place = ".".join(map(str, first["loc"]))[:100]
        _refuse(name, f"its manifest is wrong at {place or 'the top'}: {first['msg']}")


def _no_constants(constant: str) -> NoReturn:
    msg = f"{constant} is not allowed"
    raise ValueError(msg)


def _member(content: bytes) -> Member:
    return Member(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def _refuse(name: str, why: str) -> NoReturn:
    clean = "".join(c if c.isprintable() else "\ufffd" for c in why[:500])
    msg = f"{name} is not a valid release: {clean}"
    raise ReleaseError(msg)
