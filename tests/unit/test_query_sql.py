"""Questions in SQL against SQLite, on the same rows: a mixture with one component for each row."""

import contextlib
import math
import sqlite3
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aquatint.analyst.query.conditions import is_like
from aquatint.analyst.query.expectations import expectations
from aquatint.analyst.query.question import ask
from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.errors import AquatintError, DataError
from aquatint.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "name": "people",
        "privacy": {"protects": "replace one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 29], "bins": 30},
            "visits": {"kind": "integer", "bounds": [0, 7], "bins": 8, "missing": True},
            "sex": {"kind": "categorical", "categories": ["Female", "Male"]},
            "city": {"kind": "categorical", "categories": ["Aa", "Ab", "C%"], "missing": True},
            "ill": {"kind": "boolean"},
        },
    }
)
ROWS = 300


def drawn():
    rng = np.random.default_rng(7)
    codes = {name: rng.integers(0, column.cells, ROWS) for name, column in SCHEMA.columns.items()}
    codes["visits"] = np.minimum(codes["visits"], codes["age"] // 3)
    codes["ill"] = (codes["age"] + rng.integers(0, 30, ROWS) > 30).astype(int)
    return codes


CODES = drawn()


@pytest.fixture(scope="module")
def model():
    of_cell = {name: np.arange(c.cells) for name, c in SCHEMA.columns.items()}
    within = {name: np.ones(c.cells) for name, c in SCHEMA.columns.items()}
    lines = [np.eye(c.cells)[CODES[name]] for name, c in SCHEMA.columns.items()]
    weights = np.full(ROWS, 1 / ROWS)
    return Mixture(SCHEMA, Atoms(of_cell, within), weights, np.concatenate(lines, 1))


@pytest.fixture(scope="module")
def database():
    frame = {}
    for name, code in CODES.items():
        column = SCHEMA.columns[name]
        if name in ("age", "visits"):
            frame[name] = [None if c >= column.present_cells else int(c) for c in code]
        elif name == "ill":
            frame[name] = [int(c) for c in code]
        else:
            names = [*column.categories, None]
            frame[name] = [names[c] for c in code]
    connection = sqlite3.connect(":memory:")
    pd.DataFrame(frame, dtype=object).to_sql("data", connection, index=False)
    yield connection
    connection.close()


def answered(model, text):
    question = ask(SCHEMA, text)
    lines = []
    for group in question.groups:
        line = []
        for key, statistic in zip(question.keys, group.statistics, strict=True):
            if key is not None:
                line.append(group.key[key])
                continue
            found = expectations(model, statistic.functions, question.points)
            line.append(float(statistic.value(found, ROWS)))
        if group.kept is not None:
            found = expectations(model, group.kept.functions, question.points)
            if not group.kept.value(found, ROWS):
                continue
        lines.append(line)
    return lines


def same(ours, theirs):
    if isinstance(ours, str):
        return ours == str(theirs)
    return (theirs is None and math.isnan(ours)) or ours == pytest.approx(theirs, abs=1e-7)


WHERES = [
    "age >= 10",
    "age between 5 and 12",
    "age < 4.5",
    "7 < age",
    "age = 3",
    "age != 3",
    "age in (1, 2, 29)",
    "not age > 20",
    "sex = 'Female'",
    "sex <> 'Male'",
    "city in ('Aa', 'Ab')",
    "city like 'A%'",
    "city not like '_b'",
    "city is null",
    "visits is not null",
    "visits > 2",
    "not visits > 2",
    "visits <= 2 or city = 'Aa'",
    "(age > 20 or sex = 'Male') and not (visits = 1 or ill)",
    "ill",
    "not ill and (age between 3 and 9 or age between 20 and 25)",
]
ASKED = [
    "count(*)",
    "count(visits)",
    "sum(age)",
    "avg(age)",
    "avg(visits)",
    "avg(age * visits)",
    "sum(age + 2 * visits - 1)",
    "100.0 * avg(age) / count(*)",
    "avg(case when sex = 'Female' then age when age > 20 then 2 else 0 end)",
    "avg(case when visits > 1 then 1.0 end)",
    "sum(age / 2.0)",
    "-avg(ill)",
    "count(distinct city)",
]


@pytest.mark.parametrize("where", WHERES)
@pytest.mark.parametrize("asked", ASKED)
def test_answers_are_those_of_sqlite(model, database, asked, where):
    text = f"select {asked} from data where {where}"
    ((theirs,),) = database.execute(text).fetchall()
    ((ours,),) = answered(model, text)
    if theirs is None and asked.startswith("sum"):
        assert ours == 0.0  # nothing adds up to zero here, to null in SQL
    else:
        assert same(ours, theirs), (text, ours, theirs)


@pytest.mark.parametrize(
    "text",
    [
        "select sex, count(*), avg(age) from data group by sex",
        "select ill, sex, sum(visits) s from data where age > 4 group by sex, ill",
        "select sex, count(*) c from data where age < 9 group by sex having count(*) > 40",
        "select sex, count(*) c from data group by sex having c > 40 and not avg(age) > 100",
    ],
)
def test_groups_are_those_of_sqlite(model, database, text):
    theirs = {tuple(map(str, line)) for line in _rounded(database.execute(text).fetchall())}
    names = {"true": 1, "false": 0}
    ours = {
        tuple(map(str, line))
        for line in _rounded([names.get(v, v) for v in line] for line in answered(model, text))
    }
    assert ours == theirs


def _rounded(lines):
    return [[v if isinstance(v, str) else round(float(v), 6) for v in line] for line in lines]


def test_spread_and_dependence_are_those_of_pandas(model):
    frame = pd.DataFrame({"age": CODES["age"], "visits": CODES["visits"].astype(float)})
    frame.loc[frame["visits"] >= 8, "visits"] = np.nan
    kept = frame[frame["age"] > 5].dropna()
    asked = "var(visits), stddev(age), corr(age, visits), covar_pop(age, visits)"
    text = f"select {asked} from data where age > 5"
    ((variance, deviation, correlation, covariance),) = answered(model, text)
    assert variance == pytest.approx(kept["visits"].var(ddof=0))
    assert deviation == pytest.approx(frame[frame["age"] > 5]["age"].std(ddof=0))
    assert correlation == pytest.approx(kept["age"].corr(kept["visits"]))
    assert covariance == pytest.approx(kept.cov(ddof=0).loc["age", "visits"])


def test_quantiles_are_within_one_step(model):
    for level in (0.05, 0.25, 0.5, 0.9):
        ((found,),) = answered(model, f"select quantile(age, {level}) from data where ill")
        wanted = np.quantile(CODES["age"][CODES["ill"] == 1], level)
        assert abs(found - wanted) <= 1
    assert answered(model, "select median(age) from data") == answered(
        model, "select quantile(age, 0.5) from data"
    )
    assert answered(
        model, "select percentile_cont(0.9) within group (order by age) from data"
    ) == answered(model, "select quantile(age, 0.9) from data")


REFUSED = [
    "select min(age) from data",
    "select max(age) from data",
    "select * from data",
    "select age from data",
    "select avg(sex) from data",
    "select avg(nothing) from data",
    "select avg(age) from data where nothing = 1",
    "select avg(age) from data where sex = 'Neither'",
    "select avg(age) from data, other",
    "select avg(age) from data join other on true",
    "select avg(age) from (select * from data)",
    "select avg(age) over (partition by sex) from data",
    "select count(distinct age) from data",
    "select count(distinct sex, city) from data",
    "select distinct sex from data",
    "select age, count(*) from data group by age",
    "select avg(age / visits) from data",
    "select avg(age / 0) from data",
    "select avg(1e999) from data",
    "select quantile(age, 7) from data",
    "select percentile_cont(0.5) within group (order by age desc) from data",
    "select percentile_cont(0.5) within group (order by sex) from data",
    "select mode() within group (order by age) from data",
    "select avg(age) from data where age > sex",
    "select avg(age) from data where age + 1 > 3",
    "select avg(age) from data order by sex",
    "select avg(age) from data union select avg(age) from data",
    "with x as (select 1) select avg(age) from data",
    "drop table data",
    "insert into data values (1)",
    "select avg(age)",
    "select avg(age) from data; drop table data",
    "",
    "select",
    "; --",
    "select avg(age) from data where " + "(" * 500 + "age > 1" + ")" * 500,
    "select avg(age) from data where " + " and ".join(["age > 1"] * 3000),
    "select avg(age) from data where age in (" + ",".join(map(str, range(9000))) + ")",
    "select avg(" + "-" * 2000 + "age) from data",
    "select sum(" + "*".join(["(age + visits + 1)"] * 12) + ") from data",
    "select avg(äge\u202e) from data",
    "select pg_sleep(10) from data",
    "select avg(age) from data where age like '%'",
    "select avg(age) from data where city like 'A!%' escape '!'",
    "select avg(age) from data where sex in (select sex from data)",
    "select mean(age, sex) from data",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_answered_is_refused_in_one_sentence(text):
    with pytest.raises(DataError) as refusal:
        ask(SCHEMA, text)
    said = str(refusal.value)
    assert len(said) < 400
    assert "\n" not in said


WORDS = (
    "select avg age ( ) , from data where and or not in 'Aa' between 1 - * / case when then end is "
    "null like group by having limit order ; \x00 é"
)


@settings(max_examples=300, deadline=2000)
@given(st.lists(st.sampled_from(WORDS.split(" ")), max_size=40))
def test_no_text_gives_anything_but_an_answer_or_a_refusal(words):
    with contextlib.suppress(AquatintError):
        ask(SCHEMA, " ".join(words))


@pytest.mark.parametrize(
    ("text", "pattern", "fits"),
    [
        ("abc", "a%c", True),
        ("abc", "a_c", True),
        ("abc", "%", True),
        ("", "%%", True),
        ("abcbc", "%bc", True),
        ("abcb", "%bc", False),
        ("abc", "ab", False),
        ("ab", "abc", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("aXbXc", "a%x%c", False),
    ],
)
def test_patterns_are_those_of_sql(text, pattern, fits):
    assert is_like(text, pattern) is fits


def test_a_hostile_pattern_takes_no_time():
    begun = time.perf_counter()
    assert not is_like("a" * 200, "%a_" * 60 + "b")
    assert time.perf_counter() - begun < 1


def test_many_conditions_are_one_product(model):
    text = "select count(*) from data where " + " and ".join(f"age <> {i}" for i in range(25))
    ((found,),) = answered(model, text)
    assert found == pytest.approx((CODES["age"] >= 25).sum())
