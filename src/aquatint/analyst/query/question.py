"""A question in SQL: read whole, checked whole, and turned into statistics for each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from sqlglot import expressions as sql

from aquatint.analyst.literals import column_of, quoted, read_sql
from aquatint.analyst.query.conditions import Conditions
from aquatint.analyst.query.expressions import Expressions, finite
from aquatint.analyst.query.functions import ALWAYS, Predicate
from aquatint.analyst.query.points import Points
from aquatint.analyst.query.statistics import Statistic
from aquatint.columns import RANGED
from aquatint.errors import DataError
from aquatint.schema import Schema

MOST_GROUPS = 1_000
EXAMPLE = "select sex, avg(age) from data where age >= 30 group by sex"
PARTS = {"kind", "expressions", "from", "from_", "where", "group", "having", "order", "limit"}


@dataclass(frozen=True, eq=False)
class Group:
    """One line of the answer.

    Attributes
    ----------
    key
        The value of each column that is grouped by.
    statistics
        What is asked, in the order of the question; None where a key stands.
    kept
        Whether the line is kept, above one half; None without ``having``.
    """

    key: tuple[str, ...]
    statistics: tuple[Statistic | None, ...]
    kept: Statistic | None


@dataclass(frozen=True, eq=False)
class Question:
    """What was asked.

    Attributes
    ----------
    names
        The names of the answer's columns.
    keys
        For each of them, the place of the key that it shows, or None for a statistic.
    groups
        The lines.
    conditions
        Reads conditions, and knows the points of the columns that the functions read.
    where
        Which rows are asked about.
    order
        Names to sort by, and whether to fall.
    limit
        The most lines to give.
    """

    names: tuple[str, ...]
    keys: tuple[int | None, ...]
    groups: tuple[Group, ...]
    conditions: Conditions
    where: Predicate
    order: tuple[tuple[str, bool], ...]
    limit: int | None

    @property
    def points(self) -> Mapping[str, Points]:
        """The points of the columns that the functions read."""
        return self.conditions.known


def ask(schema: Schema, text: str, masses: Mapping[str, np.ndarray] | None = None) -> Question:
    """Read a question.

    Parameters
    ----------
    schema
        The release's schema, its bins settled.
    text
        One ``select`` over the table, whatever name it is given.
    masses
        The share of rows in each cell of each ranged column, if known.
    """
    return read_sql(text, "question", EXAMPLE, lambda tree: _read(schema, tree, masses or {}))


def _read(schema: Schema, tree: Any, masses: Mapping[str, np.ndarray]) -> Question:
    _check_form(tree)
    conditions = Conditions(schema, tree, masses)
    reader = Expressions(conditions)
    by = _grouped(schema, tree)
    where = conditions.predicate(tree.args["where"].this) if tree.args.get("where") else ALWAYS
    items = [(_name(item), _plain(item)) for item in tree.expressions]
    keys = tuple(_key(item, by) for _, item in items)
    having = _having(tree, dict(items))
    names = tuple(name for name, _ in items)
    order, limit = _order(tree, names), _limit(tree)
    groups = []
    for cells in product(*(range(schema.columns[name].cells) for name in by)):
        here = where
        for name, cell in zip(by, cells, strict=True):
            here = here & conditions.in_cell(name, cell)
        statistics = tuple(
            None if key is not None else reader.statistic(item, here)
            for key, (_, item) in zip(keys, items, strict=True)
        )
        said = tuple(schema.cell_names(n)[c] for n, c in zip(by, cells, strict=True))
        groups.append(Group(said, statistics, reader.kept(having, here) if having else None))
    return Question(names, keys, tuple(groups), conditions, where, order, limit)


def _check_form(tree: Any) -> None:
    if not isinstance(tree, sql.Select):
        msg = f"a question is one select, and nothing else: write it like {EXAMPLE}"
        raise DataError(msg)
    more = {name for name, part in tree.args.items() if part} - PARTS
    source = tree.args.get("from") or tree.args.get("from_")
    if more or tree.find(sql.Subquery, sql.Window) or not source:
        what = sorted(more)[0] if more else "a subquery or a window"
        msg = f"cannot answer {what} in a question: one select from one table, like {EXAMPLE}"
        raise DataError(msg)
    if tree.find(sql.Star) and any(isinstance(e, sql.Star) for e in tree.expressions):
        msg = "rows cannot be shown, only statistics of them: draw synthetic rows with sample"
        raise DataError(msg)


def _having(tree: Any, items: Mapping[str, Any]) -> Any:
    """Give the condition on groups, with the names of the answer's columns put in full."""
    having = tree.args.get("having")
    if having is None:
        return None

    def in_full(node: Any) -> Any:
        named = isinstance(node, sql.Column) and not isinstance(items.get(node.name), sql.Column)
        return items[node.name].copy() if named and node.name in items else node

    return having.this.transform(in_full)


def _name(item: Any) -> str:
    """Give the name of a part of the answer: as it is called, or as it was asked."""
    if isinstance(item, (sql.Alias, sql.Column)):
        return str(item.alias_or_name)
    return str(item.sql(normalize_functions="lower"))


def _plain(item: Any) -> Any:
    return item.this if isinstance(item, sql.Alias) else item


def _grouped(schema: Schema, tree: Any) -> tuple[str, ...]:
    group = tree.args.get("group")
    names = []
    for part in group.expressions if group else ():
        if not isinstance(part, sql.Column):
            msg = f"cannot group by {quoted(part.sql())}: group by columns with categories"
            raise DataError(msg)
        if isinstance(column_of(schema, part.name), RANGED):
            msg = f"column {part.name!r} is a range: ask with case, or with where for each part"
            raise DataError(msg)
        names.append(part.name)
    if prod(schema.columns[name].cells for name in names) > MOST_GROUPS:
        msg = f"there would be more than {MOST_GROUPS:,} groups: group by fewer columns"
        raise DataError(msg)
    return tuple(names)


def _key(item: Any, by: tuple[str, ...]) -> int | None:
    if not isinstance(item, sql.Column):
        return None
    if item.name not in by:
        msg = f"column {quoted(item.name)} stands alone: group by it, or ask for its average"
        raise DataError(msg)
    return by.index(item.name)


def _order(tree: Any, names: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    order = tree.args.get("order")
    found = []
    for part in order.expressions if order else ():
        name = _name(part.this)
        if name not in names:
            msg = f"cannot sort by {quoted(name)}: sort by one of {', '.join(names)}"
            raise DataError(msg)
        found.append((name, bool(part.args.get("desc"))))
    return tuple(found)


def _limit(tree: Any) -> int | None:
    limit = tree.args.get("limit")
    return None if limit is None else int(finite(limit.expression))
