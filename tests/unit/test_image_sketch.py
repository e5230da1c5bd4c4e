"""Images to exact sums and releases: sources, encoder, refusals that spend nothing."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tiny_images import (
    image_schema,
    some_digits,
    tiny_projection,
    tiny_resnet,
)

import aquatint as aq
from aquatint.curator import read_images
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.integers import quantise, quantise_exactly
from aquatint.curator.ledger import Ledger
from aquatint.curator.sketch import accumulate, on_device
from aquatint.curator.sums import leaf_sum
from aquatint.errors import AquatintError, DataError, PlanError, SchemaError
from aquatint.features import Perceptual, by_label, image_rows, pixel_names
from aquatint.features.base import Bound
from aquatint.features.grid import Grid, grid_of
from aquatint.features.stacking import PIXEL_STEPS
from aquatint.image_files import ImageBatch, write_images
from aquatint.image_recipes import dp_mepf, pixel_gaussian
from aquatint.networks import PublicNetwork
from aquatint.planning import Plan, PlannedBlock

pytestmark = pytest.mark.usefixtures("one_thread")
SCHEMA = image_schema()
PIL = pytest.importorskip("PIL.Image")


def encoded(pixels, kind="PNG"):
    buffer = io.BytesIO()
    PIL.fromarray(pixels[..., 0]).save(buffer, format=kind)
    return buffer.getvalue()


def raw_table(batch):
    flat = [pixels.tobytes() for pixels in batch.pixels]
    return pa.table({"image": pa.array(flat, pa.binary(64)), "label": batch.labels.tolist()})


def sources(folder, batch):
    """The same images, as every kind of source."""
    np.savez(folder / "digits.npz", images=batch.pixels, labels=batch.labels.astype(int))
    write_images(folder / "digits", batch.pixels, batch.labels)
    files = [encoded(p) for p in batch.pixels]
    labels = batch.labels.tolist()
    pq.write_table(raw_table(batch), folder / "raw.parquet")
    pq.write_table(pa.table({"image": files, "label": labels}), folder / "png.parquet")
    held = [{"bytes": data, "path": "x.png"} for data in files]
    pq.write_table(pa.table({"image": held, "label": labels}), folder / "struct.parquet")
    (folder / "train-images-idx3-ubyte").write_bytes(
        bytes([0, 0, 8, 3]) + np.array([len(batch), 8, 8], ">u4").tobytes() + batch.pixels.tobytes()
    )
    (folder / "train-labels-idx1-ubyte").write_bytes(
        bytes([0, 0, 8, 1])
        + np.array([len(batch)], ">u4").tobytes()
        + batch.labels.astype(np.uint8).tobytes()
    )
    lists = pa.array([p.reshape(-1) for p in batch.pixels], pa.list_(pa.uint8(), 64))
    return {
        "folder": folder / "digits",
        "npz": folder / "digits.npz",
        "idx": folder / "train-images-idx3-ubyte",
        "raw": folder / "raw.parquet",
        "png": folder / "png.parquet",
        "struct": str(folder / "struct.parquet"),
        "table": raw_table(batch),
        "list": pa.table({"image": lists, "label": labels}),
        "batches": raw_table(batch).to_batches(max_chunksize=7),
        "record batch": raw_table(batch).to_batches()[0].slice(0),
        "pandas": pa.table({"image": files, "label": labels}).to_pandas(),
        "images": batch,
    }


def test_every_source_gives_the_same_sums(tmp_path, monkeypatch):
    monkeypatch.setattr(read_images, "BATCH_BYTES", 20 * 64)  # 20 images at a time
    plan = dp_mepf(SCHEMA, tiny_resnet())
    batch = some_digits(50)
    wanted = accumulate(batch, plan)
    for name, source in sources(tmp_path, batch).items():
        found = accumulate(source, plan)
        assert found.rows == 50, name
        for one, other in zip(wanted.totals, found.totals, strict=True):
            assert torch.equal(one, other), name


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp_mepf(SCHEMA, tiny_resnet(), moments=(1, 2), stopping=True),
        lambda: pixel_gaussian(SCHEMA, tiny_projection()),
        lambda: aq.dp_merf(SCHEMA, features=30),
        lambda: aq.dp_hp(SCHEMA, order=3, product_order=2, draws=2),
    ],
)
def test_sums_do_not_depend_on_batches_or_order(make):
    plan, batch = make(), some_digits(150)
    wanted = accumulate(batch, plan)
    for rows in (1, 7, 64, 149):
        parts = [some_digits(min(rows, 150 - start), start) for start in range(0, 150, rows)]
        tables = pa.concat_tables([raw_table(part) for part in parts]).to_batches()
        found = accumulate(iter(tables), plan)
        assert all(map(torch.equal, wanted.totals, found.totals))
    turned = ImageBatch(batch.pixels[::-1].copy(), batch.labels[::-1].copy())
    assert all(map(torch.equal, wanted.totals, accumulate(turned, plan).totals))


def test_sums_equal_a_slow_reference_in_python():
    inner = Perceptual(tiny_resnet(), layers=["relu", "blocks.7.relu2"], moments=(1, 2))
    leaf, batch = by_label(inner, "label", 10), some_digits(40)
    images = torch.from_numpy(batch.pixels.transpose(0, 3, 1, 2).copy())
    codes = torch.from_numpy(batch.labels.astype(np.int64))
    rows = image_rows("image", images, {"label": codes})
    steps = grid_of(inner).steps
    totals = [0] * leaf.dim
    for features, code in zip(inner.borrowed(rows).tolist(), codes.tolist(), strict=True):
        for place, value in enumerate(features):
            step = np.float32(value) * np.float32(steps)  # as the curator multiplies
            totals[code * inner.dim + place] += int(step)
    assert leaf_sum(leaf, rows).tolist() == totals


def test_gaussian_sums_equal_a_slow_reference_in_python():
    inner = aq.features.projected_moments(tiny_projection(3))
    batch = some_digits(30)
    images = torch.from_numpy(batch.pixels.transpose(0, 3, 1, 2).copy())
    q = [[int(v * 2**14) for v in row] for row in inner.coordinates(images).tolist()]
    assert all(sum(v * v for v in row) <= 2**28 for row in q)
    count, mean = inner.weights
    wanted = [count * 30, *(mean * sum(row[j] for row in q) for j in range(3))]
    for j in range(3):
        for k in range(j, 3):
            wanted.append(sum(row[j] * row[k] * (5 if j == k else 7) for row in q))
    assert leaf_sum(inner, image_rows("image", images)).tolist() == wanted
    counts, first, second = inner.unpack(
        leaf_sum(inner, image_rows("image", images)).double() / inner.steps
    )
    y = inner.coordinates(images).double()
    assert float(counts) == pytest.approx(30)
    assert torch.allclose(first, y.sum(dim=0), atol=30 * 2**-13)
    assert torch.allclose(second, y.T @ y, atol=30 * 2**-12)


def test_wide_rows_are_checked_in_chunks_and_exactly(monkeypatch):
    from aquatint.curator import integers

    monkeypatch.setattr(integers, "_CHUNK", 16)
    rng = torch.Generator().manual_seed(0)
    features = torch.randn(30, 50, generator=rng)
    features /= features.norm(dim=1, keepdim=True)
    features[::3] *= 1.5
    grid = Grid(2.0**22, Bound(50, 8, 1, -1, 1).on_grid(2**22))
    assert torch.equal(quantise(features, grid), quantise_exactly(features, grid))


def test_a_map_of_more_than_a_million_features_needs_no_slow_path(monkeypatch):
    from aquatint.curator import integers

    def slow(*_):
        raise AssertionError

    monkeypatch.setattr(integers, "quantise_exactly", slow)
    features = torch.full((2, 2**22 + 3), 1 / (2**22 + 3) ** 0.5)
    grid = Grid(2.0**22 * (1 - 2**-20), Bound(2**22 + 3, 3000, 1, 0, 1).on_grid(2**22))
    assert int(quantise(features, grid).sum()) > 0


def test_pixels_are_numbers_on_their_grid():
    names = pixel_names("image", SCHEMA.images["image"])
    encoder = Encoder(SCHEMA, frozenset({"label"}), frozenset(names))
    assert encoder.columns == ["image", "label"]
    rows = encoder(raw_table(some_digits(9)).to_batches()[0], Notes())
    matrix = rows.matrix(names)
    pixels = torch.from_numpy(some_digits(9).pixels.reshape(9, 64)).double()
    assert matrix.shape == (9, 64)
    assert matrix.dtype == torch.float32
    assert torch.allclose(matrix.double(), pixels / 255, atol=1 / PIXEL_STEPS)
    assert torch.equal(matrix.double() * PIXEL_STEPS, (matrix.double() * PIXEL_STEPS).round())
    chosen = ("image[5]", "image[63]", "image[0]")
    assert torch.equal(rows.matrix(chosen), matrix[:, [5, 63, 0]])
    assert torch.equal(rows.slice(2, 4).matrix(names), matrix[2:4])


def test_images_beside_other_columns():
    plain = SCHEMA.to_dict()
    plain["columns"]["age"] = {"kind": "integer", "bounds": [0, 100]}
    schema = aq.Schema.from_dict(plain)
    table = raw_table(some_digits(20)).append_column("age", pa.array(range(20)))
    plan = aq.dp_merf(schema, features=20)
    (leaf,) = aq.features.leaves(plan.blocks[-1].map)
    assert len(leaf.inner.columns) == 65
    wanted = accumulate(table, plan)
    assert wanted.rows == 20
    with pytest.raises(DataError, match="give a Parquet file"):
        accumulate(some_digits(20), plan)


def test_protecting_persons_with_images():
    schema = image_schema("all rows of one person", person="patient", max_rows=1)
    plan = dp_mepf(schema, tiny_resnet(), layers=["relu"])
    table = raw_table(some_digits(12))
    alone = table.append_column("patient", pa.array([str(i) for i in range(12)]))
    twice = pa.concat_tables([alone, alone])
    one, other = accumulate(alone, plan), accumulate(twice, plan)
    for a, b in zip(one.totals, other.totals, strict=True):
        assert torch.equal(a, b)


BROKEN = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1), torch.nn.ReLU())


class Shapeless(torch.nn.Module):
    def forward(self, images):
        bright = images.mean() > 0
        return images.flatten(1)[:, : 10 if bright else 20]


def network_of(module):
    return PublicNetwork.of(module, input_size=8)


def poisoned():
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1), torch.nn.ReLU())
    torch.nn.init.constant_(module[0].bias, float("nan"))
    return network_of(module)


def corrupt(data):
    table = pa.table(
        {"image": [encoded(p) for p in data.pixels[:-1]] + [b"\x89PNG not"], "label": data.labels}
    )
    return table.cast(pa.schema([("image", pa.binary()), ("label", pa.string())]))


def mixed(data):
    files = [encoded(p) for p in data.pixels[:-1]] + [encoded(np.zeros((9, 8, 1), np.uint8))]
    return pa.table({"image": files, "label": data.labels})


def coloured(data):
    buffer = io.BytesIO()
    PIL.fromarray(np.zeros((8, 8, 3), np.uint8)).save(buffer, format="PNG")
    return pa.table({"image": [buffer.getvalue()] * 3, "label": ["0"] * 3})


GOOD = some_digits(20)
BAD = {
    "a network that gives NaN": (GOOD, poisoned, {}, "not finite"),
    "a network of changing shape": (
        GOOD,
        lambda: network_of(Shapeless()),
        {"layers": [""]},
        "must not depend on the images",
    ),
    "mixed sizes": (mixed(GOOD), tiny_resnet, {}, "not 8 by 8"),
    "a corrupt image": (corrupt(GOOD), tiny_resnet, {}, "image"),
    "colour": (coloured(GOOD), tiny_resnet, {}, "not grey"),
    "an undeclared class": (
        ImageBatch(GOOD.pixels, np.array([*GOOD.labels[:-1], "ten"])),
        tiny_resnet,
        {},
        "outside its declared categories",
    ),
    "no classes": (ImageBatch(GOOD.pixels, None), tiny_resnet, {}, "no classes"),
    "another size": (
        ImageBatch(np.zeros((3, 9, 8, 1), np.uint8), np.array(["1"] * 3)),
        tiny_resnet,
        {},
        "not 8 by 8",
    ),
    "no images": (raw_table(GOOD).slice(0, 0), tiny_resnet, {}, "no rows"),
    "numbers": (pa.table({"image": [1, 2], "label": ["1", "2"]}), tiny_resnet, {}, "not hold im"),
    "wrong width": (
        pa.table({"image": pa.array([b"x" * 63], pa.binary(63)), "label": ["1"]}),
        tiny_resnet,
        {},
        "63 bytes",
    ),
    "a missing image": (
        pa.table({"image": pa.array([None, b"x" * 64], pa.binary(64)), "label": ["1", "2"]}),
        tiny_resnet,
        {},
        "lacks an image",
    ),
    "a missing label": (
        pa.table({"image": pa.array([b"x" * 64], pa.binary(64)), "label": pa.array([None], "str")}),
        tiny_resnet,
        {},
        "missing",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_spends_nothing(name, tmp_path):
    data, network, options, wanted = BAD[name]
    book = Ledger(tmp_path / "ledger.db")
    book.open_account("digits", aq.Budget(1, 1e-5), "replace one row")
    before = book.accounts()
    plan = dp_mepf(SCHEMA, network(), **options)
    with pytest.raises(AquatintError, match=wanted) as caught:
        aq.sketch(
            data,
            SCHEMA,
            plan=plan,
            epsilon=1,
            delta=1e-5,
            ledger=tmp_path / "ledger.db",
            dataset="digits",
            output=tmp_path / "out.aqt",
        )
    assert "\n" not in str(caught.value)
    assert book.accounts() == before
    assert not (tmp_path / "out.aqt").exists()


def test_a_class_without_an_image_is_fine():
    few = ImageBatch(GOOD.pixels[GOOD.labels != "3"], GOOD.labels[GOOD.labels != "3"])
    private = accumulate(few, dp_mepf(SCHEMA, tiny_resnet(), layers=["relu"]))
    assert private.totals[0][3] == 0
    assert private.totals[1].reshape(10, -1)[3].abs().sum() == 0


def test_a_folder_with_an_undeclared_class_is_refused(tmp_path):
    write_images(tmp_path / "digits", GOOD.pixels, np.array(["eleven"] * len(GOOD)))
    with pytest.raises(DataError, match="outside its declared categories") as caught:
        accumulate(tmp_path / "digits", dp_mepf(SCHEMA, tiny_resnet()))
    assert "eleven" not in str(caught.value)


def test_a_plan_from_a_file_asks_for_its_network(tmp_path):
    plan = dp_mepf(SCHEMA, tiny_resnet())
    plan.save(tmp_path / "plan.json")
    read = Plan.load(tmp_path / "plan.json")
    assert read == plan
    with pytest.raises(PlanError, match="attach it first"):
        aq.sketch(GOOD, SCHEMA, plan=read, epsilon=1, delta=1e-5)


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(PlanError, match="no device"):
        aq.sketch(
            GOOD,
            SCHEMA,
            plan=dp_mepf(SCHEMA, tiny_resnet()),
            epsilon=1,
            delta=1e-5,
            device="cuda:99",
        )


def test_a_network_whose_rows_depend_on_each_other_goes_row_by_row():
    class Together(torch.nn.Module):
        def forward(self, images):
            return torch.relu(images - images.mean(dim=0, keepdim=True) + 0.5)

    entangled = Perceptual(network_of(Together()), layers=[""])
    with pytest.warns(UserWarning, match="one by one"):
        assert entangled.tile == 1
    plan = Plan(image_schema(label=False), (PlannedBlock("all", entangled, 1.0),))
    parts = accumulate(some_digits(5), plan).merge(accumulate(some_digits(4, 5), plan))
    assert torch.equal(accumulate(some_digits(9), plan).totals[0], parts.totals[0])
    assert Perceptual(tiny_resnet()).tile == 64


@pytest.mark.parametrize(
    "use",
    [
        lambda r: aq.query(r, "select count(*) from data"),
        lambda r: aq.learn(r, __import__("sklearn.linear_model").linear_model.LogisticRegression()),
        lambda r: aq.plan(r.schema),
        lambda r: r.schema.cell_names("image"),
        lambda r: r.schema.columns["image"].cells,
        lambda r: aq.m2m_hist(aq.Schema.from_dict({**r.schema.to_dict()})).schema.cell_names(
            "image"
        ),
        lambda r: Plan(r.schema, (PlannedBlock("a", aq.features.onehot({"image": 3}), 1.0),)),
        lambda r: Plan(r.schema, (PlannedBlock("a", aq.features.fourier(["image"], 4), 1.0),)),
        lambda r: Plan(r.schema, (PlannedBlock("a", aq.features.fourier(["image[64]"], 4), 1.0),)),
        lambda r: aq.compare_private(
            raw_table(GOOD), raw_table(GOOD), r.schema, alpha=0.1, epsilon=1, delta=1e-5
        ),
    ],
)
def test_what_is_for_tables_refuses_images(use):
    schema = image_schema()
    release = aq.sketch(GOOD, schema, plan=aq.dp_merf(schema, features=10), epsilon=1, delta=1e-5)
    with pytest.raises(AquatintError, match=r"image|pixel"):
        use(release)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"image": {"kind": "image", "size": [8], "channels": 1}}, "size"),
        ({"image": {"kind": "image", "size": [0, 8], "channels": 1}}, "size"),
        ({"image": {"kind": "image", "size": [8, 8], "channels": 2}}, "channels = 1"),
        ({"image": {"kind": "image", "size": [8, 8]}}, "channels = 1"),
        ({"image": {"kind": "image", "size": [8, 8], "channels": 1, "missing": True}}, "missing"),
        ({"image[3]": {"kind": "boolean"}}, "pixels of an image"),
        ({"label": {"kind": "image", "size": [8, 8], "channels": 1}}, "label 'label' holds"),
    ],
)
def test_a_schema_of_images_is_checked(change, wanted):
    plain = SCHEMA.to_dict()
    with pytest.raises(SchemaError, match=wanted.replace("[", r"\[")):
        aq.Schema.from_dict({**plain, "columns": {**plain["columns"], **change}})


def test_the_release_names_what_was_taken_as_public(tmp_path):
    release = aq.sketch(GOOD, SCHEMA, plan=dp_mepf(SCHEMA, tiny_resnet()), epsilon=1, delta=1e-5)
    release.save(tmp_path / "digits.aqt")
    from aquatint.release.manifest import assumed_public

    told = " ".join(assumed_public(aq.load(tmp_path / "digits.aqt")))
    assert f"resnet18 with SHA-256 {tiny_resnet().sha256[:16]}" in told


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_sums_on_a_gpu_do_not_depend_on_batches():
    plan = dp_mepf(SCHEMA, tiny_resnet(), moments=(1, 2), stopping=True)
    placed = on_device(plan, "cuda")
    batch = some_digits(150)
    wanted = accumulate(batch, placed)
    assert placed.blocks[1].map.tile > 1
    assert plan.blocks[1].map.inner.network.device.type == "cpu"
    for rows in (7, 64, 149):
        parts = [some_digits(min(rows, 150 - start), start) for start in range(0, 150, rows)]
        found = accumulate(iter([raw_table(part) for part in parts]), placed)
        assert all(map(torch.equal, wanted.totals, found.totals))
    near = accumulate(batch, plan)
    for one, other in zip(wanted.totals, near.totals, strict=True):
        assert (one - other).double().norm() < 0.02 * other.double().norm()
