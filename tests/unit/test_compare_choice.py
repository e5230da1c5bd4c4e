"""A private choice of features before a private comparison: what it says, spends and refuses."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

import aquatint as aq
from aquatint.accounting import Budget
from aquatint.cli import app
from aquatint.comparison import CompareError
from aquatint.curator.compare import front
from aquatint.curator.compare.choice import UNIT, described
from aquatint.curator.compare.defaults import default_map
from aquatint.curator.ledger import Ledger
from aquatint.errors import DataError
from aquatint.features import fourier, onehot

SWAP, ROW = "replace one row", "add or remove one row"
CASES = [("permutation", SWAP), ("permutation", ROW), ("signflip", SWAP)]
COLUMNS = {
    "x": {"kind": "numeric", "bounds": [0, 1]},
    "y": {"kind": "numeric", "bounds": [0, 1]},
    "ward": {"kind": "categorical", "categories": ["a", "b"]},
}


def schema_of(protects=SWAP, columns=COLUMNS):
    return aq.Schema.from_dict(
        {"name": "wards", "privacy": {"protects": protects}, "columns": columns}
    )


def table(rows=300, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "x": np.clip(rng.normal(0.4 + shift, 0.1, rows), 0, 1),
            "y": rng.random(rows),
            "ward": rng.choice(["a", "b"], rows).tolist(),
        }
    )


def ask(first=None, second=None, schema=None, **options):
    options = {
        "epsilon": 1.0,
        "delta": 0.0,
        "progress": False,
        "choose_from": "length scales",
        **options,
    }
    data = (table() if first is None else first, table(seed=1) if second is None else second)
    return aq.compare_private(*data, schema or schema_of(), **options)


# --- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("test", "protects"), CASES)
def test_a_plain_difference_is_found_and_the_choice_is_told(test, protects):
    """Missed with a chance below 1e-9: candidates that see it are ahead by a hundred times the
    noise, and the test by more."""
    first, second = table(6000), table(6000, 1, shift=0.5)
    found = ask(first, second, schema_of(protects), test=test, epsilon=3.0)
    assert found.reject
    assert "; features chosen privately on a third of the rows: candidate " in found.method
    assert "with length scale" in found.method
    assert (found.epsilon, found.delta) == (3.0, 0)
    assert (found.statistic, found.pvalue) == (None, None)
    assert found.n == ((6000, 6000) if protects == SWAP else None)


def test_the_candidate_that_sees_is_chosen_and_tested_by():
    """The other three look at a column that is the same on both sides. The score of the first is
    ahead by more than 40 times the noise: missed with a chance below 1e-15."""
    candidates = [fourier(["y"], 20, length_scale=0.1, seed=seed) for seed in range(3)]
    candidates.insert(2, fourier(["x"], 20, length_scale=0.1))
    for protects in (SWAP, ROW):
        schema = schema_of(protects)
        first, second = table(3000), table(3000, 1, shift=0.4)
        found = ask(first, second, schema, choose_from=candidates, epsilon=3.0)
        assert "candidate 3 of 4, fourier with length scale 0.1" in found.method
        assert found.reject


def test_plans_and_maps_may_be_chosen_from():
    plans = [aq.me_test(schema_of(), length_scale=size) for size in (0.1, 0.4)]
    assert "of 2, locations with length scale" in ask(test="signflip", choose_from=plans).method
    mixed = [plans[0], onehot({"ward": 2}), fourier(["x", "y"], 10)]
    assert "of 3" in ask(choose_from=mixed).method


def test_parts_without_rows_are_not_refused():
    """Their sizes are private: an error would tell of them."""
    for _ in range(30):
        assert ask(table(1), table(1, 1), schema_of(ROW)).reject in {True, False}


def test_a_map_is_described_by_kinds_and_length_scales():
    whole = default_map(schema_of(), "permutation")
    assert described(whole) == "fourier and marginals with length scale 0.3, 0.1, 0.0333"
    assert described(onehot({"ward": 2})) == "marginals"


def test_simulated_choices_repeat_and_say_so():
    found = [ask(simulate=5) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].method.startswith("SIMULATED NOISE, NOT PRIVATE")


# --- nothing without noise leaves, nothing is spent twice ---------------------------------------


@pytest.mark.parametrize(("test", "protects"), CASES)
def test_a_result_depends_on_noisy_numbers_and_public_facts_alone(
    test, protects, monkeypatch, tmp_path, capfd
):
    """As without a choice: the same noisy outcomes for two quite different pairs of datasets."""
    given = []

    def same_choice(scores, noised, count, noise):
        given.append(scores)
        assert (noised.choice, noised.l1, count, noise) == (True, 2 * UNIT, 1, "discrete laplace")
        assert noised.l1 / noised.scale == pytest.approx(1.0, rel=1e-9)
        return np.array([1])

    def same_outcome(exact, noised, noise):
        rng = np.random.default_rng(noised.coordinates)
        return np.rint(rng.normal(0, noised.scale, noised.coordinates)).astype(np.int64)

    monkeypatch.setattr(front, "choose", same_choice)
    monkeypatch.setattr(front, "add_noise", same_outcome)
    sizes = (300, 300) if protects == SWAP else (250, 420)
    pairs = [(table(), table(seed=1)), (table(sizes[0], 2), table(sizes[1], 3, shift=0.3))]
    results, files = [], []
    for number, (first, second) in enumerate(pairs):
        file = tmp_path / f"{number}.json"
        results.append(ask(first, second, schema_of(protects), test=test, output=file))
        files.append(file.read_bytes())
    assert (given[0] != given[1]).any()
    assert results[0] == results[1]
    assert files[0] == files[1]
    printed = capfd.readouterr()
    assert printed.out + printed.err == ""


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "ledger.db"
    for name in ("first", "second"):
        Ledger(path).open_account(name, Budget(2.0, 1e-6), SWAP)
    return path


def spent(ledger):
    return {a.dataset: (round(a.spent, 6), a.releases) for a in Ledger(ledger).accounts()}


@pytest.mark.parametrize("test", ["permutation", "signflip"])
def test_each_dataset_is_charged_once_and_before_the_choice(ledger, test, monkeypatch):
    honest, paid = front.choose, []

    def look(*given):
        paid.append(spent(ledger))
        return honest(*given)

    monkeypatch.setattr(front, "choose", look)
    ask(test=test, ledger=ledger, dataset=["first", "second"])
    assert paid == [{"first": (1.0, 1), "second": (1.0, 1)}]
    assert spent(ledger) == paid[0]


def test_a_bad_row_is_found_before_anything_is_spent_in_whichever_part_it_is(ledger):
    holes = table(seed=1).set_column(0, "x", pa.array([*[0.5] * 299, None], pa.float64()))
    for _ in range(12):  # it is in the part to choose by with a chance of a third
        with pytest.raises(DataError, match="missing values"):
            ask(second=holes, ledger=ledger, dataset=["first", "second"])
    assert spent(ledger) == {"first": (0, 0), "second": (0, 0)}


# --- refusals -----------------------------------------------------------------------------------

FEW = fourier(["x"], 4)
REFUSALS = {
    "nothing to choose from 1 feature maps": {"choose_from": [FEW]},
    "give the one or the other": {"features": FEW},
    "tcmc spends delta too": {"test": "tcmc", "delta": 1e-6},
    "tcs spends delta too.*use permutation or signflip": {"test": "tcs", "delta": 1e-6},
    "'length scales' or feature maps": {"choose_from": "bandwidths"},
    "no length scales to choose from": {
        "schema": schema_of(columns={"ward": COLUMNS["ward"]}),
    },
    "takes rows in pairs, which needs": {"test": "signflip", "schema": schema_of(ROW)},
    "takes rows in pairs, and there are": {"test": "signflip", "first": table(200)},
    "at most 200, got": {
        "test": "signflip",
        "choose_from": [FEW, default_map(schema_of(), "permutation")],
    },
}


@pytest.mark.parametrize("sentence", REFUSALS)
def test_what_cannot_be_done_is_said_in_one_sentence(sentence):
    with pytest.raises(CompareError, match=sentence) as error:
        ask(**REFUSALS[sentence])
    assert "\n" not in str(error.value)


# --- the command line ---------------------------------------------------------------------------

GOLDEN = """\
a and b: they differ (level 0.01)
  method:   SIMULATED NOISE, NOT PRIVATE: permutation test of the mean embeddings, 206 features; \
features chosen privately on a third of the rows: candidate 1 of 5, fourier and marginals with \
length scale 0.3
  null:     rank among 299 random labellings: exact level
  rows:     900 and 900
  promise:  epsilon 20, delta 0, replace one row
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv.write_csv(table(900), "a.csv")
    csv.write_csv(table(900, 1, shift=0.4), "b.csv")
    lines = ['name = "wards"', "[privacy]", f'protects = "{SWAP}"']
    for name, column in COLUMNS.items():
        lines += [f"[columns.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in column.items())]
    Path("s.toml").write_text("\n".join(lines))
    for number, size in enumerate((0.1, 0.4)):
        aq.me_test(schema_of(), length_scale=size).save(f"{number}.json")
    return ["compare-private", "a.csv", "b.csv", "--schema", "s.toml", "--delta", "0"]


@pytest.mark.filterwarnings("ignore:epsilon = 20 promises very little")
def test_the_command_line_chooses_between_length_scales(files):
    run = CliRunner().invoke(app, [*files, "--epsilon", "20", "--choose", "--simulate", "1"])
    assert run.exit_code == 0, run.output
    assert run.stdout == GOLDEN


def test_the_command_line_chooses_between_plans(files):
    plans = ["--plan", "0.json", "--plan", "1.json", "--test", "signflip", "--epsilon", "1"]
    run = CliRunner().invoke(app, [*files, *plans, "--choose", "--json"])
    assert run.exit_code == 0, run.output
    assert "of 2, locations" in json.loads(run.stdout)["method"]
    refused = CliRunner().invoke(app, [*files, *plans])
    assert isinstance(refused.exception, CompareError)
    assert "--choose to choose between them" in str(refused.exception)
