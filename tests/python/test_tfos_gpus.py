"""tensorflowonspark.gpu_info and the GPUs of util.single_node_env, with an nvidia-smi of our own on PATH."""

import json
import os
import random
import types

import pytest

import spark_session  # noqa: F401  puts python/ on the path

from tensorflowonspark import gpu_info, util

# What NVIDIA's program prints for these arguments (driver 550 and 570), with GPUs and users from the file beside it.
PROGRAM = """#!/usr/bin/env python3
import json, pathlib, sys, time
state = json.loads(pathlib.Path(__file__).with_name("state").read_text())
if "fails" in state:
    print(state["fails"], file=sys.stderr)
    sys.exit(9)
time.sleep(state.get("sleeps", 0))
words = dict(word.partition("=")[::2] for word in sys.argv[1:])
if "--list-gpus" in words:
    for gpu in state["gpus"]:
        print(f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})")
        for line in gpu.get("mig", []):
            print("  " + line)
elif words.get("--query-gpu") == "index,uuid" and words["--format"].startswith("csv,noheader"):
    for gpu in state["gpus"]:
        print(f"{gpu['index']}, {gpu['uuid']}")
elif words.get("--query-compute-apps") == "gpu_uuid":
    for uuid in state["busy"]:
        print(uuid)
elif words.get("--query-compute-apps", "").startswith("gpu_uuid,pid"):
    print("gpu_uuid, pid, process_name, used_gpu_memory [MiB]")
    for uuid in state["busy"]:
        print(f"{uuid}, 4711, /usr/bin/python3, 1024 MiB")
else:
    sys.exit(f"unknown: {sys.argv}")
"""
NAMES = ["NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-16GB", "NVIDIA GeForce RTX 4090", "NVIDIA A100-PCIE-40GB"]


@pytest.fixture
def host(tmp_path, monkeypatch):
    """host(gpus, busy=(1,), **more): this host has GPUs of these names, of which some are in use."""

    def made(names, busy=(), **more):
        gpus = [
            {"index": i, "name": n, "uuid": f"GPU-{i}0000000-1111-2222-3333-444444444444"} for i, n in enumerate(names)
        ]
        for i, lines in more.pop("mig", {}).items():
            gpus[i]["mig"] = lines
        state = {"gpus": gpus, "busy": [gpus[i]["uuid"] for i in busy], **more}
        (tmp_path / "state").write_text(json.dumps(state))
        (tmp_path / "nvidia-smi").write_text(PROGRAM)
        (tmp_path / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "before")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    for name in ("HADOOP_HOME", "HADOOP_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def waits(monkeypatch):
    """The seconds that were slept, without sleeping."""
    slept = []
    monkeypatch.setattr(gpu_info, "time", types.SimpleNamespace(sleep=slept.append))
    return slept


def test_names_of_any_number_of_words(host):
    host(NAMES, busy=(2,))
    assert gpu_info.is_gpu_available()
    chosen = [gpu_info.get_gpus(1, node) for node in range(3)]
    assert chosen == ["0", "1", "3"]  # free ones in order; the one in use is given to nobody
    assert gpu_info.get_gpus(2, 0, format=gpu_info.AS_LIST) == ["0", "1"]
    assert gpu_info.get_gpus(3, 0) == "0,1,3"


def test_a_block_that_does_not_fit_goes_on_at_the_start(host, caplog):
    host(NAMES, busy=(0,))
    assert gpu_info.get_gpus(2, 1, gpu_info.AS_LIST) == ["3", "1"]  # places 2 and 3 of the three free ones
    assert gpu_info.get_gpus(1, 3) == "1" and "may share" in caplog.text


def test_without_an_index_any_free_ones(host):
    host(NAMES, busy=(1,))
    random.seed(1)
    seen = {tuple(sorted(gpu_info.get_gpus(2, format=gpu_info.AS_LIST))) for _ in range(12)}
    assert seen == {("0", "2"), ("0", "3"), ("2", "3")}


def test_index_is_a_number_and_not_a_place_in_the_list(host):
    host([f"GPU of {i}" for i in range(12)], busy=(0, 1))
    assert gpu_info.get_gpus(9, 0) == "2,3,4,5,6,7,8,9,10"


def test_partitions_of_a_gpu_are_no_gpus(host):
    host(
        ["NVIDIA A100-SXM4-40GB"],
        mig={0: ["MIG 1g.5gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)"]},
    )
    assert gpu_info.get_gpus(1, 0) == "0"


def test_it_waits_for_gpus_and_says_who_has_them(host, waits, monkeypatch):
    host(NAMES, busy=(0, 1, 2))
    with pytest.raises(Exception, match=r"Unable to find 2 free GPU\(s\)\ngpu_uuid, pid, (.|\n)*4711") as raised:
        gpu_info.get_gpus(2, 0)
    assert waits == [30, 60, 90] and str(raised.value).count("4711") == 3
    waits.clear()
    monkeypatch.setattr(gpu_info, "time", types.SimpleNamespace(sleep=lambda seconds: host(NAMES, busy=(3,))))
    assert gpu_info.get_gpus(2, 0) == "0,1"


def test_more_than_there_are_is_said_at_once(host, waits):
    host(NAMES)
    with pytest.raises(Exception, match=r"Unable to find 5 free GPU\(s\)\nthis host has 4"):
        gpu_info.get_gpus(5, 0)
    with pytest.raises(Exception, match="Unknown GPU format"):
        gpu_info.get_gpus(5, 0, format="json")
    assert waits == []


def test_a_driver_that_fails_or_hangs(host, monkeypatch):
    host([], fails="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    assert not gpu_info.is_gpu_available()
    with pytest.raises(Exception, match="ended with 9: NVIDIA-SMI has failed because"):
        gpu_info.get_gpus()
    monkeypatch.setattr(gpu_info, "_ANSWER_TIME", 0.3)
    host(NAMES, sleeps=60)
    assert not gpu_info.is_gpu_available()
    with pytest.raises(Exception, match="gave no answer within 0.3 s"):
        gpu_info.get_gpus()


def test_a_host_without_gpus(host, monkeypatch, tmp_path):
    host([])
    assert not gpu_info.is_gpu_available()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert not gpu_info.is_gpu_available()
    with pytest.raises(Exception, match="there is no nvidia-smi on PATH"):
        gpu_info.get_gpus()
    util.single_node_env(1)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_nodes_of_one_host_get_different_gpus(host):
    host(NAMES, busy=(1,))
    nodes = ["10.0.0.1:4001", "10.0.0.12:4001", "10.0.0.1:4002", "10.0.0.1:4002"]  # the last two in one executor
    chosen = []
    for i in range(4):
        util.single_node_env(1, i, nodes)
        chosen.append(os.environ["CUDA_VISIBLE_DEVICES"])
    assert chosen == ["0", "0", "2", "3"]
    util.single_node_env(0, 0, nodes)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    util.single_node_env(2, 0)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,2"
