"""Encoded images to pixels: PNG, JPEG, BMP, PPM, TIFF and WebP, by Pillow."""

from __future__ import annotations

import io
import warnings

import numpy as np

from aquatint.errors import DataError
from aquatint.extras import need

FORMATS = ("PNG", "JPEG", "BMP", "PPM", "TIFF", "WEBP")
SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".pnm", ".tif", ".tiff", ".webp"}
)
MOST_PIXELS = 1 << 26
"""The largest image that is decoded: a small file can claim any size."""
_GREY = {"L", "1"}
_COLOUR = {"RGB", "P", "YCbCr", "CMYK", "RGBX"}
_ALPHA = {"LA": "L", "La": "L", "PA": "RGB", "RGBA": "RGB", "RGBa": "RGB"}


def decode(data: bytes, *, which: str = "an image") -> np.ndarray:
    """Turn the bytes of an image file into pixels: uint8 of shape (height, width, 1 or 3).

    Grey images have one channel, all others three. A channel of transparency is dropped if it is
    opaque everywhere. Nothing is turned, resized or cropped.

    Parameters
    ----------
    data
        The content of a PNG, JPEG, BMP, PPM, TIFF or WebP file.
    which
        What a message calls the image.
    """
    image = need("PIL.Image", extra="images")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", image.DecompressionBombWarning)
            with image.open(io.BytesIO(data), formats=FORMATS) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    msg = f"{which} has more than {MOST_PIXELS:,} pixels: reduce it before"
                    raise DataError(msg)
                opened.load()
                return _pixels(opened, which)
    except (image.DecompressionBombWarning, image.DecompressionBombError):
        msg = f"{which} has more than {MOST_PIXELS:,} pixels: reduce it before"
        raise DataError(msg) from None
    except DataError:
        raise
    except Exception:  # noqa: BLE001, RUF100  # Pillow's decoders raise almost anything
        kinds = ", ".join(FORMATS[:-1])
        msg = f"{which} cannot be read: it is damaged, or neither {kinds} nor {FORMATS[-1]}"
        raise DataError(msg) from None


def _pixels(opened: object, which: str) -> np.ndarray:
    mode = str(getattr(opened, "mode", ""))
    convert = opened.convert  # type: ignore[attr-defined]
    if mode == "P" and "transparency" in opened.info:  # type: ignore[attr-defined]
        mode, opened = "RGBA", convert("RGBA")
    if mode in _ALPHA:
        opaque = np.asarray(convert("RGBA"))[..., 3].min() == 255
        if not opaque:
            msg = f"{which} is partly transparent: put it on a background before"
            raise DataError(msg)
        grey = _ALPHA[mode] == "L"
    elif mode in _GREY or mode in _COLOUR:
        grey = mode in _GREY
    else:
        msg = f"{which} is neither grey nor colour of 8 bits a channel: convert it before"
        raise DataError(msg)
    pixels = np.array(convert("L" if grey else "RGB"), dtype=np.uint8)
    return pixels[:, :, None] if grey else pixels
