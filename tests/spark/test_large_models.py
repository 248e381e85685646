"""A model larger than every heap is written to a local path of the driver, and is used for scoring, in JVMs of 512
MB.
"""

import re
import shutil
import subprocess

import pytest

from conftest import crema, make_lmdb, sha256
from spark_jobs import ENVIRONMENT, command, job, rows, submit  # noqa: F401 (job is a fixture)
from spark_jobs import FILES as JOB_FILES

NET = """name: "Wide"
layer {{ name: "data" type: "MemoryData" top: "data" top: "label"
  include {{ phase: TRAIN }} source_class: "com.yahoo.ml.caffe.LMDB"
  memory_data_param {{ source: "{folder}/train_lmdb" batch_size: 1 channels: 1 height: 28 width: 28 }}
    transform_param {{ scale: 0.00390625 }} }}
layer {{ name: "data" type: "MemoryData" top: "data" top: "label"
  include {{ phase: TEST }} source_class: "com.yahoo.ml.caffe.LMDB"
  memory_data_param {{ source: "{folder}/test_lmdb" batch_size: 1 channels: 1 height: 28 width: 28 }}
    transform_param {{ scale: 0.00390625 }} }}
layer {{ name: "wide" type: "InnerProduct" bottom: "data" top: "wide"
  inner_product_param {{ num_output: 160000 weight_filler {{ type: "constant" value: 0.001 }} }} }}
layer {{ name: "ten" type: "InnerProduct" bottom: "wide" top: "ten"
  inner_product_param {{ num_output: 10 weight_filler {{ type: "gaussian" std: 0.001 }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ten" bottom: "label" top: "loss" }}
"""
SOLVER = (
    'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 1 snapshot_after_train: false random_seed: 1 '
    'solver_mode: CPU snapshot_prefix: "wide"\n'
)
FILES = ("solver.prototxt", "net.prototxt")


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """160,000 x 784 weights: 502 MB."""
    folder = tmp_path_factory.mktemp("wide")
    for part, count in (("train", 3), ("test", 4)):
        make_lmdb(folder, part, count)
    for name, text in zip(FILES, (SOLVER, NET.format(folder=folder))):
        (folder / name).write_text(text)
    return folder


def test_half_a_gigabyte_of_weights_in_heaps_of_half_a_gigabyte(wide):
    done = submit(
        wide,
        *"local-cluster[1,1,512] -train -features ten".split(),
        conf=["spark.executor.memory=512m", "spark.driver.memory=512m"],
        files=FILES,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (wide / "model").stat().st_size > 500e6 and oct((wide / "model").stat().st_mode)[-3:] == "644"
    assert len(rows(wide / "out")) == 4
    assert sorted(p.name for p in wide.iterdir() if "model" in p.name) == ["model"]  # no partial file is left beside it
    alone = crema("train", "-solver", FILES[0], "-model", "alone", cwd=wide)
    assert alone.code == 0 and sha256(wide / "alone") == sha256(wide / "model"), alone.err[-2000:]
    (wide / "alone").unlink()


def test_a_model_that_finds_no_place_any_more_is_said_once(job):
    """The folder of -model is removed while the job runs."""
    home = job / "home"
    home.mkdir()
    text = (job / JOB_FILES[0]).read_text()
    for field, value in (("max_iter", 1000), ("snapshot", 0), ("test_interval", 0), ("test_iter", None)):
        text = re.sub(rf"^{field}: .*\n", "" if value is None else f"{field}: {value}\n", text, flags=re.M)
    (job / JOB_FILES[0]).write_text(text + "snapshot_after_train: false\n")
    run = subprocess.Popen(
        command(job, "local-cluster[2,1,1024]", "-train", "-clusterSize", 2, model=f"file:{home}/model"),
        cwd=job,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = ""
        for line in run.stderr:
            said += line
            if "first step done" in line:
                shutil.rmtree(home)
        assert run.wait(60) == 1, said[-3000:]
    finally:
        run.kill()
    assert (
        f"the model is trained and not saved: cannot write {home}/model: No such file or directory" in said
        and "name another place with -model" in said
    ), said[-3000:]
    assert said.count("worker 0 is there") == 1, said[-3000:]  # and is not tried again
