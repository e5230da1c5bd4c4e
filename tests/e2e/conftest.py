"""What the end-to-end tests share: a folder with data, a schema and a ledger, and the commands."""

import os
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from browsing import FLAGS, chromium

from aquatint import cli
from aquatint.accounting import Budget
from aquatint.curator.ledger import Ledger

ROW = "add or remove one row"
SCHEMA = f"""
name = "people"
label = "sex"
[privacy]
protects = "{ROW}"
[columns.age]
kind = "integer"
bounds = [0, 99]
bins = 4
[columns.sex]
kind = "categorical"
categories = ["F", "M"]
"""


@dataclass
class Result:
    """What a command did."""

    code: int
    out: str
    err: str


class Folder:
    """A working folder with people.csv, people.toml and a ledger with a ceiling of 2."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = [f"{i % 100},{'FM'[i % 2]}" for i in range(300)]
        self.write("people.csv", "age,sex\n" + "\n".join(lines) + "\n")
        self.write("people.toml", SCHEMA)
        Ledger(path / "ledger.db").open_account("people", Budget(2.0, 1e-6), ROW)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        return path

    def files(self) -> set[str]:
        return {p.name for p in self.path.iterdir()}

    @property
    def account(self):
        return Ledger(self.path / "ledger.db").account("people")

    def sketch(self, **changes: str | None) -> list[str]:
        """Give the arguments of a good sketch, with changes; None takes an option out."""
        options = {
            "schema": "people.toml",
            "epsilon": "1",
            "delta": "1e-6",
            "output": "out.aqt",
            "ledger": "ledger.db",
            "dataset": "people",
            **changes,
        }
        data = options.pop("data", "people.csv")
        given = [(f"--{name}", value) for name, value in options.items() if value is not None]
        return ["sketch", str(data), *(word for pair in given for word in pair)]

    def start(self, arguments: list[str], **options) -> subprocess.Popen:
        """Start a real process that hears Ctrl-C, even where the tests run in the background."""
        options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        return subprocess.Popen(
            [sys.executable, "-m", "aquatint", *arguments],
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
            **options,
        )

    def spawn(self, arguments: list[str], **options) -> Result:
        """Run a real process to its end."""
        process = self.start(arguments, **options)
        out, err = process.communicate(timeout=120)
        return Result(process.returncode, out, err)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Run a command in this process, as `main` would, in the folder."""
    monkeypatch.chdir(folder.path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def command(arguments: list[str]) -> Result:
        monkeypatch.setattr(sys, "argv", ["aquatint", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return Result(int(ended.value.code or 0), said.out, said.err)

    return command


@pytest.fixture(scope="module")
def browser():
    """Start Chromium; for one module only, since its event loop stands in the way of others."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield opened
        opened.close()
