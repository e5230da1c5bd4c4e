"""Letters drawn from free typefaces: public images of writing, beside MNIST's private digits.

DP-MEPF takes SVHN as the public images of MNIST; it is not to be had as a package. Letters are: of
a hundred free typefaces, most of them hands. Each is bent, slanted, made thicker, and then put
into 28 by 28 pixels as MNIST's digits are: fitted into 20 by 20, and centred by its weight. There
is no digit among them, and capitals and small letters are of one class, as in EMNIST.

    npm pack $(cat benchmarks/letters.txt)       # into the folder images/letters of AQUATINT_DATA

    from image_letters import letters
    pixels, classes = letters()                  # uint8 (52000, 28, 28, 1), 0 to 25
"""

from __future__ import annotations

import hashlib
import io
import string
import tarfile
from math import pi
from pathlib import Path

import numpy as np
import torch
from datasets import NotHereError, data_folder
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.nn import functional

from aquatint.progress import track

ALPHABET = string.ascii_lowercase
TYPEFACES = Path(__file__).with_name("letters.txt")
FACES = "eabadc60a5b2b0fb1f56395d9d24da708e445825679eebc58746e63adc0718b1"
"""The SHA-256 of all faces, one after the other."""
EACH = 2_000
"""Images of each letter."""
CANVAS, SIDE, BOX, FINE = 96, 28, 20, 4
BATCH = 500


def letters(each: int = EACH, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw letters, uint8 of shape (n, 28, 28, 1), with their classes from 0 to 25, shuffled."""
    glyphs, kinds = _glyphs(_typefaces())
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(np.flatnonzero(kinds == kind), each) for kind in range(26)]
    places = rng.permutation(np.concatenate(chosen))
    dice = torch.Generator().manual_seed(seed)
    made = []
    with track("writing letters", len(places)) as advance:
        for some in np.split(places, range(BATCH, len(places), BATCH)):
            made.append(_written(glyphs[some], dice))
            advance(len(some))
    return np.concatenate(made)[..., None], kinds[places]


def _typefaces() -> list[bytes]:
    """Read the plain Latin face out of every package."""
    folder, found = data_folder() / "images" / "letters", []
    for line in TYPEFACES.read_text().split():
        name, version = line.removeprefix("@fontsource/").split("@")
        package = folder / f"fontsource-{name}-{version}.tgz"
        if not package.is_file():
            msg = (
                f"{package.name} is not here: `npm pack $(cat benchmarks/letters.txt)` in the "
                "folder images/letters of AQUATINT_DATA gets all typefaces"
            )
            raise NotHereError(msg)
        with tarfile.open(package) as archive:
            face = archive.extractfile(f"package/files/{name}-latin-400-normal.woff")
            found.append(b"" if face is None else face.read())
    told = hashlib.sha256(b"".join(found)).hexdigest()
    if told != FACES:
        msg = f"the typefaces are not those that are known: their SHA-256 is {told}"
        raise NotHereError(msg)
    return found


def _glyphs(faces: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Draw every letter of every face, white on black, about as large as the canvas allows."""
    pictures, kinds = [], []
    for face in faces:
        font = ImageFont.truetype(io.BytesIO(face), CANVAS // 2)
        for alphabet in (ALPHABET, ALPHABET.upper()):
            for kind, letter in enumerate(alphabet):
                left, top, right, bottom = font.getbbox(letter)
                size = max(right - left, bottom - top)
                if size <= 0:
                    continue
                fitted = font.font_variant(size=CANVAS // 2 * (CANVAS * 5 // 8) / size)
                picture = Image.new("L", (CANVAS, CANVAS))
                ImageDraw.Draw(picture).text(
                    (CANVAS / 2, CANVAS / 2), letter, 255, fitted, anchor="mm"
                )
                pictures.append(np.asarray(picture))
                kinds.append(kind)
    kept = [k for k, picture in enumerate(pictures) if picture.max() > 127]
    return np.stack([pictures[k] for k in kept]), np.array([kinds[k] for k in kept])


def _written(glyphs: np.ndarray, dice: torch.Generator) -> np.ndarray:
    """Write glyphs by hand, so to speak, and fit them into 28 by 28 pixels as MNIST's are."""
    ink = torch.from_numpy(glyphs)[:, None].float() / 255
    ink = _bent(ink, dice)
    ink = _thick(ink, dice)
    fine = functional.grid_sample(ink, _frame(ink, SIDE * FINE), align_corners=False)
    small = functional.avg_pool2d(fine, FINE)
    light = small / small.amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-6)
    return (light[:, 0].clamp(0, 1) * 255).round().to(torch.uint8).numpy()


def _bent(ink: Tensor, dice: torch.Generator) -> Tensor:
    """Turn, slant and stretch each image, and push its parts about smoothly."""
    count = len(ink)

    def spread(width: float, *shape: int) -> Tensor:
        return torch.randn(count, *shape, generator=dice) * width

    turn, slant = spread(8 * pi / 180), spread(0.2)
    wide, tall = spread(0.12).exp(), spread(0.08).exp()
    across = torch.stack([turn.cos() * wide, (slant - turn.sin()) * wide, 0 * turn], 1)
    down = torch.stack([turn.sin() * tall, turn.cos() * tall, 0 * turn], 1)
    grid = functional.affine_grid(
        torch.stack([across, down], 1), list(ink.shape), align_corners=False
    )
    coarse = spread(0.05, 2, 5, 5)
    push = functional.interpolate(coarse, CANVAS, mode="bicubic", align_corners=True)
    return functional.grid_sample(ink, grid + push.permute(0, 2, 3, 1), align_corners=False)


def _thick(ink: Tensor, dice: torch.Generator) -> Tensor:
    """Make lines thicker by 0 to 6 pixels of the canvas."""
    extra = torch.randint(0, 4, (len(ink),), generator=dice)
    out = ink.clone()
    for radius in range(1, 4):
        some = extra == radius
        out[some] = functional.max_pool2d(ink[some], 2 * radius + 1, 1, radius)
    return out


def _frame(ink: Tensor, side: int) -> Tensor:
    """Give the grid that fits each letter into the box and centres it by its weight."""
    place = (torch.arange(CANVAS) + 0.5) / CANVAS * 2 - 1
    filled = ink[:, 0] > 0.3
    centres, lengths = [], []
    for axis in (2, 1):  # columns, then rows
        weight = ink[:, 0].sum(dim=3 - axis)
        centres.append((weight * place).sum(1) / weight.sum(1).clamp(min=1e-6))
        seen = filled.any(dim=3 - axis)
        first, last = seen.int().argmax(1), CANVAS - seen.flip(1).int().argmax(1)
        lengths.append((last - first).clamp(min=1))
    scale = torch.stack(lengths).amax(0) / CANVAS * SIDE / BOX
    unit = torch.eye(2)[None] * scale[:, None, None]
    theta = torch.cat([unit, torch.stack(centres, 1)[:, :, None]], dim=2)
    return functional.affine_grid(theta, [len(ink), 1, side, side], align_corners=False)
