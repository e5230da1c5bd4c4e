"""The researcher's bench: how close synthetic rows are to real ones, and what they are good for.

Everything in here reads real rows and adds no noise. Its scores are exact, so they are not private:
publish them only where the real rows may be published, or pay for them another way.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aquatint.evaluate.images.report import ImageEvaluation as ImageEvaluation
    from aquatint.evaluate.images.report import evaluate_images as evaluate_images
    from aquatint.evaluate.images.text import image_evaluation_text as image_evaluation_text
    from aquatint.evaluate.report import Evaluation as Evaluation
    from aquatint.evaluate.report import evaluate as evaluate
    from aquatint.evaluate.text import evaluation_text as evaluation_text

_HOME = {
    "Evaluation": "report",
    "ImageEvaluation": "images.report",
    "evaluate": "report",
    "evaluate_images": "images.report",
    "evaluation_text": "text",
    "image_evaluation_text": "images.text",
}
__all__ = sorted(_HOME)  # noqa: PLE0605  # a list of names, built once


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"aquatint.evaluate.{_HOME[name]}"), name)
    msg = f"module 'aquatint.evaluate' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return __all__
