"""One synthetic table by Aquatint, in a process of its own: rows in, rows out, and what it took.

    python benchmarks/ours.py --train train.csv --schema schema.toml --method auto \
        --epsilon 1 --delta 1e-5 --seed 0 -o synthetic.csv --json stats.json

- `auto` is the default plan and `synthesize(release, "auto")`. `dp_merf` and `dp_hp` are the plans
  of the papers, with the network. No method has any other setting.
- The seed is that of the simulated noise (`simulate=`), of the fit and of the drawing of rows.
- `--guess` is a public guess of the number of rows, for the papers' plans.
- CPU time is `process_time`. Reading rows and adding noise is one part, fitting another, drawing
  rows the third. Peak memory is that of the whole process.
"""

from __future__ import annotations

import argparse
import json
import resource
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import torch

import aquatint as aq
from aquatint.planning import Plan

METHODS = ("auto", "dp_merf", "dp_hp")


def chosen_plan(asked: argparse.Namespace, schema: aq.Schema) -> Plan:
    """Give the plan of a method."""
    if asked.method == "auto":
        return aq.plan(schema)
    recipes = {"dp_merf": aq.dp_merf, "dp_hp": aq.dp_hp}
    return recipes[asked.method](schema, rows=asked.guess, epsilon=asked.epsilon)


def run(asked: argparse.Namespace) -> dict[str, Any]:
    """Sketch, fit and sample, and say what it took."""
    torch.set_num_threads(1)
    schema = aq.Schema.from_toml(asked.schema)
    _ = aq.plan, aq.sketch, aq.synthesize  # imported on first use: that is not timed
    begun = process_time()
    plan = chosen_plan(asked, schema)
    release = aq.sketch(
        asked.train,
        schema,
        epsilon=asked.epsilon,
        delta=asked.delta,
        plan=plan,
        simulate=asked.seed,
        progress=False,
    )
    sketched = process_time()
    method = "auto" if asked.method == "auto" else "network"
    model = aq.synthesize(release, method, seed=asked.seed, progress=False)
    fitted = process_time()
    count = max(1, round(release.count))
    wanted = asked.rows or min(count, asked.most or count)
    synthetic = model.sample(wanted, seed=asked.seed)
    sampled = process_time()
    synthetic.to_csv(asked.out, index=False)
    return {
        "model": type(model).__name__,
        "coordinates": sum(len(block.integers) for block in release.blocks),
        "synthetic_rows": len(synthetic),
        "cpu_sketch_s": sketched - begun,
        "cpu_fit_s": fitted - sketched,
        "cpu_sample_s": sampled - fitted,
        "peak_mb": peak_mb(),
    }


def peak_mb() -> int:
    """Give the peak memory of this process.

    Linux hands the peak of `getrusage` down from the process that started this one, so the figure
    of the process's own memory is preferred.
    """
    status = Path("/proc/self/status")
    if status.exists():
        words = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(words["VmHWM"].split()[0]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Make one synthetic table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--schema", type=Path, required=True)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guess", type=int, help="about how many rows, for the plan")
    parser.add_argument("--rows", type=int, help="rows to draw; default: the noisy count")
    parser.add_argument("--most", type=int, help="draw no more rows than this")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # large ε is meant here
    text = json.dumps(run(asked), indent=1)
    print(text)
    if asked.json:
        asked.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
