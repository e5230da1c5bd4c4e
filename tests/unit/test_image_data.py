"""Images of the benchmarks: found by hash, read without being unpacked, refused if altered."""

import gzip
import hashlib
import io
import json
import lzma
import os
import pickle
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from benchmark_scripts import fetch
from PIL import Image

from aquatint.image_files import read_images

image_data = fetch("image_data")
datasets = fetch("datasets")
RNG = np.random.default_rng(0)


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def tar(files, kind="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=kind) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def idx_files(folder, ending, press):
    return {
        f"{folder}/{start}-{what}{ending}": press(idx(array))
        for start in ("train", "t10k")
        for what, array in (
            ("images-idx3-ubyte", RNG.integers(0, 256, (4, 28, 28), dtype=np.uint8)),
            ("labels-idx1-ubyte", np.arange(4, dtype=np.uint8)),
        )
    }


def deb(data):
    packed = lzma.compress(tar(data, "w"))
    parts = (("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), ("data.tar.xz", packed))
    made = b"!<arch>\n"
    for name, body in parts:
        made += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode() + body
        made += b"\n" * (len(body) % 2)
    return made


def cifar_files():
    def strip():
        out = io.BytesIO()
        Image.fromarray(RNG.integers(0, 256, (3, 1024, 3), dtype=np.uint8)).save(out, "PNG")
        return out.getvalue()

    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    files = {f"package/{name}.png": strip() for name in names}
    labels = {"train": [i % 10 for i in range(15)], "test": [0, 1, 2]}
    return files | {f"package/{p}_lables.json": json.dumps(v).encode() for p, v in labels.items()}


MADE = {
    "mnist": lambda: tar(idx_files("package/data", "", bytes)),
    "fashion": lambda: deb(
        idx_files("./usr/share/datasets/fashion-mnist", ".gz", gzip.compress),
    ),
    "cifar10": lambda: tar(cifar_files()),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AQUATINT_DATA", str(tmp_path))
    (tmp_path / "images").mkdir()
    return tmp_path / "images"


@pytest.mark.parametrize("name", MADE)
def test_a_package_is_read_once_and_checked_always(folder, monkeypatch, name):
    with pytest.raises(datasets.NotHereError, match=r"is not here: `(npm|apt|pip)"):
        image_data.load(name)
    data, package = MADE[name](), image_data.PACKAGES[name]
    (folder / package.file).write_bytes(data)
    with pytest.raises(datasets.NotHereError, match="not the file that is known"):
        image_data.load(name)
    known = replace(package, sha256=hashlib.sha256(data).hexdigest())
    monkeypatch.setitem(image_data.PACKAGES, name, known)
    with pytest.raises(datasets.NotHereError, match="not what it was"):
        image_data.load(name)
    arrays = image_data.READERS[name](folder / package.file)
    monkeypatch.setitem(image_data.CONTENT, name, image_data.content(arrays))
    made = image_data.load(name)
    assert made.x_train.dtype == np.uint8
    assert made.x_train.shape[1:] == ((32, 32, 3) if name == "cifar10" else (28, 28, 1))
    assert len(made.x_train) == len(made.y_train)
    image_data.export(made, folder / "out")
    (part,) = read_images(folder / "out" / f"{name}-test.npz")
    assert (part.pixels == made.x_test).all()
    assert list(part.labels) == [made.classes[code] for code in made.y_test]
    (folder / package.file).unlink()
    assert (image_data.load(name).x_test == made.x_test).all()  # from what was kept
    np.savez(folder / f"{name}.npz", **(arrays | {"y_test": arrays["y_test"] + 1}))
    with pytest.raises(datasets.NotHereError, match="not what it was"):
        image_data.load(name)


def test_a_line_of_a_strip_is_an_image(folder):
    image = RNG.integers(0, 256, (32, 32, 3), dtype=np.uint8)
    files = cifar_files()
    out = io.BytesIO()
    Image.fromarray(image.reshape(1, 1024, 3)).save(out, "PNG")
    files["package/test_batch.png"] = out.getvalue()
    (folder / "x.tgz").write_bytes(tar(files))
    assert (image_data.READERS["cifar10"](folder / "x.tgz")["x_test"][0] == image).all()


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


def test_only_arrays_come_out_of_a_pickle():
    arrays = {"a": {"kernel": np.arange(6.0).reshape(2, 3)}}
    again = image_data.NumpyOnly(io.BytesIO(pickle.dumps(arrays, protocol=3))).load()
    assert (again["a"]["kernel"] == arrays["a"]["kernel"]).all()
    with pytest.raises(pickle.UnpicklingError, match="only arrays"):
        image_data.NumpyOnly(io.BytesIO(pickle.dumps(Evil()))).load()


def test_the_real_ones_if_they_are_here():
    for name, (count, mean) in {
        "mnist": (60_000, 0.1307),
        "fashion": (60_000, 0.2860),
        "cifar10": (50_000, 0.4734),
    }.items():
        try:
            made = image_data.load(name)
        except datasets.NotHereError as absent:
            pytest.skip(str(absent))
        assert len(made.x_train) == count
        assert abs(made.x_train.mean() / 255 - mean) < 1e-4
