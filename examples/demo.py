"""The demonstration: a real health survey, from rows to a release that anyone may have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from statsmodels.datasets import randhie

HERE = Path(os.path.relpath(Path(__file__).parent))
COMMAND = Path(os.path.relpath(Path(sys.executable).with_name("aquatint")))
DEMO = Path("demo")


def run(*words: str | Path) -> None:
    """Show a command, then run it."""
    print("\n$ aquatint", *words, flush=True)
    subprocess.run([sys.executable, "-m", "aquatint", *map(str, words)], check=True)


def main() -> None:
    """Lay out the data, then walk plan, sketch, verify."""
    DEMO.mkdir(exist_ok=True)
    data, release = DEMO / "rand_hie.csv", DEMO / "rand_hie.aqt"
    schema = HERE / "rand_hie.toml"
    survey = randhie.load_pandas().data
    survey.to_csv(data, index=False)
    print(f"{len(survey):,} people of the RAND Health Insurance Experiment are in {data}.")
    print(f"What is public about them, and what is protected, is declared in {schema}.")
    run("plan", schema, "--rows", "20000", "--epsilon", "1", "--delta", "1e-6")
    run("sketch", data, "--schema", schema, "--epsilon", "1", "--delta", "1e-6", "-o", release)
    run("verify", release)
    print(f"\n{release} holds no row and can be given to anyone. Next: {COMMAND} show {release}")


if __name__ == "__main__":
    main()
