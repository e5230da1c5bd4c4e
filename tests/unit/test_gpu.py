"""Sums on a GPU are the processor's integers. Without one, its kernels run in Triton's interpreter.

The interpreter does each operation of a kernel in NumPy, rounding as IEEE says, as a GPU does.
"""

import threading
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from scaling import plan_of, same

from aquatint.curator import gpu
from aquatint.curator.gathering import accumulate
from aquatint.curator.gpu import HERE, Place, made_up, place_of, sum_there
from aquatint.curator.sums import _sum_here, integer_rows, leaf_sum
from aquatint.errors import PlanError
from aquatint.features import by_label, fourier, hermite, onehot, pairs, race, scale, triples
from aquatint.features.fourier import Fourier
from aquatint.schema import Schema

pytest.importorskip("triton", reason="the kernels of a GPU are written in Triton: none is here")
CUDA = torch.cuda.is_available()
NAMES = ("a", "b", "c")
CELLS = {"a": 3, "b": 1, "c": 4, "y": 2}
MANY = tuple(f"c{i}" for i in range(35))
MAPS = {
    "gaussian": fourier(NAMES, 300, length_scale=0.1),
    "laplace": fourier(NAMES, 10, length_scale=0.1, kernel="laplace"),
    "many columns": fourier(MANY, 8),
    "one column": fourier(["b"], 2, length_scale=0.5),
    "hermite": hermite(NAMES, 20, length_scale=0.1),
    "order 0": hermite(["a"], 0),
    "by label": by_label(fourier(NAMES, 10), "y", 4),
    "hermite by label": by_label(hermite(["c", "a"], 5), "y", 4),
    "pairs": 0.3 * pairs(CELLS),
    "by label and cells": by_label(triples(CELLS, [("a", "c", "y")]), "y", 2),
    "merged": onehot(CELLS).merge({"c": (0, 1, 1, 0)}),
}
ASKED = Place(torch.device("cuda"), asked=True)


@pytest.fixture(autouse=True)
def nothing_is_known_yet(monkeypatch):
    monkeypatch.setattr(gpu, "_TRUST", {})


@pytest.fixture
def kernels(monkeypatch):
    """Without a GPU, let the kernels take the rows where they are, in tiles that are soon done."""
    from aquatint.curator import gpu_kernels

    if not CUDA:
        monkeypatch.setattr(gpu_kernels, "SHAPE", gpu_kernels.Shape(rows=32, tiles=2))
        monkeypatch.setattr(gpu_kernels, "_COUNT_TILES", 1)
        real, one_by_one = gpu._summed, threading.Lock()

        def summed(leaf, rows, _):
            with one_by_one:  # the interpreter is not made for several threads
                return real(leaf, rows, torch.device("cpu"))

        monkeypatch.setattr(gpu, "_summed", summed)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.usefixtures("kernels")
def test_a_gpu_gives_the_integers_of_the_processor(name):
    leaf = MAPS[name]
    rows = made_up(leaf)
    for some in (rows, rows.slice(0, 1)):
        total, doubtful = gpu._summed(leaf, some, ASKED.device)
        assert not len(doubtful)
        assert torch.equal(total, _sum_here(leaf, some))
    assert total.dtype == torch.int64


@pytest.mark.parametrize("fused", [True, False])
def test_joining_a_product_and_a_sum_would_be_noticed(fused):
    """The bits of made-up rows depend on every rounding: one less and some integer differs."""
    made = MAPS["gaussian"]
    rows = made_up(made)
    turns, missing = made.turns(rows.matrix(NAMES))
    fraction = turns[~missing].frac().float()
    z = (fraction - 0.5).abs() - 0.25
    square, wave = z * z, torch.full_like(z, float(made.sine[4]))
    for c in reversed(made.sine[:4].tolist()):
        exact = wave.double() * square.double()
        wave = (exact + c).float() if fused else exact.float() + c
    whole = (wave * z * np.float32(gpu.grid_of(made).steps)).int().sum(dim=0)
    assert torch.equal(whole, _sum_here(made, rows)[:150]) is not fused


@pytest.mark.parametrize("limit", ["l2_squared", "high"])
@pytest.mark.parametrize("name", ["gaussian", "hermite", "by label"])
def test_rows_over_a_limit_are_left_out_and_go_the_exact_way(name, limit, kernels, monkeypatch):
    leaf = MAPS[name]
    rows = made_up(leaf)
    real = gpu.grid_of
    norms = torch.cat([(whole**2).sum(dim=1) for _, whole in integer_rows(leaf, rows)])
    least = {"l2_squared": int(norms.median()), "high": 1}[limit]  # half of the rows, or all

    def tight(inner):
        grid = real(inner)
        return replace(grid, bound=replace(grid.bound, **{limit: least}))

    with monkeypatch.context() as patch:
        patch.setattr(gpu, "grid_of", tight)
        total, doubtful = gpu._summed(leaf, rows, ASKED.device)
    over = norms > least if limit == "l2_squared" else torch.ones(len(rows))
    assert sorted(doubtful.tolist()) == torch.nonzero(over).flatten().tolist()
    kept = np.setdiff1d(np.arange(len(rows)), doubtful)
    assert torch.equal(total, _sum_here(leaf, rows.take(torch.from_numpy(kept))))
    monkeypatch.setattr(gpu, "_summed", lambda *_: (total, doubtful))
    monkeypatch.setattr(gpu, "_is_trusted", lambda *_: True)
    assert torch.equal(leaf_sum(leaf, rows, ASKED), _sum_here(leaf, rows))


def test_small_batches_stay_here_unless_a_gpu_was_asked_for(monkeypatch):
    leaf = MAPS["gaussian"]
    rows = made_up(leaf)
    monkeypatch.setattr(gpu, "_is_trusted", lambda *_: True)
    monkeypatch.setattr(gpu, "_summed", lambda *_: ("there", "none"))
    unasked = replace(ASKED, asked=False)
    assert sum_there(leaf, rows, ASKED, _sum_here) == ("there", "none")
    assert sum_there(leaf, rows, unasked, _sum_here) is None
    monkeypatch.setattr(gpu, "WORTH", leaf.dim * len(rows))
    assert sum_there(leaf, rows, unasked, _sum_here) == ("there", "none")
    assert sum_there(leaf, rows, HERE, _sum_here) is None
    assert sum_there(leaf, rows.slice(0, 0), ASKED, _sum_here) is None


class Louder(Fourier):
    """A subclass, which may mean something else."""


@pytest.mark.parametrize(
    "leaf", [Louder(NAMES, 10, (0.2,) * 3), scale(fourier(NAMES, 4), 0.5), race(["a"], 2, 3)]
)
def test_what_has_no_kernel_stays_here(leaf, monkeypatch):
    monkeypatch.setattr(gpu, "_is_trusted", lambda *_: pytest.fail("there is no kernel for it"))
    assert sum_there(leaf, made_up(leaf), ASKED, _sum_here) is None


def test_a_gpu_that_gives_other_integers_is_not_used(monkeypatch):
    leaf = MAPS["gaussian"]
    rows = made_up(leaf)
    wrong = _sum_here(leaf, rows)
    wrong[7] += 1
    none = torch.zeros(0, dtype=torch.int64)
    monkeypatch.setattr(gpu, "_summed", lambda *_: (wrong, none))
    with pytest.warns(UserWarning, match="not used for fourier features: it gave other integers"):
        assert torch.equal(leaf_sum(leaf, rows, ASKED), _sum_here(leaf, rows))
    with warnings.catch_warnings():  # it is said once
        warnings.simplefilter("error")
        assert torch.equal(leaf_sum(leaf, rows, ASKED), _sum_here(leaf, rows))


def test_kernels_that_cannot_be_had_are_no_error(monkeypatch):
    def broken(*_):
        raise RuntimeError("no compiler")

    leaf = MAPS["hermite"]
    monkeypatch.setattr(gpu, "_summed", broken)
    with pytest.warns(UserWarning, match=r"cannot be had \(RuntimeError\)"):
        assert torch.equal(leaf_sum(leaf, made_up(leaf), ASKED), _sum_here(leaf, made_up(leaf)))
    monkeypatch.setattr(gpu, "_TRUST", {})
    monkeypatch.setattr(gpu, "find_spec", lambda _: None)
    assert torch.equal(leaf_sum(leaf, made_up(leaf), ASKED), _sum_here(leaf, made_up(leaf)))


def test_a_gpu_that_is_full_is_passed_by(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError

    leaf = MAPS["pairs"]
    monkeypatch.setattr(gpu, "_is_trusted", lambda *_: True)
    monkeypatch.setattr(gpu, "_summed", full)
    assert torch.equal(leaf_sum(leaf, made_up(leaf), ASKED), _sum_here(leaf, made_up(leaf)))


def test_a_whole_run_gives_the_same_integers(schema, kit, kernels, monkeypatch):
    plan, table = plan_of(schema), kit.raw_table(100)
    used = []
    real = gpu._summed
    monkeypatch.setattr(gpu, "_summed", lambda a, b, c: used.append(a.kind) or real(a, b, c))
    monkeypatch.setattr("aquatint.curator.gathering.place_of", lambda _: ASKED)
    found = accumulate(iter(table.to_batches(max_chunksize=70)), plan, workers=2)
    assert same(found, accumulate(table, plan, device="cpu", workers=1))
    assert {"fourier", "hermite", "by_label", "scaled"} <= set(used)


def test_persons_give_the_same_integers_too(schema_dict, kit, kernels, monkeypatch):
    schema_dict["privacy"] = {
        "protects": "all rows of one person", "person": "who", "max_rows": 2
    }  # fmt: skip
    plan = plan_of(Schema.from_dict(schema_dict))
    table = kit.raw_table(90).append_column(
        "who", pa.array(np.arange(90) // 3 * (np.arange(90) % 2))
    )
    wanted = accumulate(table, plan, device="cpu")
    monkeypatch.setattr("aquatint.curator.gathering.place_of", lambda _: ASKED)
    assert same(accumulate(table, plan), wanted)


def test_places(monkeypatch):
    assert place_of("cpu") == Place(torch.device("cpu"), asked=True)
    for wrong in ("quantum", "cuda:99"):
        with pytest.raises(PlanError, match=f"no device '{wrong}' here: leave it out, or say cpu"):
            place_of(wrong)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert place_of(None) == HERE
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert place_of(None) == Place(torch.device("cuda"))
