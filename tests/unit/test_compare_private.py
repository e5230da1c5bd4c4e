"""A curator's comparison: what it says, what it never says, in which order it spends."""

import json
import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2
from typer.testing import CliRunner

import aquatint as aq
from aquatint.accounting import Budget
from aquatint.cli import app
from aquatint.compare_recipes import me_test, mixed_fourier, scf_test
from aquatint.comparison import CompareError
from aquatint.curator.compare import front, permutation, ranks, tcs
from aquatint.curator.compare.defaults import default_map
from aquatint.curator.compare.nulls import simulated_tail, weighted_tail
from aquatint.curator.compare.samples import open_samples
from aquatint.curator.ledger import Ledger
from aquatint.curator.noise import coins
from aquatint.curator.spending import PrivacyWarning
from aquatint.errors import AquatintError, BudgetError, DataError, LedgerError, PlanError
from aquatint.recipe_parts import settled_bins

SWAP, ROW, PERSON = "replace one row", "add or remove one row", "all rows of one person"
TESTS = ["permutation", "signflip", "tcmc", "tcs"]
CASES = [(test, SWAP) for test in TESTS] + [("permutation", ROW), ("tcmc", ROW)]
COLUMNS = {
    "age": {"kind": "numeric", "bounds": [0, 100]},
    "pay": {"kind": "numeric", "bounds": [0, 1000]},
    "job": {"kind": "categorical", "categories": ["a", "b"], "missing": True},
}


def schema_of(protects=SWAP, **privacy):
    return aq.Schema.from_dict(
        {"name": "people", "privacy": {"protects": protects, **privacy}, "columns": COLUMNS}
    )


def people(rows=300, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": np.clip(rng.normal(40 + shift, 12, rows), 0, 100),
            "pay": np.clip(rng.normal(500, 120, rows), 0, 1000),
            "job": rng.choice(["a", "b"], rows).tolist(),
        }
    )


def ask(first=None, second=None, schema=None, **options):
    options = {"epsilon": 1.0, "delta": 1e-6, "progress": False, **options}
    data = (people() if first is None else first, people(seed=1) if second is None else second)
    return aq.compare_private(*data, schema or schema_of(), **options)


# --- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("test", "protects"), CASES)
def test_a_plain_difference_is_found_and_the_result_says_what_was_paid(test, protects):
    """Missed with a chance below 1e-9: the difference is 20 standard deviations of the noise."""
    schema = schema_of(protects)
    found = ask(people(4000), people(4000, 1, shift=40), schema, test=test, epsilon=2.0)
    assert found.reject
    assert (found.epsilon, found.alpha, found.neighbours) == (2.0, 0.01, protects)
    decision_only = test in {"permutation", "signflip"}
    assert found.delta == (0 if decision_only else 1e-6)
    assert (found.statistic is None) == (found.pvalue is None) == decision_only
    assert tuple(found) == (found.statistic, found.pvalue)
    if protects == SWAP:
        assert found.n == (4000, 4000)
    elif test == "permutation":
        assert found.n is None
    else:
        assert found.n == pytest.approx((4000, 4000), abs=1000)
        assert found.n != (4000, 4000)


def test_features_may_be_given_as_a_map_or_as_a_plan():
    schema = schema_of()
    plan = me_test(schema, locations=3)
    for features in (plan, plan.blocks[0].map):
        assert "3 features" in ask(features=features, test="tcmc").method
    waves = scf_test(schema, frequencies=4)
    assert "8 features" in ask(features=waves, test="signflip").method
    assert "features" in ask(features=mixed_fourier(schema_of(ROW)), schema=schema_of(ROW)).method


def test_missing_values_and_categories_count_as_differences():
    """Missed with a chance below 1e-9."""
    first, second = people(3000), people(3000, 1)
    other = second.set_column(2, "job", pa.array(["a", None] * 1500))
    assert ask(first, other, epsilon=3.0).reject


def test_sizes_may_differ_for_the_permutation_test_and_for_tcmc():
    for test in ("permutation", "tcmc"):
        assert ask(people(200), people(500, 1), test=test).n == (200, 500)


def test_tcmc_also_says_which_features_differ():
    """Missed with a chance below 1e-9."""
    found = ask(people(4000), people(4000, 1, shift=40), test="tcmc", epsilon=3.0).where()
    assert found["differs"].iloc[0]
    assert list(found["adjusted"]) == sorted(found["adjusted"])
    with pytest.raises(CompareError, match="not paid for"):
        ask().where()


def test_conservative_lowers_the_statistic():
    kept = [
        ask(test="tcmc", conservative=careful, simulate=3).statistic for careful in (False, True)
    ]
    assert kept[1] < kept[0]


def test_every_null_of_tcmc_gives_a_pvalue_and_the_asymptotic_one_warns_by_its_name():
    found = {null: ask(test="tcmc", null=null, simulate=1) for null in front.tcmc.NULLS}
    assert all(0 <= each.pvalue <= 1 for each in found.values())
    weighted, drawn = found["weighted-chi2"], found["monte-carlo"]
    assert weighted.statistic == drawn.statistic
    assert weighted.pvalue == pytest.approx(drawn.pvalue, abs=0.01)
    plain = found["asymptotic-underestimates-noise"]
    assert plain.pvalue < weighted.pvalue
    assert "rejects far too often" in plain.null


# --- nothing without noise leaves ---------------------------------------------------------------


@pytest.mark.parametrize(("test", "protects"), CASES)
def test_a_result_depends_on_noisy_numbers_and_public_facts_alone(
    test, protects, monkeypatch, tmp_path, caplog, capfd
):
    """Two quite different pairs of datasets, and the same noisy numbers for both: what comes back,
    is written, logged or printed has to be the same to the last byte."""
    given = []

    def same_outcome(exact, noised, noise):
        given.append(exact)
        rng = np.random.default_rng(noised.coordinates)
        return np.rint(rng.normal(0, noised.scale, noised.coordinates)).astype(np.int64)

    monkeypatch.setattr(front, "add_noise", same_outcome)
    caplog.set_level(logging.DEBUG)
    schema = schema_of(protects)
    sizes = (300, 300) if protects == SWAP else (250, 420)
    pairs = [(people(), people(seed=1)), (people(sizes[0], 2), people(sizes[1], 3, shift=30))]
    results, files = [], []
    for number, (first, second) in enumerate(pairs):
        file = tmp_path / f"{number}.json"
        results.append(ask(first, second, schema, test=test, output=file, progress=True))
        files.append(file.read_bytes())
    half = len(given) // 2
    assert any((a != b).any() for a, b in zip(given[:half], given[half:], strict=True))
    assert results[0] == results[1]
    assert repr(results[0]) == repr(results[1])
    assert files[0] == files[1]
    assert not caplog.records
    printed = capfd.readouterr()
    assert printed.out + printed.err == ""


@pytest.mark.parametrize(("test", "protects"), CASES)
def test_an_error_after_the_rows_were_read_carries_no_number_of_theirs(
    test, protects, monkeypatch, tmp_path
):
    seen = []

    def refuse(exact, noised, noise):
        seen.extend(abs(int(value)) for value in exact if abs(int(value)) > 1000)
        raise BudgetError("nothing was released")

    monkeypatch.setattr(front, "add_noise", refuse)
    with pytest.raises(BudgetError) as error:
        ask(schema=schema_of(protects), test=test, output=tmp_path / "out.json")
    text = str(error.value) + repr(error.value)
    assert seen
    assert not any(str(value) in text for value in seen)
    assert not list(tmp_path.iterdir())


def test_private_parts_do_not_show_what_they_hold():
    samples = open_samples((people(), people(seed=1)), schema_of(), default_map(schema_of(), "tcs"))
    trial = permutation.Permutation(samples, Budget(1, 0), 0.01, 99, coins())
    assert repr(samples) == "Samples(private)"
    assert "sizes" not in repr(trial)


def test_simulated_noise_is_marked_and_repeats():
    found = [ask(test="tcmc", simulate=5) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].method.startswith("SIMULATED NOISE, NOT PRIVATE")
    assert ask(test="tcmc").statistic != ask(test="tcmc").statistic


# --- spending -----------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "ledger.db"
    for name in ("first", "second"):
        Ledger(path).open_account(name, Budget(2.0, 1e-6), SWAP)
    return path


def spent(ledger):
    return {a.dataset: (round(a.spent, 6), a.releases) for a in Ledger(ledger).accounts()}


@pytest.mark.parametrize("test", TESTS)
def test_each_dataset_is_charged_once(ledger, test):
    ask(test=test, ledger=ledger, dataset=["first", "second"])
    for paid, releases in spent(ledger).values():
        assert paid == pytest.approx(1.0, abs=2e-6)
        assert paid <= 1.0 + 1e-9
        assert releases == 1


def test_one_account_for_both_is_charged_once(ledger):
    ask(ledger=ledger, dataset="first")
    assert spent(ledger) == {"first": (1.0, 1), "second": (0, 0)}
    ask(ledger=ledger, dataset=["second", "second"])
    assert spent(ledger)["second"] == (1.0, 1)


def test_what_does_not_fit_is_refused(ledger, monkeypatch):
    ask(ledger=ledger, dataset=["first"])
    read = []
    monkeypatch.setattr(permutation, "statistics", lambda *_, **__: read.append(1))
    with pytest.raises(LedgerError, match="ask for less"):
        ask(ledger=ledger, dataset=["second", "first"], epsilon=1.5)
    assert spent(ledger) == {"first": (1.0, 1), "second": (0, 0)}
    assert not read
    assert all(account.reserved == 0 for account in Ledger(ledger).accounts())


def test_a_failed_run_spends_nothing_and_leaves_no_file(ledger, tmp_path, monkeypatch):
    bad = people().drop_columns(["pay"])
    out = tmp_path / "out"
    out.mkdir()
    accounts = {"ledger": ledger, "dataset": ["first", "second"]}
    with pytest.raises(DataError, match="no column 'pay'"):
        ask(second=bad, output=out / "r.json", **accounts)
    holes = people(seed=1).set_column(0, "age", pa.array([None] * 300, pa.float64()))
    with pytest.raises(DataError, match="missing values"):
        ask(second=holes, output=out / "r.json", **accounts)
    with pytest.raises(AquatintError, match="cannot write"):
        ask(output=out / "nowhere" / "r.json", **accounts)
    assert spent(ledger) == {"first": (0, 0), "second": (0, 0)}
    assert not list(out.iterdir())


def test_the_budget_is_spent_before_noise_is_drawn(ledger, monkeypatch):
    honest, paid = front.add_noise, []

    def look(*given):
        paid.append(spent(ledger))
        return honest(*given)

    monkeypatch.setattr(front, "add_noise", look)
    ask(ledger=ledger, dataset=["first", "second"])
    assert paid == [{"first": (1.0, 1), "second": (1.0, 1)}]


def test_the_file_holds_the_result(tmp_path):
    found = ask(test="tcmc", output=tmp_path / "result.json")
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(
        json.dumps(found.to_dict())
    )


def test_a_large_delta_is_warned_of():
    with pytest.warns(PrivacyWarning, match="not below one over the number of rows"):
        ask(test="tcmc", delta=0.1)


# --- refusals -----------------------------------------------------------------------------------

REFUSALS = {
    "replace one row": ({"schema": schema_of(ROW), "test": "signflip"}, CompareError),
    "takes rows in pairs": ({"first": people(20), "test": "tcs"}, CompareError),
    "use permutation or tcmc, or give as many": (
        {"first": people(20), "test": "signflip"},
        CompareError,
    ),
    "tcmc adds Gaussian noise": ({"test": "tcmc", "delta": 0.0}, CompareError),
    "tcs adds Gaussian noise": ({"test": "tcs", "delta": 0.0}, CompareError),
    "must be one of permutation": ({"test": "anova"}, CompareError),
    "the null must be one of": ({"test": "tcmc", "null": "exact"}, CompareError),
    "alpha must be above 0": ({"alpha": 0.0}, CompareError),
    "can never reject at level 0.01.*at least 99": ({"permutations": 98}, CompareError),
    "protects rows": ({"schema": schema_of(PERSON, person="id")}, CompareError),
    "reads the rows twice": ({"first": iter(people().to_batches())}, DataError),
    "has no rows": ({"first": people().slice(0, 0)}, DataError),
    "nothing to account for": (
        {"simulate": 1, "ledger": "l.db", "dataset": "first"},
        BudgetError,
    ),
    "names need a ledger": ({"dataset": "first"}, LedgerError),
    "made for another schema": ({"features": me_test(schema_of(ROW))}, PlanError),
    "no features to compare by": (
        {
            "features": aq.Plan(
                settled_bins(schema_of(ROW)), (aq.PlannedBlock("n", aq.features.Count(), 1.0),)
            )
        },
        PlanError,
    ),
    "the ridge is a share": ({"test": "signflip", "ridge": 0.0}, CompareError),
    "at most 200, got": (
        {"test": "signflip", "features": default_map(schema_of(), "permutation")},
        CompareError,
    ),
}


@pytest.mark.parametrize("sentence", REFUSALS)
def test_what_cannot_be_done_is_said_in_one_sentence(sentence):
    options, kind = REFUSALS[sentence]
    if sentence == "no features to compare by":
        options = {**options, "schema": options["features"].schema}
    with pytest.raises(kind, match=sentence) as error:
        ask(**options)
    assert "\n" not in str(error.value)


# --- the parts ----------------------------------------------------------------------------------


def test_ties_count_against_rejection():
    assert not ranks.rejects(np.zeros(100, np.int64), 0.01)
    assert ranks.rejects(np.array([1, *[0] * 99]), 0.01)
    assert not ranks.rejects(np.array([1, 1, *[0] * 98]), 0.01)
    assert ranks.rejects(np.array([1, 1, *[0] * 198]), 0.01)


def test_the_noise_of_a_rank_pays_for_twice_the_sensitivity():
    noised = ranks.noise_for(1_000_003, 100, 0.7)
    assert noised.l1 == 2_000_006
    assert noised.l1 / noised.scale == pytest.approx(0.7, rel=1e-9)
    assert noised.l1 / noised.scale <= 0.7


def test_there_are_as_many_labellings_as_the_level_needs():
    assert ranks.how_many(0.05, None) == 199
    assert ranks.how_many(0.001, None) >= 999
    assert ranks.how_many(0.01, 99) == 99


def test_labels_keep_the_sizes_and_are_uniform_over_tiles():
    """χ² with 5 degrees of freedom exceeds 45 with a chance below 1e-7."""
    left = np.tile(np.array([2, 4], dtype=np.int64), (60_000, 1))
    labels = np.hstack([permutation.deal(left, size, coins()) for size in (1, 2, 1)])
    assert (labels.sum(axis=1) == 2).all()
    assert not left.any()
    _, counts = np.unique(labels, axis=0, return_counts=True)
    assert len(counts) == 6
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 45


def test_a_label_is_settled_by_as_many_bytes_as_it_takes():
    """One in three: 85.33… of 256, so byte 85 is followed by the digits of 1/3 once more."""
    spare = iter([85, 85, 84])

    def given(size):
        return np.full(size, 85, np.uint8) if size == 1 else np.array([*spare], np.uint8)

    left = np.array([[1, 3]], dtype=np.int64)
    assert permutation.deal(left, 1, given).tolist() == [[1.0]]
    assert left.tolist() == [[0, 2]]


def test_the_order_of_the_rows_does_not_matter_to_the_statistic():
    first, second = people(500), people(400, 1)
    found = []
    for order in (np.arange(500), np.random.default_rng(0).permutation(500)):
        data = (first.take(pa.array(order)), second)
        samples = open_samples(data, schema_of(), default_map(schema_of(), "permutation"))
        found.append(permutation.statistics(samples, 0, coins())[0])
    assert found[0] == found[1]


def test_tails_of_weighted_sums_agree_with_what_is_known():
    for value in (0.5, 4.0, 12.0):
        assert weighted_tail(3 * value, np.full(4, 3.0)) == pytest.approx(chi2.sf(value, 4))
    weights = np.array([2.0, 1.0, 0.3, 0.1])
    assert weighted_tail(6.0, weights) == pytest.approx(simulated_tail(6.0, weights), abs=0.005)


def test_no_spectrum_that_a_search_finds_is_worse_than_those_that_are_tried():
    """For tcs: random spectra with the same trace; the draws are the same for all."""
    rng = np.random.default_rng(4)
    ridge, features = 0.06, 4
    draws = np.random.default_rng(0)
    squares = draws.chisquare(1, (20_000, features))
    for trace in (0.01, 0.05, 0.3, 1.0):
        for statistic in (0.8, 1.5, 2.5):
            noise = 0.3 * draws.standard_normal(len(squares))

            def tail(spectrum, statistic=statistic, noise=noise):
                value = np.sqrt(squares @ (spectrum / (spectrum + ridge))) + noise
                return float((value >= statistic).mean())

            tried = max(map(tail, tcs.spectra(trace, features)))
            for _ in range(60):
                spectrum = trace * rng.dirichlet(np.full(features, rng.choice([0.2, 1, 5])))
                assert tail(spectrum) <= tried + 0.004  # what 20,000 draws cannot tell apart


# --- the command line ---------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from pyarrow import csv

    csv.write_csv(people(800), "a.csv")
    csv.write_csv(people(800, 1, shift=40), "b.csv")
    lines = ['name = "people"', "[privacy]", 'protects = "replace one row"']
    for name, column in COLUMNS.items():
        lines += [f"[columns.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in column.items())]
    Path("s.toml").write_text("\n".join(lines))
    return ["compare-private", "a.csv", "b.csv", "--schema", "s.toml", "--epsilon", "20"]


GOLDEN = """\
a and b: they differ (level 0.01)
  method:   SIMULATED NOISE, NOT PRIVATE: permutation test of the mean embeddings, 207 features
  null:     rank among 299 random labellings: exact level
  rows:     800 and 800
  promise:  epsilon 20, delta 0, replace one row
written: r.json. It is public now.
"""


@pytest.mark.filterwarnings("ignore:epsilon = 20 promises very little")
def test_the_command_line_says_it_in_a_few_lines(files):
    run = CliRunner().invoke(app, [*files, "-o", "r.json", "--simulate", "1"])
    assert run.exit_code == 0, run.output
    assert run.stdout == GOLDEN
    assert json.loads(Path("r.json").read_text())["reject"] is True


@pytest.mark.filterwarnings("ignore:epsilon = 20 promises very little")
def test_the_command_line_prints_json_and_charges_a_ledger(files):
    Ledger("l.db").open_account("a", Budget(30, 1e-6), SWAP)
    account = ["--ledger", "l.db", "--dataset", "a"]
    run = CliRunner().invoke(
        app, [*files, "--delta", "1e-6", "--test", "tcmc", "--json", "--conservative", *account]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["n"] == [800, 800]
    assert spent("l.db")["a"][1] == 1


# --- schemas of every sort ----------------------------------------------------------------------

SORTS = {
    "categories alone": {"job": {"kind": "categorical", "categories": ["a", "b"]}},
    "one number": {"age": {"kind": "numeric", "bounds": [0, 100]}},
    "numbers that may be missing": {
        "age": {"kind": "numeric", "bounds": [0, 100], "missing": True},
        "pay": {"kind": "integer", "bounds": [0, 1000], "missing": True},
    },
}


@pytest.mark.parametrize(("test", "protects"), CASES)
@pytest.mark.parametrize("sort", SORTS)
def test_every_sort_of_schema_can_be_compared(sort, test, protects):
    schema = aq.Schema.from_dict(
        {"name": "p", "privacy": {"protects": protects}, "columns": SORTS[sort]}
    )
    table = people(100).set_column(1, "pay", pa.array([None, 500] * 50, pa.int64()))
    found = ask(table, table, schema, test=test)
    assert found.reject in {True, False}


def test_features_of_many_columns_are_made_a_few_rows_at_a_time(monkeypatch):
    samples = open_samples((people(), people(seed=1)), schema_of(), default_map(schema_of(), "tcs"))
    whole = [permutation.statistics(samples, 5, coins(1))[0]]
    monkeypatch.setattr("aquatint.curator.compare.samples.MOST_NUMBERS", 1)
    assert max(len(rows) for rows in samples.rows(0)) == 64
    assert permutation.statistics(samples, 5, coins(1))[0] == whole[0]
