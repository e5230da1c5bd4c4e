"""An evaluation of images as one screen of text."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from aquatint.evaluate.images.downstream import papers_mean
from aquatint.evaluate.images.recipes import TITLES
from aquatint.evaluate.images.report import ImageEvaluation
from aquatint.evaluate.report import NOT_PRIVATE
from aquatint.show import plain_table, terminal


def image_evaluation_text(evaluation: ImageEvaluation) -> None:
    """Print an evaluation; the first thing it says is that the scores are not private."""
    console = terminal()
    console.print(Text("synthetic images against real images", style="bold"))
    console.print(Text(NOT_PRIVATE, style="bold red"))
    counts = ", ".join(f"{count:,} {name}" for name, count in evaluation.images.items())
    shape = " × ".join(map(str, evaluation.shape))
    console.print(Text(f"{counts} images of {shape}; seed {evaluation.seed}"))
    console.print()
    console.print(_closeness(evaluation))
    if evaluation.fid is None:
        console.print(Text("no FID: give the weights of its Inception network, --inception FILE"))
    if evaluation.accuracies:
        console.print()
        console.print(_accuracy(evaluation))


def _closeness(evaluation: ImageEvaluation) -> Table:
    found = evaluation.diversity
    table = plain_table(f"{found.images:,} images of each side", "", "synthetic", "expected")
    distance = evaluation.fid
    if distance is not None:
        name = "FID" if distance.features == "Inception" else "Fréchet distance"
        sanity = "–" if distance.sanity is None else f"{distance.sanity:.2f}, test images"
        table.add_row(f"{name}, {distance.images:,} images", f"{distance.value:.2f}", sanity)
    behind = f"({found.features})"
    table.add_row(f"precision {behind}", f"{found.precision:.3f}", "")
    table.add_row(f"recall {behind}", f"{found.recall:.3f}", "")
    table.add_row(
        f"distance within a class over that of real images {behind}",
        f"{found.mean_spread:.3f}",
        "1",
    )
    table.add_row(f"share of near-duplicates {behind}", f"{found.duplicates:.3f}", "0.01")
    table.add_row(f"share of near-copies of real images {behind}", f"{found.copies:.3f}", "0.01")
    return table


def _accuracy(evaluation: ImageEvaluation) -> Table:
    heads = ["synthetic", *(["real"] if evaluation.baseline else [])]
    title = "share of real test images told right, by models trained on images that are"
    table = plain_table(title, "classifier", *heads, "seconds", "")
    reference = {score.classifier: score for score in evaluation.baseline}
    for score in evaluation.accuracies:
        others = [reference[score.classifier]] if reference else []
        cells = [f"{s.accuracy:.4f}" for s in (score, *others)]
        table.add_row(TITLES[score.classifier], *cells, f"{score.seconds:.1f}", score.note)
    sides = [evaluation.accuracies, *([evaluation.baseline] if reference else [])]
    means = [papers_mean(side) for side in sides]
    if None not in means:
        table.add_row(
            "mean of the papers' twelve", *(f"{m:.4f}" for m in means), "", "", style="bold"
        )
    return table
