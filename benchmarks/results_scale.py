"""The page of the results of scale, and the tables in the explanation of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from results_scale_gpu import section as gpu
from scale_model import FOURIER, PAIRS, Cluster, Costs, cluster, simulate
from scale_peers import section as peers

RESULTS = Path(__file__).parent / "results" / "scale.json"
DOCS = Path(__file__).parent.parent / "docs"
PAGE, MODEL = DOCS / "results" / "scale.md", DOCS / "scale.md"
ON = Cluster(machines=100, cores=16, disk=500e6, network=1.25e9, task=0.2)
"""A hundred machines of 16 cores, each with 500 MB/s from the store and a 10 Gbit/s network."""


def render() -> None:
    """Write both pages from the saved results."""
    saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    lines = [*_head(), *_rows(saved), *_fourier(saved), *_wide(saved), *_noise(saved)]
    lines += [*_sources(saved), *_drill(saved), *peers(), *_foot(saved)]
    PAGE.write_text("\n".join(lines) + "\n")
    if MODEL.exists() and {"costs", "rows"} <= saved.keys():
        text = MODEL.read_text()
        for name, table in _model(saved).items():
            marks = rf"(<!-- {name}: written by make bench-scale -->\n).*?(<!-- end -->)"
            new = "\n".join(table)
            text = re.sub(
                marks, lambda found, new=new: f"{found[1]}{new}\n{found[2]}", text, flags=re.S
            )
        MODEL.write_text(text)


def _head() -> list[str]:
    return [
        "# Scale",
        "",
        "How fast one machine turns many rows into exact sums, and what it does when something",
        "breaks, made by `make bench-scale`. [Scale](../scale.md) explains the figures and what",
        "follows for larger machines.",
        "",
    ]


def _rows(saved: dict[str, Any]) -> list[str]:
    runs = saved.get("rows", [])
    if not runs:
        return []
    per = {run["rows"]: run["cpu_seconds"] / run["rows"] for run in runs}
    clock = {run["rows"]: run["summing_seconds"] / run["rows"] for run in runs}
    base = 1_000_000 if 1_000_000 in per else next(iter(per))
    lines = [
        "## Rows",
        "",
        "Synthetic rows of 14 columns, every row drawn anew, in Parquet files of a million rows:",
        "all columns and all pairs of columns are counted, 36,681 coordinates. *Whole* is",
        "`aq.sketch` from the first byte to the written release, in a fresh process, with what the",
        "first use of a kernel costs and the noise. *Sums* is reading and summing alone; the",
        "seconds of a row, of the clock and of the processor, are compared with those of a run of",
        "a million rows.",
        "",
        (
            "| rows | whole, s | rows/s | sums, s | rows/s | a row, against a million rows | "
            "processor s for a million rows | against a million rows | peak memory |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {run['rows']:,} | {run['seconds']:.1f} | {run['rows'] / run['seconds']:,.0f} | "
        f"{run['summing_seconds']:.1f} | {run['rows'] / run['summing_seconds']:,.0f} | "
        f"{clock[run['rows']] / clock[base] - 1:+.0%} | "
        f"{per[run['rows']] * 1e6:.2f} | {per[run['rows']] / per[base] - 1:+.0%} | "
        f"{run['peak_mb']:,} MB |"
        for run in runs
    ]
    return [*lines, ""]


def _fourier(saved: dict[str, Any]) -> list[str]:
    lines = [
        "## Fourier features",
        "",
        "10,000 features of 14 numbers, as exact integers that are checked row by row, beside the",
        "bare work in float32: the matrix product, then sine and cosine of the result, and nothing",
        "else: no scaling, no sum, no encoding. The two take turns in one run, the bare work in",
        "tiles of the size that suits it best. Where the figures of two threads are below those of",
        "one, another process had a core for a while; threads of the bare product wait for each",
        "other, and suffer more.",
        "",
        "| threads | ours, rows/s | bare, rows/s | share of the bare speed |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {each['threads']} | {each['rows_per_second']:,.0f} | "
        f"{each['bare_rows_per_second']:,.0f} | {each['of_bare_speed']:.0%} |"
        for each in saved.get("fourier", [])
    ]
    return [*lines, "", *gpu()]


def _wide(saved: dict[str, Any]) -> list[str]:
    lines = [
        "## Wide tables",
        "",
        "All pairs of 617 columns of 4 cells each, from memory, on all cores.",
        "",
        "| rows | pairs | coordinates | seconds | ns for one pair of one row | peak memory |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {each['rows']:,} | {each['pairs']:,} | {each['coordinates']:,} | {each['seconds']:.1f} "
        f"| {each['seconds'] / each['rows'] / each['pairs'] * 1e9:.2f} | {each['peak_mb']:,} MB |"
        for each in saved.get("wide", [])
    ]
    return [*lines, ""]


def _noise(saved: dict[str, Any]) -> list[str]:
    found = saved.get("noise")
    if not found:
        return []
    times = {name.split("_")[1]: s for name, s in found.items() if name.startswith("seconds")}
    lines = [
        "## Noise",
        "",
        "OpenDP's discrete Gaussian, in chunks of 16,384 coordinates shared out between threads.",
        "OpenDP lets go of Python's lock while it draws, so threads run side by side; what that",
        "gains in seconds of the clock depends on who else uses the cores, and here others did.",
        "",
        "| threads | coordinates | seconds | coordinates/s |",
        "|---|---|---|---|",
    ]
    count = found["coordinates"]
    lines += [f"| {n} | {count:,} | {s:.1f} | {count / s:,.0f} |" for n, s in times.items()]
    return [*lines, ""]


def _sources(saved: dict[str, Any]) -> list[str]:
    found = saved.get("sources", [])
    if not found:
        return []
    alike = len({each["digest"] for each in found}) == 1
    lines = [
        "## Sources",
        "",
        f"The same million rows; the integers are {'' if alike else 'NOT '}the same bits in all.",
        "",
        "| source | seconds | rows/s |",
        "|---|---|---|",
    ]
    lines += [
        f"| {each['source']} | {each['seconds']:.1f} | {each['rows'] / each['seconds']:,.0f} |"
        for each in found
    ]
    return [*lines, ""]


def _drill(saved: dict[str, Any]) -> list[str]:
    found = saved.get("drill", {})
    if "compared" not in found:  # not run, or by a version that compared nothing
        return []
    return [
        "## Killed at random moments",
        "",
        f"A run with a checkpoint was killed by SIGKILL {found['kills']} times, each at a moment",
        f"drawn anew between its start and its end, and started again: {found['resumed']} starts",
        f"found a checkpoint and went on from it. {found['releases']} releases came out, and the",
        f"ledger has {found['entries']} entries. Of {found['compared']} unfinished checkpoints a",
        "copy was summed to the end as well: the integers were those of a run left in peace,",
        "every time (`tests/unit/test_checkpoint.py` fails otherwise).",
        "",
    ]


def _foot(saved: dict[str, Any]) -> list[str]:
    about = saved.get("about")
    if about is None:
        return []
    return [
        (
            f"Processor: {about['processor']}, {about['cores']} cores. Software: aquatint "
            f"{about['aquatint']}, torch {about['torch']}, pyarrow {about['pyarrow']}, numba "
            f"{about['numba']}."
        ),
    ]


def _model(saved: dict[str, Any]) -> dict[str, list[str]]:
    """Give the tables of the explanation: constants, the check of the model, predictions."""
    runs = saved["rows"]
    fixed = runs[0]["seconds"] - runs[0]["summing_seconds"]  # of the smallest
    fixed -= PAIRS.coordinates * saved["costs"]["noise"] / saved["about"]["cores"]
    costs = Costs.of({**saved["costs"], "fixed": max(0.0, fixed)})
    return {
        "constants": _constants(costs, saved),
        "check": _check(costs, saved),
        "predictions": _predictions(costs, runs),
    }


def _constants(costs: Costs, saved: dict[str, Any]) -> list[str]:
    named = [
        ("read one value from Parquet", costs.read, "ns"),
        ("encode one value", costs.encode, "ns"),
        ("count one set of columns of one row", costs.count, "ns"),
        ("one Fourier feature of one row", costs.dense, "ns"),
        ("noise for one coordinate", costs.noise, "µs"),
        ("unpack, check and add one coordinate of a partial", costs.merge, "ns"),
        ("a run, however small", costs.fixed, "s"),
    ]
    scale = {"ns": 1e9, "µs": 1e6, "s": 1.0}
    lines = ["| what | on one core |", "|---|---|"]
    lines += [f"| {name} | {value * scale[unit]:.3g} {unit} |" for name, value, unit in named]
    size = saved["costs"]["partial_bytes"]
    return [*lines, "", f"A partial of the pairs sketch, packed, has {size:,} bytes."]


def _check(costs: Costs, saved: dict[str, Any]) -> list[str]:
    lines = [
        (
            "| rows | model, processor s | measured, processor s | model is off by | "
            "model, s of the clock | measured, s of the clock |"
        ),
        "|---|---|---|---|---|---|",
    ]
    row = PAIRS.reading(costs) + PAIRS.summing(costs)
    for run in saved["rows"]:
        said = run["rows"] * row
        clock = simulate(run["rows"], PAIRS, costs, saved["about"]["cores"], run["workers"])
        lines.append(
            f"| {run['rows']:,} | {said:.2f} | {run['cpu_seconds']:.2f} | "
            f"{said / run['cpu_seconds'] - 1:+.0%} | {clock:.1f} | {run['seconds']:.1f} |"
        )
    return lines


def _predictions(costs: Costs, runs: list[dict[str, Any]]) -> list[str]:
    size = runs[-1]["bytes"] / runs[-1]["rows"]
    lines = [
        (
            "| rows | sketch | where | tasks | compute | read the store | send partials | "
            "merge | noise | in all |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    laptop = Cluster(machines=1, cores=2, disk=500e6, network=1e12, task=0.0)
    for name, sketch in (("pairs", PAIRS), ("10,000 Fourier features", FOURIER)):
        for rows, where, on, tasks in (
            (1e9, "this machine", laptop, 2),
            (1e9, "the cluster", ON, 1600),
            (1e12, "the cluster", ON, 16_000),
        ):
            p = cluster(rows, size, tasks, sketch, costs, on)
            parts = (p.compute, p.disk, p.transfer, p.merge, p.noise, p.total)
            shown = " | ".join(map(_span, parts))
            lines.append(
                f"| 10{'⁹' if rows == 1e9 else '¹²'} | {name} | {where} | {tasks:,} | {shown} |"
            )
    return lines


def _span(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"
