"""Runs and their results: one line of JSON for each run; what is there already is not run again.

A run is known by its settings, never by when or where it was made. Lines are only ever appended. If
two have the same settings, the later one counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
THREADS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
DELTA = 1e-5

Settings = dict[str, Any]
Found = dict[str, Any]


def words(told: str | None, runs: int | None = None) -> argparse.ArgumentParser:
    """Give the command line that the scripts of the book have in common."""
    parser = argparse.ArgumentParser(
        description=told, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=runs, help="seeds 0, 1, …")
    parser.add_argument("--again", action="store_true", help="make runs anew that are there")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where lines go")
    return parser


def settle(asked: argparse.Namespace, quick: Settings, runs: dict[str, int]) -> None:
    """Fill in what ``--quick`` means, and how many runs a part has if nobody says."""
    if asked.quick:
        for name, value in quick.items():
            setattr(asked, name, value)
        asked.results = asked.work
    asked.runs = asked.runs or runs.get(asked.part, 1)


def run_part(
    name: str, part: Callable[[argparse.Namespace, Log], int], asked: argparse.Namespace
) -> None:
    """Run one part of a benchmark on one thread, and exit: the status says if a run failed."""
    log = Log(asked.results / f"{name}-{asked.part}.jsonl")
    torch.set_num_threads(1)
    with threadpool_limits(1):
        failed = part(asked, log)
    print(f"results: {log.path.name}" + (f", {failed} runs FAILED" if failed else ""))
    sys.exit(bool(failed))


class RunError(Exception):
    """A run did not come to its end, or its files are not what they should be."""


@dataclass(frozen=True)
class Job:
    """One run: its settings, and how to make it."""

    settings: Settings
    make: Callable[[], Found]

    @property
    def title(self) -> str:
        """What the progress line calls it."""
        return " ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.settings.items()
            if value is not None and name not in {"part", "delta", "scorer"}
        )


@dataclass(frozen=True)
class Log:
    """A file with one line for each run."""

    path: Path

    def lines(self) -> dict[str, dict[str, Any]]:
        """Give every run by its key."""
        if not self.path.exists():
            return {}
        lines = map(json.loads, self.path.read_text(encoding="utf-8").splitlines())
        return {key(line["settings"]): line for line in lines}

    def add(self, settings: Settings, found: Found) -> None:
        """Append a run."""
        line = json.dumps({"settings": settings, "found": found, "made_with": stamp()})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def where(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """Give the runs with these settings."""
        for line in self.lines().values():
            if all(line["settings"].get(name) == value for name, value in wanted.items()):
                yield line

    def check_alike(self, *names: str) -> None:
        """Refuse to average runs of one table and method that differ in more than ε and seed."""
        seen: dict[tuple[Any, ...], Settings] = {}
        for settings in (line["settings"] for line in self.lines().values()):
            first = seen.setdefault((settings.get("table"), settings["method"]), settings)
            for name in names:
                if settings.get(name) != first.get(name):
                    both = f"{first.get(name)} and {settings.get(name)}"
                    msg = f"{self.path.name} mixes runs with {name} = {both}: take one kind out"
                    raise SystemExit(msg)


def key(settings: Settings) -> str:
    """Name a run by its settings alone."""
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def stamp() -> dict[str, str]:
    """Say which code made a run."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+changes"]
    try:
        commit = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    made = {"aquatint": version("aquatint"), "commit": commit, "source": source()}
    return made | {"processor": processor()}


def processor() -> str:
    """Name the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((x.split(":")[1].strip() for x in lines if "model name" in x), platform.processor())


@cache
def source() -> str:
    """Give a short digest of the library's source, which says more than a commit with changes."""
    files = sorted((ROOT / "src" / "aquatint").rglob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def run_all(log: Log, jobs: Sequence[Job], show: Sequence[str] = (), *, again: bool = False) -> int:
    """Make the runs that are missing, with a line of progress each; give how many failed."""
    done = {} if again else log.lines()
    failed = 0
    for number, job in enumerate(jobs, 1):
        place = f"[{number}/{len(jobs)}] {job.title}"
        if (line := done.get(key(job.settings))) is not None:
            other = "" if line["made_with"].get("source") == source() else ", with other code"
            print(f"{place}: {_brief(line['found'], show)} (done before{other})")
            continue
        print(f"{place} …", flush=True)
        begun = perf_counter()
        try:
            found = job.make()
        except Exception as error:  # one failure is no reason to lose a night of other runs
            failed += 1
            print(f"{place}: FAILED: {type(error).__name__}: {error}", flush=True)
            continue
        log.add(job.settings, found)
        print(f"{place}: {_brief(found, show)} ({perf_counter() - begun:.0f} s)", flush=True)
    return failed


def _brief(found: Found, show: Sequence[str]) -> str:
    return ", ".join(f"{name} {found[name]:.4g}" for name in show if found.get(name) is not None)


def call(script: str, *words: Any, python: str = sys.executable, stats: Path) -> Found:
    """Run a script of this folder in a process of its own, on one thread; give its statistics."""
    path = Path(__file__).with_name(script)
    asked = [python, str(path), *map(str, words), "--json", str(stats)]
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    done = subprocess.run(asked, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        msg = f"{script}: {said[-1]}"
        raise RunError(msg)
    return read_stats(stats)


def read_stats(path: Path) -> Found:
    """Read what a script wrote about its run."""
    found: Found = json.loads(path.read_text(encoding="utf-8"))
    return found
