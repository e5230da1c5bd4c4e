"""An evaluation as one screen of text."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from aquatint.evaluate.classifiers import RECIPES
from aquatint.evaluate.report import NOT_PRIVATE, Closeness, Evaluation
from aquatint.evaluate.utility import Score, Utility, mean_metrics
from aquatint.show import plain_table, terminal

_METRICS = {
    "roc_auc": "ROC-AUC",
    "average_precision": "AP",
    "f1_weighted": "F1 weighted",
    "f1_macro": "F1 macro",
    "roc": "ROC*",
    "prc": "PRC*",
    "f1": "F1*",
}


def evaluation_text(evaluation: Evaluation) -> None:
    """Print an evaluation; the first thing it says is that the scores are not private."""
    console = terminal()
    console.print(Text(f"{evaluation.name}: synthetic rows against real rows", style="bold"))
    console.print(Text(NOT_PRIVATE, style="bold red"))
    console.print(Text(_sizes(evaluation)))
    console.print()
    console.print(_closeness_table(evaluation))
    console.print(Text(_farthest(evaluation)))
    if evaluation.utility is not None:
        console.print()
        console.print(_utility_table(evaluation.utility, evaluation.baseline))
    for line in _footnotes(evaluation):
        console.print(Text(line))


def _sizes(evaluation: Evaluation) -> str:
    rows = ", ".join(f"{count:,} {name}" for name, count in evaluation.rows.items())
    return (
        f"{rows} rows; {evaluation.outside:.2%} of the synthetic entries lie outside the schema; "
        f"seed {evaluation.seed}"
    )


def _closeness_table(evaluation: Evaluation) -> Table:
    tables = [evaluation.closeness, evaluation.held_out]
    shown = [table for table in tables if table is not None]
    heads = ["synthetic", "real test rows"][: len(shown)]
    table = plain_table("distance from the real rows, 0 where equal", "", *heads)
    found = evaluation.closeness.fidelity
    for key, label in (
        ("tv1", f"total variation, {len(found.one):,} columns"),
        ("tv2", f"total variation, {len(found.two):,} pairs"),
        ("tv3", f"total variation, {len(found.three):,} triples"),
        ("wasserstein", f"Wasserstein-1 over the bounds, {len(found.wasserstein):,} ranges"),
    ):
        table.add_row(label, *(_number(c.fidelity.means[key]) for c in shown))
    table.add_row("maximum mean discrepancy (expected of equals)", *map(_discrepancy, shown))
    return table


def _discrepancy(closeness: Closeness) -> str:
    return f"{closeness.mmd.mmd:.4f} ({closeness.mmd.floor:.4f})"


def _farthest(evaluation: Evaluation) -> str:
    found = evaluation.closeness.fidelity
    marginals = found.two or found.one
    worst = sorted(marginals.items(), key=lambda item: -item[1])[:3]
    return "farthest: " + ", ".join(f"{' × '.join(names)} {tv:.4f}" for names, tv in worst)


def _utility_table(utility: Utility, baseline: Utility | None) -> Table:
    sides = [("synthetic", utility)] + ([] if baseline is None else [("real", baseline)])
    heads = []
    for name, side in sides:
        parts = [group[0].metrics for group in (side.scores, side.published) if group]
        metrics = [_METRICS[metric] for part in parts for metric in part]
        heads += [f"{name if i == 0 else ''}\n{metric}" for i, metric in enumerate(metrics)]
    what = f" = {utility.positive}" if utility.positive is not None else ""
    table = plain_table(
        f"predicting {utility.target}{what} in real test rows, by models trained on rows that are",
        "\nclassifier",
        *heads,
        "",
    )
    for place, score in enumerate(utility.scores):
        groups = [g[place] for _, side in sides for g in (side.scores, side.published) if g]
        cells = [f"{value:.4f}" for group in groups for value in group.metrics.values()]
        table.add_row(RECIPES[score.classifier].title, *cells, _note(groups))
    means = [mean_metrics(g) for _, side in sides for g in (side.scores, side.published) if g]
    table.add_row("mean", *(f"{v:.4f}" for m in means for v in m.values()), "", style="bold")
    return table


def _note(groups: list[Score]) -> str:
    return next((score.note for score in groups if score.note), "")


def _footnotes(evaluation: Evaluation) -> list[str]:
    lines = []
    if evaluation.utility is not None and evaluation.undersampling is not None:
        lines.append(
            f"* as published: hard labels, and {evaluation.undersampling:.1%} of the commonest "
            "class, to train and to test; to lay beside the papers' tables only"
        )
    if evaluation.alpha_way:
        errors = ", ".join(f"α = {a}: {error:.4f}" for a, error in evaluation.alpha_way.items())
        lines.append(f"α-way error as published by DP-HP, faults included: {errors}")
    if evaluation.second_opinion is not None:
        named = evaluation.second_opinion.items()
        scores = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in named)
        lines.append(f"SDMetrics, 1 is best: {scores}")
    return lines


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
