"""The release: what crosses the wall, and the file it travels in."""

from aquatint.release.archive import load as load
from aquatint.release.model import Block as Block
from aquatint.release.model import Release as Release
from aquatint.release.model import Statement as Statement
