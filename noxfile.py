#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.2.9"]
# ///

"""The Makefile's checks, for those who prefer nox: lint, tests, docs."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

PROJECT = nox.project.load_toml("pyproject.toml")


def _install(session: nox.Session, group: str) -> None:
    session.install(
        "-e",
        ".[checkpoint,evaluate,images,learn,spark,sql,web]",
        *nox.project.dependency_groups(PROJECT, group),
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types, the wall and the repository's habits."""
    _install(session, "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")
    session.run("repo-review", ".")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, the examples of the documentation among them."""
    _install(session, "test")
    session.run("pytest", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site; a warning is an error."""
    _install(session, "docs")
    command = "sphinx-build --fail-on-warning --quiet -b html docs docs/_build/html"
    session.run(*command.split())


if __name__ == "__main__":
    nox.main()
