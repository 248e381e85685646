#!/usr/bin/env python3
"""cifar10.py CREMA DATA [FOLDER|ARCHIVE]: CIFAR-10's binary version as LMDBs, and the mean of the training images.

CREMA is the executable; its convert_cifar_data and compute_image_mean do the work. DATA gets cifar10_train_lmdb,
cifar10_test_lmdb and mean.binaryproto, whole or not at all, in place of what is there. The six .bin files may lie
anywhere in FOLDER or ARCHIVE; without either the archive is fetched from its author's page into DATA.
"""

import hashlib
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
MD5 = "c32a1d4ab5d03f1284b67883e8d87530"  # as published beside it
BATCHES = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]


def fetched(folder):
    target = folder / "cifar-10-binary.tar.gz"
    if not target.exists():
        try:
            with urllib.request.urlopen(URL, timeout=20) as answer:
                data = answer.read()
        except OSError as e:
            sys.exit(f"error: {URL}: {e}; fetch it elsewhere and give its path as the argument")
        if hashlib.md5(data).hexdigest() != MD5:
            sys.exit(
                f"error: {URL}: its MD5 is not the published {MD5}; fetch it elsewhere and give its path as "
                "the argument"
            )
        target.write_bytes(data)
    return target


def gather(source, folder):
    """The batches of a folder or an archive, side by side in `folder`."""
    if source.is_dir():
        for file in source.rglob("*.bin"):
            if file.name in BATCHES:
                (folder / file.name).symlink_to(file.resolve())
    else:
        with tarfile.open(source) as archive:
            for member in archive:
                name = pathlib.PurePath(member.name).name
                if member.isfile() and name in BATCHES:
                    with open(folder / name, "wb") as file:
                        shutil.copyfileobj(archive.extractfile(member), file)
    if missing := [name for name in BATCHES if not (folder / name).exists()]:
        sys.exit(f"error: {source} lacks {', '.join(missing)}; take CIFAR-10's binary version")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    executable, data = sys.argv[1], pathlib.Path(sys.argv[2])
    source = pathlib.Path(sys.argv[3]) if len(sys.argv) == 4 else fetched(data)
    if not source.exists():
        sys.exit(f"error: {source} is not there; name a folder or an archive of CIFAR-10's binary version")
    with tempfile.TemporaryDirectory(prefix=".cifar10-", dir=data) as name:
        batches, made = pathlib.Path(name, "batches"), pathlib.Path(name, "made")
        batches.mkdir()
        made.mkdir()
        gather(source, batches)

        def crema(*arguments):
            done = subprocess.run([executable, *map(str, arguments)], capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr.strip().replace(str(batches), str(source)))
            return done.stdout.strip()

        crema("convert_cifar_data", batches, made, "lmdb")
        crema("compute_image_mean", made / "cifar10_train_lmdb", made / "mean.binaryproto")
        for part in ("train", "test"):
            database = data / f"cifar10_{part}_lmdb"
            shutil.rmtree(database, ignore_errors=True)
            (made / database.name).rename(database)
            print(f"{database}: {crema('records', database)} records")
        (made / "mean.binaryproto").replace(data / "mean.binaryproto")
        print(f"{data}/mean.binaryproto: the mean of the training images")


if __name__ == "__main__":
    main()
