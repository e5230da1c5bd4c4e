"""Image files: every source gives the same pixels; whatever is wrong is said in one sentence."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from aquatint.errors import DataError
from aquatint.image_files import ImageBatch, contact_sheet, decode, read_images, write_images
from aquatint.image_files.batches import ordinal

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (7, 6, 5, 1), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (7, 6, 5, 3), dtype=np.uint8)
CLASSES = np.array(["b", "a", "c", "a", "b", "b", "a"])


def whole(path, **settings):
    parts = list(read_images(path, **settings))
    labels = None if parts[0].labels is None else np.concatenate([p.labels for p in parts])
    return ImageBatch(np.concatenate([p.pixels for p in parts]), labels)


def refused(path, **settings):
    with pytest.raises(DataError) as caught:
        list(read_images(path, **settings))
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 250
    return text


def encoded(pixels, kind="PNG", mode=None):
    flat = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    made, out = Image.fromarray(flat), io.BytesIO()
    (made if mode is None else made.convert(mode)).save(out, kind)
    return out.getvalue()


def idx_bytes(array):
    head = bytes([0, 0, 8, array.ndim])
    return head + np.array(array.shape, ">u4").tobytes() + array.astype(np.uint8).tobytes()


@pytest.mark.parametrize("pixels", [GREY, COLOUR], ids=["grey", "colour"])
class TestSources:
    def test_folder_by_class(self, tmp_path, pixels):
        write_images(tmp_path / "out", pixels, CLASSES)
        (tmp_path / "out" / "a" / ".hidden.png").write_bytes(b"no image")
        (tmp_path / "out" / "a" / "notes.txt").write_text("no image")
        found = whole(tmp_path / "out", batch=2)
        order = np.argsort(CLASSES, kind="stable")
        assert (found.pixels == pixels[order]).all()
        assert (found.labels == CLASSES[order]).all()

    def test_flat_folder(self, tmp_path, pixels):
        write_images(tmp_path / "out", pixels)
        found = whole(tmp_path / "out", batch=3, size=(6, 5), channels=pixels.shape[3])
        assert (found.pixels == pixels).all()
        assert found.labels is None

    @pytest.mark.parametrize("batch", [1, 3, 100])
    def test_npz(self, tmp_path, pixels, batch):
        write_images(tmp_path / "out.npz", pixels, CLASSES)
        found = whole(tmp_path / "out.npz", batch=batch)
        assert (found.pixels == pixels).all()
        assert (found.labels == CLASSES).all()

    def test_npz_compressed_channels_first_and_numbers(self, tmp_path, pixels):
        first = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
        np.savez_compressed(tmp_path / "x.npz", x=first, y=np.arange(7))
        found = whole(tmp_path / "x.npz", batch=2)
        assert (found.pixels == pixels).all()
        assert (found.labels == np.arange(7).astype(str)).all()

    @pytest.mark.parametrize("packed", [False, True])
    def test_idx(self, tmp_path, pixels, packed):
        array = pixels[..., 0] if pixels.shape[3] == 1 else pixels
        press = gzip.compress if packed else bytes
        ending = ".gz" if packed else ""
        images = tmp_path / f"train-images-idx3-ubyte{ending}"
        images.write_bytes(press(idx_bytes(array)))
        assert whole(images).labels is None
        labels = tmp_path / "train-labels-idx1-ubyte"
        labels.write_bytes(idx_bytes(np.arange(7)))
        found = whole(images, batch=4)
        assert (found.pixels == pixels).all()
        assert list(found.labels) == list("0123456")
        assert "file of labels" in refused(labels)
        assert "name the idx file" in refused(tmp_path)

    @pytest.mark.parametrize("form", ["bytes", "struct", "fixed binary", "fixed list"])
    def test_parquet(self, tmp_path, pixels, form):
        files, raw = [encoded(p) for p in pixels], [p.tobytes() for p in pixels]
        width = pixels[0].size
        column = {
            "bytes": lambda: pa.array(files, pa.binary()),
            "struct": lambda: pa.array([{"bytes": f, "path": "secret.png"} for f in files]),
            "fixed binary": lambda: pa.array(raw, pa.binary(width)),
            "fixed list": lambda: pa.FixedSizeListArray.from_arrays(
                pa.array(pixels.ravel(), pa.uint8()), width
            ),
        }[form]()
        table = pa.table({"name": list("abcdefg"), "image": column, "label": CLASSES})
        pq.write_table(table, tmp_path / "x.parquet")
        found = whole(tmp_path / "x.parquet", batch=3, size=(6, 5), channels=pixels.shape[3])
        assert (found.pixels == pixels).all()
        assert (found.labels == CLASSES).all()
        if form.startswith("fixed"):
            assert "size=" in refused(tmp_path / "x.parquet")
            assert "6 by 4" in refused(tmp_path / "x.parquet", size=(6, 4), channels=1)


def test_parquet_columns_by_name(tmp_path):
    files = [encoded(p) for p in GREY]
    pq.write_table(pa.table({"scan": files, "kind": [1] * 7}), tmp_path / "x.parquet")
    assert whole(tmp_path / "x.parquet").labels is None
    assert set(whole(tmp_path / "x.parquet", image="scan", label="kind").labels) == {"1"}
    assert "'photo'" in refused(tmp_path / "x.parquet", image="photo")
    assert "'sort'" in refused(tmp_path / "x.parquet", label="sort")


@settings(max_examples=30)
@given(
    pixels=hnp.arrays(
        np.uint8,
        st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3])),
    ),
    batch=st.integers(1, 5),
)
def test_written_images_come_back(tmp_path_factory, pixels, batch):
    folder = tmp_path_factory.mktemp("images")
    labels = [f"class {i % 2}" for i in range(len(pixels))]
    write_images(folder / "one", pixels)
    write_images(folder / "two.npz", pixels, labels)
    assert (whole(folder / "one", batch=batch).pixels == pixels).all()
    # A last axis of 1 or 3 is taken for channels, as it was written.
    assert (whole(folder / "two.npz", batch=batch).pixels == pixels).all()


class TestDecode:
    @pytest.mark.parametrize("kind", ["PNG", "BMP", "PPM", "TIFF"])
    def test_lossless_kinds(self, kind):
        assert (decode(encoded(GREY[0], kind)) == GREY[0]).all()
        assert (decode(encoded(COLOUR[0], kind)) == COLOUR[0]).all()

    def test_jpeg_and_palette_and_bits(self):
        assert decode(encoded(COLOUR[0], "JPEG")).shape == (6, 5, 3)
        assert decode(encoded(COLOUR[0], mode="P")).shape == (6, 5, 3)
        assert set(np.unique(decode(encoded(GREY[0], mode="1")))) <= {0, 255}

    def test_transparency(self):
        assert (decode(encoded(COLOUR[0], mode="RGBA")) == COLOUR[0]).all()
        assert (decode(encoded(GREY[0], mode="LA")) == GREY[0]).all()
        clear = np.dstack([COLOUR[0], np.full((6, 5), 9, np.uint8)])
        with pytest.raises(DataError, match="partly transparent"):
            decode(encoded(clear))

    def test_sixteen_bits_are_refused(self):
        with pytest.raises(DataError, match="8 bits"):
            decode(encoded(RNG.integers(0, 60_000, (6, 5, 1)).astype(np.uint16)))

    @pytest.mark.parametrize("data", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", encoded(GREY[0])[:50]])
    def test_damage(self, data):
        with pytest.raises(DataError, match="damaged"):
            decode(data)

    def test_a_claim_of_a_huge_size_is_refused(self, monkeypatch):
        monkeypatch.setattr("aquatint.image_files.decoding.MOST_PIXELS", 20)
        with pytest.raises(DataError, match="more than 20 pixels"):
            decode(encoded(GREY[0]))
        monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 4)
        with pytest.raises(DataError, match="more than 20 pixels"):
            decode(encoded(GREY[0]))


class TestRefusals:
    def test_nothing_there(self, tmp_path):
        assert "does not exist" in refused(tmp_path / "nowhere")
        assert "holds no images" in refused(tmp_path)
        (tmp_path / "0").mkdir()
        assert "holds no images" in refused(tmp_path)

    def test_mixed_sizes(self, tmp_path):
        write_images(tmp_path / "out", GREY, CLASSES)
        (tmp_path / "out" / "b" / "private name.png").write_bytes(encoded(GREY[0, :4]))
        text = refused(tmp_path / "out")
        assert text.startswith("the 7th image, by class and name, has another size than the first")
        assert "private" not in text
        assert "not 6 by 5 pixels" in refused(tmp_path / "out", size=(6, 5))
        assert "the 1st image" in refused(tmp_path / "out", size=(8, 8))

    def test_wrong_channels(self, tmp_path):
        write_images(tmp_path / "out", GREY)
        (tmp_path / "out" / "99.png").write_bytes(encoded(COLOUR[0]))
        assert "the 8th image, by name, is not grey" in refused(tmp_path / "out")
        assert "the 1st image, by name, is not in colour" in refused(tmp_path / "out", channels=3)
        write_images(tmp_path / "colour.npz", COLOUR)
        assert "is not grey" in refused(tmp_path / "colour.npz", channels=1)
        assert "1 or 3 channels" in refused(tmp_path / "out", channels=2)

    def test_corrupt_files(self, tmp_path):
        write_images(tmp_path / "out", GREY)
        (tmp_path / "out" / "00002.png").write_bytes(b"secret")
        text = refused(tmp_path / "out")
        assert "the 3rd image, by name, cannot be read" in text
        assert "secret" not in text

    def test_images_beside_folders_and_folders_in_folders(self, tmp_path):
        write_images(tmp_path / "out", GREY, CLASSES)
        (tmp_path / "out" / "a" / "deeper").mkdir()
        assert "right into the class folders" in refused(tmp_path / "out")
        (tmp_path / "out" / "stray.png").write_bytes(encoded(GREY[0]))
        assert "both images and folders" in refused(tmp_path / "out")

    def test_arrays_that_are_no_images(self, tmp_path):
        file = tmp_path / "x.npz"
        for arrays, text in (
            ({"images": GREY / 255.0}, "save them as uint8"),
            ({"images": GREY.reshape(7, -1)}, "reshape"),
            ({"images": GREY[:0]}, "no images"),
            ({"images": GREY, "labels": [1, 2]}, "one label for each"),
            ({"images": GREY, "labels": np.eye(7)}, "one whole number or text"),
            ({"x_train": GREY, "x_test": GREY}, "x_train and x_test"),
            ({"pictures": GREY}, "no images"),
            ({"images": np.asfortranarray(GREY[..., 0])}, "column by column"),
            ({"images": np.array([None, 1], dtype=object)}, "Python objects"),
        ):
            np.savez(file, **arrays)
            assert text in refused(file)

    def test_damaged_files(self, tmp_path):
        write_images(tmp_path / "x.npz", GREY)
        data = (tmp_path / "x.npz").read_bytes()
        (tmp_path / "x.npz").write_bytes(data[:100])
        assert "damaged" in refused(tmp_path / "x.npz")
        with zipfile.ZipFile(tmp_path / "y.npz", "w") as packed:
            packed.writestr("images.npy", b"nothing of the kind")
        assert "damaged" in refused(tmp_path / "y.npz")
        (tmp_path / "t-images-idx3-ubyte").write_bytes(idx_bytes(GREY[..., 0])[:60])
        assert "damaged" in refused(tmp_path / "t-images-idx3-ubyte")
        cut = gzip.compress(idx_bytes(GREY[..., 0]))[:-40]
        (tmp_path / "u-images-idx3-ubyte.gz").write_bytes(cut)
        assert "damaged" in refused(tmp_path / "u-images-idx3-ubyte.gz")
        (tmp_path / "x.parquet").write_bytes(b"PAR1 no")
        assert "damaged" in refused(tmp_path / "x.parquet")
        (tmp_path / "x.zip").write_bytes(b"PK")
        assert "cannot tell" in refused(tmp_path / "x.zip")

    def test_parquet_rows_without_an_image(self, tmp_path):
        files = [encoded(GREY[0]), None, b"junk"]
        pq.write_table(pa.table({"image": files}), tmp_path / "x.parquet")
        assert "the 2nd image or its label is missing" in refused(tmp_path / "x.parquet")
        pq.write_table(pa.table({"image": files[::2]}), tmp_path / "x.parquet")
        assert "the 2nd image cannot be read" in refused(tmp_path / "x.parquet")
        pq.write_table(pa.table({"image": [1.0]}), tmp_path / "x.parquet")
        assert "no column of images" in refused(tmp_path / "x.parquet")
        pq.write_table(pa.table({"image": pa.array([], pa.binary())}), tmp_path / "x.parquet")
        assert "no images" in refused(tmp_path / "x.parquet")

    def test_outputs(self, tmp_path):
        write_images(tmp_path / "out", GREY)
        with pytest.raises(DataError, match="not empty"):
            write_images(tmp_path / "out", GREY)
        with pytest.raises(DataError, match="is a file"):
            write_images(tmp_path / "out" / "00000.png", GREY)
        with pytest.raises(DataError, match="cannot be a folder's name"):
            write_images(tmp_path / "new", GREY, ["../x"] * 7)
        with pytest.raises(DataError, match="uint8"):
            write_images(tmp_path / "new", GREY / 255)
        with pytest.raises(DataError, match="7 images and 2 labels"):
            write_images(tmp_path / "new", GREY, ["a", "b"])


@pytest.mark.parametrize("kind", ["npz", "idx"])
def test_memory_does_not_grow_with_the_images(tmp_path, kind):
    def peak(count):
        pixels = np.zeros((count, 28, 28), np.uint8)
        file = tmp_path / f"{count}-images.npz"
        if kind == "npz":
            np.savez_compressed(file, images=pixels, labels=np.zeros(count, int))
        else:
            file = tmp_path / f"{count}-images-idx3-ubyte.gz"
            file.write_bytes(gzip.compress(idx_bytes(pixels)))
        del pixels
        tracemalloc.start()
        seen = sum(len(part) for part in read_images(file, batch=256))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seen == count
        return top

    assert peak(20_000) < 1.5 * peak(1_000)


def test_contact_sheet(tmp_path):
    contact_sheet(GREY, ["10", "9", "10", "9", "9", "9", "10"], tmp_path / "a.png", columns=3)
    sheet = np.asarray(Image.open(tmp_path / "a.png"))
    assert sheet.shape == (2 * (12 + 2) + 2, 3 * (10 + 2) + 2)
    assert (sheet[2:14:2, 2:12:2] == GREY[1, :, :, 0]).all()  # the class 9 comes before 10
    contact_sheet(COLOUR, None, tmp_path / "b.png", columns=2, scale=1)
    assert np.asarray(Image.open(tmp_path / "b.png")).shape == (2 * 8 + 2, 2 * 7 + 2, 3)
    with pytest.raises(DataError, match="needs an image"):
        contact_sheet(GREY[:0], None, tmp_path / "c.png")


def test_places_in_words():
    assert [ordinal(n - 1).split()[1] for n in (1, 2, 3, 4, 11, 12, 21, 112, 1003)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "112th", "1,003rd"),
    ]
