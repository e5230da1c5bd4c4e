"""A real cluster on this machine: the same integers, whatever happens to its processes."""

import os
import re
import signal
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sparks import PERSON, mixed_plan, need_spark, session, with_persons

import aquatint as aq
from aquatint.curator import spark as front_door
from aquatint.curator.gathering import accumulate
from aquatint.curator.spark import accumulate_spark, sketch_spark
from aquatint.errors import DataError, PlanError
from aquatint.features import Count
from aquatint.planning import Plan, PlannedBlock
from aquatint.schema import Schema

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),  # one cluster, in one process
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
]
COUNT = 3_000


@pytest.fixture(scope="module")
def spark():
    """Two executors of one core each, in two processes beside the driver's."""
    need_spark()
    with session("local-cluster[2,1,1024]", **{"spark.task.maxFailures": "3"}) as found:
        yield found


@pytest.fixture(scope="module")
def table(kit):
    return kit.raw_table(COUNT)


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """The rows in seven Parquet files, as a cluster has them."""
    place = tmp_path_factory.mktemp("rows")
    for part in range(7):
        pq.write_table(table.slice(part * 430, 430), place / f"part-{part}.parquet")
    return place


@pytest.fixture
def frame(spark, folder):
    return spark.read.parquet(str(folder))


@pytest.fixture
def ledger(schema, tmp_path):
    book = aq.Ledger(tmp_path / "ledger.db")
    book.open_account("people", aq.Budget(5, 1e-6), schema.privacy.protects)
    return book


@pytest.fixture
def paid(ledger, tmp_path):
    return {"ledger": tmp_path / "ledger.db", "dataset": "people", "output": tmp_path / "x.aqt"}


def same(found, wanted):
    assert all(map(torch.equal, found.totals, wanted.totals))
    assert (found.plan, found.rows, found.notes) == (wanted.plan, wanted.rows, wanted.notes)
    return True


def untouched(ledger, tmp_path):
    account = ledger.account("people")
    return account.spent == account.reserved == 0 and not (tmp_path / "x.aqt").exists()


def test_the_integers_do_not_depend_on_the_partitions(frame, table, schema_dict):
    plan = mixed_plan(schema_dict)
    wanted = accumulate(table, plan)
    for partitions in (frame, frame.repartition(5), frame.repartition(3, "sex").coalesce(2)):
        assert same(accumulate_spark(partitions, plan), wanted)


def test_many_partials_are_merged_on_the_cluster(frame, table, schema, monkeypatch):
    plan = aq.plan(schema)
    monkeypatch.setattr(front_door, "_DRIVER_BYTES", 1)
    monkeypatch.setattr(front_door, "_PARTITIONS", 9)
    monkeypatch.setattr(front_door, "_FAN_IN", 3)
    assert front_door._tree(8 * plan.coordinates, 9) == (3, 2)
    assert same(accumulate_spark(frame.repartition(9), plan), accumulate(table, plan))


def test_the_release_is_that_of_sketch(frame, table, schema, ledger, paid):
    """Two adaptive rounds: the same exact integers lead to the same choices in between."""
    options = {"epsilon": 1, "delta": 1e-6}
    found = sketch_spark(frame, schema, **options, simulate=3)
    wanted = aq.sketch(table, schema, **options, simulate=3)
    for one, other in zip(found.blocks, wanted.blocks, strict=True):
        assert (one.name, one.map, one.scales) == (other.name, other.map, other.scales)
        assert (one.integers == other.integers).all()
    release = sketch_spark(frame, schema, **options, **paid)
    assert ledger.account("people").releases == 1
    assert abs(release.count - COUNT) < 8 * release.block("count").stderr[0]
    assert aq.load(paid["output"]).statement == release.statement


@pytest.mark.parametrize("max_rows", [None, 3])
def test_all_rows_of_a_person_meet(spark, table, schema_dict, max_rows):
    privacy = PERSON if max_rows is None else {**PERSON, "max_rows": max_rows}
    plan, rows = mixed_plan(schema_dict, **privacy), with_persons(table)
    frame = spark.createDataFrame(rows).repartition(4)
    found = accumulate_spark(frame, plan, person_groups=5)
    assert same(found, accumulate(rows, plan))


def test_a_mistake_in_the_data_is_one_sentence_and_costs_nothing(
    frame, schema, ledger, paid, tmp_path
):
    from pyspark.sql import functions

    frame = frame.coalesce(2)
    wrong = functions.when(frame.weight > 150, "secret-4711").otherwise(frame.grade)
    cases = {
        "column 'grade' has values outside": frame.withColumn("grade", wrong),
        r"CAST_INVALID_INPUT.*nothing was spent": frame.withColumn("weight", wrong.cast("int")),
        "no column 'sex'": frame.drop("sex"),
        "more than one column 'sex'": frame.select("*", "sex"),
        "no rows": frame.filter("age > 1000"),
    }
    for sentence, bad in cases.items():
        with pytest.raises(DataError, match=sentence) as caught:
            sketch_spark(bad, schema, epsilon=1, delta=1e-6, **paid)
        assert "secret" not in str(caught.value), sentence
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
        assert untouched(ledger, tmp_path), sentence


def test_an_unexpected_error_keeps_its_text_to_itself(frame, schema, ledger, paid, tmp_path):
    def broken(batches):
        for _ in batches:
            raise ValueError("secret-4711")
        yield from ()

    bad = frame.coalesce(1).mapInArrow(broken, frame.schema)
    with pytest.raises(DataError, match="the Spark job failed") as caught:
        sketch_spark(bad, schema, epsilon=1, delta=1e-6, **paid)
    assert "secret" not in str(caught.value)
    assert untouched(ledger, tmp_path)


def test_dates_decimals_and_odd_names(spark, tmp_path):
    """Times are instants, or clock times, as the file says, whatever the session's time zone."""
    begin = datetime(2024, 3, 9, 20, tzinfo=UTC)
    times = [begin + timedelta(minutes=37 * i) for i in range(200)]
    rows = pa.table(
        {
            "day": [t.date() for t in times],
            "seen.at": pa.array(times, pa.timestamp("us", "UTC")),
            "local`time": pa.array([t.replace(tzinfo=None) for t in times], pa.timestamp("us")),
            "price": pa.array([Decimal(i) / 4 for i in range(200)], pa.decimal128(10, 2)),
        }
    )
    late = {"bounds": ["2024-03-09 00:00:00", "2024-03-16 00:00:00"], "bins": 40}
    schema = Schema.from_dict(
        {
            "name": "sales",
            "privacy": {"protects": "add or remove one row"},
            "columns": {
                "day": {"kind": "date", "bounds": ["2024-03-09", "2024-03-16"]},
                "seen.at": {"kind": "datetime", **late},
                "local`time": {"kind": "datetime", **late},
                "price": {"kind": "numeric", "bounds": [0, 50], "bins": 10},
            },
        }
    )
    pq.write_table(rows, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    plan = aq.plan(schema)
    assert same(accumulate_spark(frame, plan), accumulate(rows, plan))
    only = Plan(plan.schema, (PlannedBlock("count", Count(), 1.0),))
    assert accumulate_spark(frame, only).rows == 200


def test_the_page_on_clusters_runs(spark, tmp_path, monkeypatch):
    """Its examples need a session, which the tests of the other pages have not."""
    count = 2_000
    visits = {
        "ward": ["A", "B", "C", "A"] * (count // 4),
        "age": list(range(100)) * (count // 100),
        "patient": [f"p{i // 3}" for i in range(count)],
    }
    pq.write_table(pa.table(visits), tmp_path / "visits.parquet")
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs/how-to/sketch-on-a-cluster.md"
    found = {"spark": spark}
    examples = re.findall(r"^```py\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    for example in examples:  # Java has a working folder of its own
        exec(example.replace("visits.parquet", str(tmp_path / "visits.parquet")), found)
    assert len(examples) == 2
    release = aq.load("visits.aqt")
    assert abs(release.count - count) < 8 * release.block("count").stderr[0]


def test_images_are_refused(frame):
    image = {"kind": "image", "size": [4, 4], "channels": 1}
    schema = Schema.from_dict(
        {
            "name": "digits",
            "privacy": {"protects": "add or remove one row"},
            "columns": {"picture": image},
        }
    )
    plan = aq.dp_merf(schema)
    with pytest.raises(PlanError, match=r"'picture' holds images.*use sketch"):
        accumulate_spark(frame, plan)


def test_a_killed_executor_changes_nothing(frame, table, schema_dict, tmp_path):
    """Two tasks end with their process, once, after they read their rows.

    With the executor its shuffle files are lost, so Spark also goes back a stage.
    """
    folder = str(tmp_path)

    def deadly(batches):
        from pyspark import TaskContext

        task = TaskContext.get()
        yield from batches
        once = Path(folder, f"{task.partitionId()}")
        if task.partitionId() in {1, 2} and not once.exists():
            once.touch()
            victim = os.getpid()  # the Python worker
            if task.partitionId() == 2:
                parent = Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1]
                victim = int(parent.split()[1])
                assert (
                    b"CoarseGrainedExecutorBackend" in Path(f"/proc/{victim}/cmdline").read_bytes()
                ), "the executor, and never the driver"
            os.kill(victim, signal.SIGKILL)

    plan = mixed_plan(schema_dict)
    risky = frame.repartition(4).mapInArrow(deadly, frame.schema)
    assert same(accumulate_spark(risky, plan), accumulate(table, plan))
    assert {path.name for path in tmp_path.iterdir()} == {"1", "2"}
