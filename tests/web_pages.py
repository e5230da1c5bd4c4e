"""What tests of the pages share: a small table and its releases, and ways to visit a page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from starlette.testclient import TestClient

from aquatint.curator.sketch import sketch
from aquatint.schema import Schema
from aquatint.web.security import Gate

PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"
TOKEN = "the-key"
COLUMNS = {
    "age": {"kind": "integer", "bounds": [17, 90], "bins": 8},
    "hours": {"kind": "numeric", "bounds": [0, 80], "bins": 6, "missing": True},
    "sex": {"kind": "categorical", "categories": ["Female", "Male"]},
    "job": {"kind": "categorical", "categories": ["office", "care", "trade"], "other": True},
    "joined": {"kind": "date", "bounds": ["2015-01-01", "2024-12-31"], "bins": 5},
    "income": {"kind": "categorical", "categories": ["low", "high"]},
}


def schema(columns=None, **changes) -> Schema:
    """Declare the people, or others."""
    said = {"name": "people", "label": "income", "privacy": {"protects": "add or remove one row"}}
    return Schema.from_dict({**said, "columns": columns or COLUMNS, **changes})


def people(seed: int, older: float = 0.0, count: int = 3_000) -> pd.DataFrame:
    """Make people up."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(9, 4.5 + older, count), 17, 90).round().astype(int)
    sex = rng.choice(["Female", "Male"], count)
    job = rng.choice(["office", "care", "trade", "clown"], count, p=[0.45, 0.3, 0.22, 0.03])
    hours = np.clip(rng.normal(38 + 3 * (sex == "Male"), 9, count), 0, 80).round(1)
    hours[rng.random(count) < 0.05] = np.nan
    wealth = (age - 40) / 12 + 0.9 * (job == "office") - 0.5 + rng.normal(0, 0.7, count)
    days = pd.to_timedelta(rng.integers(0, 3_600, count), unit="D")
    joined = (pd.Timestamp("2015-01-01") + days).date
    income = np.where(wealth > 0, "high", "low")
    columns = {"age": age, "hours": hours, "sex": sex, "job": job, "joined": joined}
    return pd.DataFrame({**columns, "income": income})


def released(path: Path, rows: pd.DataFrame, declared: Schema | None = None) -> Path:
    """Sketch rows into a file."""
    known = declared or schema()
    sketch(rows, known, epsilon=2.0, delta=1e-6, output=path, progress=False)
    return path


class Guest:
    """Somebody at a page: a client in this process, with the manners of a browser."""

    def __init__(self, app, *, enter: bool = True, gate: Gate | None = None, **options) -> None:
        self.gate = gate or Gate(app, port=PORT, token=TOKEN)
        self.client = TestClient(self.gate, base_url=ORIGIN, follow_redirects=False, **options)
        self.secret = ""
        if enter:
            self.client.get(f"/?token={TOKEN}")

    def get(self, path: str, **options):
        return self.client.get(path, **options)

    def part(self, path: str):
        """Ask for a part of a page, as a script does."""
        return self.client.get(path, headers={"hx-request": "true"})

    def learn_secret(self, path: str) -> str:
        """Read the secret off a form."""
        self.secret = re.search(r'name="secret" value="([^"]+)"', self.get(path).text)[1]
        return self.secret

    def post(self, where: str, /, *, part: bool = False, headers=None, **fields):
        """Send a form from our own page."""
        said = {"origin": ORIGIN, **({"hx-request": "true"} if part else {}), **(headers or {})}
        return self.client.post(where, data={"secret": self.secret, **fields}, headers=said)


def same(text: str) -> tuple[str, str]:
    """Read the Python and the command that a card shows."""
    from html import unescape

    found = [
        unescape(re.search(rf'data-same="{kind}">(.*?)</pre>', text, re.DOTALL)[1])
        for kind in ("python", "command")
    ]
    return found[0], found[1]
