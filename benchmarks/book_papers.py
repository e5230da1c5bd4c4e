"""The five papers, and where each typed-in figure stands in their texts.

The texts lie beside the data (`papers`, next to $AQUATINT_DATA); `tests/unit/test_book.py` looks
every figure up in them, and is skipped where they are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import image_published as images
from datasets import MARGINALS, PUBLISHED, data_folder
from results_tables import PUBLISHED_NLL as NLL
from results_tasks import PUBLISHED as M2M

GAMMA = {
    0.001: (0.474, 0.570),
    0.01: (0.473, 0.570),
    0.1: (0.499, 0.597),
    1.0: (0.474, 0.570),
    10.0: (0.585, 0.671),
    100.0: (0.674, 0.757),
    1000.0: (0.676, 0.761),
}
"""DP-HP, table 5: 3-way and 4-way error at ε = 0.3 by γ."""
PRODUCT = {2: (0.367, 0.466), 5: (0.340, 0.434), 7: (0.332, 0.422)}
"""DP-HP, table 8: 3-way and 4-way error at ε = 1 by the columns of a product kernel."""
PRIVBAYES = {
    ("adult", 3): ((0.275, 0.446, 0.577), (0.348, 0.405, 0.480)),
    ("census", 2): ((0.131, 0.180, 0.291), (0.172, 0.190, 0.222)),
    ("census", 3): ((0.264, 0.323, 0.429), (0.291, 0.302, 0.337)),
}
"""DP-MERF, §M.2, on D: PrivBayes and DP-MERF at ε = 1, 0.3 and 0.1. The figure of PrivBayes for
four columns of Adult at ε = 1 is not legible in the copy at hand."""
NOT_PRIVATE = {
    "adult": ((0.642, 0.525), (0.673, 0.621)),
    "census": ((0.696, 0.244), (0.707, 0.320)),
    "cervical": ((0.863, 0.607), (0.823, 0.574)),
    "credit": ((0.902, 0.828), (0.890, 0.863)),
    "epileptic": ((0.564, 0.236), (0.602, 0.546)),
    "isolet": ((0.755, 0.461), (0.789, 0.668)),
    "covtype": ((0.601,), (0.580,)),
    "intrusion": ((0.884,), (0.888,)),
}
"""DP-HP, table 7: DP-MERF and DP-HP without privacy."""
TWELVE = {
    "logistic": "Logistic Regression",
    "gaussian_nb": "Gaussian Naive Bayes",
    "bernoulli_nb": "Bernoulli Naive Bayes",
    "linear_svc": "Linear SVM",
    "decision_tree": "Decision Tree",
    "lda": "LDA",
    "adaboost": "Adaboost",
    "bagging": "Bagging",
    "random_forest": "Random Forest",
    "gradient_boosting": "GBM",
    "mlp": "Multi-layer perceptron",
    "xgboost": "XGBoost",
}
"""The papers' names of the twelve classifiers."""
CREDIT_BEST: dict[str, tuple[float, float]] = {
    "logistic": (0.78, 0.61),
    "gaussian_nb": (0.65, 0.48),
    "bernoulli_nb": (0.90, 0.74),
    "linear_svc": (0.64, 0.38),
    "decision_tree": (0.72, 0.58),
    "lda": (0.69, 0.51),
    "adaboost": (0.75, 0.63),
    "bagging": (0.74, 0.61),
    "random_forest": (0.75, 0.62),
    "gradient_boosting": (0.74, 0.61),
    "mlp": (0.66, 0.44),
    "xgboost": (0.72, 0.59),
}
"""DP-MERF, table 5: ROC and PRC on Credit, the best of five runs."""
CREDIT: dict[str, tuple[float, float]] = {
    "logistic": (0.796, 0.665),
    "gaussian_nb": (0.729, 0.582),
    "bernoulli_nb": (0.752, 0.586),
    "linear_svc": (0.742, 0.549),
    "decision_tree": (0.775, 0.650),
    "lda": (0.725, 0.544),
    "adaboost": (0.787, 0.689),
    "bagging": (0.811, 0.709),
    "random_forest": (0.786, 0.686),
    "gradient_boosting": (0.807, 0.707),
    "mlp": (0.747, 0.570),
    "xgboost": (0.812, 0.716),
}
"""DP-MERF, table 6: the mean of five runs."""
INTRUSION_BEST: dict[str, float] = {
    "logistic": 0.940,
    "gaussian_nb": 0.736,
    "bernoulli_nb": 0.755,
    "linear_svc": 0.937,
    "decision_tree": 0.952,
    "lda": 0.950,
    "adaboost": 0.503,
    "bagging": 0.956,
    "random_forest": 0.943,
    "gradient_boosting": 0.933,
    "mlp": 0.957,
    "xgboost": 0.933,
}
"""DP-MERF, table 7: F1 on Intrusion, the best of five runs."""
INTRUSION: dict[str, float] = {
    "logistic": 0.928,
    "gaussian_nb": 0.792,
    "bernoulli_nb": 0.508,
    "linear_svc": 0.917,
    "decision_tree": 0.907,
    "lda": 0.925,
    "adaboost": 0.592,
    "bagging": 0.922,
    "random_forest": 0.923,
    "gradient_boosting": 0.926,
    "mlp": 0.941,
    "xgboost": 0.921,
}
"""DP-MERF, table 8: the mean of five runs."""
MEPF_EPSILONS = (10.0, 5.0, 2.0, 1.0, 0.2)
MEPF_TABLE_2 = {
    ("mnist", "MLP"): (89.8, 89.9, 89.3, 89.3, 79.9),
    ("mnist", "LogReg"): (83.4, 83.3, 82.9, 82.5, 75.8),
    ("fashion", "MLP"): (76.0, 75.8, 75.1, 74.7, 70.4),
    ("fashion", "LogReg"): (75.7, 75.2, 75.8, 75.4, 72.5),
}
"""DP-MEPF, tables 1 and 2 as tables 10 and 11 have them, with both moments."""
CIFAR_EPSILONS = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2)
MEPF_TABLE_6 = (51.0, 48.5, 42.5, 29.4, 19.4, 13.8)
"""ResNet9 on labelled CIFAR-10, first moment."""
MEPF_TABLE_5 = {
    "labelled": (26.6, 27.6, 27.6, 38.6, 64.4, 325.0),
    "unlabelled": (27.1, 24.9, 26.0, 27.2, 34.8, 56.6),
}
"""FID with both moments. The code that made these had an error of scale."""
MEPF_TABLE_4 = {
    "best FID (not private)": (38.0, 78.4, 350.3),
    "chosen by the private proxy": (39.0, 78.4, 469.3),
    "at the end": (311.8, 354.4, 371.7),
}
"""Labelled CIFAR-10 at ε = 1, 0.5, 0.2: FID."""


@dataclass(frozen=True)
class Paper:
    """A paper: its short name, its title, who wrote it, and the beginning of its text's name."""

    name: str
    title: str
    authors: str
    text: str


PAPERS = {
    paper.name: paper
    for paper in (
        Paper(
            "dp-merf",
            "DP-MERF: Differentially Private Mean Embeddings with Random Features for Practical "
            "Privacy-Preserving Data Generation",
            "Harder, Adamczewski & Park (2021)",
            "001",
        ),
        Paper(
            "dp-hp",
            "Hermite Polynomial Features for Private Data Generation",
            "Vinaroz, Charusaie, Harder, Adamczewski & Park (2022)",
            "000",
        ),
        Paper(
            "dp-mepf",
            "Differentially Private Data Generation Needs Better Features",
            "Harder, Jalali Asadabadi, Sutherland & Park (2022)",
            "002",
        ),
        Paper(
            "two-sample",
            "A Differentially Private Kernel Two-Sample Test",
            "Raj, Law, Sejdinovic & Park (2019)",
            "003",
        ),
        Paper(
            "m2m",
            "M²M: A general method to perform various data analysis tasks from a differentially "
            "private sketch",
            "Houssiau, Schellekens, Chatalic, Annamraju & de Montjoye (2022)",
            "004",
        ),
        Paper("peers", "The best of other methods", "AIM and MST, run here on Adult", "none"),
    )
}


@dataclass(frozen=True)
class Typed:
    """Figures that were typed in from one line of a paper: they stand there in this order.

    Attributes
    ----------
    line
        How the line begins, a pattern over its plain text.
    torn
        The copy at hand tears cells in two and may put a digit between: 0.467 became 0.4 167.
    """

    paper: str
    line: str
    figures: tuple[str, ...]
    torn: bool = False

    def stands(self, text: str) -> bool:
        """Look the figures up; marks between them may be anything, for tables were copied badly."""
        shown = [re.escape(figure) for figure in self.figures]
        if self.torn:
            shown = [rf"{re.escape(f[:3])}\d?{f[3:]}" for f in self.figures]
        pattern = self.line + ".*?" + ".*?".join(shown)
        return any(re.match(pattern, plain(each)) for each in text.splitlines())


def plain(text: str) -> str:
    """Drop spaces, tabs, bold marks and dollars; a comma within a figure is a point."""
    bare = re.sub(r"[\s$*{}\\|]|<.*?>", "", text).replace(",", ".").lower()
    return re.sub(r"0+cdot", "cdot", bare)


def paper_text(name: str) -> str | None:
    """Give the text of a paper, if it is here."""
    folder = data_folder().parent / "papers"
    found = sorted(Path(folder).glob(f"{PAPERS[name].text}_*.txt")) if folder.is_dir() else []
    return found[0].read_text(encoding="utf-8") if found else None


def typed() -> Iterator[Typed]:
    """Give every figure that was typed in, with the line that has it."""
    for name, known in PUBLISHED.items():
        torn = len(known.measures) == 1
        real = (*known.hp_real, *known.merf_in_hp)
        yield Typed("dp-hp", name, _three(*real, *known.hp), torn)
        merf, hp = NOT_PRIVATE[name]
        yield Typed("dp-hp", name, tuple(f.rstrip("0") for f in _three(*merf, *hp)), torn)
        if not torn:  # in the copy at hand, those cells cannot be read at all
            yield Typed("dp-merf", name, _three(*known.merf_real, *known.merf))
    yield Typed("dp-merf", "average", _three(*PUBLISHED["intrusion"].merf))
    for (_, alpha), by in MARGINALS.items():
        told = [v for method in ("PrivBayes", "DP-MERF", "DP-HP") for v in by[method]]
        yield Typed("dp-hp", f".*alpha={alpha}", _three(*told))
    for (_, alpha), (other, merf) in PRIVBAYES.items():
        del alpha
        yield Typed("dp-merf", ".*?alpha", _three(*other[1:], *merf))
    for gamma, both in GAMMA.items():
        yield Typed("dp-hp", f"0.30.1105{gamma:g}8", _three(*both))
    yield Typed("dp-hp", "1", ("0.367", "0.34", "0.332", "0.466", "0.434", "0.422"))
    for nll in NLL.values():
        yield Typed("dp-hp", ".*nllapprox", (f"{nll / 1e5:.1f}times10^5",))
    for name, said in TWELVE.items():
        yield Typed("dp-merf", plain(said), tuple(f"{v:.2f}" for v in CREDIT_BEST[name]))
        yield Typed("dp-merf", plain(said), _three(*CREDIT[name]))
        yield Typed("dp-merf", plain(said), _three(INTRUSION_BEST[name]))
        yield Typed("dp-merf", plain(said), _three(INTRUSION[name]))
    for name, four in images.MERF_TWELVE.items():
        said = {"mlp": "mlp"}.get(name, plain(TWELVE[name]))
        yield Typed("dp-merf", said, _three(*(v / 100 for v in four[:2])))
        yield Typed("dp-merf", said, _three(*(v / 100 for v in four[2:])))
    yield from _mepf()
    for rff, hist in M2M.values():
        yield Typed("m2m", "", (_scientific(rff), _scientific(hist)))


def _mepf() -> Iterator[Typed]:
    for row in (*MEPF_TABLE_2.values(), MEPF_TABLE_6, *MEPF_TABLE_5.values()):
        yield Typed("dp-mepf", ".*?dp-mepf", tuple(f"{v:.1f}" for v in row))
    for row in MEPF_TABLE_4.values():
        yield Typed("dp-mepf", ".*(fid|training)", tuple(f"{v:.1f}" for v in row))


def _three(*values: float) -> tuple[str, ...]:
    return tuple(f"{value:.3f}" for value in values)


def _scientific(value: float) -> str:
    digits, power = f"{value:.2e}".split("e")
    return f"{digits.rstrip('0')}cdot10^{int(power)}"
