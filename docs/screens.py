"""Take some of the pictures that the browser tests leave behind, small enough for a repository.

python docs/screens.py, or make screens
"""

from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
CHOSEN = ("overview", "ask", "compare", "studio-budget", "studio-done", "report")
WIDTH, TALLEST = 960, 1100


def main() -> None:
    (HERE / "_static" / "screens").mkdir(parents=True, exist_ok=True)
    for name in CHOSEN:
        with Image.open(HERE / "_build" / "screens" / f"{name}.png") as picture:
            height = round(picture.height * WIDTH / picture.width)
            small = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
        cut = small.crop((0, 0, WIDTH, min(height, TALLEST)))
        few = cut.quantize(
            128, method=Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
        )
        few.save(HERE / "_static" / "screens" / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
