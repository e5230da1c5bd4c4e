"""Checkpoints: how far a long run came, encrypted, so that it can go on after an interruption.

**A checkpoint holds sums without noise**, so it is written only under a key that the curator keeps
elsewhere: AES-256-GCM, which also tells whether a byte was changed. It belongs to one plan and one
list of files, by size and time of last change; any other is refused. The file is replaced as a
whole or not at all, so that a full disk or a crash leaves the one before.

When all rows are summed, the noise is drawn and the finished release goes into the checkpoint
first, still sealed by the key. Then the loss is entered in the ledger, and only then is the release
written where people look. A run that dies in between finds its own release again and publishes
that: one draw of noise, one entry in the ledger.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import secrets
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from aquatint.curator.partials import fingerprint, pack_private, unpack_private
from aquatint.curator.parts import START, Files, Position
from aquatint.curator.sums import PrivateSum
from aquatint.errors import DataError
from aquatint.extras import need
from aquatint.planning import Plan
from aquatint.release.archive import from_file, reserved, to_bytes
from aquatint.release.model import Release

KEY_VARIABLE = "AQUATINT_CHECKPOINT_KEY"
EVERY = 60.0
"""Seconds between two checkpoints."""
_MAGIC = b"aquatint checkpoint 1: encrypted sums without noise\n"
_NONCE = 12
_KEY = 32


@dataclass(frozen=True)
class Checkpoint:
    """Where to keep a run, and the key to it.

    Attributes
    ----------
    path
        The file.
    key
        32 bytes; never shown.
    every
        Seconds between two checkpoints.
    """

    path: Path
    key: bytes = field(repr=False)
    every: float = EVERY


@dataclass(frozen=True, repr=False)
class Progress:
    """What a checkpoint holds: how far the files were read and the sums so far.

    At the end it holds the finished release instead, and the name of its entry in the ledger.
    """

    position: Position
    private: PrivateSum
    release: Release | None = None
    entry: str | None = None


def checkpoint_at(path: str | Path, key_file: str | Path | None = None) -> Checkpoint:
    """Give a checkpoint whose key is in the environment or in a file that lies elsewhere."""
    place = Path(path)
    how = (
        f"make one with `openssl rand -base64 32`, and give it in {KEY_VARIABLE} or in a file in "
        "another folder"
    )
    if key_file is None:
        text = os.environ.get(KEY_VARIABLE, "")
        if not text:
            msg = f"a checkpoint holds sums without noise and needs a key: {how}"
            raise DataError(msg)
    else:
        if Path(key_file).resolve().parent == place.resolve().parent:
            msg = "the key lies beside the checkpoint, where it protects nothing: keep it elsewhere"
            raise DataError(msg)
        try:
            text = Path(key_file).read_text(encoding="ascii")
        except (OSError, ValueError):
            msg = f"cannot read the key in {key_file}: {how}"
            raise DataError(msg) from None
    try:
        key = base64.b64decode(text.strip().replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY:
        msg = f"the key of the checkpoint is not 32 bytes in base64: {how}"
        raise DataError(msg)
    return Checkpoint(place, key)


def save(checkpoint: Checkpoint, files: Files, progress: Progress) -> None:
    """Write a checkpoint in place of the one before, as a whole or not at all."""
    sealed = progress.release is not None
    head = {
        "plan": fingerprint(progress.private.plan),
        "files": _identity(files),
        "position": list(progress.position),
        "sealed": sealed,
        "entry": progress.entry,
    }
    body = to_bytes(progress.release) if progress.release else pack_private(progress.private)
    text = json.dumps(head).encode()
    nonce = secrets.token_bytes(_NONCE)
    content = len(text).to_bytes(8, "little") + text + body
    locked = _MAGIC + nonce + _cipher(checkpoint).encrypt(nonce, content, _MAGIC)
    with reserved(checkpoint.path, len(locked), mode=0o600) as file:
        file.write(locked)


def load(checkpoint: Checkpoint, files: Files, plan: Plan) -> Progress:
    """Read a checkpoint, or start from nothing where there is none."""
    try:
        locked = checkpoint.path.read_bytes()
    except FileNotFoundError:
        return Progress(START, PrivateSum.empty(plan))
    except OSError as error:
        msg = f"cannot read the checkpoint {checkpoint.path}: {error.strerror}"
        raise DataError(msg) from None
    head, body = _opened(checkpoint, locked)
    if head["plan"] != fingerprint(plan) or head["files"] != _identity(files):
        what = "another plan" if head["plan"] != fingerprint(plan) else "other or changed files"
        msg = f"{checkpoint.path} is of {what}: remove it to start anew, nothing was spent"
        raise DataError(msg)
    if head["sealed"]:
        release = from_file(BytesIO(body), len(body), checkpoint.path.name)
        return Progress(START, PrivateSum.empty(plan), release, head["entry"])
    return Progress(Position(*head["position"]), unpack_private(body, plan))


@dataclass(frozen=True, repr=False)
class Seal:
    """Keeps a finished release locked away until its loss is entered in the ledger."""

    checkpoint: Checkpoint
    files: Files
    plan: Plan

    def opened(self) -> tuple[Release, str | None] | None:
        """Give the release that is kept and the name of its entry, if there is one."""
        found = load(self.checkpoint, self.files, self.plan)
        return None if found.release is None else (found.release, found.entry)

    def keep(self, release: Release, entry: str | None) -> None:
        """Lock a release away, under the name of the entry that will pay for it."""
        empty = PrivateSum.empty(self.plan)
        save(self.checkpoint, self.files, Progress(START, empty, release, entry))

    def remove(self) -> None:
        """Remove the checkpoint: all is done."""
        self.checkpoint.path.unlink(missing_ok=True)


def _opened(checkpoint: Checkpoint, locked: bytes) -> tuple[dict[str, Any], bytes]:
    start = len(_MAGIC) + _NONCE
    cipher = _cipher(checkpoint)
    try:
        if not locked.startswith(_MAGIC):
            raise ValueError
        content = cipher.decrypt(locked[len(_MAGIC) : start], locked[start:], _MAGIC)
    except (need("cryptography.exceptions", extra="checkpoint").InvalidTag, ValueError):
        msg = (
            f"{checkpoint.path} cannot be opened: the key is another, or the file was damaged; "
            "give the right key, or remove the file to start anew"
        )
        raise DataError(msg) from None
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def _cipher(checkpoint: Checkpoint) -> Any:
    ciphers = need("cryptography.hazmat.primitives.ciphers.aead", extra="checkpoint")
    return ciphers.AESGCM(checkpoint.key)


def _identity(files: Files) -> str:
    """Tell lists of files apart by names, sizes and times of last change."""
    known = [(part.name, part.size, part.modified) for part in files.parts]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()
