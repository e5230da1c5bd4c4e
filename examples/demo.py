"""The demonstration: a real health survey, from rows to a release to a synthetic table."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pandas as pd
from statsmodels.datasets import randhie

HERE = Path(os.path.relpath(Path(__file__).parent))
COMMAND = Path(os.path.relpath(Path(sys.executable).with_name("aquatint")))
DEMO = Path("demo")


def run(*words: str | Path) -> None:
    """Show a command, then run it."""
    from aquatint.cli import app

    print("\n$ aquatint", *words, flush=True)
    app([str(word) for word in words], standalone_mode=False)
    sys.stdout.flush()


def lay_out() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write the survey, and about a tenth of its people apart from the rest, to judge by.

    A row is one year of one person. Years of one person agree in everything but the visits to a
    doctor. They are kept together, or a classifier could recognise people instead of learning.
    """
    survey = randhie.load_pandas().data
    person = survey.groupby(list(survey.columns.drop("mdvis"))).ngroup()
    apart = person.isin(person.drop_duplicates().sample(frac=0.1, random_state=0))
    DEMO.mkdir(exist_ok=True)
    survey.to_csv(DEMO / "rand_hie.csv", index=False)
    survey[~apart].to_csv(DEMO / "train.csv", index=False)
    survey[apart].to_csv(DEMO / "test.csv", index=False)
    return survey[~apart], survey[apart]


def main() -> None:
    """Lay out the data, then walk plan, sketch, verify, sample, evaluate."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the work is small: threads would mostly wait
    train, test = lay_out()
    schema, release, synthetic = (
        HERE / "rand_hie.toml",
        DEMO / "rand_hie.aqt",
        DEMO / "synthetic.csv",
    )
    print(f"The RAND Health Insurance Experiment: {len(train):,} rows in {DEMO / 'train.csv'},")
    print(f"and {len(test):,} rows of other people in {DEMO / 'test.csv'}, to judge by.")
    print(f"What is public about them, and what is protected, is declared in {schema}.")
    budget = ("--epsilon", "1", "--delta", "1e-6")
    run("plan", schema, "--rows", "20000", *budget)
    run("sketch", DEMO / "train.csv", "--schema", schema, *budget, "-o", release)
    run("verify", release)
    print(f"\n{release} holds no row and can be given to anyone, who can do this:")
    run("sample", release, "-n", "20000", "--seed", "1", "-o", synthetic)
    print("\nHow good is that table? To say so takes real rows, and the answer is not private.")
    tables = ("--real", DEMO / "train.csv", "--test", DEMO / "test.csv", "--synthetic", synthetic)
    options = ("--classifiers", "quick", "--baseline", "--plots", DEMO)
    run("evaluate", "--schema", schema, *tables, *options)
    poor = int(test["hlthp"].sum())
    print(f"Only {poor} test rows have hlthp, so the scores of the classifiers are rough.")
    print(f"\nThe synthetic table is {synthetic}. Look at {DEMO / 'marginals.png'}, then try")
    print(f'{COMMAND} sample {release} -n 9 --where "hlthp = true and mdvis > 5" -o {DEMO}/ill.csv')


if __name__ == "__main__":
    main()
