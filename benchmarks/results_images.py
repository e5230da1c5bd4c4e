"""The page docs/results/images.md, written from the results alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from image_published import (
    CIFAR,
    HP,
    MEPF,
    MEPF_BARS,
    MERF,
    MERF_CELLS,
    MERF_REAL,
    MERF_TWELVE,
)
from image_tasks import METHODS, PARTS
from page_parts import FOLDER, command, image
from results_pages import machine
from runs import RESULTS, Log

from aquatint.evaluate.images.recipes import PAPERS as RECIPES

TITLES = {"mnist": "MNIST", "fashion": "FashionMNIST", "cifar10": "CIFAR-10"}
PAPERS_DRAWN = 60_000
Group = tuple[str, str, float, int]
"""The images, the method, ε, and how many images were drawn."""
Found = dict[str, Any]

HEAD = """\
# Private images

Images that are drawn from one release, judged by classifiers that learn from them and are tested on
real images. This page is written by `make bench-images`. Each part names the command that made it;
a part that was stopped goes on where it was, since every run is kept as a line of
`benchmarks/results/images-*.jsonl`.

Everywhere δ = 10⁻⁵, neighbouring sets of images differ in one image that is replaced, and figures
are accuracies in percent on the 10,000 test images, means over runs. Run 1, 2, 3 has the simulated
noise (`simulate=`), the generator and the classifiers of seed 0, 1, 2. *Drawn* is how many images
the classifiers learnt from; the papers draw 60,000. Every method has one setting for every ε.
Settings were chosen on training images, 5,000 of which were held out, and none on test images
([notes](notes.md)). A figure in bold reaches what stands beside it.

*Public* names the public data of a method: whatever it saw besides the release.
"""

MERF_TEXT = """\
## DP-MERF

`aq.dp_merf`: random Fourier features of the pixels. *Mean of 12* is over the papers' classifiers.
Published are tables 9 and 10 of DP-MERF, means of 5 runs, which are the bars too. Noise is for a
sensitivity of 2/m in both; of our budget, a twentieth goes to the class counts. Real images have
{mnist:g} and {fashion:g} there. AdaBoost is SAMME, for the paper's SAMME.R has left scikit-learn.
"""

HP_TEXT = """\
## DP-HP

`aq.dp_hp`: Hermite features of the pixels. DP-HP has its mean of 12 classifiers in a figure alone,
above DP-MERF's. The figures that are printed are two classifiers in table 1 of DP-MEPF, whose
caption says ε = 10; the bar is to be no worse than these, and than DP-MERF's mean.
"""

GAUSSIAN_TEXT = """\
## No generator

`aq.pixel_gaussian`: count, mean and second moment of every class in the coordinates of a public
projection, and images drawn from a Gaussian each. It is the line that every generator with public
features has to beat. Published is DP-MEPF, with a generator and a public ResNet18.
"""

ALONE_TEXT = """\
## No generator, no public images

The same with the 100 smoothest cosines in place of public directions: nothing is public but the
size of the images. Published is DP-MERF, and under *logistic* and *MLP* DP-HP at ε = 10.
"""

CENTRED_TEXT = """\
## No generator, a centred view

The same with 150 cosines about the mean of the private images. That mean, and how far images
spread about it, come from a first release with 3 % of the budget (`aq.centred_view`); ε is what
both releases cost together. Noise goes with the square of the lengths that are clipped at, and
about their own mean images are short.
"""

MEPF_TEXT = """\
## DP-MEPF

`aq.dp_mepf`: features of a ResNet18. For MNIST the paper's ResNet18 was trained on SVHN, which is
not at hand; here it is CIFAR-10 for both. One H200, with two or three fits on it at a time: alone
they take less.
"""

LETTERS_TEXT = """\
## DP-MEPF with public letters

The same on MNIST, with other public images: 52,000 letters drawn from 102 free typefaces, bent and
slanted (`benchmarks/image_letters.py`). The ResNet18 learns to tell the 26 letters apart, and a
generator is first trained on a sketch of them. No digit is among them, and no label of a digit; the
paper's SVHN is made of digits. Two generators draw in turn. Seven tenths of the budget are a
Gaussian by class in 150 cosines, centred as above: the generators match its moments too, and two
fifths of the images are its. Runs at ε = 0.2 are from when it was half of the budget, and are to be
made again; those at ε = 1 had one or two other fits beside them.
"""

CLOTHES_TEXT = """\
## DP-MEPF layer by layer

FashionMNIST with the ResNet18 of CIFAR-10, each layer normalised by itself; two generators, 2,500
steps at a rate of 10⁻³; the Gaussian as above, with half of the budget.
"""

CIFAR_TEXT = """\
## CIFAR-10

VGG16 features; a ResNet9 is trained on drawn images. FID is measured by the standard Inception
network between as many drawn and training images; *train–test* is what real test images get.
Published FIDs are not shown: the code that made them had an error of scale. One H200; the row of
ε = 5, those with 3,000 steps and those of the paper's reading had other fits beside, and took up to
two and a half times as long for it. Each of two generators has as many *steps* as stand there. Ours
has 8,000 as its one setting now, chosen on training images held back; rows with 3,000 are from
before, and are to be run again. Our reading of the paper trains for 2,500 steps, the authors many
times as long.
"""

MISSING = "*Not run yet*: {what}.\n"
RUNS = 3
FEW = f"*Fewer runs than the {RUNS} that are planned.*\n"


def log_of(part: str) -> Log:
    """Give the results of a part."""
    return Log(RESULTS / f"images-{part}.jsonl")


def render() -> None:
    """Write the page, with what results there are."""
    logs = {part: log_of(part) for part in PARTS}
    lines = [line for log in logs.values() for line in log.lines().values()]
    made = [
        HEAD,
        _section("merf", MERF_TEXT.format(**MERF_REAL), _merf),
        _section("hp", HP_TEXT, _hp),
        _section("gaussian", GAUSSIAN_TEXT, _gaussian),
        _section("alone", ALONE_TEXT, _hp),
        _section("centred", CENTRED_TEXT, _gaussian),
        _section("mepf", MEPF_TEXT, _mepf),
        _section("letters", LETTERS_TEXT, _mepf),
        _section("clothes", CLOTHES_TEXT, _mepf),
        _section("cifar", CIFAR_TEXT, _cifar),
        machine(lines),
    ]
    text = "\n".join(part for part in made if part)
    (FOLDER / "images.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    print("written: docs/results/images.md")


def grouped(log: Log) -> dict[Group, list[Found]]:
    """Give what runs found, by images, method, ε and the number of drawn images.

    A run that was made for several sets of classifiers is one run.
    """
    found: dict[Group, dict[int, Found]] = defaultdict(dict)
    for line in log.lines().values():
        told = line["settings"]
        key = (told["images"], told["method"], told["epsilon"], told["drawn"])
        steps = {"steps": told["fit"].get("steps")}
        found[key][told["seed"]] = found[key].get(told["seed"], {}) | line["found"] | steps
    made = {key: list(runs.values()) for key, runs in found.items()}
    return dict(sorted(made.items(), key=_order))


def _order(item: tuple[Group, Any]) -> tuple[Any, ...]:
    name, method, epsilon, drawn = item[0]
    return list(TITLES).index(name), list(METHODS).index(method), -epsilon, -drawn


def _section(part: str, text: str, table: Any) -> str:
    found = grouped(log_of(part))
    chosen = PARTS[part]
    absent = [
        f"{TITLES[name]}, {METHODS[method].title}, ε = {epsilon:g}"
        for name in chosen.images
        for method in chosen.methods
        for epsilon in chosen.epsilons
        if not any(key[:3] == (name, method, epsilon) for key in found)
    ]
    words = f"images.py {part}" + (" --device cuda" if chosen.gpu else "")
    words += "".join(f" --drawn {n}" for n in {key[3] for key in found} if n != PAPERS_DRAWN)
    pictures = [
        image(
            f"images-{name}-{method}-{epsilon:g}.png",
            f"{TITLES[name]}, {METHODS[method].title}, ε = {epsilon:g}: ten images of each class.",
        )
        for name, method, epsilon in dict.fromkeys(key[:3] for key in found)
    ]
    shown = table(found) if found else []
    made = [text, command(words), "\n".join(shown) + "\n" if shown else ""]
    made += [MISSING.format(what="; ".join(absent)) if absent else ""]
    made += [FEW if any(len(runs) < RUNS for runs in found.values()) else ""]
    if any(pictures):
        made += ["The first run of each row above, in the same order.\n", *pictures]
    return "\n".join(each for each in made if each)


def _merf(found: dict[Group, list[Found]]) -> list[str]:
    lines = _head("mean of 12", "published", "logistic", "MLP", "fit, s")
    for key, runs in found.items():
        mean, bar = _mean(runs, "mean"), MERF.get((key[0], key[2]))
        cells = [_against(mean, bar), _number(bar), *_some(runs, "logistic", "mlp")]
        lines.append(_line(key, runs, [*cells, _seconds(runs)]))
    return [*lines, "", *_twelve(found)]


def _twelve(found: dict[Group, list[Found]]) -> list[str]:
    """Lay each of the twelve classifiers beside what was published; the most images drawn count."""
    runs = {(name, epsilon): some for (name, _, epsilon, _), some in reversed(found.items())}
    cells = [cell for cell in MERF_CELLS if cell in runs]
    names = [f"{TITLES[name]}, ε = {epsilon:g}" for name, epsilon in cells]
    lines = ["Ours / published, classifier by classifier:", ""]
    lines += [f"| classifier | {' | '.join(names)} |", "|" + " --- |" * (len(names) + 1)]
    for classifier, published in MERF_TWELVE.items():
        row = [
            f"{_against(_mean(runs[cell], classifier), bar)} / {bar:.1f}"
            for cell, bar in zip(MERF_CELLS, published, strict=True)
            if cell in runs
        ]
        lines.append(f"| {RECIPES[classifier].title} | {' | '.join(row)} |")
    return lines


def _hp(found: dict[Group, list[Found]]) -> list[str]:
    lines = _head("mean of 12", "DP-MERF's", "logistic", "published", "MLP", "published", "fit, s")
    for key, runs in found.items():
        bars = HP[key[0]]
        merf = MERF.get((key[0], key[2]))
        cells = [_against(_mean(runs, "mean"), merf), _number(merf)]
        for name, bar in zip(("logistic", "mlp"), bars, strict=True):
            cells += [_against(_mean(runs, name), bar), _number(bar)]
        lines.append(_line(key, runs, [*cells, _seconds(runs)]))
    return lines


def _gaussian(found: dict[Group, list[Found]]) -> list[str]:
    lines = _head("logistic", "MLP", "CNN", "DP-MEPF published: logistic", "MLP")
    for key, runs in found.items():
        other = MEPF.get((key[0], key[2]), (None, None))
        ours = _some(runs, "logreg_torch", "mlp_torch", "cnn")
        lines.append(_line(key, runs, [*ours, *map(_number, other)]))
    return lines


def _mepf(found: dict[Group, list[Found]]) -> list[str]:
    lines = _head("logistic", "bar", "MLP", "bar", "CNN", "bar", "published", "fit, s")
    for key, runs in found.items():
        bars = MEPF_BARS.get((key[0], key[2]), (None, None, None))
        cells = []
        for name, bar in zip(("logreg_torch", "mlp_torch", "cnn"), bars, strict=True):
            cells += [_against(_mean(runs, name), bar), _number(bar)]
        other = " / ".join(map(_number, MEPF[key[0], key[2]]))
        lines.append(_line(key, runs, [*cells, other, _seconds(runs)]))
    return lines


def _cifar(found: dict[Group, list[Found]]) -> list[str]:
    columns = ("ResNet9", "bar", "published", "FID", "train–test", "images", "steps", "fit, s")
    lines = _head(*columns)
    for key, runs in found.items():
        published, bar = CIFAR.get(key[2], (None, None))
        cells = [_against(_mean(runs, "resnet9"), bar), _number(bar), _number(published)]
        images = runs[0].get("fid_images")
        fids = [_plain(runs, "fid"), _plain(runs, "fid_sanity"), f"{images:,}" if images else "–"]
        steps = " or ".join(f"{n:,}" for n in sorted({run["steps"] for run in runs}))
        lines.append(_line(key, runs, [*cells, *fids, steps, _seconds(runs)]))
    looks = [run.get("fid_by_step") for runs in found.values() for run in runs]
    starts = [look["0"] for look in looks if look]
    if starts:
        told = f"Before a generator has seen a release (ε = 0) its FID is {fmean(starts):.1f}."
        lines += ["", told + " No public image goes into these generators."]
    return lines


def _head(*columns: str) -> list[str]:
    first = ("images", "method", "public", "ε", "drawn", "runs")
    names = (*first, *columns)
    return [f"| {' | '.join(names)} |", "|" + " --- |" * len(names)]


def _line(key: Group, runs: Sequence[Found], cells: Iterable[str]) -> str:
    name, method, epsilon, drawn = key
    chosen = METHODS[method]
    first = (TITLES[name], chosen.title, chosen.public, f"{epsilon:g}", f"{drawn:,}", len(runs))
    return f"| {' | '.join(map(str, (*first, *cells)))} |"


def _mean(runs: Sequence[Found], name: str) -> float | None:
    values = [run[name] for run in runs if run.get(name) is not None]
    return 100 * fmean(values) if len(values) == len(runs) else None


def _some(runs: Sequence[Found], *names: str) -> list[str]:
    return [_number(_mean(runs, name)) for name in names]


def _plain(runs: Sequence[Found], name: str) -> str:
    values = [run[name] for run in runs if run.get(name) is not None]
    return f"{fmean(values):.1f}" if values else "–"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _against(value: float | None, bar: float | None) -> str:
    """Set a figure in bold if it reaches its bar."""
    if value is None or bar is None or value < bar:
        return _number(value)
    return f"**{value:.1f}**"


def _seconds(runs: Sequence[Found]) -> str:
    return f"{fmean(run['fit_s'] for run in runs):.0f}"
