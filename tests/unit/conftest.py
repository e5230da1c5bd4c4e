"""A small release and its bytes, for every test of the file format."""

import pytest
from release_files import release_of

from aquatint.release.archive import to_bytes


@pytest.fixture(scope="module")
def release():
    return release_of()


@pytest.fixture(scope="module")
def content(release):
    return to_bytes(release)
