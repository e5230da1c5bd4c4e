"""Files in a store: a real server that speaks S3, the same integers, and errors in a sentence."""

import logging
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
import tomli_w
from pyarrow import fs
from scaling import plan_of, same
from typer.testing import CliRunner

from aquatint.accounting import Budget
from aquatint.cli import app
from aquatint.curator import read
from aquatint.curator.files import away
from aquatint.curator.ledger import Ledger
from aquatint.curator.sketch import accumulate
from aquatint.errors import DataError
from aquatint.release import load

server = pytest.importorskip("moto.server", reason="no S3 server: pip install flask 'moto[s3]'")
ROWS = 600


@pytest.fixture
def table(kit):
    return kit.raw_table(ROWS)


@pytest.fixture
def store(table, monkeypatch):
    """Start a server with three parts in a bucket, and tell pyarrow where it is."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    address = "{}:{}".format(*running.get_host_and_port())
    known = {
        "AWS_ACCESS_KEY_ID": "curator", "AWS_SECRET_ACCESS_KEY": "s3cret",
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": f"http://{address}",
    }  # fmt: skip
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    system = fs.S3FileSystem(
        endpoint_override=address, scheme="http", region="us-east-1", allow_bucket_creation=True
    )
    system.create_dir("clinic")
    for start in range(0, ROWS, 200):
        place = f"clinic/visits/part-{start}.parquet"
        pq.write_table(table.slice(start, 200), place, filesystem=system)
    yield SimpleNamespace(stop=running.stop, address=address)
    running.stop()


@pytest.fixture
def command(schema_dict, tmp_path):
    """Sketch an address on the command line, into a file and on a ledger."""
    declared, out, book = (tmp_path / name for name in ("people.toml", "people.aqt", "ledger.db"))
    declared.write_text(tomli_w.dumps(schema_dict))
    Ledger(book).open_account("people", Budget(2.0, 1e-5), "add or remove one row")

    def run(address):
        words = ["--schema", declared, "--epsilon", 1, "--delta", 1e-6, "-o", out, "--quiet"]
        words += ["--ledger", book, "--dataset", "people"]
        return CliRunner().invoke(app, ["sketch", address, *map(str, words)])

    return SimpleNamespace(run=run, out=out, account=lambda: Ledger(book).account("people"))


def test_a_store_gives_the_integers_of_local_files(store, table, schema, command):
    plan = plan_of(schema)
    wanted = accumulate(table, plan, workers=1)
    for address in (
        "s3://clinic/visits/part-*.parquet",
        "s3://clinic/visits",
        "s3://clinic/vis*/part-[024]*.parquet",
        f"s3://clinic/visits?endpoint_override={store.address}&scheme=http",
    ):
        assert same(accumulate(address, plan), wanted), address
    done = command.run("s3://clinic/visits/part-*.parquet")
    assert done.exit_code == 0, done.exception
    made = load(command.out)
    assert abs(made.count - ROWS) < 8 * made.block("count").stderr[0]
    assert command.account().releases == 1


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (
            "s3://elsewhere/x.parquet",
            "elsewhere/x.parquet: there is no such file, folder or bucket",
        ),
        (
            "s3://clinic/none.parquet",
            "clinic/none.parquet: there is no such file, folder or bucket",
        ),
        ("s3://clinic/none-*.parquet", "cannot read s3://clinic: no file matches"),
    ],
)
@pytest.mark.usefixtures("store")
def test_what_is_not_there_says_so(address, why, schema):
    with pytest.raises(DataError, match=why):
        accumulate(address, plan_of(schema))


@pytest.mark.usefixtures("store")
def test_without_credentials_the_way_to_give_them_is_told(command, monkeypatch):
    monkeypatch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)  # it knows nobody
    failed = command.run("s3://clinic/visits/part-*.parquet")
    assert "s3://clinic/visits: access is denied: give credentials" in str(failed.exception)
    assert "s3cret" not in str(failed.exception) + failed.output
    assert (command.account().releases, command.account().spent) == (0, 0)


def test_a_store_that_goes_away_spends_nothing(store, command, monkeypatch):
    def found_and_gone(data, find=read.find_parts):
        found = find(data)
        store.stop()
        return found

    monkeypatch.setattr(read, "find_parts", found_and_gone)
    failed = command.run("s3://clinic/visits")
    assert "part-0.parquet: it cannot be reached: check the network" in str(failed.exception)
    assert (command.account().releases, command.account().spent) == (0, 0)
    assert not command.out.exists()


def test_reasons_are_told_in_words_of_our_own():
    told = {
        "AWS Error NETWORK_CONNECTION during HeadBucket operation: curlCode: 6": "be reached",
        "AWS Error ACCESS_DENIED during GetObject operation: secret": "access is denied",
        "AWS Error NO_SUCH_BUCKET during ListObjectsV2": "no such file",
    }
    for text, why in told.items():
        assert why in away(OSError(text))
        assert "secret" not in away(OSError(text))
    assert away(OSError("something else")) is None
