"""Spark in programs of their own: Spark Connect, and a standalone cluster that speculates."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager, suppress

import pytest
from sparks import TESTS, environment, need_spark

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
PREAMBLE = """
import warnings
warnings.simplefilter("ignore")
import torch
from conftest import SCHEMA, raw_table
from sparks import PERSON, mixed_plan, session, settings, with_persons
from aquatint.curator.gathering import accumulate
from aquatint.curator.spark import accumulate_spark

def same(found, wanted):
    return all(map(torch.equal, found.totals, wanted.totals)) and found.rows == wanted.rows
"""


def program(text, *words):
    """Run a program in a group of its own, so that none of its Java is left behind."""
    script = [sys.executable, "-c", PREAMBLE + textwrap.dedent(text), *map(str, words)]
    running = subprocess.Popen(
        script, env=os.environ | environment(), cwd=TESTS, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        out, _ = running.communicate(timeout=250)
    finally:
        with_group(running)
    assert running.returncode == 0, out[-3000:]
    return out


def with_group(process):
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_spark_connect_gives_the_same_integers():
    need_spark()
    pytest.importorskip("grpc", reason="pip install 'pyspark[connect]'")
    out = program("""
        from pyspark.sql import SparkSession
        from aquatint.errors import DataError
        spark = settings(SparkSession.builder.remote("local[2]")).getOrCreate()
        table = with_persons(raw_table(1500))
        frame = spark.createDataFrame(table).repartition(3)
        print(type(frame).__module__)
        for privacy in ({}, PERSON):
            plan = mixed_plan(SCHEMA, **privacy)
            assert same(accumulate_spark(frame, plan, person_groups=3), accumulate(table, plan))
        try:
            accumulate_spark(frame.withColumnRenamed("job", "grade2").drop("grade"), plan)
        except DataError as error:
            print(error)
        try:
            accumulate_spark(frame.withColumn("grade", frame.job), mixed_plan(SCHEMA))
        except DataError as error:
            print(error)
        spark.stop()
    """)
    assert "pyspark.sql.connect.dataframe" in out
    assert "no column 'job', 'grade'" in out
    assert "column 'grade' has " in out


@contextmanager
def standalone(folder):
    """A master and two workers that Spark takes for two machines."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = environment() | {"SPARK_WORKER_DIR": str(folder)}
    spark_class = [f"{where['SPARK_HOME']}/bin/spark-class"]
    deploy = "org.apache.spark.deploy"
    small = {"SPARK_DAEMON_MEMORY": "256m"}
    commands = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port),
                 "--webui-port", "0"]]  # fmt: skip
    commands += [
        [f"{deploy}.worker.Worker", f"spark://127.0.0.1:{port}", "--host", host, "--cores", "1",
         "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder)]
        for host in ("127.0.0.2", "127.0.0.3")
    ]  # fmt: skip
    started = []
    try:
        for words in commands:
            place = {"SPARK_LOCAL_IP": words[words.index("--host") + 1]}
            started.append(
                subprocess.Popen(
                    spark_class + words,
                    env=os.environ | where | small | place,
                    start_new_session=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            if len(started) == 1:
                _await(port)
        yield f"spark://127.0.0.1:{port}"
    finally:
        for process in started:
            with_group(process)


def _await(port):
    for _ in range(600):
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the master did not start")


def test_a_speculative_attempt_is_not_counted_as_well(tmp_path):
    """The first attempt of a partition is slow, a second one on another machine overtakes it.

    Both read all rows of the partition, which the files that they leave behind show.
    """
    need_spark()
    attempts = tmp_path / "attempts"
    attempts.mkdir()
    text = """
        import sys, time
        from pathlib import Path
        master, folder = sys.argv[1:]
        fast = {"spark.speculation": "true", "spark.speculation.interval": "200ms",
                "spark.speculation.quantile": "0.2", "spark.speculation.multiplier": "1.1",
                "spark.executor.cores": "1", "spark.executor.memory": "512m"}
        with session(master, **fast) as spark:
            def slow(batches):
                from pyspark import TaskContext
                task = TaskContext.get()
                rows, first = 0, Path(folder, f"{task.partitionId()}-0")
                for batch in batches:
                    rows += batch.num_rows
                    yield batch
                name = f"{task.partitionId()}-{task.attemptNumber()}"
                Path(folder, name).write_text(str(rows))
                begun = time.monotonic()
                while not first.exists() and time.monotonic() < begun + 60:
                    time.sleep(0.05)  # or the first attempt could be stopped before it has read
                if task.partitionId() == 1 and task.attemptNumber() == 0:
                    time.sleep(200)

            table = raw_table(1500)
            frame = spark.createDataFrame(table).repartition(4)
            plan = mixed_plan(SCHEMA)
            found = accumulate_spark(frame.mapInArrow(slow, frame.schema), plan)
            assert same(found, accumulate(table, plan))
            print("the same integers")
    """
    with standalone(tmp_path / "work") as master:
        out = program(text, master, attempts)
    assert "the same integers" in out
    rows = {path.name: int(path.read_text()) for path in attempts.iterdir()}
    assert rows["1-0"] == rows["1-1"] > 0, "two attempts read the partition"
    assert sum(count for name, count in rows.items() if name.endswith("-0")) == 1500
