"""`aquatint learn` from end to end: a file that predicts, or one sentence and no file."""

import sys

import pandas as pd
import pytest

import aquatint as aq
from aquatint.analyst.synthesize.fit import Effort

LEARN = ["learn", "out.aqt", "--model", "logistic", "-o", "model.skops"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick = Effort(components=20, steps=50, fits=1)
    monkeypatch.setattr("aquatint.analyst.synthesize.mixture.Effort", lambda **_: quick)


@pytest.fixture
def release(folder, run):
    """A release of people.csv with simulated noise, beside the data."""
    arguments = folder.sketch(ledger=None, dataset=None, simulate="1")
    assert run([*arguments, "--quiet"]).code == 0
    return folder.path / "out.aqt"


def test_the_command_says_what_it_wrote(folder, run, release):
    done = run(LEARN)
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        "written: model.skops, a logistic model of 'sex' from 1 columns\n"
        'open it in Python: aquatint.load_learned("model.skops")\n'
    )
    model = aq.load_learned(folder.path / "model.skops")
    people = pd.read_csv(folder.path / "people.csv")
    assert set(model.predict(people)) <= {"F", "M"}


def test_the_same_seed_writes_the_same_model(folder, run, release):
    people = pd.read_csv(folder.path / "people.csv")
    found = []
    for name, seed in {"one.skops": "1", "two.skops": "1", "other.skops": "2"}.items():
        assert run([*LEARN[:-1], name, "--seed", seed, "--quiet"]).code == 0
        found.append(aq.load_learned(folder.path / name).predict_proba(people))
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def test_numbers_are_predicted_too(folder, run, release):
    arguments = ["--target", "age", "--features", "sex", "--rows", "500", "--how", "weights"]
    done = run(["learn", "out.aqt", "--model", "ridge", "-o", "age.skops", "--quiet", *arguments])
    assert (done.code, done.out, done.err) == (0, "", "")
    predicted = aq.load_learned(folder.path / "age.skops").predict(pd.DataFrame({"sex": ["F"]}))
    assert 0 <= predicted[0] <= 99


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["learn", "out.aqt", "--model", "gpt", "-o", "m.skops"], "unknown model 'gpt'"),
        (["learn", "out.aqt", "--model", "ridge", "-o", "m.skops"], "'sex' has classes"),
        (["learn", "out.aqt", "--model", "tree", "-o", "m.pickle"], "end its name in .skops"),
        (["learn", "none.aqt", "--model", "tree", "-o", "m.skops"], "none.aqt"),
        ([*LEARN, "--target", "wage"], "there is no column 'wage'"),
        ([*LEARN, "--features", "age,sex"], "and not the target 'sex'"),
        ([*LEARN, "--how", "magic"], "choose one of auto, rows, weights"),
    ],
)
def test_refusals_are_one_sentence_and_no_file(folder, run, release, arguments, said):
    before = folder.files()
    done = run(arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("aquatint: ")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert folder.files() == before


def test_without_skops_it_says_at_once_what_to_install(run, release, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    done = run(LEARN)
    assert done.code == 1
    assert done.err == "aquatint: skops is not installed: pip install 'aquatint[learn]'\n"
