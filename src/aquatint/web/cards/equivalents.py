"""The same in Python and on the command line: text to copy, which gives what the page shows."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from aquatint.analyst.learn.models import MODELS
from aquatint.columns import RANGED
from aquatint.schema import Schema


@dataclass(frozen=True)
class Same:
    """One card's doing, twice more."""

    python: str
    command: str


def _opened(path: Path, *more: str) -> str:
    return "\n".join(["import aquatint as aq", *more, "", f"release = aq.load({str(path)!r})"])


def command_line(*words: object) -> str:
    """Write a command for a shell: SQL in double quotes where that reads better."""
    return " ".join(["aquatint", *(_word(str(word)) for word in words)])


def _word(word: str) -> str:
    plain = "'" in word and not set(word) & set('"$`\\!\n')
    return f'"{word}"' if plain else shlex.quote(word)


def shown(path: Path) -> Same:
    """Describe a release and its columns."""
    python = [_opened(path), "query = aq.Query(release)"]
    python += ["for column in release.schema.columns:\n    print(query.histogram(column))"]
    commands = [command_line("show", path), command_line("query", path, "--describe")]
    return Same("\n".join(python), "\n".join(commands))


def asked(path: Path, sql: str) -> Same:
    """Ask a question."""
    python = f"{_opened(path)}\nquery = aq.Query(release)\nfound = query.sql({sql!r})\nprint(found)"
    return Same(python, command_line("query", path, sql))


def drawn(path: Path, count: int, where: str | None, seed: int, suffix: str = "csv") -> Same:
    """Draw rows: the model is fitted with seed 0, and the rows are drawn with another."""
    given = f", where={where!r}" if where else ""
    write = "to_csv" if suffix == "csv" else "to_parquet"
    python = "\n".join(
        [
            _opened(path),
            "model = aq.synthesize(release)",
            f"rows = model.sample({count}{given}, seed={seed})",
            f'rows.{write}("rows.{suffix}", index=False)',
        ]
    )
    condition = ("--where", where) if where else ()
    draw = ("-n", count, *condition, "--seed", seed, "-o", f"rows.{suffix}")
    if seed == 0:
        return Same(python, command_line("sample", path, *draw))
    model = f"{path.stem}.model"
    fit = command_line("sample", path, "-n", 1, "--seed", 0, "--save", model, "-o", f"one.{suffix}")
    return Same(python, "\n".join([fit, command_line("sample", model, *draw)]))


def learned(path: Path, model: str, schema: Schema, target: str) -> Same:
    """Train a model."""
    known = MODELS[model]
    numbers = isinstance(schema.columns[target], RANGED)
    estimator = known.regressor if numbers else known.classifier
    settings = {**known.settings, **({"random_state": 0} if known.seeded else {})}
    options = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    output = "model.skops"
    python = "\n".join(
        [
            _opened(path, f"from {known.module} import {estimator}"),
            f"trained = aq.learn(release, {estimator}({options}), target={target!r})",
            f"aq.save_learned(trained, {output!r})",
        ]
    )
    command = command_line("learn", path, "--model", model, "--target", target, "-o", output)
    return Same(python, command)


def compared(first: Path, second: Path, alpha: float, *, conservative: bool) -> Same:
    """Compare two releases."""
    careful = ", conservative=True" if conservative else ""
    python = "\n".join(
        [
            "import aquatint as aq",
            "",
            f"first, second = aq.load({str(first)!r}), aq.load({str(second)!r})",
            f"found = aq.compare(first, second, alpha={alpha!r}{careful})",
            "print(found.reject, found.pvalue)",
            "print(found.where())",
        ]
    )
    flags = ["--conservative"] if conservative else []
    return Same(python, command_line("compare", first, second, "--alpha", alpha, *flags, "--where"))
