"""A Data layer with batches of one record over a database of images in four sizes. The expected losses are BVLC
Caffe's (tests/goldens/varying).
"""

import re
import shutil

import pytest

from conftest import ROOT, crema, sha256

GOLDEN, IMAGES = ROOT / "tests/goldens/varying", ROOT / "tests/goldens/images"


@pytest.fixture(params=["LMDB", "LEVELDB"])
def folder(request, tmp_path):
    shutil.copy(GOLDEN / "solver.prototxt", tmp_path)
    net = (GOLDEN / "net.prototxt").read_text()
    (tmp_path / "net.prototxt").write_text(net.replace("backend: LMDB", f"backend: {request.param}"))
    done = crema(
        "convert_imageset",
        "-encoded",
        "-backend",
        request.param.lower(),
        f"{IMAGES}/",
        GOLDEN / "images.list",
        tmp_path / "db",
    )
    assert done.code == 0, done.err
    return tmp_path


def change(folder, old, new, name="net.prototxt"):
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def losses(log):
    return re.findall(r"(T(?:est|rain) net output #0: loss) = (\S+)", log)


def test_each_batch_has_its_images_size(folder):
    done = crema("train", "-solver", "solver.prototxt", cwd=folder)
    assert done.code == 0, done.err[-2000:]
    got, want = losses(done.err), losses((GOLDEN / "caffe.txt").read_text())
    assert [name for name, _ in got] == [name for name, _ in want] and len(want) == 13
    assert [float(v) for _, v in got] == pytest.approx([float(v) for _, v in want], rel=1e-5)


def test_ranks_and_workers_give_one_model(folder):
    models = set()
    for workers in (1, 2):
        done = crema(
            "train", "-solver", "solver.prototxt", "-ranks", 2, "-workers", workers, "-model", f"m{workers}", cwd=folder
        )
        assert done.code == 0, done.err[-2000:]
        models.add((sha256(folder / f"m{workers}"), *[v for name, v in losses(done.err) if name.startswith("Test")]))
    assert len(models) == 1 and len(models.pop()) == 4


def test_a_crop_makes_sizes_equal_and_larger_batches_do_not(folder):
    change(folder, "batch_size: 1", "batch_size: 2")
    done = crema("train", "-solver", "solver.prototxt", cwd=folder)
    assert done.code != 0 and "3x37x53" in done.message and "batch_size 1" in done.message, done.err[-2000:]
    change(folder, "mean_value: 100", "mean_value: 100 crop_size: 1")
    assert crema("train", "-solver", "solver.prototxt", cwd=folder).code == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_an_output_that_varies_has_no_mean(folder, workers):
    change(
        folder,
        'layer { name: "mean"',
        'layer { name: "all" type: "Power" bottom: "conv" top: "all" }\nlayer { name: "mean"',
    )
    done = crema("train", "-solver", "solver.prototxt", "-ranks", 2, "-workers", workers, cwd=folder)
    assert done.code != 0 and "Silence" in done.err and "have no mean" in done.err, done.err[-2000:]
