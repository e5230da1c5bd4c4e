"""The front door: what it promises, in which order it spends, and what a failure leaves behind.

Comparisons with noise fail an honest run with probability below 2e-10 each; see `near`.
"""

import io
import os
import signal
import sys
from math import sqrt

import numpy as np
import pyarrow as pa
import pytest

import aquatint as aq
from aquatint import progress as bars
from aquatint.accounting import Budget
from aquatint.curator import finishing
from aquatint.curator import sketch as front_door
from aquatint.curator.ledger import Ledger, Reservation
from aquatint.curator.spending import PrivacyWarning
from aquatint.errors import AquatintError, BudgetError, DataError, LedgerError, PlanError
from aquatint.features import Count, onehot
from aquatint.features.grid import COUNT_STEPS
from aquatint.release import archive
from aquatint.release.archive import to_bytes

ROW, SWAP, PERSON = "add or remove one row", "replace one row", "all rows of one person"
COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 99], "bins": 4},
    "sex": {"kind": "categorical", "categories": ["F", "M"]},
}


def schema_of(protects=ROW, **privacy):
    return aq.Schema.from_dict(
        {"name": "people", "privacy": {"protects": protects, **privacy}, "columns": COLUMNS}
    )


def rows(number=2000):
    index = np.arange(number)
    return pa.table({"age": index % 100, "sex": np.where(index % 4 == 0, "F", "M")})


def near(release, name, place, expected):
    """Compare with the exact sum, within seven standard deviations of Gaussian noise (passed with
    probability 3e-12) or sixteen of Laplace noise (2e-10)."""
    block = release.block(name)
    width = 7 if block.noise == "discrete gaussian" else 16
    return abs(block.sum[place] - expected) <= width * block.stderr[place]


def sketch(data=None, schema=None, **options):
    options = {"epsilon": 1.0, "delta": 1e-6, "progress": False, **options}
    return aq.sketch(rows() if data is None else data, schema or schema_of(), **options)


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(path).open_account("people", Budget(2.0, 1e-6), ROW)
    return path


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "people.aqt"


def account(ledger):
    return Ledger(ledger).account("people")


def untouched(ledger):
    found = account(ledger)
    return (found.spent, found.reserved, found.releases) == (0, 0, 0)


# --- what is promised ---------------------------------------------------------------------------


def test_the_gaussian_release_spends_what_was_asked_and_not_more():
    release = sketch()
    assert {block.noise for block in release.blocks} == {"discrete gaussian"}
    assert 1 - 1e-6 < release.loss.epsilon(1e-6) <= 1


def test_the_sums_are_right_up_to_the_declared_noise():
    release = sketch()
    assert near(release, "count", 0, 2000)
    assert near(release, "columns", 0, 500)  # a quarter of the ages
    assert near(release, "columns", 4, 500)  # a quarter is F
    assert near(release, "columns", 5, 1500)


def test_pure_epsilon_gives_laplace_noise_of_the_declared_scale():
    release = sketch(epsilon=2.0, delta=0.0)
    assert {block.noise for block in release.blocks} == {"discrete laplace"}
    assert 2 - 1e-9 < release.loss.pure <= 2
    assert release.loss.epsilon(0.0) == release.loss.pure
    assert (release.loss.rho, release.loss.roughness) == (0.0, 0.0)
    assert release.zcdp_epsilon is None
    assert near(release, "count", 0, 2000)


def test_laplace_scales_are_the_sensitivity_over_the_share_of_epsilon():
    schema = schema_of()
    blocks = (
        aq.PlannedBlock("count", Count(), 0.25),
        aq.PlannedBlock("columns", onehot(schema.cells()), 0.75),
    )
    release = sketch(plan=aq.Plan(schema, blocks), epsilon=2.0, delta=0.0)
    assert release.block("count").scales[0] == pytest.approx(COUNT_STEPS / 0.5)
    assert release.block("columns").scales[0] == pytest.approx(2 * COUNT_STEPS / 1.5)
    assert release.block("count").stderr[0] == pytest.approx(sqrt(2) / 0.5)


def test_under_add_or_remove_the_number_of_rows_is_noisy():
    releases = [sketch() for _ in range(3)]
    assert all(release.rows is None for release in releases)
    assert len({release.count for release in releases}) == 3  # equal once in 1e13 runs
    assert all(release.count != 2000 for release in releases)


def test_under_replace_one_the_number_of_rows_is_public_and_exact():
    release = sketch(schema=schema_of(SWAP))
    assert release.rows == 2000 == release.count
    assert "count" not in {block.name for block in release.blocks}


def test_replacing_costs_root_two_times_the_noise_of_adding():
    plans = {}
    for protects in (ROW, SWAP):
        schema = schema_of(protects)
        blocks = [aq.PlannedBlock("columns", onehot(schema.cells()), 0.5)]
        blocks.append(aq.PlannedBlock("count", Count(), 0.5))
        if protects == SWAP:
            blocks[1] = aq.PlannedBlock("again", onehot(schema.cells()), 0.5)
        made = sketch(schema=schema, plan=aq.Plan(schema, tuple(blocks)))
        plans[protects] = made.block("columns").stderr[0]
    assert plans[SWAP] == pytest.approx(sqrt(2) * plans[ROW], rel=1e-6)


def test_the_unit_of_a_person_counts_each_person_once():
    persons = rows().append_column("id", [np.arange(2000) % 400])
    release = sketch(persons, schema_of(PERSON, person="id"))
    assert near(release, "count", 0, 400)
    assert release.schema.privacy.unit == "person"
    assert release.rows is None


def test_a_person_who_may_count_for_more_rows_costs_more_noise():
    persons = rows().append_column("id", [np.arange(2000) % 400])
    once = sketch(persons, schema_of(PERSON, person="id"))
    thrice = sketch(persons, schema_of(PERSON, person="id", max_rows=3))
    assert near(thrice, "count", 0, 1200)
    ratio = thrice.block("count").stderr[0] / once.block("count").stderr[0]
    assert ratio == pytest.approx(3, rel=1e-6)


def test_two_releases_of_the_same_rows_have_different_noise():
    first, second = sketch(), sketch()
    assert (first.block("pairs").integers != second.block("pairs").integers).all()


def test_a_simulated_release_follows_its_seed_and_says_so():
    first, second = sketch(simulate=4), sketch(simulate=4)
    assert (first.block("pairs").integers == second.block("pairs").integers).all()
    assert not first.private
    assert "NOT PRIVATE" in repr(first)


# --- warnings -----------------------------------------------------------------------------------


def test_a_delta_of_one_over_the_rows_warns():
    with pytest.warns(PrivacyWarning, match="not below one over the number of rows"):
        sketch(delta=1 / 2000)


def test_a_delta_just_below_does_not_warn():
    sketch(delta=0.9 / 2000)


def test_a_large_epsilon_warns():
    with pytest.warns(PrivacyWarning, match="promises very little"):
        sketch(epsilon=20.0)


def test_a_warning_turned_into_an_error_spends_nothing(ledger, out):
    with pytest.raises(PrivacyWarning):
        sketch(delta=0.01, epsilon=0.1, ledger=ledger, dataset="people", output=out)
    assert untouched(ledger)
    assert list(out.parent.iterdir()) == []


# --- the order of things ------------------------------------------------------------------------


@pytest.fixture
def steps(monkeypatch):
    """Record what happens, in order."""
    seen = []

    def recording(name, real):
        def wrapper(*arguments, **options):
            seen.append(name)
            return real(*arguments, **options)

        return wrapper

    for owner, name, label in (
        (front_door, "accumulate", "rows read"),
        (finishing, "add_noise", "noise"),
        (finishing, "to_bytes", "bytes"),
        (Ledger, "reserve", "reserved"),
        (Reservation, "spend", "spent"),
        (archive, "_settle", "room or file on disk"),
    ):
        monkeypatch.setattr(owner, name, recording(label, getattr(owner, name)))
    return seen


def test_room_is_secured_before_spending_and_spending_comes_before_noise(steps, ledger, out):
    sketch(ledger=ledger, dataset="people", output=out)
    blocks = len(aq.load(out).blocks)
    assert steps == [
        "reserved",
        "rows read",
        "room or file on disk",
        "spent",
        *["noise"] * blocks,
        "bytes",
        "room or file on disk",
    ]


def test_the_room_is_as_large_as_the_file(out, monkeypatch):
    """So that a disk that fills up in between cannot make the write fail."""
    sizes = []
    real = archive.reserved
    monkeypatch.setattr(
        finishing, "reserved", lambda path, size: sizes.append(size) or real(path, size)
    )
    sketch(output=out)
    assert out.stat().st_size <= sizes[0]


def test_the_output_has_the_bytes_that_save_would_write(out, tmp_path):
    release = sketch(output=out)
    release.save(tmp_path / "saved.aqt")
    assert out.read_bytes() == (tmp_path / "saved.aqt").read_bytes() == to_bytes(release)


def test_an_older_output_is_replaced(out):
    out.write_bytes(b"old" * 100_000)
    release = sketch(output=out)
    assert out.read_bytes() == to_bytes(release)


# --- failures -----------------------------------------------------------------------------------


def test_a_failure_of_the_noise_counts_as_spent_and_leaves_no_file(ledger, out, monkeypatch):
    def fail(*_):
        raise BudgetError("no noise today")

    monkeypatch.setattr(finishing, "add_noise", fail)
    with pytest.raises(BudgetError, match="no noise today"):
        sketch(ledger=ledger, dataset="people", output=out)
    assert account(ledger).spent == pytest.approx(1.0, abs=1e-6)
    assert list(out.parent.iterdir()) == []


def test_a_failure_to_spend_draws_no_noise_and_leaves_no_file(ledger, out, monkeypatch):
    def fail(*_):
        raise LedgerError("the ledger is gone")

    monkeypatch.setattr(Reservation, "spend", fail)
    monkeypatch.setattr(finishing, "add_noise", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(LedgerError):
        sketch(ledger=ledger, dataset="people", output=out)
    assert untouched(ledger)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"data": pa.table({"age": [1]})}, DataError),
        ({"data": pa.table({"age": [1], "sex": ["X"]})}, DataError),
        ({"data": pa.table({"age": [None], "sex": ["F"]})}, DataError),
        ({"data": rows(0)}, DataError),
        ({"data": 7}, DataError),
        ({"data": iter([1, 2])}, DataError),
        ({"epsilon": 0.0}, BudgetError),
        ({"delta": 1.0}, BudgetError),
        ({"epsilon": 3.0}, LedgerError),
        ({"dataset": "nobody"}, LedgerError),
        ({"dataset": None}, LedgerError),
        ({"simulate": 1}, BudgetError),
        ({"schema": schema_of(SWAP)}, LedgerError),
        ({"plan": aq.plan(schema_of(SWAP))}, PlanError),
    ],
    ids=range(14),
)
def test_bad_input_spends_nothing_and_leaves_no_file(ledger, out, options, error):
    with pytest.raises(error) as refusal:
        sketch(**{"ledger": ledger, "dataset": "people", "output": out, **options})
    assert isinstance(refusal.value, AquatintError)
    assert "\n" not in str(refusal.value)
    assert untouched(ledger)
    assert list(out.parent.iterdir()) == []


def test_an_interrupt_while_reading_spends_nothing(ledger, out):
    def batches():
        yield from rows().to_batches()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sketch(batches(), ledger=ledger, dataset="people", output=out)
    assert untouched(ledger)
    assert list(out.parent.iterdir()) == []


def test_an_error_of_the_source_spends_nothing_and_is_passed_on(ledger, out):
    def batches():
        yield from rows().to_batches()
        raise ConnectionError("the database went away")

    with pytest.raises(ConnectionError):
        sketch(batches(), ledger=ledger, dataset="people", output=out)
    assert untouched(ledger)
    assert list(out.parent.iterdir()) == []


@pytest.fixture(autouse=True)
def heard():
    """Hear Ctrl-C, even where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_while_noise_is_drawn_does_not_lose_what_was_paid_for(ledger, out, monkeypatch):
    real = finishing.add_noise
    monkeypatch.setattr(finishing, "add_noise", lambda *a: press_ctrl_c() or real(*a))
    with pytest.warns(PrivacyWarning, match="Ctrl-C came after the budget was spent"):
        release = sketch(ledger=ledger, dataset="people", output=out)
    assert out.read_bytes() == to_bytes(release)
    assert account(ledger).releases == 1


def test_ctrl_c_while_the_file_settles_does_not_lose_what_was_paid_for(ledger, out, monkeypatch):
    """Between the last write and the renaming the budget is spent and the file is not there yet."""
    real = archive._settle
    calls = []

    def settle(file):
        calls.append(file)
        if len(calls) == 2:  # the first secures the room, the second follows the release
            press_ctrl_c()
        real(file)

    monkeypatch.setattr(archive, "_settle", settle)
    try:
        with pytest.warns(PrivacyWarning, match="Ctrl-C came after the budget was spent"):
            sketch(ledger=ledger, dataset="people", output=out)
    except KeyboardInterrupt:
        pytest.fail("the budget was spent and the release thrown away")
    assert out.exists()
    assert account(ledger).releases == 1


def test_ctrl_c_while_the_room_is_secured_spends_nothing(ledger, out, monkeypatch):
    real = archive._settle
    monkeypatch.setattr(archive, "_settle", lambda file: press_ctrl_c() or real(file))
    with pytest.raises(KeyboardInterrupt):
        sketch(ledger=ledger, dataset="people", output=out)
    assert untouched(ledger)
    assert list(out.parent.iterdir()) == []


def test_an_output_that_is_a_folder_is_refused_before_anything_is_spent(ledger, out):
    out.mkdir()
    with pytest.raises(AquatintError):
        sketch(ledger=ledger, dataset="people", output=out)
    assert untouched(ledger)


def test_the_handler_of_ctrl_c_is_put_back(out):
    before = signal.getsignal(signal.SIGINT)
    sketch(output=out)
    assert signal.getsignal(signal.SIGINT) is before


# --- progress -----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_goes_to_the_terminal_and_never_to_standard_output(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(bars, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    sketch(progress=True)
    assert "adding noise" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_what_is_quick_shows_no_progress(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(bars, "PATIENCE", 60.0)
    sketch(progress=True)
    assert "noise" not in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_no_terminal_no_progress(monkeypatch, capsys):
    monkeypatch.setattr(bars, "PATIENCE", -1.0)
    sketch(progress=True)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
