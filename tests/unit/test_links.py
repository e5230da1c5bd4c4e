"""Every link within the project leads somewhere, and every page can be reached.

Sphinx checks the links between pages of the site too, but not those of the README. Links to
elsewhere cannot be followed offline: they have to be well formed.
"""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "docs" / "_build"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(p for p in (ROOT / "docs").rglob("*.md") if BUILT not in p.parents)]
)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?[^)]*\)")
PICTURE = re.compile(r"```\{(?:image|figure)\} (\S+)\n((?:.*\n)*?)```")


def without_code(text):
    """Take out code, which may look like links."""
    return re.sub(
        r"`[^`\n]*`", "", re.sub(r"^```(?!\{(image|figure)).*?^```", "", text, flags=re.S | re.M)
    )


def anchors(path):
    """Give the anchors of a page's headings, as MyST and GitHub make them, and its own labels."""
    text = path.read_text(encoding="utf-8")
    found = set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def links(path):
    text = path.read_text(encoding="utf-8")
    yield from LINK.findall(without_code(text))
    yield from (target for target, _ in PICTURE.findall(text))


def problem(path, target):
    """Say what is wrong with a link, or nothing."""
    parts = urlsplit(target)
    if parts.scheme:
        return "" if parts.scheme == "https" and parts.netloc else "not a whole https address"
    if parts.path.startswith("/"):
        return "leads out of the project"
    there = (path.parent / parts.path).resolve() if parts.path else path
    if BUILT in there.parents:
        return ""  # drawn when the site is built, which fails without it
    if not there.exists():
        return "there is no such file"
    if parts.fragment and there.suffix == ".md" and parts.fragment not in anchors(there):
        return "there is no such heading"
    return ""


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    wrong = {t: problem(path, t) for t in links(path) if problem(path, t)}
    assert wrong == {}


def test_every_page_is_in_the_table_of_contents():
    named = set()
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
            for line in tree.splitlines():
                if line and not line.startswith(":"):
                    named |= {p.resolve() for p in page.parent.glob(f"{line.strip()}.md")}
    site = {p for p in PAGES if ROOT / "docs" in p.parents} - {ROOT / "docs" / "index.md"}
    assert site - named == set()


def test_every_picture_has_words_for_those_who_cannot_see_it():
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for target, options in PICTURE.findall(text):
            assert ":alt:" in options, (path, target)
        assert not re.search(r"!\[\]\(", text), path


def test_pictures_of_pages_are_small():
    for picture in (ROOT / "docs" / "_static" / "screens").glob("*.png"):
        assert picture.stat().st_size < 200_000, picture.name


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](page.md#one-two) [b](none.md) [c](#three) [d](http://x.org)\n")
    assert [problem(page, t) for t in links(page)] == [
        "",
        "there is no such file",
        "there is no such heading",
        "not a whole https address",
    ]
