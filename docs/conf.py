"""The documentation site: Sphinx, Furo, MyST. Nothing is fetched when it is built or read."""

from __future__ import annotations

import runpy
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

HERE = Path(__file__).parent

project = "Aquatint"
author = "The Aquatint developers"
project_copyright = author
version = release = installed("aquatint")
language = "en-GB"

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = "Aquatint"
html_static_path = ["_static"]
html_extra_path = [path.name for path in HERE.glob("release-format-v*.schema.json")]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autoclass_content = "class"
numpydoc_show_class_members = False


def draw_figures(_app: Sphinx) -> None:
    """Run every script of docs/figures; each writes its SVG files to docs/_build/figures."""
    folder = HERE / "_build" / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for script in sorted((HERE / "figures").glob("*.py")):
        runpy.run_path(str(script))["main"](folder / f"{script.stem}.svg")


def inline_math(translator: nodes.NodeVisitor, node: nodes.math) -> None:
    """Write a formula as MathML, which browsers show without a script."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block_math(translator: nodes.NodeVisitor, node: nodes.math_block) -> None:
    """Write a displayed formula as MathML."""
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def keep_bars(*event: Any) -> None:
    """Read |x| in a docstring as an absolute value, not as a substitution."""
    lines = event[-1]
    lines[:] = [line.replace("|", "\\|") for line in lines]


def setup(app: Sphinx) -> None:
    """Register the figures, the formulas and the reading of docstrings."""
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("builder-inited", draw_figures)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
