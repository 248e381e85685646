#!/usr/bin/env python3
"""cifar10.py DATA [FOLDER|ARCHIVE]: CIFAR-10's binary version as Caffe's LMDBs, and the mean of the training images.

Records: 1 byte label, 3,072 bytes R, G, B planes. LMDB: key = index in five digits, value = Datum. mean.binaryproto is a BlobProto
(num, channels, height, width, packed float data). The mean is taken here because `crema compute_image_mean` is not in this version.
"""

import array
import hashlib
import io
import pathlib
import shutil
import struct
import sys
import tarfile
import urllib.request

URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
MD5 = "c32a1d4ab5d03f1284b67883e8d87530"  # as published beside it
SIDE, CHANNELS = 32, 3
PIXELS = SIDE * SIDE * CHANNELS
RECORD = 1 + PIXELS


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def datum(record):
    """channels = 1, height = 2, width = 3, data = 4, label = 5."""
    return b"\x08\x03\x10\x20\x18\x20\x22" + varint(PIXELS) + record[1:] + b"\x28" + varint(record[0])


def blob(values):
    """num = 1, channels = 2, height = 3, width = 4, data = 5 (packed)."""
    packed = struct.pack(f"<{len(values)}f", *values)
    return b"\x08\x01\x10\x03\x18\x20\x20\x20\x2a" + varint(len(packed)) + packed


def files(source):
    """(train, test): the bytes of the batches, in the order of their names."""
    if source.is_dir():
        found = {p.name: p.read_bytes() for p in source.rglob("*.bin")}
    else:
        with tarfile.open(source) as archive:
            found = {
                pathlib.PurePath(m.name).name: archive.extractfile(m).read() for m in archive if m.name.endswith(".bin")
            }
    for name, data in found.items():
        if len(data) % RECORD:
            sys.exit(
                f"error: {source}: {name} has {len(data)} bytes, no multiple of {RECORD}; take CIFAR-10's binary version"
            )
    train = b"".join(found[n] for n in sorted(found) if "test" not in n)
    test = b"".join(found[n] for n in sorted(found) if "test" in n)
    if not train or not test:
        sys.exit(f"error: {source} lacks data_batch_*.bin or test_batch.bin; take CIFAR-10's binary version")
    return train, test


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
                f"error: {URL}: its MD5 is not the published {MD5}; fetch it elsewhere and give its path as the argument"
            )
        target.write_bytes(data)
    return target


def write_lmdb(path, records):
    import lmdb  # setup-cifar10.sh brings it; the rest of this file does without

    temporary = path.with_name(path.name + ".part")
    for folder in (temporary, path):
        shutil.rmtree(folder, ignore_errors=True)
    count = len(records) // RECORD
    with lmdb.open(str(temporary), map_size=2 * len(records) + (16 << 20)) as db, db.begin(write=True) as write:
        for i in range(count):
            write.put(b"%05d" % i, datum(records[i * RECORD : (i + 1) * RECORD]), append=True)
    temporary.rename(path)
    print(f"{path}: {count} records")


def mean(records):
    """Of each pixel over all records, exact in integers until the division."""
    count, sums = len(records) // RECORD, [0] * PIXELS
    view = io.BytesIO(records)
    for _ in range(count):
        sums = list(map(int.__add__, sums, array.array("B", view.read(RECORD)[1:])))
    return [s / count for s in sums]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    data = pathlib.Path(sys.argv[1])
    source = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else fetched(data)
    if not source.exists():
        sys.exit(f"error: {source} is not there; name a folder or an archive of CIFAR-10's binary version")
    train, test = files(source)
    write_lmdb(data / "cifar10_train_lmdb", train)
    write_lmdb(data / "cifar10_test_lmdb", test)
    (data / "mean.binaryproto").write_bytes(blob(mean(train)))
    print(f"{data}/mean.binaryproto: the mean of {len(train) // RECORD} images")


if __name__ == "__main__":
    main()
