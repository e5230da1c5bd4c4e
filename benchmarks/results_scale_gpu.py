"""The part of the page of scale that a GPU was measured for."""

from __future__ import annotations

import json
from pathlib import Path

from scale_gpu import BATCH, HERMITE_ROWS

RESULTS = Path(__file__).parent / "results" / "scale_gpu.json"


def section() -> list[str]:
    """Give the lines of the page, none if nothing was measured."""
    if not RESULTS.exists():
        return []
    found = json.loads(RESULTS.read_text())
    check, speed, about = found["check"], found["speed"], found["about"]
    lines = [
        "### On a GPU",
        "",
        f"{about['gpu']}, torch {about['torch']}, Triton {about['triton']}, by",
        f"`benchmarks/scale_gpu.py`. {check['integers']:,} sums of Fourier (10,000 features, also",
        f"by class), Hermite and joint counts over {check['rows']:,} rows (Hermite",
        f"{check['hermite_rows']:,}) were compared with the processor's: {check['differ']} differ.",
        f"Rows are summed in batches of {BATCH:,}, with the copies there and back, the check of",
        "every row and the sums; the bare work is the float32 product, cosine and sine, in blocks",
        "of the size that suits it best, and nothing else. The two take turns.",
        "",
        "| rows from | bare product in | ours, rows/s | bare, rows/s | share of the bare speed |",
        "|---|---|---|---|---|",
    ]
    for name, kind in (("bare", "float32"), ("bare_tf32", "TF32")):
        for where, said in (("device", "the GPU's memory"), ("host", "the processor's memory")):
            each = speed[f"{name}_{where}"]
            lines.append(
                f"| {said} | {kind} | {each['rows_per_second']:,.0f} | "
                f"{each['bare_rows_per_second']:,.0f} | {each['of_bare_speed']:.0%} |"
            )
    counts, hermite = speed["counts_host"], speed["hermite_device"]
    return [
        *lines,
        "",
        f"Joint counts of {counts['sets']} sets, rows from the processor's memory:",
        f"{counts['rows_per_second']:,.0f} rows/s. {hermite['features']} Hermite features, rows in",
        f"the GPU's memory, {HERMITE_ROWS:,} at once: {hermite['rows_per_second']:,.0f} rows/s.",
        "",
    ]
