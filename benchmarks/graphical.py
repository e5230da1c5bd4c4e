"""Graphical models in NumPy, in place of mbi's: the same steps, without compiling each of them.

AIM fits a new model in every round. mbi 1.1 compiles the fit for JAX each time, and each new shape
of a table besides, which took five sixths of the time on Adult (py-spy, round 9 at ε = 1) and made
runs of hours. Here the same iterates are computed by NumPy: `mirror_descent` differs from mbi's in
rounding alone, and so do the marginals. `python benchmarks/graphical.py` shows by how much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from mbi import CliqueVector, Factor, MarkovRandomField, junction_tree, marginal_oracles
from mbi.estimation import minimum_variance_unbiased_total
from mbi.marginal_loss import maximal_subset
from opt_einsum import contract

Clique = tuple[str, ...]
Tables = dict[Clique, np.ndarray]
STEPS = 1000


def summed(table: np.ndarray, names: Sequence[str], onto: Iterable[str]) -> np.ndarray:
    """Add a table up over all columns but some, which stay in their order."""
    kept = set(onto)
    return np.asarray(table.sum(axis=tuple(i for i, n in enumerate(names) if n not in kept)))


def spread(table: np.ndarray, names: Sequence[str], over: Sequence[str]) -> np.ndarray:
    """Give a table the axes of more columns, to be broadcast."""
    order = sorted(range(len(names)), key=lambda i: over.index(names[i]))
    held = set(names)
    sizes = iter(np.take(table.shape, order).tolist())
    return table.transpose(order).reshape([next(sizes) if n in held else 1 for n in over])


def quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Divide; nothing by nothing is nothing."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


@dataclass(frozen=True, eq=False)
class Tree:
    """A junction tree of cliques, each part of it with its root first."""

    domain: Any
    cliques: tuple[Clique, ...]

    @cached_property
    def nodes(self) -> list[tuple[Clique, Clique | None, Clique]]:
        """Every node, its parent and what they share; parents come first."""
        tree = junction_tree.make_junction_tree(self.domain, self.cliques)[0]
        found: list[tuple[Clique, Clique | None, Clique]] = []
        for part in nx.connected_components(tree):
            root = min(part)
            found.append((root, None, ()))
            for parent, child in nx.bfs_edges(tree, root):
                found.append((child, parent, tuple(n for n in child if n in parent)))
        return found

    @cached_property
    def homes(self) -> dict[Clique, Clique]:
        """The smallest node that holds each clique."""
        names = [node for node, _, _ in self.nodes]
        return {
            c: min((n for n in names if set(c) <= set(n)), key=self.domain.size)
            for c in self.cliques
        }

    def calibrate(self, logs: Tables) -> Tables:
        """Give every node's share of rows, from the potentials of the cliques."""
        held: Tables = {n: np.ones(self.domain.project(n).shape) for n, _, _ in self.nodes}
        for clique, table in logs.items():
            home = self.homes[clique]
            held[home] = held[home] * spread(np.exp(table - table.max()), clique, home)
        told: Tables = {}
        for node, parent, shared in reversed(self.nodes):
            held[node] = held[node] / held[node].max()
            if parent is not None:
                told[node] = summed(held[node], node, shared)
                held[parent] = held[parent] * spread(told[node], shared, parent)
        for node, parent, shared in self.nodes:
            if parent is not None:
                right = quotient(summed(held[parent], parent, shared), told[node])
                held[node] = held[node] * spread(right, shared, node)
            held[node] = held[node] / held[node].sum()
        return held

    def marginals(self, logs: Tables) -> Tables:
        """Give every clique's share of rows."""
        held = self.calibrate(logs)
        out = {}
        for clique in logs:
            home = self.homes[clique]
            kept = [n for n in home if n in clique]
            out[clique] = spread(summed(held[home], home, clique), kept, clique)
        return out

    def marginal(self, held: Tables, asked: Clique) -> np.ndarray:
        """Give the share of rows of any columns: only what lies between them is multiplied out."""
        left = {node: (parent, shared) for node, parent, shared in self.nodes}
        letter = {name: chr(97 + i) for i, name in enumerate(self.domain.attributes)}
        pruned = True
        while pruned:
            pruned = False
            for node in list(left):
                parent, shared = left[node]
                below = [n for n, (p, _) in left.items() if p == node]
                if parent is None and len(below) == 1:
                    (child,) = below
                    kept = left[child][1]
                    if set(node) & set(asked) <= set(kept):
                        del left[node]
                        left[child] = (None, ())
                        pruned = True
                elif not below and set(node) & set(asked) <= set(shared):
                    del left[node]
                    pruned = True
        edges = {n for _, shared in left.values() for n in shared} | set(asked)
        tables, words = [], []
        for node, (_, shared) in left.items():
            kept = [n for n in node if n in edges]
            table = summed(held[node], node, kept)
            if shared:
                table = quotient(
                    table,
                    np.broadcast_to(spread(summed(table, kept, shared), shared, kept), table.shape),
                )
            tables.append(table)
            words.append("".join(letter[n] for n in kept))
        formula = ",".join(words) + "->" + "".join(letter[n] for n in asked)
        return np.asarray(contract(formula, *tables, optimize="greedy"))


@dataclass(frozen=True, eq=False)
class Loss:
    """Half the squared misfit of noisy counts, in units of their noise."""

    total: float
    parts: tuple[tuple[Clique, Clique, np.ndarray, float], ...]

    def __call__(self, shares: Tables) -> tuple[float, Tables]:
        """Give the loss and its gradient."""
        loss, slope = 0.0, {c: np.zeros_like(t) for c, t in shares.items()}
        for clique, parent, counts, deviation in self.parts:
            kept = [n for n in parent if n in clique]
            off = self.total * summed(shares[parent], parent, clique)
            off = (off - spread(counts, clique, kept)) / deviation
            loss += 0.5 * float(np.vdot(off, off))
            slope[parent] += spread(off / deviation, kept, parent)
        return loss, slope

    def lipschitz(self, like: Tables) -> float:
        """Estimate the largest eigenvalue of the Hessian as mbi does, by fifty powers."""
        v = {c: np.ones_like(t) for c, t in like.items()}
        size = float(np.sqrt(sum(t.size for t in v.values())))
        for _ in range(50):
            unit = {c: t / (size + 1e-12) for c, t in v.items()}
            v = {c: np.zeros_like(t) for c, t in like.items()}
            for clique, parent, _counts, deviation in self.parts:
                kept = [n for n in parent if n in clique]
                seen = summed(unit[parent], parent, clique) / deviation**2
                v[parent] += spread(seen, kept, parent)
            size = float(np.sqrt(sum(np.vdot(t, t) for t in v.values())))
        return size


def mirror_descent(
    domain: Any, measured: list[Any], *, potentials: Any = None, steps: int = STEPS
) -> MarkovRandomField:
    """Fit a model to noisy counts: algorithm 1 of arXiv:1901.09136 with mbi's line search."""
    total = float(minimum_variance_unbiased_total(measured))
    cliques = maximal_subset([m.clique for m in measured])
    if potentials is None:
        potentials = CliqueVector.zeros(domain, cliques)
    if not all(potentials.supports(clique) for clique in cliques):
        potentials = potentials.expand(cliques)
    logs = {c: np.array(potentials[c].values, dtype=float) for c in potentials.cliques}
    tree = Tree(domain, tuple(logs))
    loss_of = Loss(total, tuple(_part(domain, potentials, m) for m in measured))
    shares = tree.marginals(logs)
    loss, slope = loss_of(shares)
    alpha = 2.0 / (loss_of.lipschitz(shares) * total)
    for _ in range(steps):
        there = {c: logs[c] - alpha * slope[c] for c in logs}
        then = tree.marginals(there)
        less, next_slope = loss_of(then)
        along = sum(float(np.vdot(slope[c], shares[c] - then[c])) for c in logs) * total
        if loss - less >= 0.5 * alpha * along:
            logs, shares, loss, slope, alpha = there, then, less, next_slope, 1.01 * alpha
        else:
            alpha *= 0.5
    marginals = {c: total * table for c, table in shares.items()}
    return MarkovRandomField(
        potentials=_vector(domain, logs), marginals=_vector(domain, marginals), total=total
    )


def _part(domain: Any, potentials: Any, measured: Any) -> tuple[Clique, Clique, np.ndarray, float]:
    if measured.query != Factor.datavector:
        msg = "only counts of cells are known here"
        raise SystemExit(msg)
    clique = tuple(measured.clique)
    counts = np.asarray(measured.noisy_measurement, dtype=float)
    counts = counts.reshape(domain.project(clique).shape)
    return clique, potentials.parent(clique), counts, max(float(measured.stddev), 1e-12)


def _vector(domain: Any, tables: Tables) -> CliqueVector:
    arrays = {c: Factor(domain.project(c), table) for c, table in tables.items()}
    return CliqueVector(domain, list(tables), arrays)


_CALIBRATED: dict[str, Any] = {}


def any_marginal(potentials: Any, asked: Clique, total: float = 1.0) -> Factor:
    """Give the counts of columns that no clique holds, as mbi's ``variable_elimination`` does."""
    if _CALIBRATED.get("of") is not potentials:
        tree = Tree(potentials.domain, tuple(potentials.cliques))
        logs = {c: np.asarray(potentials[c].values, dtype=float) for c in potentials.cliques}
        _CALIBRATED.update(of=potentials, tree=tree, held=tree.calibrate(logs))
    table = _CALIBRATED["tree"].marginal(_CALIBRATED["held"], tuple(asked))
    return Factor(potentials.domain.project(asked), total * table)


def put_in_place() -> None:
    """Have mbi's models answer through `any_marginal`."""
    marginal_oracles.variable_elimination = any_marginal


def _check() -> None:
    """Fit made-up counts both ways; print how far apart the models are, in shares of the rows."""
    from itertools import combinations

    import jax
    from mbi import Domain, LinearMeasurement, estimation

    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    domain = Domain(list("abcdef"), [8, 5, 12, 3, 7, 4])
    cliques = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("e",), ("f", "e")]
    rows = {c: rng.gamma(0.3, 1e5 / domain.size(c), domain.size(c)) for c in cliques}
    measured = [LinearMeasurement(counts, c, stddev=30.0) for c, counts in rows.items()]
    theirs = estimation.mirror_descent(domain, measured, iters=200)
    eliminate = marginal_oracles.variable_elimination
    ours = mirror_descent(domain, measured, steps=200)
    for clique in combinations(domain.attributes, 3):
        mine = np.asarray(any_marginal(ours.potentials, clique).values)
        other = np.asarray(eliminate(theirs.potentials, clique).values)
        print("".join(clique), f"{np.abs(mine - other).sum():.1e}")


if __name__ == "__main__":
    _check()
