"""Real Spark sessions for the tests, with executors in processes of their own."""

import os
import shutil
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import aquatint as aq
from aquatint.features import Count, by_label, fourier, hermite, marginals, race
from aquatint.planning import Plan, PlannedBlock
from aquatint.schema import Schema

SOURCE, TESTS = Path(aq.__file__).parents[1], Path(__file__).parent
PERSON = {"protects": "all rows of one person", "person": "id"}


def need_spark():
    """Find Java and PySpark; `make` has installed them where that is possible."""
    pytest.importorskip("pyspark", minversion="4", reason="pip install 'aquatint[spark]'")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Java is not here: apt-get install openjdk-17-jre-headless")


def environment():
    """What Spark's processes need to find Python, PySpark and this Aquatint."""
    import pyspark

    return {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(TESTS)]),
    }


def settings(builder, **more):
    """Make a session small, quiet and local."""
    plain = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.executorEnv.PYTHONPATH": environment()["PYTHONPATH"],
        "spark.log.level": "OFF",
        **more,
    }
    for name, value in plain.items():
        builder = builder.config(name, value)
    return builder


@contextmanager
def session(master, **more):
    """Give a session on the master, and leave nothing behind."""
    from pyspark.sql import SparkSession

    before = dict(os.environ)
    os.environ.update(environment())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = settings(SparkSession.builder.master(master), **more).getOrCreate()
        name = spark.sparkContext.applicationId
        try:
            yield spark
        finally:
            spark.stop()
            shutil.rmtree(Path(os.environ["SPARK_HOME"], "work", name), ignore_errors=True)
            os.environ.clear()
            os.environ.update(before)


def mixed_plan(schema_dict, **privacy):
    """Every way of summing: pairs, Fourier, Hermite, by label, counts by label, weighted."""
    schema = Schema.from_dict({**schema_dict, "privacy": privacy or schema_dict["privacy"]})
    maps = {
        "count": Count(),
        "pairs": marginals(schema.cells(), [("age",), ("sex", "job"), ("grade", "ill")]),
        "fourier": fourier(["age", "height", "weight"], 200, length_scale=0.1),
        "hermite": hermite(["age", "weight"], 12),
        "by label": by_label(fourier(["weight"], 8), "sex", 3),
        "counts by label": by_label(race(["age"], 3, 4), "sex", 3),
    }
    return Plan(schema, tuple(PlannedBlock(n, m, 1 / len(maps)) for n, m in maps.items()))


def with_persons(table):
    """Name persons, a few of whom have most of the rows."""
    numbers = np.random.default_rng(3).zipf(1.5, table.num_rows) % 60
    return table.append_column("id", pa.array([f"p{n}" for n in numbers]))
