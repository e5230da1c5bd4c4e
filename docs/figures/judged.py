"""What `aquatint evaluate --plots` draws: columns of real and synthetic rows of a made-up table."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

import aquatint as aq
from aquatint import drawing
from aquatint.analyst.synthesize.fit import Effort
from aquatint.evaluate import evaluate
from aquatint.evaluate.plots import marginals

ROWS = 3_000
SCHEMA = {
    "name": "a made-up clinic",
    "label": "readmitted",
    "privacy": {"protects": "add or remove one row"},
    "columns": {
        "age": {"kind": "integer", "bounds": [0, 100]},
        "stay": {"kind": "numeric", "bounds": [0, 30]},
        "ward": {"kind": "categorical", "categories": ["A", "B", "C", "D", "E"]},
        "readmitted": {"kind": "boolean"},
    },
}


def clinic(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    young = rng.random(rows) < 0.3
    age = np.where(young, rng.normal(28, 7, rows), rng.normal(66, 11, rows))
    age = np.clip(np.rint(age), 0, 100).astype(int)
    stay = np.minimum(rng.gamma(1.5, 1 + age / 40, rows), 30)
    ward = rng.choice(["A", "B", "C", "D", "E"], rows, p=[0.5, 0.25, 0.15, 0.07, 0.03])
    readmitted = rng.random(rows) < 1 / (1 + np.exp(4 - age / 25 - stay / 8))
    return pd.DataFrame({"age": age, "stay": stay, "ward": ward, "readmitted": readmitted})


def main(path: Path) -> None:
    schema, real = aq.Schema.from_dict(SCHEMA), clinic(ROWS, 0)
    # The rows are made up and the figure should not change: simulated noise will do.
    release = aq.sketch(real, schema, epsilon=1, delta=1e-6, simulate=1, progress=False)
    model = aq.synthesize(release, effort=Effort(fits=1), progress=False)
    found = evaluate(real, None, model.sample(ROWS, seed=1), schema, progress=False)
    mpl.rcParams.update({"svg.fonttype": "path"})
    drawing.save(marginals(found), path)


if __name__ == "__main__":
    main(Path("judged.svg"))
