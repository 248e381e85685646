"""Copies of a database above 64 MiB of which one record differs on one machine."""

import random
import shutil
import struct

import pytest

from conftest import crema, solver
from runs import cluster, ended, on_machines

SIDE, COUNT, DIFFERS = 512, 300, 2  # 75 MiB; the samples are at least three records apart
NET = """
layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: "db" batch_size: 1 backend: LMDB } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 10 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machines")
    rng = random.Random(5)
    pictures = [rng.randbytes(SIDE * SIDE) for _ in range(COUNT)]
    (folder / "images").write_bytes(struct.pack(">4I", 2051, COUNT, SIDE, SIDE) + b"".join(pictures))
    (folder / "labels").write_bytes(struct.pack(">2I", 2049, COUNT) + bytes(i % 10 for i in range(COUNT)))
    for w in (0, 1):
        (folder / f"machine{w}").mkdir()
    assert crema("convert_mnist_data", "images", "labels", "machine0/db", cwd=folder).code == 0
    shutil.copytree(folder / "machine0/db", folder / "machine1/db")
    data = folder / "machine1/db/data.mdb"
    at = data.read_bytes().index(pictures[DIFFERS][:100]) + 50
    with open(data, "r+b") as file:
        file.seek(at)
        file.write(bytes([pictures[DIFFERS][50] ^ 1]))
    return folder


@pytest.mark.parametrize("more,code", [((), 0), (("-compare_all",), 1)])
def test_one_record_that_differs_is_found_where_all_are_compared(machines, tmp_path, more, code):
    solver(tmp_path, NET, max_iter=2)
    coordinator, address, flags = cluster(tmp_path, 2, 2, 20, more=more)
    workers = on_machines(tmp_path, [machines / "machine0", machines / "machine1"], address, [*flags, "-threads", 1])
    for process in [coordinator, *workers]:
        assert ended(process, 40) == code, (tmp_path / "coordinator.log").read_text()
    said = (tmp_path / "coordinator.log").read_text()
    assert ("reads other records than worker 0" in said) == bool(code), said
