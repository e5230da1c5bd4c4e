"""How synthetic rows are scored: by the comparisons' script where it is, else by Aquatint.

Both give total variation over all single columns, all pairs and 100 triples against the training
rows, and ROC-AUC and average precision on the test rows of a logistic regression, a random forest
and histogram gradient boosting. On the plan's own bins, which are the script's, the distances are
the same, and the classifiers differ by the random forest's dice. The script scores the rarest class
against the rest; Aquatint gives F1 where there are more than two.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import data_folder

from aquatint.columns import RANGED
from aquatint.evaluate import evaluate
from aquatint.schema import Schema
from aquatint.table_plan import plan

SHORT = {"logistic": "lr", "random_forest": "rf", "hist_gradient_boosting": "hgb"}


def find_scorer(asked: Path | None) -> Path | None:
    """Find the comparisons' script: where it was said to be, or next to the data."""
    if asked is not None:
        if not asked.exists():
            msg = f"there is no scorer at {asked}: leave out --scorer to use Aquatint's own"
            raise SystemExit(msg)
        return asked
    beside = data_folder().parent / "tools" / "eval_tabular.py"
    return beside if beside.exists() else None


@dataclass(frozen=True)
class Scorer:
    """A way to score files of one table.

    Attributes
    ----------
    script
        The comparisons' script, if there is one.
    train, test
        The real rows.
    schema
        The schema without bins.
    numeric
        What the script is told of the table: bounds of the numbers, and 32 bins.
    """

    script: Path | None
    train: Path
    test: Path
    schema: Schema
    numeric: dict[str, Any]

    @property
    def name(self) -> str:
        """What results call this scorer."""
        return "aquatint" if self.script is None else self.script.name

    def score(self, synthetic: Path) -> dict[str, Any]:
        """Score one file."""
        return self._by_aquatint(synthetic) if self.script is None else self._by_script(synthetic)

    def _by_script(self, synthetic: Path) -> dict[str, Any]:
        loading = importlib.util.spec_from_file_location("scorer", str(self.script))
        if loading is None or loading.loader is None:
            msg = f"{self.script} is not a Python script"
            raise SystemExit(msg)
        module = importlib.util.module_from_spec(loading)
        loading.loader.exec_module(module)
        paths = map(str, (self.train, self.test, synthetic))
        found = module.evaluate(*paths, self.schema.label, self.numeric)
        used = found["utility"]
        return {
            **{name: found["vs_train"][name] for name in ("tv1", "tv2", "tv3")},
            "wasserstein": found["wasserstein_norm"]["mean"],
            "auc": used["mean"]["auc"],
            "ap": used["mean"]["ap"],
            "classifiers": {name: used[name] for name in SHORT.values()},
        }

    def _by_aquatint(self, synthetic: Path) -> dict[str, Any]:
        settled = plan(self.schema).schema
        found = evaluate(
            self.train, self.test, synthetic, settled, classifiers="quick", progress=False
        ).to_dict()
        used = found["utility"]
        return {
            **{name: found["closeness"][name] for name in ("tv1", "tv2", "tv3", "wasserstein")},
            "auc": used["mean"].get("roc_auc"),
            "ap": used["mean"].get("average_precision"),
            "f1": used["mean"].get("f1_macro"),
            "classifiers": {
                SHORT[name]: {"auc": s.get("roc_auc"), "ap": s.get("average_precision")}
                for name, s in used["classifiers"].items()
            },
        }


def without_bins(schema: Schema) -> Schema:
    """Leave the bins of numbers to the plan."""
    columns = {
        name: column.model_copy(update={"bins": None}) if isinstance(column, RANGED) else column
        for name, column in schema.columns.items()
    }
    return schema.model_copy(update={"columns": columns})
