"""Sums on a GPU: the integers of the processor, and the speed beside the bare arithmetic.

    python benchmarks/scale_gpu.py prepare FILE         # where the library is installed; no GPU
    python benchmarks/scale_gpu.py run FILE --out DIR   # on a machine with a GPU: torch and Triton

The first writes what the processor's kernels give for made-up rows. The second makes the same rows,
sums them with the kernels of `aquatint.curator.gpu_kernels`, and stops if one integer differs. Then
it measures rows a second, of ours and of the bare float32 product with sine and cosine, in turns.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

COLUMNS = tuple(f"c{i}" for i in range(14))
CELLS, FEATURES, ORDER = 20, 10_000, 40
ROWS, HERMITE_ROWS, BATCH = 200_000, 20_000, 65_536
TIMED_ROWS = 2**20

Result = dict[str, Any]
Stored = Any


def made_up(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw values on the encoder's grid, some missing, and codes; integers alone are drawn."""
    dice = np.random.default_rng(2026)
    steps = dice.integers(0, 2**20 + 1, (rows, len(COLUMNS)))
    values = (steps / 2**20).astype(np.float32)
    values[dice.integers(0, 1000, rows) == 0, 3] = np.nan
    codes = dice.integers(0, CELLS, (len(COLUMNS), rows), dtype=np.int32)
    return values, codes


def digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


# --- on a machine with the library ----------------------------------------------------------------


def prepare(file: Path) -> None:
    """Sum the rows with the processor's kernels, and keep what the GPU's need."""
    from aquatint.curator.counting import layout_of
    from aquatint.curator.sums import leaf_sum
    from aquatint.features import Rows, by_label, fourier, hermite, onehot, pairs
    from aquatint.features.base import Columns
    from aquatint.features.grid import grid_of

    values, codes = made_up(ROWS)
    rows = Rows(
        {name: torch.from_numpy(codes[i]) for i, name in enumerate(COLUMNS)},
        Columns(COLUMNS, torch.from_numpy(values)),
        ROWS,
    )
    kept: dict[str, Any] = {"rows": digest(values, codes)}
    for kernel in ("gaussian", "mixed"):
        made = fourier(COLUMNS, FEATURES, length_scale=0.2, kernel=kernel)
        bound = grid_of(made).bound
        kept |= {
            f"{kernel}_frequencies": made.frequencies.numpy(), "sine": made.sine.numpy(),
            f"{kernel}_turns": float(made.whole_turns), "fourier_steps": grid_of(made).steps,
            "fourier_limits": np.array([bound.l2_squared, bound.high], np.int64),
            f"{kernel}_total": leaf_sum(made, rows).numpy(),
        }  # fmt: skip
    kept["classes_total"] = leaf_sum(by_label(made, COLUMNS[0], CELLS), rows.slice(0, BATCH))
    polynomial = hermite(COLUMNS, ORDER, length_scale=0.1)
    few, bound = rows.slice(0, HERMITE_ROWS), grid_of(polynomial).bound
    x, first = polynomial.start(few.matrix(COLUMNS))
    kept |= {
        "x": x.numpy(), "first": first.numpy(), "factors": polynomial.factors.numpy(),
        "hermite_steps": grid_of(polynomial).steps,
        "hermite_limits": np.array([bound.l2_squared, bound.high], np.int64),
        "hermite_total": leaf_sum(polynomial, few).numpy(),
    }  # fmt: skip
    cells = dict.fromkeys(COLUMNS, CELLS)
    for name, leaf in (("single", onehot(cells)), ("pairs", pairs(cells))):
        layout = layout_of(leaf)
        order = [COLUMNS.index(column) for column, _ in layout.reads]
        kept |= {
            f"{name}_order": order, f"{name}_lines": layout.lines,
            f"{name}_strides": layout.strides, f"{name}_starts": layout.starts,
            f"{name}_total": leaf_sum(leaf, rows).numpy() // int(grid_of(leaf).bound.high),
        }  # fmt: skip
    np.savez_compressed(file, **kept)
    print(f"written: {file}, {file.stat().st_size:,} bytes")


# --- on a machine with a GPU ----------------------------------------------------------------------


class Kernels:
    """The library's kernels with the stored numbers on a device."""

    def __init__(self, stored: Stored, device: str) -> None:
        from aquatint.curator import gpu_kernels

        self.of, self.stored, self.device = gpu_kernels, stored, device
        self.sine = self.there("sine")
        self.waves = {name: self.there(f"{name}_frequencies") for name in ("gaussian", "mixed")}

    def there(self, name: str) -> torch.Tensor:
        """Bring stored numbers to the device."""
        return torch.from_numpy(self.stored[name]).to(self.device)

    def steps(self, kind: str, rows: int) -> torch.Tensor:
        """Give each row the steps of the grid."""
        steps = float(self.stored[f"{kind}_steps"])
        return torch.full((rows,), steps, dtype=torch.float32, device=self.device)

    def kept(self, kind: str, run: Callable[..., Any], steps: torch.Tensor) -> torch.Tensor:
        """Give the sums, of which no row may be left out."""
        l2_squared, high = map(int, self.stored[f"{kind}_limits"])
        total, doubtful = self.of.kept(run, steps, l2_squared, high)
        if len(doubtful):
            msg = f"{len(doubtful)} rows were left out of {kind} features: none should be"
            raise SystemExit(msg)
        return total

    def fourier(self, values: torch.Tensor, name: str = "gaussian", **shape: Any) -> torch.Tensor:
        """Sum rows from the host or from the device, as `curator/gpu.py` does."""
        steps = self.steps("fourier", len(values))
        known = self.of.without_missing(values.to(self.device), steps)
        turns = float(self.stored[f"{name}_turns"])
        run = partial(self.of.fourier_sum, known, self.waves[name], turns, self.sine, **shape)
        return self.kept("fourier", run, steps)

    def hermite(self, x: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """Sum rows from where the recursion starts."""
        run = partial(
            self.of.hermite_sum, x.to(self.device), first.to(self.device), self.there("factors")
        )
        return self.kept("hermite", run, self.steps("hermite", len(x)))

    def count(self, codes: torch.Tensor, name: str) -> torch.Tensor:
        """Count cells of rows from the host or from the device."""
        parts = (self.there(f"{name}_{part}") for part in ("lines", "strides", "starts"))
        dim = len(self.stored[f"{name}_total"])
        chosen = codes[self.stored[f"{name}_order"]].to(self.device)
        return self.of.count_sets(chosen, *parts, dim).cpu()


def check(kernels: Kernels, stored: Stored) -> Result:
    """Compare every integer with the processor's; stop if one differs."""
    raw, cells = made_up(ROWS)
    if digest(raw, cells) != str(stored["rows"]):
        msg = "the made-up rows differ from those of the file: prepare it again"
        raise SystemExit(msg)
    values, codes = torch.from_numpy(raw), torch.from_numpy(cells)
    classes = [codes[0, :BATCH] == c for c in range(CELLS)]
    x, first = (torch.from_numpy(stored[name]) for name in ("x", "first"))
    found = {
        "gaussian_total": sum(map(kernels.fourier, values.split(BATCH))),
        "mixed_total": kernels.fourier(values, "mixed"),
        "classes_total": torch.cat([kernels.fourier(values[:BATCH][c], "mixed") for c in classes]),
        "hermite_total": sum(map(kernels.hermite, x.split(7_000), first.split(7_000))),
        "single_total": sum(kernels.count(c, "single") for c in codes.split(BATCH, dim=1)),
        "pairs_total": sum(kernels.count(c, "pairs") for c in codes.split(BATCH, dim=1)),
    }
    compared = 0
    for name, total in found.items():
        wanted = torch.from_numpy(stored[name])
        wrong = int((total.cpu() != wanted).sum())
        print(f"{name}: {len(wanted):,} integers, {wrong} differ", flush=True)
        if wrong:
            msg = f"{name} is not the processor's"
            raise SystemExit(msg)
        compared += len(wanted)
    return {"rows": ROWS, "hermite_rows": HERMITE_ROWS, "integers": compared, "differ": 0}


def bare(values: torch.Tensor, omega: torch.Tensor, tile: int) -> None:
    """Do the bare arithmetic: the product, then cosine and sine, block by block."""
    shape = (tile, omega.shape[1])
    phase, out = (torch.empty(shape, device=omega.device) for _ in range(2))
    for some in values.split(tile):
        there = some.to(omega.device)
        torch.matmul(there, omega, out=phase[: len(there)])
        torch.cos(phase[: len(there)], out=out[: len(there)])
        torch.sin(phase[: len(there)], out=out[: len(there)])


def rate(work: Callable[[], Any], rows: int, rounds: int = 5) -> float:
    """Give rows a second, after one round that does not count."""
    work()
    torch.cuda.synchronize()
    begun = perf_counter()
    for _ in range(rounds):
        work()
    torch.cuda.synchronize()
    return rounds * rows / (perf_counter() - begun)


def measure(kernels: Kernels) -> Result:
    """Measure ours and the bare arithmetic in turns, each in its own best way."""
    raw, cells = made_up(TIMED_ROWS)
    host = torch.from_numpy(np.nan_to_num(raw))
    there = host.to(kernels.device)
    omega = (2 * torch.pi * kernels.waves["gaussian"]).float()
    found: Result = {"rows": TIMED_ROWS, "features": FEATURES, "columns": len(COLUMNS)}

    def ours(values: torch.Tensor, batch: int, **shape: Any) -> None:
        for some in values.split(batch):
            kernels.fourier(some, **shape)

    shapes = [
        {}, {"tiles": 16}, {"tiles": 64}, {"rows": 8, "frequencies": 64},
        {"rows": 4, "frequencies": 64}, {"rows": 8, "frequencies": 32},
    ]  # fmt: skip
    for changed in shapes:
        begun = perf_counter()
        shape = kernels.of.Shape(**changed)
        speed = rate(partial(ours, there, BATCH, shape=shape), TIMED_ROWS, rounds=2)
        taken = perf_counter() - begun
        found.setdefault("shapes", []).append({**changed, "rows_per_second": speed})
        print(f"shape {changed}: {speed:,.0f} rows/s ({taken:.1f} s with compiling)", flush=True)
    best = max(found["shapes"], key=lambda each: each["rows_per_second"])
    shape = kernels.of.Shape(**{k: v for k, v in best.items() if k != "rows_per_second"})
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        tiles = {
            tile: rate(partial(bare, there, omega, tile), TIMED_ROWS, rounds=1)
            for tile in (256, 512, 1024, 4096, 16_384, BATCH)
        }
        name = "bare_tf32" if tf32 else "bare"
        found[f"{name}_tiles"] = tiles
        tile = max(tiles, key=lambda each: tiles[each])
        for where, values in (("device", there), ("host", host)):
            pairs = [
                (
                    rate(partial(ours, values, BATCH, shape=shape), TIMED_ROWS, rounds=1),
                    rate(partial(bare, values, omega, tile), TIMED_ROWS, rounds=1),
                )
                for _ in range(5)
            ]
            mine, theirs = (5 / sum(1 / each for each in one) for one in zip(*pairs, strict=True))
            found[f"{name}_{where}"] = {
                "rows_per_second": mine, "bare_rows_per_second": theirs, "tile": tile,
                "of_bare_speed": mine / theirs, "each": sorted(a / b for a, b in pairs),
            }  # fmt: skip
            print(f"{name}, rows on the {where}: {found[f'{name}_{where}']}", flush=True)
    codes = torch.from_numpy(cells)
    for where, some in (("device", codes.to(kernels.device)), ("host", codes)):

        def both(some: torch.Tensor = some) -> None:
            for part in some.split(BATCH, dim=1):
                kernels.count(part, "single")
                kernels.count(part, "pairs")

        found[f"counts_{where}"] = {"sets": 105, "rows_per_second": rate(both, TIMED_ROWS)}
        print(f"counts, rows on the {where}: {found[f'counts_{where}']}", flush=True)
    x, first = (kernels.there(name) for name in ("x", "first"))
    speed = rate(lambda: kernels.hermite(x, first), HERMITE_ROWS)
    found["hermite_device"] = {"features": 14 * (ORDER + 1), "rows_per_second": speed}
    return found


def run(file: Path, out: Path) -> None:
    begun = perf_counter()
    with np.load(file) as archive:
        stored = dict(archive)
    import triton

    kernels = Kernels(stored, "cuda")
    found = {
        "about": {
            "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
            "triton": triton.__version__,
        },
        "check": check(kernels, stored),
    }  # fmt: skip
    print(f"the same integers, {perf_counter() - begun:.0f} s", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    found["speed"] = measure(kernels)
    found["seconds"] = perf_counter() - begun
    (out / "scale_gpu.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"written: {out / 'scale_gpu.json'}, {found['seconds']:.0f} s in all")


def main() -> None:
    """Prepare, or run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["prepare", "run"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, default=Path())
    asked = parser.parse_args()
    if asked.what == "prepare":
        prepare(asked.file)
    else:
        run(asked.file, asked.out)


if __name__ == "__main__":
    main()
