"""The commands that were scripts in Caffe's module: classify, detect, draw_net."""

import csv
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

import numpy as np

from pycaffe_module import PACKAGE, caffe, write

import conftest

NET = """name: "means"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 6 } } }
layer { name: "mean" type: "Pooling" bottom: "data" top: "mean" pooling_param { pool: AVE global_pooling: true } }
layer { name: "times" type: "Scale" bottom: "mean" top: "times" scale_param { filler { value: 2 } } }
"""


def command(name, *arguments, cwd, ok=True):
    ended = subprocess.run(
        [sys.executable, "-m", f"caffe.{name}", *map(str, arguments)],
        cwd=cwd,
        timeout=60,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "GLOG_minloglevel": "2"},
    )
    assert (ended.returncode == 0) == ok, ended.stderr
    return ended.stdout if ok else ended.stderr


def model(folder):
    write(folder, "net.prototxt", NET)
    caffe.Net(str(folder / "net.prototxt"), caffe.TEST).save(str(folder / "net.caffemodel"))
    return "--model_def", "net.prototxt", "--pretrained_model", "net.caffemodel"


def test_classify_takes_a_picture_a_folder_and_arrays(tmp_path):
    flags = model(tmp_path)
    pictures = [np.random.default_rng(k).random((10, 12, 3)).astype(np.float32) for k in range(3)]
    np.save(tmp_path / "pictures.npy", pictures)
    command("classify", "pictures.npy", "out.npy", *flags, "--center_only", "--images_dim", "10,12", cwd=tmp_path)
    wanted = [[2 * 255 * p[1:9, 3:9, c].mean(dtype=np.float64) for c in (2, 1, 0)] for p in pictures]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), wanted, rtol=1e-5)
    command(
        "classify",
        "pictures.npy",
        "ten.npy",
        *flags,
        *"--images_dim 8,6 --raw_scale 1 --channel_swap 0,1,2".split(),
        cwd=tmp_path,
    )
    assert np.load(tmp_path / "ten.npy").shape == (3, 3)
    said = command(
        "classify", conftest.ROOT / "tests/goldens/images", "folder.npy", *flags, "--ext", "png", cwd=tmp_path
    )
    assert (
        np.load(tmp_path / "folder.npy").shape[0] == len(list((conftest.ROOT / "tests/goldens/images").glob("*.png")))
        and "picture(s)" in said
    )
    assert "no *.tif" in command("classify", ".", "x.npy", *flags, "--ext", "tif", cwd=tmp_path, ok=False)
    assert "computes on the CPU" in command(
        "classify", "pictures.npy", "x.npy", *flags, "--gpu", cwd=tmp_path, ok=False
    )


def test_detect_writes_a_row_for_every_window(tmp_path):
    flags = model(tmp_path)
    picture = conftest.ROOT / "tests/goldens/images/colour_444.jpg"
    pixels = caffe.io.load_image(picture)
    windows = [(0, 0, 8, 6), (2, 1, 10, 7)]
    (tmp_path / "windows.csv").write_text(
        "filename,ymin,xmin,ymax,xmax\n" + "".join(f"{picture},{','.join(map(str, w))}\n" for w in windows)
    )
    command("detect", "windows.csv", "out.csv", *flags, "--context_pad", "0", cwd=tmp_path)
    with open(tmp_path / "out.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert (
        list(rows[0]) == ["filename", "ymin", "xmin", "ymax", "xmax", "class0", "class1", "class2"] and len(rows) == 2
    )
    for row, (top, left, bottom, right) in zip(rows, windows):
        assert tuple(float(row[c]) for c in ("ymin", "xmin", "ymax", "xmax")) == (top, left, bottom, right)
        wanted = [2 * 255 * pixels[top:bottom, left:right, c].mean(dtype=np.float64) for c in (2, 1, 0)]
        np.testing.assert_allclose([float(row[f"class{k}"]) for k in range(3)], wanted, rtol=1e-4)
    (tmp_path / "bad.csv").write_text("filename,top\n")
    assert "has no column xmax" in command(
        "detect", "bad.csv", "x.csv", *flags, "--context_pad", "0", cwd=tmp_path, ok=False
    )


def test_draw_net_draws(tmp_path):
    write(tmp_path, "net.prototxt", NET)
    assert "Drawing net to net.svg" in command("draw_net", "net.prototxt", "net.svg", "--rankdir", "TB", cwd=tmp_path)
    words = "".join(xml.parse(tmp_path / "net.svg").getroot().itertext())
    assert all(name in words for name in ("data", "mean", "times"))
    write(tmp_path, "bad.prototxt", "layer { nme: 1 }")
    assert "bad.prototxt" in command("draw_net", "bad.prototxt", "x.svg", cwd=tmp_path, ok=False)
