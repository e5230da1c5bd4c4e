"""Several threads, a thousand batches: the same integers; errors and Ctrl-C come through."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scaling import plan_of, same

from aquatint import progress
from aquatint.curator.counting import count_cells, counted_marginals
from aquatint.curator.partials import merge_private
from aquatint.curator.sketch import accumulate
from aquatint.errors import DataError, PlanError
from aquatint.features import Rows, by_label, marginals, pairs, scale
from aquatint.features.marginals import Marginals
from aquatint.schema import Schema

COUNT = 2000


@pytest.fixture
def plan(schema):
    return plan_of(schema)


@pytest.fixture
def table(kit):
    return kit.raw_table(COUNT)


@pytest.fixture
def wanted(plan, table):
    return accumulate(table, plan, workers=1)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_and_batches_gives_the_same_integers(workers, plan, table, wanted):
    for size in (2, COUNT):  # a thousand batches, and one
        batches = iter(table.to_batches(max_chunksize=size))
        assert same(accumulate(batches, plan, workers=workers), wanted)


@pytest.mark.parametrize("workers", [1, 2])
def test_persons_give_the_same_integers(workers, schema_dict, kit):
    schema_dict["privacy"] = {
        "protects": "all rows of one person", "person": "who", "max_rows": 2
    }  # fmt: skip
    plan = plan_of(Schema.from_dict(schema_dict))
    who = pa.array(np.random.default_rng(3).integers(0, 400, COUNT))
    table = kit.raw_table(COUNT).append_column("who", who)
    found = accumulate(iter(table.to_batches(max_chunksize=9)), plan, workers=workers)
    assert same(found, accumulate(table, plan, workers=1))
    assert found.totals[0].item() < COUNT * 2**20


def test_the_reader_stays_in_the_thread_that_asked(plan, table, wanted):
    import threading

    here, seen = threading.get_ident(), set()

    def stream():
        for batch in table.to_batches(max_chunksize=50):
            seen.add(threading.get_ident())
            yield batch

    assert same(accumulate(stream(), plan, workers=3), wanted)
    assert seen == {here}


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_worker_or_in_the_reader_comes_through(workers, plan, table):
    taken = []

    def stream(bad_at=None, breaks_at=None):
        for number, batch in enumerate(table.to_batches(max_chunksize=20)):
            taken.append(number)
            if number == breaks_at:
                raise DataError("the source broke off")
            if number == bad_at:
                sex = pa.array(["unknown"] * len(batch))
                batch = batch.set_column(3, "sex", sex)  # noqa: PLW2901
            yield batch

    with pytest.raises(DataError, match="outside its declared categories"):
        accumulate(stream(bad_at=4), plan, workers=workers)
    assert len(taken) < 40  # the others are not read for nothing
    with pytest.raises(DataError, match="broke off"):
        accumulate(stream(breaks_at=30), plan, workers=workers)


def test_no_workers_are_refused(plan, table):
    with pytest.raises(PlanError, match="1 or more"):
        accumulate(table, plan, workers=0)


def test_torch_keeps_its_threads(plan, table):
    before = torch.get_num_threads()
    accumulate(table, plan, workers=2)
    assert torch.get_num_threads() == before


TWO = """
import json, sys
from scaling import plan_of
from aquatint import curator
from aquatint.schema import Schema
plan = plan_of(Schema.from_dict(json.loads(sys.argv[1])))
sums = curator.accumulate(sys.argv[2], plan.schema, plan)
sys.stdout.buffer.write(curator.pack(sums))
"""


def test_two_processes_give_the_same_integers(schema_dict, plan, table, wanted, tmp_path):
    parts = [table.slice(0, 700), table.slice(700)]
    runs = []
    for number, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{number}.parquet")
        words = [sys.executable, "-c", TWO, json.dumps(schema_dict)]
        where = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        runs.append(
            subprocess.Popen(
                [*words, str(tmp_path / f"{number}.parquet")], stdout=subprocess.PIPE, env=where
            )
        )
    packed = [run.communicate(timeout=200)[0] for run in runs]
    assert same(merge_private(packed, plan), wanted)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_shows_rows_a_second_and_the_time_left(plan, table, monkeypatch, tmp_path):
    pq.write_table(table, tmp_path / "x.parquet")
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    accumulate(tmp_path / "x.parquet", plan, workers=2, progress=True)
    text = shown.getvalue()
    assert re.search(r"2,000 \([\d,]+/s\)", text)
    assert re.search(r"0:00:00", text)  # all is read: nothing is left


# --- counting -------------------------------------------------------------------------------------

CELLS = {"a": 3, "b": 1, "c": 4, "d": 2}
SETS = [s for size in (1, 2, 3, 4) for s in combinations(CELLS, size)]


@given(
    sets=st.lists(st.sampled_from(SETS), min_size=1, max_size=8, unique=True),
    rows=st.integers(0, 70),
    weight=st.sampled_from([None, 0.5, 3.0]),
    label=st.sampled_from([None, "a", "c"]),
    merge=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_kernel_counts_the_cells_that_the_map_names(sets, rows, weight, label, merge, seed):
    rng = np.random.default_rng(seed)
    codes = {
        n: torch.from_numpy(rng.integers(0, k, rows).astype(np.int32)) for n, k in CELLS.items()
    }
    leaf = marginals(CELLS, sets)
    if merge and any("c" in s for s in sets):
        leaf = leaf.merge({"c": (0, 1, 1, 0)})
    leaf = leaf if weight is None else scale(leaf, weight)
    leaf = leaf if label is None else by_label(leaf, label, CELLS[label])
    some = Rows(codes, {}, rows)
    named = leaf.cells(some).reshape(-1).long()
    assert torch.equal(count_cells(leaf, some), torch.bincount(named, minlength=leaf.dim))


def test_a_code_beyond_its_cells_is_refused_and_touches_nothing():
    for code in (-1, 3, 2**31 - 1):
        codes = {n: torch.zeros(5, dtype=torch.int32) for n in CELLS}
        codes["a"][2] = code
        with pytest.raises(DataError, match="'a' was given a cell beyond its 3"):
            count_cells(pairs(CELLS), Rows(codes, {}, 5))


def test_a_subclass_is_not_taken_for_the_map_it_extends():
    class Other(Marginals):
        pass

    plain = pairs(CELLS)
    assert counted_marginals(plain) is plain
    assert counted_marginals(Other(plain.columns, plain.sets)) is None


# --- memory and Ctrl-C ----------------------------------------------------------------------------

# Not getrusage: on Linux its peak is handed down by the process that started this one.
CHILD = """
import sys
from pathlib import Path
from scaling import plan_of
from aquatint.curator.partials import merge_private
from aquatint.curator.sketch import accumulate
from aquatint.curator.sums import leaf_sum
from aquatint.schema import Schema
import json
plan = plan_of(Schema.from_dict(json.loads(sys.argv[1])))
print("ready", flush=True)
found = accumulate(sys.argv[2], plan, workers=2)
status = dict(x.split(":", 1) for x in Path("/proc/self/status").read_text().splitlines())
print(found.rows, int(status["VmHWM"].split()[0]) // 1024)
"""


def child(schema_dict, path):
    words = [sys.executable, "-c", CHILD, json.dumps(schema_dict), str(path)]
    where = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=where
    )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read off /proc")
def test_memory_does_not_grow_with_the_rows(schema_dict, kit, tmp_path):
    once = kit.raw_table(20_000)
    peaks = []
    for times in (2, 30):  # 40,000 rows and 600,000
        path = tmp_path / f"{times}.parquet"
        pq.write_table(pa.concat_tables([once] * times), path, row_group_size=200_000)
        out, err = child(schema_dict, path).communicate(timeout=200)
        assert out.startswith("ready"), err
        rows, peak = map(int, out.split()[1:])
        assert rows == times * 20_000
        peaks.append(peak)
    assert peaks[1] < 1500
    assert peaks[1] - peaks[0] < 150


def test_ctrl_c_stops_the_workers(schema_dict, kit, tmp_path):
    once = kit.raw_table(50_000)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.concat_tables([once] * 100), path)
    run = child(schema_dict, path)
    assert run.stdout.readline() == "ready\n"
    time.sleep(1.0)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode != 0
    assert out == ""
    assert "KeyboardInterrupt" in err


def test_a_plan_of_many_sets_takes_little_more_than_its_counts(schema_dict):
    """All pairs of 200 columns in the memory of their counts: nothing is held for each row."""
    cells = {f"c{i}": 4 for i in range(200)}
    rng = np.random.default_rng(0)
    codes = {n: torch.from_numpy(rng.integers(0, 4, 5000).astype(np.int32)) for n in cells}
    leaf = pairs(cells)
    found = count_cells(leaf, Rows(codes, {}, 5000))
    assert int(found.sum()) == 5000 * leaf.ones
    chosen = leaf.keep(found.numpy(), [0, 7, leaf.ones - 1])
    few = replace(chosen[0])
    assert np.array_equal(count_cells(few, Rows(codes, {}, 5000)).numpy(), chosen[1])
