"""The researcher's bench for images: FID, downstream accuracy, diversity. It reads real images.

Its scores are exact, so they are not private, as everything in `aquatint.evaluate`.
"""

from __future__ import annotations

from aquatint.evaluate.images.fid import Frechet, Moments, fid, frechet
from aquatint.evaluate.images.inception import Inception
from aquatint.evaluate.images.report import ImageEvaluation, evaluate_images
from aquatint.evaluate.images.text import image_evaluation_text

__all__ = [
    "Frechet",
    "ImageEvaluation",
    "Inception",
    "Moments",
    "evaluate_images",
    "fid",
    "frechet",
    "image_evaluation_text",
]
