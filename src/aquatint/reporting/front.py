"""The front door of reports: one release in, one page of HTML out."""

from __future__ import annotations

from pathlib import Path

from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.errors import DataError
from aquatint.release.model import Release
from aquatint.reporting.contents import contents
from aquatint.reporting.page import page


def report(
    release: Release,
    path: str | Path,
    *,
    model: Mixture | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Path:
    """Write a report on a release, as one file of HTML that needs nothing else.

    It says in plain words what is promised, and shows every column's distribution with its error,
    the pairs that depend on each other most, correlations, how much of each block is signal, what
    can be asked of the release and what cannot, and a few synthetic rows. All of it comes from the
    release, so it is as public as the release.

    Parameters
    ----------
    release
        What the curator published.
    path
        The file to write; its name ends in .html.
    model
        A mixture that was fitted to the release before, to save the time.
    seed
        Of the synthetic rows: the same release and seed give the same file.
    progress
        Show progress on a terminal when it takes longer than two seconds.

    Returns
    -------
    Path
        The file.
    """
    check_path(path)
    found = contents(release, model=model, seed=seed, progress=progress)
    return write(page(found), path)


def check_path(path: str | Path) -> None:
    """Refuse a name that no browser would open, before anything takes time."""
    if Path(path).suffix.lower() not in {".html", ".htm"}:
        msg = f"a report is a page: end the name {Path(path).name} in .html"
        raise DataError(msg)


def write(text: str, path: str | Path) -> Path:
    """Write a page as UTF-8."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}"
        raise DataError(msg) from None
    return Path(path)
