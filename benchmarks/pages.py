"""How long the analyst's page takes on Adult: first paints, and answers to clicks, in Chromium.

Paints are the browser's own first contentful paint, counted from the start of the navigation. A
click counts from the click to the result on the page. Fits are over by then; they are timed too.
Of a made-up release of 300 columns, the paints without fits, and the whole command that writes its
report are timed.

    python benchmarks/pages.py            # needs Adult (see datasets.py), chromium and playwright
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import datasets
from playwright.sync_api import sync_playwright

from aquatint.curator.sketch import sketch
from aquatint.web.serve import analyst_app
from aquatint.web.server import in_background

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from browsing import FLAGS, Browsing, chromium
from wide_release import wide_release

RESULTS = Path(__file__).parent / "results" / "pages.json"
REPEATS = 5
ANSWER, DRAWN = "[data-answer]", "#drawn .card"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def main() -> None:
    """Measure, and write the results."""
    made = datasets.adult()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.aqt" for name in ("adult", "again")]
        for path, rows in zip(paths, (made.train, made.test), strict=True):
            sketch(rows, made.schema, epsilon=1.0, delta=1e-6, output=path, progress=False)
        app = analyst_app(paths)
        with in_background(app) as address, sync_playwright() as playwright:
            first, second = app.state.shelf.opened
            while not second.drawing.over:
                sleep(0.2)
            sleep(3)  # scikit-learn is imported last
            found = {"fit_s": {"asking": first.asking.seconds, "drawing": first.drawing.seconds}}
            browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
            visit = Browsing(browser, address, Path(folder))
            found |= {"paint_ms": _paints(visit), "click_ms": _clicks(visit)}
            browser.close()
        found |= _wide(Path(folder))
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    found["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, load {load}"
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


def _wide(folder: Path) -> dict[str, Any]:
    """Time the pages and the report of 300 columns, all 44,850 pairs counted."""
    made, report = folder / "wide.aqt", folder / "wide.html"
    wide_release(300).save(made)
    times = []
    for _ in range(REPEATS):
        begun = perf_counter()
        subprocess.run([sys.executable, "-m", "aquatint", "report", made, "--quiet"], check=True)
        times.append(perf_counter() - begun)
    app = analyst_app([made], fit=False)
    with in_background(app) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        paints = _paints(Browsing(browser, address, folder))
        browser.close()
    seconds = [round(median(times), 2), round(max(times), 2)]
    return {
        "wide_paint_ms": paints,
        "wide_report_s": seconds,
        "wide_report_bytes": report.stat().st_size,
    }


def _paints(visit: Browsing) -> dict[str, list[float]]:
    found = {}
    for path in ("/0/", "/0/ask", "/0/sample", "/0/learn", "/compare"):
        times = []
        for _ in range(REPEATS):
            page = visit.open(path)
            while (paint := page.evaluate(PAINT)) is None:
                sleep(0.02)
            times.append(paint)
            page.context.close()
        visit.contexts.clear()
        found[path] = [round(median(times), 1), round(max(times), 1)]
    return found


def _clicks(visit: Browsing) -> dict[str, list[float]]:
    label = "section:has(#sql) button"
    grouped = "select occupation, avg(age) as age, count(*) as n from data group by occupation"
    condition = "select count(*) from data where age >= 30 and sex = 'Male' and race = 'White'"
    train = _timed(visit, "/0/learn", None, "main button", "#learned .card")
    return {
        "two statistics of 15 groups": _timed(visit, "/0/ask", _ask(grouped), label, ANSWER),
        "three conditions": _timed(visit, "/0/ask", _ask(condition), label, ANSWER),
        "1,000 rows": _timed(visit, "/0/sample", None, "main button", "[data-drawn]"),
        "100,000 rows, to progress": _timed(visit, "/0/sample", _rows, "main button", DRAWN),
        "compare, to progress": _timed(visit, "/compare", None, "main button", "#compared .card"),
        "train, to progress": train,
    }


def _ask(sql: str) -> Callable[[Any], None]:
    return lambda page: page.fill("#sql", sql)


def _rows(page: Any) -> None:
    page.fill("#count", "100000")


def _timed(visit: Browsing, path: str, fill: Any, button: str, until: str) -> list[float]:
    times = []
    for _ in range(REPEATS):
        page = visit.open(path)
        page.wait_for_load_state("networkidle")
        if fill is not None:
            fill(page)
        begun = perf_counter()
        page.click(button)
        page.wait_for_selector(until)
        times.append(1000 * (perf_counter() - begun))
        page.context.close()
    visit.contexts.clear()
    return [round(median(times), 1), round(max(times), 1)]


if __name__ == "__main__":
    main()
