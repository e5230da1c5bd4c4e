"""DP-ERM: diffprivlib's logistic regression by objective perturbation, in a process of its own.

    python benchmarks/dp_erm.py --train train.csv --test test.csv --target Occupancy \
        --epsilon 1 --seed 0 --json stats.json

Needs diffprivlib and pandas only (the dependency group `peers`). The columns are numbers in
[0, 1], so a row of d of them has norm at most √d: that is the `data_norm`, and every other setting
is the library's default. The budget is pure ε. Without `--epsilon` it is scikit-learn's.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score


def run(asked: argparse.Namespace) -> dict[str, Any]:
    """Fit on the training rows and score the test rows."""
    train, test = (pd.read_csv(path) for path in (asked.train, asked.test))
    x, y = train.drop(columns=asked.target).to_numpy(float), train[asked.target].to_numpy()
    if asked.epsilon is None:
        model: Any = LogisticRegression()
        used = "scikit-learn"
    else:
        from diffprivlib.models import LogisticRegression as Private

        model = Private(epsilon=asked.epsilon, data_norm=sqrt(x.shape[1]), random_state=asked.seed)
        used = "diffprivlib"
    model.fit(x, y)
    score = model.decision_function(test.drop(columns=asked.target).to_numpy(float))
    auc = roc_auc_score(test[asked.target], score)
    return {"auc": float(auc), "versions": {used: version(used)}}


def main() -> None:
    """Run once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--epsilon", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    text = json.dumps(run(asked), indent=1)
    print(text)
    if asked.json:
        asked.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
