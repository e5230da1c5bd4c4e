"""Run every example of the README and the documentation: one page is one test.

The examples of a page build on each other and run in a folder of their own, which looks like the
repository after `make demo`. Python blocks are executed, `$ aquatint …` lines are run and their
output compared (`...` stands for anything). TOML blocks are schemas, or are written to the file
that their first line names.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import pytest
from hypothesis import settings
from sybil import Document, Example
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser

if "PYTEST_XDIST_WORKER" in os.environ:  # before NumPy is imported: workers share the cores
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parent
settings.register_profile("aquatint", deadline=None)  # a busy machine is not a failure
settings.load_profile("aquatint")
LENIENT = ELLIPSIS | NORMALIZE_WHITESPACE
collect_ignore_glob = ["noxfile.py", "docs/conf.py", "docs/figures/*", "docs/_build/*"]


def aquatint(line: str) -> str:
    """Run one `aquatint` command in this process and give what it prints."""
    from aquatint.cli import app
    from aquatint.errors import AquatintError

    words = shlex.split(line)[1:]
    words, target = (words[:-2], words[-1]) if words[-2:-1] == [">"] else (words, None)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            app(words, standalone_mode=False)
        except AquatintError as error:
            shown.write(f"aquatint: {error}\n")
    if target is not None:
        Path(target).write_text(shown.getvalue(), encoding="utf-8")
        return ""
    return shown.getvalue()


def run_console(example: Example) -> str | None:
    """Run the commands of a console block; give what is wrong, if anything is."""
    for part in ("\n" + example.parsed).split("\n$ ")[1:]:
        command, _, expected = part.partition("\n")
        if not command.startswith("aquatint "):
            continue
        found = aquatint(command)
        if expected.strip() and not OutputChecker().check_output(expected, found, LENIENT):
            return f"$ {command}\nexpected:\n{expected}\nfound:\n{found}"
    return None


def read_toml(example: Example) -> None:
    """Write a TOML block to the file that it names; one without a name has to be a schema."""
    from aquatint.schema import Schema

    first = example.parsed.partition("\n")[0]
    if first.startswith("# ") and first.endswith(".toml"):
        Path(first[2:]).write_text(example.parsed, encoding="utf-8")
    else:
        Schema.from_dict(tomllib.loads(example.parsed))


PARSERS = (
    PythonCodeBlockParser(doctest_optionflags=LENIENT),
    CodeBlockParser("console", run_console),
    CodeBlockParser("toml", read_toml),
)


@contextlib.contextmanager
def after_demo() -> Iterator[None]:
    """Work in a fresh folder that holds what `make demo` leaves behind."""
    from statsmodels.datasets import randhie

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        (Path(folder) / "demo").mkdir()
        randhie.load_pandas().data.to_csv(Path(folder) / "demo" / "rand_hie.csv", index=False)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


class Examples(pytest.Item):
    """The examples of one page, in order."""

    def runtest(self) -> None:
        """Run them."""
        page = Document.parse(str(self.path), *PARSERS)
        page.namespace["PAGE"] = str(self.path)
        with after_demo():
            for example in page.examples():
                example.evaluate()


class Page(pytest.File):
    """A page with examples."""

    def collect(self) -> Iterator[Examples]:
        """Give one test, if the page has any example."""
        if next(iter(Document.parse(str(self.path), *PARSERS).examples()), None) is not None:
            yield Examples.from_parent(self, name="examples")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Page | None:
    """Collect the README and the pages of the documentation."""
    is_page = file_path.suffix == ".md" and file_path.is_relative_to(ROOT / "docs")
    if is_page or file_path == ROOT / "README.md":
        return Page.from_parent(parent, path=file_path)
    return None
