"""Release files to open, take apart and forge: shared by the tests of the format and its reader."""

import hashlib
import io
import json
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import aquatint as aq
from aquatint.errors import ReleaseError
from aquatint.features import Count, by_label, concat, fourier, hermite, onehot, race, scale
from aquatint.release.archive import ARRAYS, CARD, MANIFEST, from_file

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = {
    "sex": {"kind": "categorical", "categories": ["F", "M"]},
    "age": {"kind": "integer", "bounds": [0, 99], "bins": 5},
}


def schema_of(protects="add or remove one row"):
    return aq.Schema.from_dict(
        {"name": "people", "privacy": {"protects": protects}, "columns": COLUMNS}
    )


def rows(number):
    rng = np.random.default_rng(5)
    sex = np.where(rng.random(number) < 0.5, "F", "M")
    return pa.table({"sex": sex, "age": rng.integers(0, 100, number)})


def release_of(number=400, protects="add or remove one row", **options):
    schema = schema_of(protects)
    maps = {
        "columns": onehot(schema.cells()),
        "waves": concat(scale(fourier(("age",), 4), 0.5), hermite(("age",), 2)),
        "hashes": race(("age",), 2, 3),
        "by sex": by_label(fourier(("age",), 2), "sex", 2),
    }
    if protects != "replace one row":
        maps["count"] = Count()
    blocks = tuple(aq.PlannedBlock(n, m, 1 / len(maps)) for n, m in maps.items())
    plan = aq.Plan(schema, blocks)
    options = {"epsilon": 1.0, "delta": 1e-6, "progress": False, **options}
    return aq.sketch(rows(number), schema, plan=plan, **options)


def opened(content):
    return from_file(io.BytesIO(content), len(content), "x.aqt")


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members, compression=zipfile.ZIP_STORED):
    """Make a zip of (name, bytes) pairs, in order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compression)
    return buffer.getvalue()


def forged(content, edit=lambda manifest: None, *, arrays=None, card=None, raw=None):
    """Alter a release as a careful forger would, with checksums that match again."""
    members = members_of(content)
    if arrays is not None:
        members[ARRAYS] = arrays
    if card is not None:
        members[CARD] = card
    manifest = json.loads(members[MANIFEST])
    for name in (ARRAYS, CARD):
        digest = hashlib.sha256(members[name]).hexdigest()
        manifest["members"][name] = {"bytes": len(members[name]), "sha256": digest}
    edit(manifest)
    members[MANIFEST] = json.dumps(manifest).encode() if raw is None else raw(manifest)
    return zipped(members.items())


def refusal(content):
    """Open what has to be refused, quickly, in one printable line; give what was said."""
    begun = time.monotonic()
    with pytest.raises(ReleaseError) as caught:
        opened(content)
    assert time.monotonic() - begun < 5
    said = str(caught.value)
    assert said.startswith("x.aqt is not a valid release: ")
    assert len(said) < 1000
    assert said.isprintable(), "a stranger's file must not write control characters"
    return said


def opened_or_refused(content):
    """Give the release, or None if it is refused in one printable line; nothing else may happen."""
    said = ""
    try:
        return opened(content)
    except ReleaseError as error:
        said = str(error)
    assert said.isprintable(), repr(said)
    return None


def same(one, other):
    """Compare every field of two releases."""
    for name in ("schema", "statement", "rows", "created", "versions"):
        assert getattr(one, name) == getattr(other, name), name
    assert len(one.blocks) == len(other.blocks)
    for a, b in zip(one.blocks, other.blocks, strict=True):
        assert (a.name, a.map, a.scales, a.noise) == (b.name, b.map, b.scales, b.noise)
        assert a.integers.dtype == b.integers.dtype == np.int64
        assert (a.integers == b.integers).all()
    return True
