"""A run that is killed goes on where it was: the same integers, one draw of noise, one entry."""

import base64
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scaling import plan_of, same

from aquatint.accounting import Budget
from aquatint.curator import checkpoint as checkpoints
from aquatint.curator import finishing
from aquatint.curator.checkpoint import Checkpoint, checkpoint_at
from aquatint.curator.databases import Query
from aquatint.curator.ledger import Ledger
from aquatint.curator.sketch import accumulate, sketch
from aquatint.errors import AquatintError, BudgetError, DataError
from aquatint.release import load
from aquatint.schema import Schema

pytest.importorskip("cryptography", reason="pip install 'aquatint[checkpoint]'")
KEY = bytes(range(32))
TEXT = base64.b64encode(KEY).decode()
TRIES = int(os.environ.get("AQUATINT_KILLS", "3"))


@pytest.fixture
def plan(schema):
    return plan_of(schema)


@pytest.fixture
def folder(kit, tmp_path):
    place = tmp_path / "data"
    place.mkdir()
    for number in range(5):
        path = place / f"part-{number}.parquet"
        pq.write_table(kit.raw_table(400, seed=number), path, row_group_size=150)
    return place


@pytest.fixture
def kept(tmp_path):
    return Checkpoint(tmp_path / "run.checkpoint", KEY, every=0.0)


class StoppedError(Exception):
    pass


def stopped_after(saves, monkeypatch):
    """Break off after so many checkpoints."""
    real, count = checkpoints.save, 0

    def save(*arguments):
        nonlocal count
        real(*arguments)
        count += 1
        if count == saves:
            raise StoppedError

    monkeypatch.setattr(checkpoints, "save", save)


@pytest.mark.parametrize("saves", [1, 2, 7, 11])
def test_a_run_goes_on_where_it_was(saves, plan, folder, kept, monkeypatch):
    wanted = accumulate(folder, plan)
    with monkeypatch.context() as patched:
        stopped_after(saves, patched)
        with pytest.raises(StoppedError):
            accumulate(folder, plan, checkpoint=kept)
    read = []
    from aquatint.curator.parts import Files

    walk = Files.walk

    def counted(self, start=None):
        for position, batch in walk(self, start):
            read.append(batch.num_rows)
            yield position, batch

    monkeypatch.setattr(Files, "walk", counted)
    assert same(accumulate(folder, plan, checkpoint=kept), wanted)
    assert sum(read) < 2000  # what was summed is not read again


def test_nothing_of_a_checkpoint_can_be_read_without_the_key(plan, folder, kept):
    found = accumulate(folder, plan, checkpoint=kept)
    content = kept.path.read_bytes()
    assert oct(kept.path.stat().st_mode & 0o777) == "0o600"
    for total in found.totals:
        assert total.numpy()[:4].tobytes() not in content
    assert b"part-" not in content
    assert str(KEY) not in repr(kept)
    assert same(accumulate(folder, plan, checkpoint=kept), found)  # all of it is there already
    for wrong in (replace(kept, key=bytes(32)),):
        with pytest.raises(DataError, match="key is another"):
            accumulate(folder, plan, checkpoint=wrong)
    for place in (0, 60, len(content) // 2, len(content) - 1):
        damaged = bytearray(content)
        damaged[place] ^= 1
        kept.path.write_bytes(damaged)
        with pytest.raises(DataError, match="damaged"):
            accumulate(folder, plan, checkpoint=kept)


def test_another_plan_and_changed_files_are_refused(plan, folder, kept, kit):
    accumulate(folder, plan, checkpoint=kept)
    other = replace(plan, blocks=tuple(replace(b, share=0.5) for b in plan.blocks[:2]))
    with pytest.raises(DataError, match="another plan"):
        accumulate(folder, other, checkpoint=kept)
    pq.write_table(kit.raw_table(401), folder / "part-3.parquet")
    with pytest.raises(DataError, match="other or changed files"):
        accumulate(folder, plan, checkpoint=kept)


def test_a_key_is_needed_and_lies_elsewhere(tmp_path, monkeypatch):
    monkeypatch.delenv("AQUATINT_CHECKPOINT_KEY", raising=False)
    with pytest.raises(DataError, match="needs a key: make one with `openssl rand"):
        checkpoint_at(tmp_path / "x")
    beside, elsewhere = tmp_path / "key", tmp_path / "keys" / "key"
    elsewhere.parent.mkdir()
    for path in (beside, elsewhere):
        path.write_text(TEXT + "\n")
    with pytest.raises(DataError, match="beside the checkpoint"):
        checkpoint_at(tmp_path / "x", beside)
    assert checkpoint_at(tmp_path / "x", elsewhere).key == KEY
    monkeypatch.setenv("AQUATINT_CHECKPOINT_KEY", TEXT)
    assert checkpoint_at(tmp_path / "x").key == KEY
    for bad in ("short", "é", base64.b64encode(bytes(31)).decode()):
        monkeypatch.setenv("AQUATINT_CHECKPOINT_KEY", bad)
        with pytest.raises(DataError, match="not 32 bytes") as caught:
            checkpoint_at(tmp_path / "x")
        assert bad not in str(caught.value)


def test_queries_frames_and_persons_have_no_checkpoint(plan, folder, kept, schema_dict, kit):
    schema_dict["privacy"] = {"protects": "all rows of one person", "person": "who"}
    persons = plan_of(Schema.from_dict(schema_dict))
    for data, what in [
        (kit.raw_table(10), plan), (Query("x.parquet", "select 1"), plan), (folder, persons)
    ]:  # fmt: skip
        with pytest.raises(AquatintError, match="a checkpoint needs files"):
            sketch(data, what.schema, epsilon=1, delta=1e-6, plan=what, checkpoint=kept)


# --- one draw of noise, one entry -----------------------------------------------------------------


@pytest.fixture
def book(tmp_path, schema):
    made = Ledger(tmp_path / "ledger.db")
    made.open_account("people", Budget(10.0, 1e-6), schema.privacy.protects)
    return made


def run(folder, plan, kept, tmp_path, **options):
    asked = {"epsilon": 1.0, "delta": 1e-6, "ledger": tmp_path / "ledger.db", "dataset": "people",
             "output": tmp_path / "x.aqt", "checkpoint": kept} | options  # fmt: skip
    return sketch(folder, plan.schema, plan=plan, **asked)


@pytest.mark.parametrize("moment", ["keep", "spend", "write"])
def test_a_release_is_drawn_once_and_paid_for_once(
    moment, plan, folder, kept, book, tmp_path, monkeypatch
):
    drawn = []
    real = finishing.finish

    def finish(*arguments, **options):
        drawn.append(real(*arguments, **options))
        return drawn[-1]

    monkeypatch.setattr(finishing, "finish", finish)

    def dies(*_):
        raise StoppedError

    with monkeypatch.context() as patched:
        if moment == "keep":  # sealed, not paid
            patched.setattr("aquatint.curator.ledger.Reservation.spend", dies)
        elif moment == "spend":  # paid, not written
            patched.setattr(finishing, "to_bytes", dies)
        else:  # written, not tidied up
            patched.setattr(checkpoints.Seal, "remove", dies)
        with pytest.raises(StoppedError):
            run(folder, plan, kept, tmp_path)
    assert book.account("people").releases == (0 if moment == "keep" else 1)
    assert (tmp_path / "x.aqt").exists() == (moment == "write")
    with pytest.raises(BudgetError, match="finished release with epsilon 1"):
        run(folder, plan, kept, tmp_path, epsilon=2.0)
    again = run(folder, plan, kept, tmp_path)
    assert len(drawn) == 1
    for block, first in zip(again.blocks, drawn[0].blocks, strict=True):
        assert (block.integers == first.integers).all()
    assert (load(tmp_path / "x.aqt").blocks[1].integers == drawn[0].blocks[1].integers).all()
    account = book.account("people")
    assert (account.releases, account.reserved) == (1, 0)
    assert not kept.path.exists()
    run(folder, plan, kept, tmp_path)  # another one is another one
    assert len(drawn) == 2
    assert book.account("people").releases == 2


def test_an_entry_of_someone_else_does_not_pay(plan, folder, kept, book, tmp_path, monkeypatch):
    """The number of a lapsed entry is used again by SQLite: the token is not."""

    def dies(*_):
        raise StoppedError

    with monkeypatch.context() as patched:
        patched.setattr("aquatint.curator.ledger.Reservation.spend", dies)
        with pytest.raises(StoppedError):
            run(folder, plan, kept, tmp_path)
    run(folder, plan, None, tmp_path, output=tmp_path / "other.aqt")
    run(folder, plan, kept, tmp_path)
    assert book.account("people").releases == 2


def test_a_ledger_of_an_earlier_version_is_taken_on(schema, tmp_path):
    book = Ledger(tmp_path / "old.db")
    book.open_account("people", Budget(1.0, 0.0), schema.privacy.protects)
    with sqlite3.connect(tmp_path / "old.db") as db:
        db.execute("alter table entries drop column token")
    db.close()
    assert book.account("people").left == 1.0
    assert not book.is_spent("people", "x")


# --- killed at random, and a full disk ------------------------------------------------------------

CHILD = """
import json, resource, sys
from pathlib import Path
asked = json.loads(sys.argv[1])
from scaling import plan_of
from aquatint.curator.checkpoint import Checkpoint
from aquatint.curator.sketch import sketch
from aquatint.errors import AquatintError
from aquatint.schema import Schema
plan = plan_of(Schema.from_dict(asked["schema"]))
if asked["most"]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (asked["most"], asked["most"]))
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
print("ready", flush=True)
try:
    sketch(asked["data"], plan.schema, epsilon=1, delta=1e-6, plan=plan, progress=False,
           ledger=asked["ledger"], dataset="people", output=asked["output"],
           checkpoint=Checkpoint(Path(asked["checkpoint"]), bytes(range(32)), every=0.0))
except AquatintError as error:
    print("refused:", error)
    sys.exit(1)
print("done")
"""


def start(schema_dict, folder, tmp_path, most=0):
    asked = {"schema": schema_dict, "data": str(folder), "ledger": str(tmp_path / "ledger.db"),
             "output": str(tmp_path / "x.aqt"), "checkpoint": str(tmp_path / "run"),
             "most": most}  # fmt: skip
    where = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(asked)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=where,
    )


def test_killed_at_random_it_ends_with_the_same_integers_and_one_entry(
    schema_dict, plan, kit, book, tmp_path
):
    """SIGKILL at random moments; `make bench-scale` does it twenty times."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(12):
        table = pa.concat_tables([kit.raw_table(2500, seed=number)] * 4)
        pq.write_table(table, folder / f"part-{number:02}.parquet", row_group_size=2500)
    wanted = accumulate(folder, plan)
    dice = random.Random(os.getpid())
    saved, output = tmp_path / "run", tmp_path / "x.aqt"
    took, kills, resumed, compared, ended = 2.0, 0, 0, 0, 0
    while kills < TRIES or saved.exists() or not ended:
        resumed += saved.exists()
        if not saved.exists():
            output.unlink(missing_ok=True)
        child = start(schema_dict, folder, tmp_path)
        assert child.stdout.readline() == "ready\n", child.stderr.read()
        begun = time.monotonic()
        if kills < TRIES:
            try:
                child.wait(timeout=dice.uniform(0, took))
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                kills += 1
        out, err = child.communicate(timeout=120)
        assert child.returncode in (0, -signal.SIGKILL), out + err
        if child.returncode == 0:
            took = max(0.2, time.monotonic() - begun)
        ended += output.exists() and not saved.exists()
        # Whatever was paid for was published, or waits in the checkpoint.
        assert ended <= book.account("people").releases <= ended + saved.exists()
        if saved.exists():
            found = checkpoints.load(Checkpoint(saved, KEY), files_of(folder, plan), plan)
            if found.release is None:  # a copy of it, taken up again, ends with the same integers
                compared += 1
                copy = Checkpoint(tmp_path / "copy", KEY, every=60.0)
                copy.path.write_bytes(saved.read_bytes())
                assert same(accumulate(folder, plan, checkpoint=copy), wanted)
    account = book.account("people")
    assert (account.releases, account.reserved) == (ended, 0)
    if "AQUATINT_DRILL" in os.environ:
        told = {"kills": kills, "resumed": resumed, "compared": compared}
        told |= {"releases": ended, "entries": account.releases}
        Path(os.environ["AQUATINT_DRILL"]).write_text(json.dumps(told) + "\n")


def files_of(folder, plan):
    from aquatint.curator.gathering import encoder_of
    from aquatint.curator.read import read

    return read(folder, plan.schema, encoder_of(plan).columns).files


def test_a_disk_too_full_for_the_release_costs_nothing(schema_dict, plan, folder, book, tmp_path):
    """The checkpoint fits, the release does not; with more room the run goes on."""
    out, err = start(schema_dict, folder, tmp_path, most=20_480).communicate(timeout=120)
    assert "refused: cannot write" in out, err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "ledger.db", "run"]
    account = book.account("people")
    assert (account.spent, account.reserved, account.releases) == (0, 0, 0)
    out, err = start(schema_dict, folder, tmp_path).communicate(timeout=120)
    assert "done" in out, err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "ledger.db", "x.aqt"]
    assert book.account("people").releases == 1


def test_a_disk_too_full_for_a_checkpoint_leaves_the_one_before(plan, folder, kept, monkeypatch):
    with monkeypatch.context() as patched:
        stopped_after(2, patched)
        with pytest.raises(StoppedError):
            accumulate(folder, plan, checkpoint=kept)
    before = kept.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
    try:
        with pytest.raises(AquatintError, match=r"cannot write .*free some room"):
            accumulate(folder, plan, checkpoint=kept)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, heard)
    assert kept.path.read_bytes() == before
    assert same(accumulate(folder, plan, checkpoint=kept), accumulate(folder, plan))
