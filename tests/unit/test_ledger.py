"""The ledger: ceilings, refusals, crashes, and processes that race for the last of a budget."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from aquatint.accounting import Budget, Loss, Noised, calibrate, gaussian_loss, laplace_loss
from aquatint.curator.ledger import Ledger
from aquatint.errors import LedgerError

ROW, SWAP = "add or remove one row", "replace one row"
ONE = 2**20
QUARTER = Loss(pure=0.25)
ASKED = Budget(0.25, 0.0)


def gaussian(sigma):
    return gaussian_loss([Noised(1, sigma * ONE, ONE**2, ONE)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    book = Ledger(path)
    book.open_account("people", Budget(1.0, 0.0), ROW)
    return book


def spend(ledger, loss=QUARTER, dataset="people", protects=ROW):
    with ledger.reserve(dataset, loss, ASKED, protects) as hold:
        hold.spend()


# --- accounts -----------------------------------------------------------------------------------


def test_a_new_account_has_everything_left(ledger):
    account = ledger.account("people")
    assert (account.epsilon, account.delta, account.protects) == (1.0, 0.0, ROW)
    assert (account.spent, account.reserved, account.left, account.releases) == (0, 0, 1.0, 0)


def test_spending_is_remembered_by_the_file(ledger, path):
    spend(ledger)
    account = Ledger(path).account("people")
    assert account.spent == pytest.approx(0.25)
    assert account.left == pytest.approx(0.75)
    assert account.releases == 1


def test_a_reservation_counts_until_it_is_given_back(ledger):
    with ledger.reserve("people", QUARTER, ASKED, ROW):
        held = ledger.account("people")
        assert held.reserved == pytest.approx(0.25)
        assert held.spent == 0
    assert ledger.account("people").left == 1.0


def test_datasets_do_not_share_a_ceiling(ledger):
    ledger.open_account("other", Budget(0.25, 0.0), SWAP)
    for _ in range(4):
        spend(ledger)
    spend(ledger, dataset="other", protects=SWAP)
    assert [(a.dataset, a.releases) for a in ledger.accounts()] == [("other", 1), ("people", 4)]


def test_a_ceiling_is_set_once(ledger):
    with pytest.raises(LedgerError, match="already has a ceiling for 'people'"):
        ledger.open_account("people", Budget(9.0, 1e-6), ROW)
    assert ledger.account("people").epsilon == 1.0


def test_the_ceiling_can_be_reached_exactly_and_not_passed(ledger):
    for _ in range(4):
        spend(ledger)
    with pytest.raises(LedgerError):
        spend(ledger, Loss(pure=1e-6))
    assert ledger.account("people").releases == 4


# --- refusals -----------------------------------------------------------------------------------


def test_overspending_is_refused_with_what_is_left(ledger):
    spend(ledger, Loss(pure=0.7))
    with pytest.raises(LedgerError) as refusal:
        spend(ledger, Loss(pure=0.5))
    said = str(refusal.value)
    assert "'people' has epsilon 0.3 left of 1" in said
    assert "spent 0.7" in said
    assert "would bring it to 1.2" in said
    assert ledger.account("people").spent == pytest.approx(0.7)


def test_what_is_reserved_by_another_counts_against_the_ceiling(ledger):
    with (
        ledger.reserve("people", Loss(pure=0.8), ASKED, ROW),
        pytest.raises(LedgerError, match=r"reserved 0\.8"),
    ):
        spend(ledger)


def test_another_unit_of_protection_is_refused(ledger):
    with pytest.raises(LedgerError, match="losses of different units do not add up"):
        spend(ledger, protects=SWAP)


def test_an_unknown_dataset_is_refused_with_the_way_to_declare_it(ledger):
    with pytest.raises(LedgerError, match=r"no ceiling for 'nobody'.*--open nobody"):
        spend(ledger, dataset="nobody")


def test_a_missing_ledger_is_refused_and_not_created(path):
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger(path).accounts()
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger(path).reserve("people", QUARTER, ASKED, ROW)
    assert not path.exists()


def test_gaussian_noise_is_refused_under_a_pure_ceiling(path):
    book = Ledger(path)
    book.open_account("pure", Budget(5.0, 0.0), ROW)
    with pytest.raises(LedgerError, match="too small for this"):
        spend(book, gaussian(100.0), dataset="pure")


@pytest.mark.parametrize(
    "content", [b"not a ledger" * 1000, b"SQLite format 3\x00" + bytes(range(256)) * 40]
)
def test_a_damaged_ledger_gives_one_sentence(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"the ledger .* cannot be used") as refusal:
        Ledger(path).accounts()
    assert "\n" not in str(refusal.value)


def test_a_ledger_cut_short_gives_one_sentence(ledger, path):
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(LedgerError, match="cannot be used"):
        ledger.account("people")


def test_a_folder_is_no_ledger(tmp_path):
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger(tmp_path).accounts()


def test_a_reservation_that_vanished_cannot_be_spent(ledger, path):
    with ledger.reserve("people", QUARTER, ASKED, ROW) as hold:
        with sqlite3.connect(path) as db:
            db.execute("delete from entries")
        db.close()
        with pytest.raises(LedgerError, match="the reservation is gone"):
            hold.spend()


def test_a_reservation_is_spent_once(ledger):
    with ledger.reserve("people", QUARTER, ASKED, ROW) as hold:
        hold.spend()
        with pytest.raises(LedgerError, match="gone"):
            hold.spend()
    assert ledger.account("people").spent == pytest.approx(0.25)


# --- composition --------------------------------------------------------------------------------


def test_gaussian_losses_compose_by_rho(path):
    book = Ledger(path)
    book.open_account("people", Budget(10.0, 1e-5), ROW)
    for _ in range(11):
        spend(book, gaussian(12.37))
    assert book.account("people").spent == pytest.approx(1.0, abs=1e-3)  # dp_engines.md, section 2


def test_gaussian_and_laplace_losses_compose(path):
    book = Ledger(path)
    book.open_account("people", Budget(10.0, 1e-5), ROW)
    laplace = laplace_loss([Noised(1, 20.0 * ONE, ONE**2, ONE)])
    spend(book, gaussian(5.27))
    spend(book, laplace)
    assert book.account("people").spent == (gaussian(5.27) + laplace).epsilon(1e-5)
    assert book.account("people").releases == 2


def test_what_is_left_can_be_spent_and_no_more(path):
    book = Ledger(path)
    book.open_account("people", Budget(1.0, 1e-5), ROW)
    spend(book, gaussian(6.0))
    rest = book.account("people").left
    (scale,) = calibrate(Budget(rest, 1e-5), [Noised(1, 1.0, ONE**2, ONE)], [1.0])
    with pytest.raises(LedgerError):
        spend(book, gaussian(0.999 * scale / ONE))
    spend(book, gaussian(scale / ONE))
    assert book.account("people").left < 0.01


def test_a_delta_of_the_release_does_not_change_what_the_ceiling_counts(path):
    book = Ledger(path)
    book.open_account("people", Budget(10.0, 1e-5), ROW)
    with book.reserve("people", gaussian(4.0), Budget(3.0, 1e-12), ROW) as hold:
        hold.spend()
    assert book.account("people").spent == gaussian(4.0).epsilon(1e-5)


# --- what ends a reservation --------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_error_before_spending_frees_the_reservation(ledger, error):
    with pytest.raises(error), ledger.reserve("people", QUARTER, ASKED, ROW):
        raise error
    assert ledger.account("people").left == 1.0


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_error_after_spending_counts_as_spent(ledger, error):
    def interrupted():
        with ledger.reserve("people", QUARTER, ASKED, ROW) as hold:
            hold.spend()
            raise error

    with pytest.raises(error):
        interrupted()
    account = ledger.account("people")
    assert account.spent == pytest.approx(0.25)
    assert account.reserved == 0


PROCESS = """
import os, sys, time
from pathlib import Path
from aquatint.accounting import Budget, Loss
from aquatint.curator.ledger import Ledger
from aquatint.errors import LedgerError
path, folder, mode = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
(folder / f"ready-{os.getpid()}").touch()
while mode == "race" and not (folder / "go").exists():
    time.sleep(0.001)
try:
    hold = Ledger(path).reserve("people", Loss(pure=0.25), Budget(0.25, 0.0),
                                "add or remove one row")
except LedgerError as refusal:
    print(refusal)
    sys.exit(3)
if mode in {"die after", "race"}:
    hold.spend()
if mode.startswith("die"):
    os._exit(9)
if mode == "wait":
    print("held", flush=True)
    time.sleep(60)
"""


def start(path, folder, mode):
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(path), str(folder), mode],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_eight_processes_race_and_exactly_as_many_succeed_as_fit(path, tmp_path):
    book = Ledger(path)
    book.open_account("people", Budget(0.75, 0.0), ROW)
    racers = [start(path, tmp_path, "race") for _ in range(8)]
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("ready-*"))) < 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    (tmp_path / "go").touch()
    said = [racer.communicate(timeout=60)[0] for racer in racers]
    codes = sorted(racer.returncode for racer in racers)
    assert codes == [0, 0, 0, 3, 3, 3, 3, 3]
    assert sum("would bring it to" in text for text in said) == 5
    account = book.account("people")
    assert account.releases == 3
    assert account.spent == pytest.approx(0.75)
    assert account.reserved == 0


def test_a_crash_before_spending_frees_the_reservation(ledger, path, tmp_path):
    process = start(path, tmp_path, "die before")
    process.communicate(timeout=60)
    assert process.returncode == 9
    assert entries(path) == [("reserved",)]  # it died with the reservation in the file
    assert ledger.account("people").left == 1.0
    assert entries(path) == []


def test_a_crash_after_spending_counts_as_spent(ledger, path, tmp_path):
    process = start(path, tmp_path, "die after")
    process.communicate(timeout=60)
    assert process.returncode == 9
    assert ledger.account("people").spent == pytest.approx(0.25)


def test_a_living_process_keeps_its_reservation_and_sigkill_frees_it(ledger, path, tmp_path):
    with start(path, tmp_path, "wait") as process:
        assert process.stdout.readline() == "held\n"
        assert ledger.account("people").reserved == pytest.approx(0.25)
        with pytest.raises(LedgerError, match=r"reserved 0\.25"):
            spend(ledger, Loss(pure=0.9))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert ledger.account("people").left == 1.0


def test_a_later_process_with_the_same_number_does_not_keep_a_reservation_alive(ledger, path):
    hold = ledger.reserve("people", QUARTER, ASKED, ROW)
    with sqlite3.connect(path) as db:
        db.execute("update entries set started = '1' where process = ?", (os.getpid(),))
    db.close()
    assert ledger.account("people").left == 1.0
    with pytest.raises(LedgerError, match="gone"):
        hold.spend()


def test_a_reservation_of_another_machine_is_left_alone(ledger, path):
    ledger.reserve("people", QUARTER, ASKED, ROW)
    with sqlite3.connect(path) as db:
        db.execute("update entries set host = 'elsewhere', process = 1, started = '1'")
    db.close()
    assert ledger.account("people").reserved == pytest.approx(0.25)


def entries(path):
    with sqlite3.connect(path) as db:
        found = db.execute("select state from entries").fetchall()
    db.close()
    return found
