"""Trained models as files that run no code when they are opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aquatint.errors import DataError, ReleaseError
from aquatint.extras import need
from aquatint.release.archive import reserved

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

TRUSTED = (
    "aquatint.analyst.learn.columns.TypedColumns",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
)
"""What a model may name beside the types that skops takes to be harmless. These are exact names: a
whole package has functions that run what they are given."""


def save_learned(pipeline: Pipeline, path: str | Path) -> None:
    """Write what `learn` gave as one file, which `load_learned` reads.

    Parameters
    ----------
    pipeline
        A trained pipeline.
    path
        Ends in ``.skops``. An existing file is replaced.
    """
    skops = need("skops.io", extra="learn")
    check_learned_path(path)
    content = skops.dumps(pipeline)
    with reserved(path, len(content)) as file:
        file.write(content)


def load_learned(path: str | Path) -> Pipeline:
    """Read a trained model; nothing in the file is executed.

    Parameters
    ----------
    path
        What `save_learned` or ``aquatint learn`` wrote. A file that names types which no such
        model has is refused: `skops.io.load` opens those, once you have looked at them.
    """
    skops = need("skops.io", extra="learn")
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror or error}"
        raise ReleaseError(msg) from None
    try:
        strange = set(skops.get_untrusted_types(data=content)) - set(TRUSTED)
        pipeline = None if strange else skops.loads(content, trusted=list(TRUSTED))
    except Exception:  # a file may come from anyone, and skops raises what its parts raise
        msg = f"{path} is not a trained model, or is damaged: train it again with aquatint learn"
        raise ReleaseError(msg) from None
    if strange:
        msg = f"{path} names {min(strange)[:80]!r}, which no model of ours has: it is not opened"
        raise ReleaseError(msg)
    return pipeline


def check_learned_path(path: str | Path) -> None:
    """Refuse a name that does not say what the file is, before anything is trained."""
    if Path(path).suffix != ".skops":
        msg = f"cannot tell the format of {path}: end its name in .skops"
        raise DataError(msg)
