"""Scale: rows a second, memory, linearity, the model of the cost, and a drill with SIGKILL.

    python benchmarks/scale.py all --data /tmp/scale      # about 15 minutes on two quiet cores
    python benchmarks/scale.py rows --data /tmp/scale     # one part: rows, fourier, wide, noise,
                                                          # costs, sources, drill
    python benchmarks/scale.py render                     # write the page of the docs again

The data are 100,000,000 different rows in 100 Parquet files, 1.3 GB, made on the first use.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from results_scale import RESULTS, render
from runs import processor
from scale_data import write

SIZES = [100_000, 1_000_000, 10_000_000, 100_000_000]


def child(name: str, *words: str) -> Any:
    """Run one measurement in a process of its own, so that its memory is its own."""
    run = [sys.executable, __file__, "one", name, *words]
    done = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print(name, *words[-2:], {k: v for k, v in _flat(found) if k != "each"}, flush=True)
    return found


def _flat(found: Any) -> list[tuple[str, Any]]:
    return list(found.items()) if isinstance(found, dict) else list(enumerate(found))


def one(name: str, words: list[str]) -> Any:
    import scale_parts as parts

    if name == "rows":
        return parts.measure_rows(write(Path(words[0]), int(words[1])), int(words[2]))
    if name == "costs":
        return parts.measure_costs(write(Path(words[0]), 1_000_000))
    measure: dict[str, Callable[..., Any]] = {
        "fourier": parts.measure_fourier,
        "wide": parts.measure_wide,
        "noise": parts.measure_noise,
        "sources": parts.measure_sources,
    }
    return measure[name](*map(int, words))


def drill() -> dict[str, Any]:
    """Kill a run twenty times at random moments; the test checks every step."""
    root = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.json"
        where = os.environ | {"AQUATINT_KILLS": "20", "AQUATINT_DRILL": str(told)}
        words = ["-q", "-k", "killed_at_random", "-o", "timeout=1800"]
        test = [sys.executable, "-m", "pytest", "tests/unit/test_checkpoint.py", *words]
        subprocess.run(test, check=True, cwd=root, env=where)
        return dict(json.loads(told.read_text()))


def measure(what: str, data: Path, workers: int) -> Any:
    if what == "rows":
        write(data, SIZES[-1])
        return [child("rows", str(data), str(size), str(workers)) for size in SIZES]
    if what == "drill":
        return drill()
    words = {
        "fourier": [["1"], [str(workers)]],
        "wide": [["617", "4096"], ["617", "16384"]],
        "noise": [["262144"]],
        "costs": [[str(data)]],
        "sources": [["1000000"]],
    }[what]
    found = [child(what, *each) for each in words]
    return found[0] if len(found) == 1 else found


def main() -> None:
    """Run what is asked for and add it to the results."""
    parts = ["rows", "fourier", "wide", "noise", "costs", "sources", "drill"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*parts, "all", "one", "render"])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "scale-data")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    if asked.what == "one":
        print(json.dumps(one(asked.words[0], asked.words[1:])))
        return
    saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for what in [] if asked.what == "render" else parts if asked.what == "all" else [asked.what]:
        saved[what] = measure(what, asked.data, asked.workers)
        saved["about"] = {
            "processor": processor(),
            "cores": os.cpu_count(),
            **{name: version(name) for name in ("aquatint", "torch", "pyarrow", "numba")},
        }
        RESULTS.write_text(json.dumps(saved, indent=1) + "\n")
    render()


if __name__ == "__main__":
    main()
