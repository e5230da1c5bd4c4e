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
MERF_REAL = {"mnist": 87.0, "fashion": 78.0}
"""Real images by the same 12."""
HP: dict[str, tuple[float, float]] = {"mnist": (81.0, 82.0), "fashion": (73.0, 71.0)}
"""Logistic regression and MLP of DP-HP."""
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
