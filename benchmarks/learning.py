"""M2M's Fig. 4: logistic regression on Occupancy, trained from sketches of it.

    python benchmarks/learning.py            # every run; goes on where it was
    python benchmarks/learning.py --shown    # the means so far

The paper's protocol (§4.3): five readings and whether somebody is there, 90 % of the rows to
sketch, 10 % to test. Bounds are public and round here, where the paper takes them from the rows.
Nothing is chosen on the test rows. Noise is simulated, with the seed of the run.
"""

from __future__ import annotations

import argparse
import json
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
from datasets import data_file, numeric
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import aquatint as aq
from aquatint.analyst.learn.columns import preparation
from aquatint.analyst.synthesize.mixture import can_mix

RESULTS = Path(__file__).parent / "results" / "learning.jsonl"
LABEL = "Occupancy"
COLUMNS = {
    "Temperature": numeric(15, 30),
    "Humidity": numeric(0, 50),
    "Light": numeric(0, 2000),
    "CO2": numeric(400, 2400),
    "HumidityRatio": numeric(0.002, 0.008),
    LABEL: {"kind": "boolean"},
}
DELTA = 1e-5
EPSILONS = (0.3, 1.0, 0.1, 10.0)
SEEDS = (0, 1, 2)
PLANS: dict[str, tuple[Any, float]] = {
    "default": (None, DELTA),
    "m2m": (aq.m2m, DELTA),
    "m2m_race": (aq.m2m_race, 0.0),
    "m2m_rff": (aq.m2m_rff, 0.0),
    "m2m_hist": (partial(aq.m2m_hist, bins=20), 0.0),
}
"""The paper's three with its own Laplace noise."""


@cache
def occupancy() -> tuple[pd.DataFrame, pd.DataFrame, aq.Schema]:
    files = ["datatraining.txt", "datatest.txt", "datatest2.txt"]
    frame = pd.concat([pd.read_csv(data_file("tabular", "occupancy", f)) for f in files])
    frame = frame[list(COLUMNS)].astype({LABEL: bool})
    train, test = train_test_split(frame, test_size=0.1, random_state=0, stratify=frame[LABEL])
    declared = {"name": "occupancy", "label": LABEL, "columns": COLUMNS}
    privacy = {"protects": "add or remove one row"}
    return train, test, aq.Schema.from_dict({**declared, "privacy": privacy})


def auc(model: Any) -> float:
    _, test, _ = occupancy()
    return float(roc_auc_score(test[LABEL], model.predict_proba(test)[:, 1]))


def real() -> float:
    """Train on the real rows: not private."""
    train, test, schema = occupancy()
    names = [name for name in COLUMNS if name != LABEL]
    prepared = preparation(schema, names).fit(train[names])
    model = LogisticRegression(max_iter=1_000).fit(prepared.transform(train), train[LABEL])
    scores = model.predict_proba(prepared.transform(test))[:, 1]
    return float(roc_auc_score(test[LABEL], scores))


def run(plan: str, epsilon: float, seed: int) -> dict[str, float]:
    train, _, schema = occupancy()
    make, delta = PLANS[plan]
    release = aq.sketch(
        train,
        schema,
        epsilon=epsilon,
        delta=delta,
        plan=None if make is None else make(schema),
        simulate=seed,
        progress=False,
    )
    model = aq.synthesize(release, "mixture", progress=False) if can_mix(release) else None
    ways = ["rows", "weights"] if model is not None else ["weights"]
    estimator = LogisticRegression(max_iter=1_000)
    return {way: auc(aq.learn(release, estimator, how=way, model=model)) for way in ways}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shown", action="store_true")
    parser.add_argument("--plans", nargs="+", choices=PLANS, default=list(PLANS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    asked = parser.parse_args()
    RESULTS.touch()
    known = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    if asked.shown:
        found = pd.DataFrame(known)
        keys = ["plan", "how", "epsilon"]
        print(found.groupby(keys)["auc"].agg(["mean", "min", "max", "count"]).round(4).to_string())
        return
    done = {(line["plan"], line["epsilon"], line["seed"]) for line in known}
    if ("real", None, None) not in done:
        write({"plan": "real", "how": "real", "epsilon": None, "seed": None, "auc": real()})
    for epsilon in asked.epsilons:
        for plan in asked.plans:
            for seed in SEEDS:
                if (plan, epsilon, seed) in done:
                    continue
                for how, score in run(plan, epsilon, seed).items():
                    line = {"plan": plan, "how": how, "epsilon": epsilon, "seed": seed}
                    write({**line, "auc": round(score, 5)})


def write(line: dict[str, Any]) -> None:
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
