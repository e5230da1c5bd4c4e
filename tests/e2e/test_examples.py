"""The runner of the documentation's examples: its own small shell."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


@pytest.fixture
def shell():
    spec = spec_from_file_location("examples", Path(__file__).parents[2] / "conftest.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.aquatint


def test_a_redirect_writes_what_is_printed(shell, folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    assert shell("aquatint draft people.csv > 'my draft.toml'") == ""
    assert "A public schema for people.csv" in (folder.path / "my draft.toml").read_text()


@pytest.mark.parametrize("where", ['"age > 3"', "'age > 3'", '"age > 3" --quiet'])
def test_a_sign_inside_quotes_is_no_redirect(shell, folder, monkeypatch, where):
    monkeypatch.chdir(folder.path)
    before = folder.files()
    said = shell(f"aquatint sample nowhere.aqt -n 5 -o rows.csv --where {where}")
    assert "cannot read nowhere.aqt" in said
    assert folder.files() == before
