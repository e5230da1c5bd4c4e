"""The command line from end to end: the whole walk, and every kind of bad input.

A refusal is one sentence on standard error that starts with "aquatint: ", exit code 1, nothing
spent in the ledger and no new file in the folder.
"""

import json
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import aquatint as aq
from aquatint.features import Count, fourier
from aquatint.release.card import NOT_PRIVATE

# --- the whole walk -----------------------------------------------------------------------------


def test_the_whole_walk_from_draft_to_ledger(folder, run):
    drafted = run(["draft", "people.csv"])
    assert drafted.code == 0
    assert "99" not in drafted.out, "a draft must not read bounds off the rows"
    folder.write("draft.toml", drafted.out)
    blank = run(["plan", "draft.toml", "--rows", "300", "--epsilon", "1"])
    assert blank.code == 1
    assert "protects" in blank.err

    filled = (
        drafted.out.replace('protects = ""', 'protects = "add or remove one row"')
        .replace("bounds = []", "bounds = [0, 99]")
        .replace("categories = []", 'categories = ["F", "M"]')
    )
    folder.write("filled.toml", filled)
    arguments = ["filled.toml", "--rows", "300", "--epsilon", "1", "--delta", "1e-6"]
    planned = run(["plan", *arguments, "-o", "plan.json"])
    assert planned.code == 0
    assert "how many rows are there" in planned.out
    assert (folder.path / "plan.json").exists()

    made = run(folder.sketch(schema="filled.toml", plan="plan.json"))
    assert made.code == 0
    assert "written: out.aqt" in made.out
    assert made.err == ""

    shown = run(["show", "out.aqt"])
    assert shown.code == 0
    assert "(1, 1e-06)-differentially private" in shown.out
    assert "number of rows:          about" in shown.out

    verified = run(["verify", "out.aqt"])
    assert verified.code == 0
    assert verified.out.rstrip().endswith("valid")

    booked = run(["ledger", "ledger.db", "--json"])
    (account,) = json.loads(booked.out)
    assert account["spent"] == pytest.approx(1.0, abs=1e-6)
    assert 1 < account["left"] < 2  # Gaussian losses add up in the square
    assert account["releases"] == 1


def test_the_module_runs_as_a_process_and_writes_the_release(folder):
    made = folder.spawn(folder.sketch())
    assert (made.code, made.err) == (0, "")
    assert aq.load(folder.path / "out.aqt").statement.epsilon == 1.0
    assert folder.account.releases == 1


def test_a_plan_never_opens_the_data(folder, run):
    (folder.path / "people.csv").unlink()
    assert run(["plan", "people.toml", "--rows", "300", "--epsilon", "1"]).code == 0


def test_quiet_says_nothing(folder, run):
    made = run([*folder.sketch(), "--quiet"])
    assert (made.code, made.out, made.err) == (0, "", "")


@pytest.mark.parametrize("command", [["show"], ["show", "--registry"], ["verify"]])
def test_reading_commands_give_json(folder, run, command):
    run([*folder.sketch(ledger=None, dataset=None), "--quiet"])
    flags = [] if "--registry" in command else ["--json"]
    said = run([*command, "out.aqt", *flags])
    assert said.code == 0
    assert isinstance(json.loads(said.out), dict)


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow", "csv.gz", "tsv"])
def test_every_kind_of_file_is_read(folder, run, suffix):
    table = pa.table({"age": [i % 100 for i in range(300)], "sex": ["F", "M"] * 150})
    path = folder.path / f"data.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path)
    elif suffix in {"feather", "arrow"}:
        feather.write_feather(table, path, compression="uncompressed")
    else:
        text = (folder.path / "people.csv").read_bytes()
        packed = {"csv.gz": lambda: pa.compress(text, "gzip", asbytes=True)}
        path.write_bytes(packed.get(suffix, lambda: text.replace(b",", b"\t"))())
    made = run([*folder.sketch(data=path.name), "--quiet"])
    assert (made.code, made.err) == (0, "")


def test_help_is_quick():
    # About 0.25 s of processor time; torch and pyarrow alone would take two seconds.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "aquatint", "--help"], capture_output=True, text=True, check=True
    )
    waited = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert "sketch" in done.stdout
    assert used < 0.5 or waited < 0.5, f"{used:.2f} s of processor time, {waited:.2f} s in all"


def loaded(arguments, cwd):
    """Give the modules that a command has imported when it ends."""
    probe = "import atexit, sys; atexit.register(lambda: print('loaded', *sys.modules)); "
    probe += f"sys.argv = {['aquatint', *arguments]!r}; from aquatint.cli import main; main()"
    given = {"capture_output": True, "text": True, "cwd": cwd}
    said = subprocess.run([sys.executable, "-c", probe], check=True, **given).stdout
    return set(said.splitlines()[-1].split()[1:])


def test_help_loads_nothing_heavy(tmp_path):
    heavy = {"torch", "pyarrow", "opendp", "scipy", "numpy", "pydantic"}
    assert not heavy & loaded(["--help"], tmp_path)


def test_a_report_loads_only_what_it_needs(folder, run):
    run([*folder.sketch(), "--quiet"])
    found = loaded(["report", "out.aqt", "--quiet"], folder.path)
    assert {"torch", "pandas", "jinja2", "aquatint.reporting.front"} <= found
    heavy = {"scipy.optimize", "scipy.stats", "sklearn", "opendp", "polars", "matplotlib"}
    heavy |= {"torch._dynamo", "sympy", "starlette", "rich.progress", "numba"}
    assert not heavy & found
    assert not {"aquatint.curator", "aquatint.evaluate", "aquatint.web"} & found


@pytest.mark.parametrize(
    "arguments",
    [
        ["sketch", "people.csv"],
        ["sketch", "people.csv", "--schema", "people.toml", "--delta", "1e-6", "-o", "x.aqt"],
        ["sketch", "people.csv", "--schema", "people.toml", "--epsilon", "1", "-o", "x.aqt"],
        ["plan", "people.toml", "--rows", "0", "--epsilon", "1"],
        ["plan", "people.toml", "--rows", "many", "--epsilon", "1"],
        ["no-such-verb"],
    ],
    ids=["nothing", "no epsilon", "no delta", "no rows", "words", "verb"],
)
def test_wrong_usage_exits_with_two(folder, run, arguments):
    """There is no default for epsilon, delta or the schema."""
    before = folder.files()
    assert run(arguments).code == 2
    assert folder.files() == before


# --- bad input ----------------------------------------------------------------------------------


def assert_refused(result, folder, before, *, spent=0.0):
    assert result.err.count("\n") == 1, result.err
    assert result.err.startswith("aquatint: ")
    assert not result.err.startswith("aquatint: warning")
    assert len(result.err) < 500
    assert result.out == ""
    assert result.code == 1
    assert folder.files() == before
    assert folder.account.spent == pytest.approx(spent, abs=1e-6)
    assert folder.account.reserved == 0


BAD_SCHEMAS = {
    "bounds": ("bounds = [0, 99]", "", "columns.age.bounds"),
    "categories": ('categories = ["F", "M"]', "categories = []", "columns.sex.categories"),
    "privacy": ('protects = "add or remove one row"', 'protects = "everything"', "protects"),
    "kind": ('kind = "integer"', 'kind = "number"', "columns.age"),
    "typing": ("bins = 4", "bims = 4", "columns.age.bims"),
    "label": ('label = "sex"', 'label = "salary"', "label 'salary' is not among the columns"),
    "toml": ("[privacy]", "[privacy", "is not valid TOML"),
    "reversed": ("[0, 99]", "[99, 0]", "low < high"),
}


@pytest.mark.parametrize("case", BAD_SCHEMAS)
def test_a_wrong_schema_is_refused(folder, run, case):
    good, bad, said = BAD_SCHEMAS[case]
    folder.write("people.toml", (folder.path / "people.toml").read_text().replace(good, bad))
    before = folder.files()
    result = run(folder.sketch())
    assert_refused(result, folder, before)
    assert said in result.err


def test_a_schema_that_is_not_there_is_refused(folder, run):
    before = folder.files()
    assert_refused(run(folder.sketch(schema="nowhere.toml")), folder, before)
    assert_refused(run(folder.sketch(schema=".")), folder, before)


BAD_DATA = {
    "missing column": ("age,gender\n1,F\n", "no column 'sex'"),
    "missing value": ("age,sex\n1,F\n,M\n", "column 'age' has missing values"),
    "NaN": ("age,sex\n1,F\nNaN,M\n", "column 'age' has missing values"),
    "not a number": ("age,sex\n1,F\nold,M\n", "a value is not a number"),
    "fraction": ("age,sex\n1.5,F\n2,M\n", "column 'age' holds fractions"),
    "unknown category": ("age,sex\n1,F\n2,X\n", "outside its declared categories"),
    "empty": ("", "is empty"),
    "header only": ("age,sex\n", "no rows"),
    "ragged": ("age,sex\n1,F\n2\n", "more or fewer fields"),
    "binary": (b"\x00\xff\xfe\x80" * 100, ""),
    "not text": (b"age,sex\n1,\xff\xfe\n", ""),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_rows_are_refused(folder, run, case):
    content, said = BAD_DATA[case]
    folder.write("people.csv", content)
    before = folder.files()
    result = run(folder.sketch())
    assert_refused(result, folder, before)
    assert said in result.err


@pytest.mark.parametrize("case", ["not a number", "unknown category", "fraction"])
def test_a_refusal_carries_no_private_value(folder, run, case):
    content, _ = BAD_DATA[case]
    folder.write("people.csv", content.replace("old", "secret").replace("X", "secret"))
    assert "secret" not in run(folder.sketch()).err


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather", "csv.gz", "xlsx", "pkl"])
def test_a_damaged_or_unknown_file_is_refused(folder, run, suffix):
    folder.write(f"data.{suffix}", b"PAR1" + b"nonsense" * 50 + b"PAR1")
    before = folder.files()
    assert_refused(run(folder.sketch(data=f"data.{suffix}")), folder, before)


def test_a_parquet_file_cut_short_is_refused(folder, run):
    pq.write_table(pa.table({"age": [1] * 1000, "sex": ["F"] * 1000}), folder.path / "x.parquet")
    whole = (folder.path / "x.parquet").read_bytes()
    folder.write("x.parquet", whole[: len(whole) // 2])
    before = folder.files()
    assert_refused(run(folder.sketch(data="x.parquet")), folder, before)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("nowhere.csv", "cannot read"),
        ("nowhere.parquet", "cannot read"),
        ("nowhere-*.parquet", "no file matches"),
        (".", "cannot tell what"),  # a folder may be data, but this one holds other things too
    ],
)
def test_data_that_is_not_there_is_refused(folder, run, data, said):
    before = folder.files()
    result = run(folder.sketch(data=data))
    assert_refused(result, folder, before)
    assert said in result.err


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "1000", "1e-320"])
def test_an_epsilon_out_of_range_is_refused(folder, run, epsilon):
    before = folder.files()
    assert_refused(run(folder.sketch(epsilon=epsilon)), folder, before)


@pytest.mark.parametrize("delta", ["1", "0.5", "-1e-9", "nan", "inf", "1e-320"])
def test_a_delta_out_of_range_is_refused(folder, run, delta):
    before = folder.files()
    assert_refused(run(folder.sketch(delta=delta)), folder, before)


@pytest.mark.parametrize("delta", ["1e-12", "0"])
def test_noise_too_wide_for_the_sampler_is_refused_before_it_is_spent(folder, run, delta):
    before = folder.files()
    result = run(folder.sketch(epsilon="1e-9", delta=delta))
    assert_refused(result, folder, before)
    assert folder.account.releases == 0


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("changes", "said"),
    [({"delta": "0.01"}, "delta = 0.01 is not below one over"), ({"epsilon": "20"}, "very little")],
)
def test_a_promise_that_means_little_is_kept_with_a_warning(folder, run, changes, said):
    result = run([*folder.sketch(ledger=None, dataset=None, **changes), "--quiet"])
    assert result.code == 0
    assert result.err.startswith("aquatint: warning: ")
    assert result.err.count("\n") == 1
    assert said in result.err
    assert (folder.path / "out.aqt").exists()


def test_an_output_folder_that_is_not_there_is_refused(folder, run):
    before = folder.files()
    result = run(folder.sketch(output="nowhere/out.aqt"))
    assert_refused(result, folder, before)
    assert "cannot write nowhere/out.aqt" in result.err


def test_an_output_that_is_a_folder_is_refused_before_it_is_spent(folder, run):
    (folder.path / "out.aqt").mkdir()
    before = folder.files()
    assert_refused(run(folder.sketch()), folder, before)


def test_a_plan_cannot_be_written_to_a_folder_that_is_not_there(folder, run):
    before = folder.files()
    arguments = ["plan", "people.toml", "--rows", "300", "--epsilon", "1"]
    assert_refused(run([*arguments, "-o", "nowhere/plan.json"]), folder, before)


@pytest.mark.parametrize("limit", [4096, 65_536])
def test_a_full_disk_shows_before_anything_is_spent(folder, limit):
    """Files of this process may not grow beyond a limit below the release's room of 64 KiB."""

    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with_ledger = {} if limit == 65_536 else {"ledger": None, "dataset": None}
    before = folder.files()
    result = folder.spawn([*folder.sketch(**with_ledger), "--quiet"], preexec_fn=small_disk)
    assert_refused(result, folder, before)
    assert "cannot write out.aqt" in result.err
    assert "free some room" in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_output_that_cannot_be_printed_is_one_sentence_too(folder, run):
    run([*folder.sketch(ledger=None, dataset=None), "--quiet"])
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "aquatint", "show", str(folder.path / "out.aqt")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


# --- plans --------------------------------------------------------------------------------------


def saved_plan(folder, run):
    arguments = ["plan", "people.toml", "--rows", "300", "--epsilon", "1", "-o", "plan.json"]
    assert run(arguments).code == 0
    return folder.path / "plan.json"


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("[0, 99]", "[0, 98]"),
        ('["F", "M"]', '["F", "M", "X"]'),
        ("add or remove one row", "replace one row"),
        ("columns.age", "columns.years"),
        ("bins = 4", "bins = 5"),
    ],
)
def test_a_plan_for_another_schema_is_refused(folder, run, good, bad):
    saved_plan(folder, run)
    folder.write("people.toml", (folder.path / "people.toml").read_text().replace(good, bad))
    before = folder.files()
    result = run(folder.sketch(plan="plan.json"))
    assert_refused(result, folder, before)
    assert "made for another schema" in result.err


def test_a_plan_for_a_schema_with_a_column_of_unsettled_bins_more_is_refused(folder, run):
    saved_plan(folder, run)
    more = '[columns.height]\nkind = "numeric"\nbounds = [0, 300]\n'
    folder.write("people.toml", (folder.path / "people.toml").read_text() + more)
    before = folder.files()
    result = run(folder.sketch(plan="plan.json"))
    assert_refused(result, folder, before)
    assert "made for another schema" in result.err


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        "{}",
        '{"format": "aquatint-plan", "format_version": 1}',
        "[" * 100_000,
        '{"format": "aquatint-plan", "format_version": 2}',
        "\xff",
    ],
    ids=range(10),
)
def test_a_plan_that_is_none_is_refused(folder, run, content):
    folder.write("plan.json", content.encode("latin-1"))
    before = folder.files()
    assert_refused(run(folder.sketch(plan="plan.json")), folder, before)


def test_a_plan_with_other_shares_is_refused(folder, run):
    path = saved_plan(folder, run)
    data = json.loads(path.read_text())
    data["blocks"][0]["share"] = 0.5
    path.write_text(json.dumps(data))
    before = folder.files()
    assert_refused(run(folder.sketch(plan="plan.json")), folder, before)


def test_a_saved_plan_carries_both_rounds_to_the_release(folder, run):
    data = json.loads(saved_plan(folder, run).read_text())
    assert data["rebalance"] is True
    assert [b["name"] for b in data["blocks"]] == ["count", "columns", "pairs"]
    assert [b.get("merge") for b in data["blocks"]] == [None, None, 10.0]
    assert run([*folder.sketch(plan="plan.json"), "--quiet"]).code == 0
    shown = json.loads(run(["show", "out.aqt", "--json"]).out)
    assert [b["name"] for b in shown["blocks"]] == ["count", "columns", "pairs"]
    assert json.loads(run(["verify", "out.aqt", "--json"]).out)["valid"] is True
    assert folder.account.spent == pytest.approx(1.0, abs=1e-6)


def without_histograms(data):
    count, columns, pairs = data["blocks"]
    data["blocks"] = [count, {**pairs, "share": 1 - count["share"]}]
    del data["rebalance"]
    assert columns["name"] == "columns"


def count_last(data):
    data["blocks"] = [*data["blocks"][1:], data["blocks"][0]]


def nothing_merged(data):
    del data["blocks"][2]["merge"]


def negative(data):
    data["blocks"][2]["merge"] = -10.0


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (without_histograms, "put a block with its histogram"),
        (count_last, "needs the count as its first block"),
        (nothing_merged, "then blocks that merge cells"),
        (negative, "positive number of standard deviations"),
    ],
)
def test_a_plan_whose_rounds_do_not_fit_is_refused(folder, run, spoil, said):
    path = saved_plan(folder, run)
    data = json.loads(path.read_text())
    spoil(data)
    path.write_text(json.dumps(data))
    before = folder.files()
    result = run(folder.sketch(plan="plan.json"))
    assert_refused(result, folder, before)
    assert said in result.err


# --- ledgers ------------------------------------------------------------------------------------


def test_overspending_is_refused_with_what_is_left(folder, run):
    assert run([*folder.sketch(epsilon="1.5"), "--quiet"]).code == 0
    before = folder.files()
    result = run(folder.sketch(epsilon="1.5", output="second.aqt"))
    assert_refused(result, folder, before, spent=1.5)
    assert re.search(r"has epsilon [01]\.\d+ left of 2 \(spent 1\.5, reserved 0\)", result.err)


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset": "nobody"},
        {"ledger": "nowhere.db"},
        {"ledger": None},
        {"dataset": None},
        {"ledger": "people.csv"},
        {"ledger": "."},
    ],
    ids=["unknown", "missing", "no ledger", "no name", "not a ledger", "folder"],
)
def test_a_ledger_that_cannot_account_for_it_is_refused(folder, run, changes):
    before = folder.files()
    assert_refused(run(folder.sketch(**changes)), folder, before)


def test_another_unit_of_protection_is_refused(folder, run):
    text = (folder.path / "people.toml").read_text()
    folder.write("people.toml", text.replace("add or remove one row", "replace one row"))
    before = folder.files()
    result = run(folder.sketch())
    assert_refused(result, folder, before)
    assert "losses of different units do not add up" in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.db"],
        ["new.db", "--open", "people"],
        ["new.db", "--open", "people", "--epsilon=1", "--delta=0", "--protects=me"],
        ["new.db", "--open", "people", "--epsilon=0", "--delta=0", "--protects=replace one row"],
        ["ledger.db", "--open", "people", "--epsilon=9", "--delta=0", "--protects=replace one row"],
    ],
    ids=["missing", "bare", "protects", "epsilon", "twice"],
)
def test_a_bad_ceiling_is_refused(folder, run, arguments):
    before = folder.files()
    assert_refused(run(["ledger", *arguments]), folder, before)


@pytest.mark.parametrize("name", ["[/x]", "[bold]people[/bold]", "[link=http://x]y"])
def test_a_dataset_name_with_brackets_is_shown_as_it_is(folder, run, name):
    ceiling = ["--epsilon", "1", "--delta", "0", "--protects", "replace one row"]
    result = run(["ledger", "new.db", "--open", name, *ceiling])
    assert result.code == 0
    assert name in result.out


# --- simulated noise ----------------------------------------------------------------------------


def test_simulated_noise_with_a_ledger_is_refused(folder, run):
    before = folder.files()
    result = run([*folder.sketch(), "--simulate", "1"])
    assert_refused(result, folder, before)
    assert "simulated noise is not private" in result.err


def test_a_simulated_release_says_so_everywhere(folder, run):
    made = run([*folder.sketch(ledger=None, dataset=None), "--simulate", "1"])
    assert made.code == 0
    shown, verified = run(["show", "out.aqt"]), run(["verify", "out.aqt"])
    for said in (made.out, shown.out, verified.out):
        assert NOT_PRIVATE in said
        assert "-differentially private" not in said
    as_json = json.loads(run(["show", "out.aqt", "--json"]).out)
    assert as_json["private"] is False
    assert as_json["promise"] == NOT_PRIVATE
    assert json.loads(run(["verify", "out.aqt", "--json"]).out)["private"] is False
    assert json.loads(run(["show", "out.aqt", "--registry"]).out)["is_private"] is False


# --- interrupts ---------------------------------------------------------------------------------


@pytest.fixture
def slow(folder):
    """Start a sketch that will read for half a minute, with its reservation in the ledger."""
    folder.write("slow.csv", "age,sex\n" + "5,F\n" * 300_000)
    schema = aq.Schema.from_toml(folder.path / "people.toml")
    blocks = (
        aq.PlannedBlock("count", Count(), 0.5),
        aq.PlannedBlock("waves", fourier(("age",), 40_000), 0.5),
    )
    aq.Plan(schema, blocks).save(folder.path / "plan.json")
    before = folder.files()
    process = folder.start(folder.sketch(data="slow.csv", plan="plan.json"))
    deadline = time.monotonic() + 60
    while folder.account.reserved == 0 and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    time.sleep(0.3)  # into the rows
    assert folder.account.reserved == pytest.approx(1.0, abs=1e-6)
    yield process, before
    process.kill()
    process.communicate()


def test_ctrl_c_while_reading_spends_nothing_and_leaves_no_file(folder, slow):
    process, before = slow
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert folder.account.spent == folder.account.reserved == 0
    assert folder.files() == before
    assert out == ""
    assert err == "aquatint: interrupted; nothing was spent and no file was written\n"


def test_a_kill_while_reading_lets_the_reservation_lapse(folder, slow):
    process, before = slow
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert folder.account.spent == folder.account.reserved == 0
    assert folder.files() == before
