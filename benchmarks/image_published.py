"""What was published for images, in percent, and the bars that follow from it.

DP-MERF: tables 9 and 10 of its supplement, means over 12 classifiers and 5 runs. DP-HP has its
means in a figure alone; DP-MEPF's table 1 lists two of its classifiers, under ε = 10. DP-MEPF:
table 1 and 2 with both moments for MNIST and FashionMNIST, and table 6 with the first moment for
CIFAR-10.
"""

from __future__ import annotations

Cell = tuple[str, float]
"""The images and ε."""

MERF: dict[Cell, float] = {
    ("mnist", 1.0): 65.2,
    ("mnist", 0.2): 61.0,
    ("fashion", 1.0): 61.6,
    ("fashion", 0.2): 52.6,
}
"""DP-MERF's mean of 12 classifiers: the bars of ours."""
MERF_CELLS: tuple[Cell, ...] = tuple(MERF)
MERF_TWELVE: dict[str, tuple[float, ...]] = {
    "logistic": (76.9, 77.2, 72.8, 71.4),
    "random_forest": (68.5, 70.2, 68.4, 55.3),
    "gaussian_nb": (54.5, 53.9, 57.5, 46.7),
    "bernoulli_nb": (75.0, 78.0, 60.4, 62.9),
    "linear_svc": (74.6, 72.6, 68.4, 69.7),
    "decision_tree": (45.6, 34.6, 46.2, 35.2),
    "lda": (79.3, 75.3, 73.3, 70.1),
    "adaboost": (45.6, 36.2, 35.9, 25.8),
    "mlp": (80.7, 76.8, 73.8, 69.6),
    "bagging": (60.2, 50.8, 59.3, 37.2),
    "gradient_boosting": (65.9, 55.2, 62.4, 42.9),
    "xgboost": (55.5, 50.9, 61.0, 44.5),
}
"""DP-MERF's twelve, in the order of `MERF`."""
MERF_REAL = {"mnist": 87.0, "fashion": 78.0}
"""Real images by the same 12."""
HP: dict[str, tuple[float, float]] = {"mnist": (81.0, 82.0), "fashion": (73.0, 71.0)}
"""Logistic regression and MLP of DP-HP."""
HP_SIZES = (60, 300, 600, 3000, 6000)
"""Images drawn, from a thousandth to a tenth of the training set: DP-HP, figure 3."""
MEPF: dict[Cell, tuple[float, float]] = {
    ("mnist", 10.0): (83.4, 89.8),
    ("mnist", 1.0): (82.5, 89.3),
    ("mnist", 0.2): (75.8, 79.9),
    ("fashion", 10.0): (75.7, 76.0),
    ("fashion", 1.0): (75.4, 74.7),
    ("fashion", 0.2): (72.5, 70.4),
}
"""Logistic regression and MLP of DP-MEPF, by public SVHN for MNIST and CIFAR-10 for the other."""
MEPF_BARS: dict[Cell, tuple[float, float, float]] = {
    ("mnist", 1.0): (90.0, 93.0, 96.0),
    ("mnist", 0.2): (87.0, 88.0, 92.0),
    ("fashion", 1.0): (80.0, 80.0, 82.0),
    ("fashion", 0.2): (75.0, 76.0, 77.0),
}
"""Logistic regression, MLP and CNN."""
CIFAR: dict[float, tuple[float, float]] = {10.0: (51.0, 55.0), 1.0: (29.4, 45.0), 0.2: (13.8, 25.0)}
"""ResNet9: published, and our bar."""
