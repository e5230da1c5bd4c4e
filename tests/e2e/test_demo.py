"""The first thing that a stranger runs."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_runs_and_leaves_a_synthetic_table_and_pictures(tmp_path):
    done = subprocess.run(
        [sys.executable, str(DEMO)],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for word in ("sketch", "verify", "sample", "evaluate", "NOT PRIVATE", "then try"):
        assert word in done.stdout
    synthetic = pd.read_csv(tmp_path / "demo" / "synthetic.csv")
    assert len(synthetic) == 20_000
    assert list(synthetic.columns) == list(pd.read_csv(tmp_path / "demo" / "train.csv").columns)
    assert (tmp_path / "demo" / "marginals.png").stat().st_size > 10_000
