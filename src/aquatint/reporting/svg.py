"""What every chart is made of: safe text, short numbers, scales, and the frame around it.

Elements are built by the standard library's XML writer, which escapes whatever stands in a name.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from xml.etree.ElementTree import Element, tostring  # writes only

from aquatint.drawing import shortened

Format = Callable[[float], str]
LETTER = 6.2
"""About how wide a letter is, at the size that charts write in."""
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Kinds of characters that cannot be seen, or that turn others around."""
_JOINERS = {"\u200c", "\u200d"}
"""Hidden too, but words of some languages and many an emoji are spelt with them."""


def clean(text: object) -> str:
    r"""Write characters that cannot be seen, or that turn text around, as their number.

    Letters of languages written from right to left stay as they are: only marks that order the
    text *around* them are shown.

    Examples
    --------
    >>> clean("age\u202egnp.exe")
    'age\\u202egnp.exe'
    """
    written = str(text)
    return written if written.isprintable() else "".join(map(_shown, written))


def _shown(letter: str) -> str:
    if letter in "\t\n\r":
        return " "
    if unicodedata.category(letter) not in _HIDDEN or letter in _JOINERS:
        return letter
    return f"\\u{ord(letter):04x}"


def label(text: object, most: int = 24) -> str:
    """Give a name that fits: its middle is left out if it is long."""
    return shortened(clean(text), most)


def brief(number: float) -> str:
    """Write a number in three figures, thousands as k.

    Examples
    --------
    >>> brief(12_400), brief(0.0312), brief(3_000_000.0)
    ('12.4k', '0.0312', '3M')
    """
    if not isfinite(number):
        return "unknown"
    for least, unit, sign in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(number) >= least:
            return f"{number / unit:.3g}{sign}"
    return f"{number:,.0f}" if abs(number) >= 1_000 else f"{number:.3g}"


def percent(share: float) -> str:
    """Write a share as a percentage.

    Examples
    --------
    >>> percent(0.1234), percent(0.00042)
    ('12.3 %', '0.042 %')
    """
    if not isfinite(share):
        return "unknown"
    return f"{100 * share:.3g} %"


@dataclass(frozen=True)
class Scale:
    """Numbers to places: the ends of the numbers, and where these are drawn."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, number: float) -> float:
        """Give the place of a number, which is never beyond the ends."""
        inside = min(max(number, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, about: int = 4) -> list[float]:
        """Give round numbers along the scale."""
        return round_numbers(self.low, self.high, about)


def scale(numbers: Iterable[float], start: float, end: float, *, zero: bool = True) -> Scale:
    """Make a scale that holds some numbers, and zero if wanted; it always has a length."""
    found = [n for n in numbers if isfinite(n)] + [0.0] * zero
    low, high = min(found, default=0.0), max(found, default=1.0)
    size = max(abs(low), abs(high))
    if high - low <= max(1e-9 * size, 1e-100):
        around = max(0.5, 1e-6 * size)
        low, high = (0.0, 1.0) if zero else (low - around, high + around)
    return Scale(low, high, start, end)


def round_numbers(low: float, high: float, about: int = 4) -> list[float]:
    """Give round numbers between two ends, both admitted.

    Examples
    --------
    >>> round_numbers(0, 0.37)
    [0.0, 0.1, 0.2, 0.3]
    """
    rough = (high - low) / about
    power = 10.0 ** floor(log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def element(tag: str, *children: Element, text: object = None, **attributes: object) -> Element:
    """Build an element: ``class_`` is class, ``text_anchor`` text-anchor, and numbers are short."""
    named = {k.rstrip("_").replace("_", "-"): _value(v) for k, v in attributes.items()}
    made = Element(tag, named)
    made.text = None if text is None else clean(text)
    made.extend(children)
    return made


def tip(text: str) -> Element:
    """Give the words that a pointer at rest shows."""
    return element("title", text=text)


def words(x: float, y: float, text: object, *, kind: str = "", anchor: str = "") -> Element:
    """Write a word at a place."""
    look = {k: v for k, v in (("class", kind), ("text_anchor", anchor)) if v}
    return element("text", text=text, x=x, y=y, **look)


def short(number: float) -> str:
    """Write a place in a picture: a tenth of a pixel is enough."""
    written = f"{number:.1f}"
    return written.removesuffix(".0") if written != "-0.0" else "0"


def _value(value: object) -> str:
    return short(float(value)) if isinstance(value, (int, float)) else clean(value)


def picture(
    size: tuple[float, float], title: str, description: str, parts: Sequence[Element]
) -> str:
    """Put a chart together: an image with a name and a description, for eyes and for ears."""
    frame = element(
        "svg",
        element("title", text=title),
        *([element("desc", text=description)] if description else []),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_="chart",
        role="img",
        viewBox=f"0 0 {short(size[0])} {short(size[1])}",
        fill="currentColor",
    )
    frame.set("aria-label", clean(title))
    return tostring(frame, encoding="unicode", short_empty_elements=True)
