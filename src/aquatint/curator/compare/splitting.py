"""Two parts of the rows, drawn without looking at them: one to choose by, the other to test.

Let M₁ be a mechanism on the one part that is ε-DP, and M₂ one on the other part that is ε-DP for
every outcome of M₁. Both outcomes together are ε-DP, not 2ε-DP, because a row is in one part only
(parallel composition). What has to be seen to is that the split does not tell on the row, nor on
how many rows there are.

*Replace one row*, sizes m and n public. Of either side a fixed number of rows, m//3 and n//3, goes
to the first part, and which ones is uniform: a law of public numbers alone. Give both neighbours
the same split. The row that differs is at one place, so in one part, and the other part is the same
for both. If it is in the first, P[c, d] = P₁[c]·P₂[d | c] changes in its first factor by at most
e^ε; if in the second, in its second. This holds for every split, hence on average over splits, and
the sizes of both parts may be used and told. Sides of one size have parts of one size.

*Add or remove one row*, sizes private. A fixed number would move with the size, and with it a
second row from one part to the other. So every row goes to the first part by a coin of its own,
with a chance of 85/256. Give the rows that the neighbours share the same coins; the coin of the new
row is independent of them. If it falls to the first part, that has one row more and the second is
the same for both neighbours, and so on as above. Sizes of parts are not told, and neither mechanism
may refuse a part for its size: parts without rows are as good as others.

*Level.* If nothing differs, the rows of both sides are exchangeable. Given the split and the rows
of the first part, those of the second still are: a choice that was made by the first part is, for
the test, as good as one that was made by a stranger.
"""

from __future__ import annotations

import numpy as np

from aquatint.curator.compare.permutation import Coins, deal
from aquatint.curator.compare.samples import Samples

PARTS = 3
"""One row in so many is for choosing. With one signal among six and noise alone in the others, a
third lost least power of a fifth, a quarter, a third and two fifths."""
_OF_A_BYTE = 256 // PARTS


def split(samples: Samples, coins: Coins) -> tuple[Samples, Samples]:
    """Give the rows to choose by and the rows to test: private, and each row is in one of them.

    Parameters
    ----------
    samples
        All rows.
    coins
        Gives random bytes.
    """
    draw = _so_many if samples.schema.privacy.replaces else _each_by_itself
    first, second = (draw(size, coins) for size in samples.sizes)
    return samples.only((first, second)), samples.only((~first, ~second))


def _so_many(size: int, coins: Coins) -> np.ndarray:
    left = np.array([[size // PARTS, size]], dtype=np.int64)
    marks: np.ndarray = deal(left, size, coins)[0] > 0
    return marks


def _each_by_itself(size: int, coins: Coins) -> np.ndarray:
    marks: np.ndarray = coins(size) < _OF_A_BYTE
    return marks
