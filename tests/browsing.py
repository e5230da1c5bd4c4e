"""A real browser on real pages: Debian's Chromium, driven by Playwright, kept on loopback."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
AXE = ROOT / "tests" / "vendor" / "axe-4.14.0.min.js"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions"),
]
PATIENT = 40_000
"""Milliseconds to wait on a busy machine."""


def chromium() -> str | None:
    """Find the browser."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next((path for path in found if path), None)


class Browsing:
    """Pages of one server, seen by one browser that has the key."""

    def __init__(self, browser, address: str, pictures: Path) -> None:
        self.browser, self.pictures = browser, pictures
        self.base = address.partition("/?")[0]
        self.asked: list[str] = []
        self.said: list[str] = []
        self.contexts = []
        first = self._context()
        page = first.new_page()
        page.goto(address)
        page.wait_for_load_state("networkidle")
        self.key = first.storage_state()
        first.close()

    def _context(self, **options):
        context = self.browser.new_context(
            viewport=options.pop("viewport", {"width": 1280, "height": 900}), **options
        )
        context.set_default_timeout(PATIENT)
        context.on("request", lambda request: self.asked.append(request.url))
        context.on("console", self._hear)
        context.on("dialog", lambda dialog: self.said.append(f"dialog: {dialog.message}"))
        return context

    def _hear(self, message) -> None:
        expected = "the server responded with a status of 4"  # refusals are part of some journeys
        if message.type in {"error", "warning"} and expected not in message.text:
            self.said.append(message.text)

    def open(self, path: str = "/", **options):
        """Open a page in a window of its own."""
        context = self._context(storage_state=self.key, **options)
        self.contexts.append(context)
        page = context.new_page()
        page.goto(self.base + path)
        return page

    def picture(self, page, name: str, *, whole: bool = True) -> Path:
        """Keep what a page looks like."""
        path = self.pictures / f"{name}.png"
        page.screenshot(path=path, full_page=whole)
        return path

    def close(self) -> None:
        """Close all windows, and check that nothing went elsewhere or was complained of."""
        for context in self.contexts:
            context.close()
        self.contexts.clear()
        beyond = {u for u in self.asked if urlsplit(u).hostname not in {"127.0.0.1", None}}
        schemes = {urlsplit(u).scheme for u in self.asked}
        assert not beyond, f"requests left this machine: {beyond}"
        assert schemes <= {"http", "blob", "data"}, schemes
        assert not self.said, f"the browser complained: {self.said}"


def serious(page) -> list[str]:
    """Ask axe what is wrong with a page for people who cannot see it, or not well."""
    found = page.evaluate(f"{AXE.read_text(encoding='utf-8')}\n;axe.run(document)")
    bad = [v for v in found["violations"] if v["impact"] in {"serious", "critical"}]
    return [f"{v['id']}: {v['help']}: {[n['html'][:120] for n in v['nodes'][:3]]}" for v in bad]


def pictures_folder() -> Path:
    """Where screenshots are kept: an artefact of the tests, not of the repository."""
    path = Path(os.environ.get("AQUATINT_PICTURES", ROOT / "docs" / "_build" / "screens"))
    path.mkdir(parents=True, exist_ok=True)
    return path
