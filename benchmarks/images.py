"""Private images: DP-MERF, DP-HP and DP-MEPF, beside what was published and a Gaussian by class.

    python benchmarks/images.py merf                    # DP-MERF, ε = 1 and 0.2
    python benchmarks/images.py hp                      # DP-HP, ε = 10 and 1
    python benchmarks/images.py gaussian                # no generator: the line to beat
    python benchmarks/images.py alone                   # the same without public images
    python benchmarks/images.py centred                 # that, centred by a first release
    python benchmarks/images.py mepf --device cuda      # DP-MEPF on MNIST and FashionMNIST
    python benchmarks/images.py letters --device cuda   # on MNIST, begun with public letters
    python benchmarks/images.py clothes --device cuda   # on FashionMNIST, layer by layer
    python benchmarks/images.py cifar --device cuda     # DP-MEPF on CIFAR-10
    python benchmarks/images.py speed --device cuda     # a sketch stage by stage, and training
    python benchmarks/images.py quick                   # all of them on tiny images, in seconds
    python benchmarks/images.py render                  # write the page of the docs

Every run is a line in benchmarks/results/images-PART.jsonl, known by its settings. What is there is
not run again, so a part can be stopped and taken up as often as one likes; `--again` makes its runs
anew. Noise is simulated, with the seed of the run. `--quick` takes digits of scikit-learn in place
of a part's images; its results stay in the folder of work. `image_data.py` says which files the
others need.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import torch
from image_runs import part
from image_speed import speed
from image_tasks import PARTS
from page_parts import FOLDER
from results_images import render
from runs import RESULTS, Log, run_part, settle
from threadpoolctl import threadpool_limits

RUNS = dict.fromkeys((*PARTS, "speed"), 3)
DRAWN = 60_000
QUICK = {"runs": 1, "drawn": 200, "epsilon": [1.0]}


def read_words(given: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=[*PARTS, "speed", "quick", "render"])
    add = parser.add_argument
    add("--runs", type=int, help="runs of each cell, seeds 0, 1, …; default: 3")
    add("--images", nargs="+", help="only these: mnist, fashion, cifar10")
    add("--methods", nargs="+", help="only these, by their names in image_tasks.py")
    add("--epsilon", nargs="+", type=float, help="only these")
    add("--drawn", type=int, default=DRAWN, help="images that classifiers learn from")
    add("--classifiers", nargs="+", help="in place of those of the part")
    add("--device", default="cpu", help="cpu or cuda")
    add("--quick", action="store_true", help="a run on tiny images")
    add("--again", action="store_true", help="make runs anew that are there already")
    add("--results", type=Path, default=RESULTS, help="where the lines of results go")
    add("--pictures", type=Path, default=FOLDER, help="where the contact sheets go")
    add("--work", type=Path, default=Path(tempfile.gettempdir()) / "aquatint-bench")
    asked = parser.parse_args(given)
    asked.quick = asked.quick or asked.part == "quick"
    settle(asked, QUICK, RUNS)
    if asked.quick:
        asked.pictures = asked.work
    return asked


def quick(asked: argparse.Namespace) -> int:
    """Run every part on tiny images; give how many runs failed."""
    failed = 0
    torch.set_num_threads(1)
    with threadpool_limits(1):
        for name, chosen in PARTS.items():
            asked.part, asked.images = name, chosen.images[:1]
            failed += part(asked, Log(asked.results / f"images-{name}.jsonl"))
        failed += speed(asked, Log(asked.results / "images-speed.jsonl"))
    return failed


def main() -> None:
    """Run one part, all of them on tiny images, or write the page."""
    asked = read_words()
    if asked.part == "render":
        render()
    elif asked.part == "quick":
        sys.exit(bool(quick(asked)))
    else:
        run_part("images", speed if asked.part == "speed" else part, asked)


if __name__ == "__main__":
    main()
