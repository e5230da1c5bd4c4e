"""What a sketch costs, as a model: seconds for a row, a set, a feature, a coordinate, a part.

The costs of one row on one core add up from what is done to it: it is read, each of its columns is
encoded, each set of columns is counted, each dense feature is computed. One thread reads and hands
batches to workers through a queue that holds as many batches as there are workers; all share the
cores. `simulate` plays that through, batch by batch, and `cluster` does sums for many machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

BATCH = 65_536
FAN_IN, DRIVER_BYTES = 32, 256 << 20
"""How `curator/spark.py` merges: so many at once, until so little is left for the driver."""


@dataclass(frozen=True)
class Costs:
    """Seconds on one core, measured.

    Attributes
    ----------
    read, encode
        For one value: a column of a row, from Parquet; and to make it a code.
    count
        For one set of columns of one row.
    dense
        For one dense feature of one row.
    noise
        For one coordinate.
    merge
        To unpack, check and add one coordinate of one partial.
    fixed
        For a run, however small: the first use of the kernels, the ledger, the file.
    """

    read: float
    encode: float
    count: float
    dense: float
    noise: float
    merge: float
    fixed: float

    @classmethod
    def of(cls, measured: Mapping[str, float]) -> Costs:
        """Take the costs from the results of the benchmark."""
        return cls(**{name: measured[name] for name in cls.__annotations__})


@dataclass(frozen=True)
class Sketch:
    """The size of a sketch: columns, sets of columns, dense features, coordinates."""

    columns: int
    sets: int
    dense: int
    coordinates: int

    def reading(self, costs: Costs) -> float:
        """Give the seconds to read a row."""
        return costs.read * self.columns

    def summing(self, costs: Costs) -> float:
        """Give the seconds to encode and add a row."""
        return costs.encode * self.columns + costs.count * self.sets + costs.dense * self.dense


PAIRS = Sketch(columns=14, sets=14 + 91, dense=0, coordinates=1 + 280 + 91 * 400)
FOURIER = Sketch(columns=14, sets=0, dense=10_000, coordinates=1 + 10_000)


def simulate(rows: int, sketch: Sketch, costs: Costs, cores: int, workers: int) -> float:
    """Give the seconds that a run takes: play it through in steps of one event.

    At each moment the reader and some workers have a batch in hand and share the cores evenly. The
    next event is the first of them to finish. The reader waits when the queue is full.
    """
    full, rest = divmod(rows, BATCH)
    left = [BATCH] * full + ([rest] if rest else [])
    reading = sketch.reading(costs)
    summing = sketch.summing(costs)
    clock = 0.0
    sizes = iter(left)
    in_hand: list[list[float]] = []  # [seconds left, rows] of busy workers
    waiting: list[int] = []
    size = next(sizes, None)
    read_left = 0.0 if size is None else size * reading
    while size is not None or waiting or in_hand:
        while waiting and len(in_hand) < workers:
            taken = waiting.pop(0)
            in_hand.append([taken * summing, taken])
        blocked = len(waiting) >= workers
        busy = len(in_hand) + (size is not None and not blocked)
        speed = min(1.0, cores / busy)
        nearest = [job[0] for job in in_hand]
        if size is not None and not blocked:
            nearest.append(read_left)
        step = min(nearest)
        clock += step / speed
        for job in in_hand:
            job[0] -= step
        in_hand = [job for job in in_hand if job[0] > 1e-12]
        if size is not None and not blocked:
            read_left -= step
            if read_left <= 1e-12:
                waiting.append(size)
                size = next(sizes, None)
                read_left = 0.0 if size is None else size * reading
    return costs.fixed + clock + sketch.coordinates * costs.noise / cores


@dataclass(frozen=True)
class Cluster:
    """Machines that share a table, and one driver that merges and adds the noise.

    Attributes
    ----------
    machines, cores
        How many, and how many cores each has for the sums.
    disk
        Bytes a second that each machine gets from where the files are.
    network
        Bytes a second into each machine, the driver too.
    task
        Seconds that starting a task costs, on one core.
    """

    machines: int
    cores: int
    disk: float
    network: float
    task: float


@dataclass(frozen=True)
class Predicted:
    """Seconds by cause; computing and reading overlap, the rest comes one after the other."""

    compute: float
    disk: float
    transfer: float
    merge: float
    noise: float

    @property
    def total(self) -> float:
        """The whole run."""
        return max(self.compute, self.disk) + self.transfer + self.merge + self.noise


def cluster(
    rows: float, row_bytes: float, tasks: int, sketch: Sketch, costs: Costs, on: Cluster
) -> Predicted:
    """Predict a run on a cluster, where partials are merged as `curator/spark.py` does it.

    As long as they are too much for the driver, FAN_IN of them are merged into one by a task; what
    is left then goes to the driver.
    """
    cores = on.machines * on.cores
    row = sketch.reading(costs) + sketch.summing(costs)
    size, parts, merge, transfer = 8 * sketch.coordinates, tasks, 0.0, 0.0
    while parts * size > DRIVER_BYTES and parts > 1:
        transfer += parts * size / (on.machines * on.network)
        parts = ceil(parts / FAN_IN)
        merge += ceil(parts / cores) * (FAN_IN * sketch.coordinates * costs.merge + on.task)
    return Predicted(
        compute=ceil(tasks / cores) * (rows / tasks * row + on.task),
        disk=rows * row_bytes / (on.machines * on.disk),
        transfer=transfer + parts * size / on.network,
        merge=merge + parts * sketch.coordinates * costs.merge,
        noise=sketch.coordinates * costs.noise / on.cores,
    )
