"""`crema classify`, and the JSON output of other commands, compared with the same steps in numpy and `import caffe`."""

import json
import re
import shutil
import subprocess

import numpy
import pytest
from PIL import Image

from pycaffe_module import caffe, write

from conftest import CREMA, RECORDED, crema, digits

DEPLOY = """name: 'small' input: 'data' input_shape { dim: 4 dim: 3 dim: 17 dim: 23 }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
  convolution_param { num_output: 6 kernel_size: 5 stride: 2 weight_filler { type: 'gaussian' std: 0.02 } } }
layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip'
  inner_product_param { num_output: 9 weight_filler { type: 'gaussian' std: 0.02 } } }
layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }"""
LABELS = [f'n{i:02d} a "thing" {i}, thing' for i in range(9)]


def bilinear(picture, height, width):
    """OpenCV's INTER_LINEAR on bytes, with exact fractions of 2048, in plain loops: height x width x channels."""

    def places(size, new, down):
        for i in range(new):
            at = numpy.float32((i + 0.5) * (1 / (new / size)) - 0.5)
            low = int(numpy.floor(at))
            part = at - numpy.float32(low)
            if not down and not 0 <= low < size - 1:  # vertically both weights are kept, each for the edge row
                part = numpy.float32(0)
            yield (
                min(max(low, 0), size - 1),
                min(max(low + 1, 0), size - 1),
                int(numpy.rint((numpy.float32(1) - part) * 2048)),
                int(numpy.rint(part * 2048)),
            )

    out = numpy.empty((height, width, picture.shape[2]), numpy.uint8)
    p = picture.astype(numpy.int64)
    for y, (y0, y1, b0, b1) in enumerate(places(picture.shape[0], height, True)):
        for x, (x0, x1, a0, a1) in enumerate(places(picture.shape[1], width, False)):
            top, bottom = p[y0, x0] * a0 + p[y0, x1] * a1, p[y1, x0] * a0 + p[y1, x1] * a1
            out[y, x] = ((b0 * (top >> 4) >> 16) + (b1 * (bottom >> 4) >> 16) + 2) >> 2
    return out


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    net = caffe.Net(write(folder, "deploy.prototxt", DEPLOY), caffe.TEST)
    rng = numpy.random.default_rng(1)
    for blobs in net.params.values():
        blobs[0].data[...] = rng.normal(0, 0.02, blobs[0].data.shape)
    net.save(str(folder / "small.caffemodel"))
    (folder / "labels.txt").write_text("".join(line + "\n" for line in LABELS))
    (folder / "pictures").mkdir()
    for i, (height, width) in enumerate([(17, 23), (40, 60), (9, 11), (17, 50), (33, 23), (70, 70)]):
        Image.fromarray(rng.integers(0, 256, (height, width, 3), numpy.uint8)).save(folder / f"pictures/{i}.png")
    mean = caffe.proto.caffe_pb2.BlobProto(channels=3, height=5, width=4, num=1)
    mean.data.extend(rng.uniform(90, 130, 60))
    (folder / "mean.binaryproto").write_bytes(mean.SerializeToString())
    numpy.save(folder / "mean.npy", numpy.array(mean.data, numpy.float64).reshape(3, 5, 4))
    return (
        folder,
        net,
        numpy.array(mean.data, numpy.float32).reshape(3, -1).astype(numpy.float64).mean(1).astype(numpy.float32),
    )


def expected(net, path, mean, scale=1):
    """The scores of one picture, computed alone."""
    rgb = numpy.array(Image.open(path).convert("RGB"))
    pixels = bilinear(rgb[:, :, ::-1], 17, 23) if rgb.shape[:2] != (17, 23) else rgb[:, :, ::-1]
    net.blobs["data"].reshape(1, 3, 17, 23)
    net.blobs["data"].data[0] = (pixels.astype(numpy.float32) - mean).transpose(2, 0, 1) * numpy.float32(scale)
    return net.forward()["prob"][0].copy()


def classified(folder, *words, **more):
    return crema("classify", "-model", "deploy.prototxt", "-weights", "small.caffemodel", *words, cwd=folder, **more)


def test_words_are_those_of_the_example(model):
    folder, net, mean = model
    done = classified(folder, "-mean", "mean.binaryproto", "-labels", "labels.txt", "pictures/1.png", "pictures/0.png")
    assert done.code == 0, done.err
    want = ""
    for name in ("pictures/1.png", "pictures/0.png"):
        scores = expected(net, folder / name, mean)
        want += f"---------- Prediction for {name} ----------\n"
        want += "".join(f'{scores[k]:.4f} - "{LABELS[k]}"\n' for k in sorted(range(9), key=lambda k: -scores[k])[:5])
    assert done.out == want and done.err == ""


@pytest.mark.parametrize(
    "mean,scale", [("mean.binaryproto", 1), ("mean.npy", 0.5), ("104,117,122.5", 1), ("100", 1), (None, 1)]
)
def test_scores_are_pycaffes(model, mean, scale):
    """Six pictures of a folder in batches of four."""
    folder, net, channels = model
    flags = ["-json", "-top", 9, "-labels", "labels.txt", "-scale", scale, "pictures"] + (
        ["-mean", mean] if mean else []
    )
    said = json.loads(classified(folder, *flags).out)
    values = {"104,117,122.5": [104, 117, 122.5], "100": [100] * 3, None: [0] * 3}.get(mean, channels)
    assert said["net"] == "small" and [p["picture"] for p in said["pictures"]] == [
        f"pictures/{i}.png" for i in range(6)
    ]
    for picture in said["pictures"]:
        scores = expected(net, folder / picture["picture"], numpy.array(values, numpy.float32), scale)
        got = {p["index"]: p for p in picture["predictions"]}
        assert [p["score"] for p in picture["predictions"]] == sorted(
            (p["score"] for p in picture["predictions"]), reverse=True
        )
        assert len(got) == 9 and all(got[k]["label"] == LABELS[k] for k in got)
        numpy.testing.assert_allclose([got[k]["score"] for k in range(9)], scores, rtol=1e-6)


def test_damaged_pictures_are_named_and_the_others_go_on(model, tmp_path):
    folder, *_ = model
    shutil.copy(folder / "pictures/0.png", tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes((folder / "pictures/1.png").read_bytes()[:900])
    (tmp_path / "c.jpg").write_text("no picture")
    shutil.copy(folder / "pictures/2.png", tmp_path / "d.PNG")
    done = classified(folder, "-json", tmp_path, tmp_path / "gone.png")
    said = json.loads(done.out)["pictures"]
    assert [len(p["predictions"]) for p in said] == [5, 0, 0, 5, 0] and all(
        p["predictions"][0]["label"] is None for p in said if p["predictions"]
    )
    assert "b.png" in said[1]["error"] and "c.jpg" in said[2]["error"] and "gone.png" in said[4]["error"]
    assert done.code == 1 and "3 of 5 pictures could not be read" in done.message and "c.jpg" in done.err
    words = classified(folder, tmp_path)
    assert words.code == 1 and words.out.count("Prediction for") == 2


def test_standard_input_is_a_picture(model):
    folder, *_ = model
    line = [CREMA, "classify", "-model", "deploy.prototxt", "-weights", "small.caffemodel", "-json"]
    piped = subprocess.run(
        [*line, "-"], cwd=folder, input=(folder / "pictures/3.png").read_bytes(), capture_output=True, timeout=60
    )
    named = subprocess.run([*line, "pictures/3.png"], cwd=folder, capture_output=True, timeout=60)
    assert (
        piped.returncode == 0
        and json.loads(piped.stdout)["pictures"][0]["predictions"]
        == json.loads(named.stdout)["pictures"][0]["predictions"]
    )


def test_what_does_not_fit_is_said(model, tmp_path):
    folder, *_ = model
    numpy.save(tmp_path / "four.npy", numpy.zeros((4, 2, 2)))
    for words, message in (
        (["-mean", "1,2", "pictures/0.png"], "-mean 1,2 has 2 values; give one, or 3"),
        (["-mean", "none.binaryproto", "pictures/0.png"], "none.binaryproto"),
        (["-mean", tmp_path / "four.npy", "pictures/0.png"], "has 4 channel(s), the net takes pictures of 3"),
        (["-labels", "deploy.prototxt", "pictures/0.png"], "labels, and the net gives 9 scores"),
        ([], "which pictures?"),
        (["-top", "0", "pictures/0.png"], "-top must be at least 1"),
        ([tmp_path], "there is no .jpg, .jpeg or .png in the folder"),
    ):
        done = classified(folder, *words)
        assert done.code in (1, 2) and message in done.message, done.err
    npy = (folder / "mean.npy").read_bytes()
    for k, damaged in enumerate(
        [
            npy[:5],
            npy[:40],
            npy[:-3],
            npy[:6] + b"\x02\x00" + b"\xff" * 60,
            npy.replace(b"False", b"True "),
            npy.replace(b"<f8", b"<i8"),
        ]
    ):
        (tmp_path / f"{k}.npy").write_bytes(damaged)
        done = classified(folder, "-mean", tmp_path / f"{k}.npy", "pictures/0.png")
        assert done.code == 1 and f"{k}.npy" in done.message, (k, done.err)
    (folder / "two.prototxt").write_text(
        DEPLOY
        + "layer { name: 'more' type: 'Silence' bottom: 'ip' } layer { name: 'b' type: 'Power' bottom: 'ip' top: 'b' }"
    )
    done = crema("classify", "-model", "two.prototxt", "-weights", "small.caffemodel", "pictures/0.png", cwd=folder)
    assert "has 2 outputs (b, prob); say which has the scores: -blob NAME" in done.message
    assert (
        crema(
            *"classify -model two.prototxt -weights small.caffemodel -blob prob pictures/0.png".split(),
            cwd=folder,
        ).code
        == 0
    )


def test_json_of_summary_test_and_time(model):
    folder, net, _ = model
    said = json.loads(crema("summary", "deploy.prototxt", "-json", cwd=folder).out)
    assert (
        said["net"] == "small"
        and said["phase"] == "TEST"
        and said["parameters"] == sum(b.data.size for blobs in net.params.values() for b in blobs)
    )
    conv = next(layer for layer in said["layers"] if layer["name"] == "conv")
    assert (
        conv["tops"] == [{"name": "conv", "shape": [4, 6, 7, 10]}]
        and conv["bottoms"] == ["data"]
        and conv["multiply_adds"] == 4 * 6 * 7 * 10 * 75
    )
    assert (
        said["multiply_adds"] == sum(layer["multiply_adds"] for layer in said["layers"])
        and said["parameter_bytes"] == 4 * said["parameters"]
    )
    done = crema("time", "deploy.prototxt", "-iterations", 3, "-json", cwd=folder)
    timed = json.loads(done.out)
    assert [layer["name"] for layer in timed["layers"]] == [layer["name"] for layer in said["layers"]] and timed[
        "iterations"
    ] == 3
    assert sum(layer["forward_ms"] for layer in timed["layers"]) == pytest.approx(timed["forward_ms"]) and timed[
        "total_ms"
    ] == pytest.approx(3 * timed["forward_backward_ms"])
    assert "Average Forward pass" in done.err
    scored = crema("test", "deploy.prototxt", "-weights", "small.caffemodel", "-iterations", 2, "-json", cwd=folder)
    said = json.loads(scored.out)
    logged = [float(v) for v in re.findall(r"\] prob = (\S+)", scored.err)]
    assert said["outputs"][0]["name"] == "prob" and said["outputs"][0]["loss_weight"] == 0 and said["loss"] == 0
    numpy.testing.assert_allclose(said["outputs"][0]["values"], logged, rtol=1e-5)


def test_real_digits(tmp_path):
    """LeNet as trained by BVLC Caffe, on 200 digits as pictures: as many are right as `crema test` counts, and as
    Caffe's accuracy suggests.
    """
    pixels, labels = digits()
    for i in range(200):
        Image.fromarray(numpy.frombuffer(pixels[i], numpy.uint8).reshape(28, 28)).save(tmp_path / f"{i:03}.png")
    (tmp_path / "list.txt").write_text("".join(f"{i:03}.png {labels[i]}\n" for i in range(200)))
    (tmp_path / "names.txt").write_text("".join(f"{d}\n" for d in range(10)))
    deploy, weights = (RECORDED / "lenet/deploy.prototxt").read_text(), RECORDED / "lenet/run_iter_1000.caffemodel"
    (tmp_path / "deploy.prototxt").write_text(deploy)
    done = crema(
        *"classify -model deploy.prototxt -weights".split(),
        weights,
        "-labels",
        "names.txt",
        "-scale",
        0.00390625,
        "-json",
        "-top",
        1,
        *(f"{i:03}.png" for i in range(200)),
        cwd=tmp_path,
    )
    assert done.code == 0, done.err
    first = [p["predictions"][0] for p in json.loads(done.out)["pictures"]]
    found = sum(p["index"] == labels[i] for i, p in enumerate(first))
    data = (
        "layer { name: 'data' type: 'ImageData' top: 'data' top: 'label' transform_param { scale: 0.00390625 } "
        "image_data_param { source: 'list.txt' batch_size: 200 is_color: false } }"
    )
    judge = "layer { name: 'accuracy' type: 'Accuracy' bottom: 'prob' bottom: 'label' top: 'accuracy' }"
    (tmp_path / "test.prototxt").write_text("\n".join([data, *deploy.splitlines()[2:], judge]))
    scored = crema("test", "-model", "test.prototxt", "-weights", weights, "-iterations", 1, "-json", cwd=tmp_path)
    accuracy = next(o for o in json.loads(scored.out)["outputs"] if o["name"] == "accuracy")["values"][0]
    assert found == round(accuracy * 200) and found >= 190, (found, accuracy)
