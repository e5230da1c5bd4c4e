"""The wall as a contract between imports: it holds, and it breaks when someone climbs over it."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]


def lint(folder):
    """Run import-linter on a copy of the package; give its exit code and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", LINT, str(folder)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


# The copy goes first on the path, so that it is the package that is looked at.
LINT = """
import os, sys
os.chdir(sys.argv[1])
sys.path.insert(0, os.path.join(sys.argv[1], "src"))
from importlinter.cli import lint_imports
sys.exit(lint_imports(no_cache=True))
"""


@pytest.fixture
def copy(tmp_path):
    """Copy what import-linter needs: the sources and the contracts."""
    keep = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "aquatint", tmp_path / "src" / "aquatint", ignore=keep)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(copy, module, line):
    """Add a line at the end of a module."""
    path = copy / "src" / "aquatint" / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")


def test_the_contracts_hold(copy):
    code, said = lint(copy)
    assert code == 0, said
    assert f"{len(CONTRACTS)} kept, 0 broken" in said


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("release/model.py", "import aquatint.curator.read", "never imports the curator"),
        (
            "show.py",
            "def f():\n    from aquatint.curator import sketch",
            "never imports the curator",
        ),
        ("curator/sketch.py", "import opendp.prelude", "Only curator.noise imports OpenDP"),
        ("features/base.py", "import aquatint.planning", "The layers of the public side"),
        ("grouping.py", "import aquatint.curator.sums", "never imports the curator"),
        ("table_plan.py", "import aquatint.curator.sketch", "never imports the curator"),
        ("analyst/where.py", "import aquatint.curator.read", "never imports the curator"),
        ("analyst/where.py", "import aquatint.evaluate", "never imports the curator"),
        ("recipes.py", "import aquatint.curator.sketch", "never imports the curator"),
        ("planning.py", "import aquatint.table_plan", "The layers of the public side"),
        ("table_plan.py", "import aquatint.grouping", "The layers of the public side"),
        ("curator/sketch.py", "import aquatint.evaluate", "The layers of the public side"),
        ("reporting/front.py", "import aquatint.curator.read", "never imports the curator"),
        ("reporting/page.py", "import aquatint.evaluate.beside", "never imports the curator"),
        ("web/serve.py", "import aquatint.web.studio", "never imports the curator"),
    ],
    ids=[
        "release",
        "inside a function",
        "opendp",
        "layers",
        "grouping",
        "table plan",
        "analyst",
        "analyst and evaluate",
        "recipes",
        "planning",
        "table plan and grouping",
        "curator and evaluate",
        "the report and the curator",
        "the report and evaluate",
        "the analyst's page and the studio",
    ],
)
def test_climbing_over_the_wall_breaks_a_contract(copy, module, line, broken):
    plant(copy, module, line)
    code, said = lint(copy)
    assert code == 1, said
    lines = [text for text in said.splitlines() if "BROKEN" in text]
    assert any(broken in text for text in lines), said


def test_every_public_module_stands_behind_the_wall():
    """A module that is added later has to be named in the contract, or be one that may see rows.

    Beside the curator only `evaluate` may: it compares with private rows, for the curator's eyes.
    """
    (wall,) = (c for c in CONTRACTS if "never imports the curator" in c["name"])
    named = {name.removeprefix("aquatint.") for name in wall["source_modules"]}
    found = {
        path.stem
        for path in (ROOT / "src" / "aquatint").iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.name != "__init__.py"
    }
    assert found - named == {
        *(
            "cli",
            "cli_compare_private",
            "cli_evaluate",
            "cli_report",
            "cli_studio",
            "__main__",
            "curator",
            "evaluate",
            "web",  # in parts: see below
        ),
    }
    assert {name.partition(".")[0] for name in named} <= found, (
        "a module is named that is not there"
    )
    pages = {path.stem for path in (ROOT / "src" / "aquatint" / "web").iterdir()}
    seen = {name for name in pages if f"web.{name}" not in named}
    assert seen - {"__init__", "__pycache__", "static", "templates"} == {"steps", "studio"}
    assert {"analyst", "grouping", "recipes", "table_plan"} <= named


def test_what_merges_cells_is_behind_the_wall():
    """The choice of cells is made from published numbers: its module cannot even see the others."""
    probe = (
        "import sys, aquatint.grouping, aquatint.table_plan, aquatint.release.histograms\n"
        "bad = [m for m in sys.modules if m.startswith(('aquatint.curator', 'opendp'))]\n"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_reading_a_release_loads_neither_the_curator_nor_opendp():
    probe = (
        "import sys, aquatint as aq, aquatint.show\n"
        f"release = aq.load({str(ROOT / 'tests' / 'golden' / 'release_v1.aqt')!r})\n"
        "bad = [m for m in sys.modules if m.startswith(('aquatint.curator', 'opendp'))]\n"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
