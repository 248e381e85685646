"""ImageData and WindowData layers: one model for any number of workers, exact resuming, and nets in old formats."""

import re

import pytest

from conftest import ROOT, crema, sha256, solver

IMAGES = ROOT / "tests/goldens/images"
COLOUR = [f"colour_{s}{p}.jpg" for s in ("444", "422", "420", "440", "411") for p in ("", "_p")]


def net(data):
    """Pictures of 12 x 12 in four classes, used for training and test alike."""
    test = data.replace("top: 'label'", "top: 'label' include { phase: TEST }").replace("shuffle: true", "")
    return (
        "name: 'pictures'\n"
        + data.replace("top: 'label'", "top: 'label' include { phase: TRAIN }")
        + test
        + "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { num_output: 4 "
        "weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
    )


def image_data(folder, options="shuffle: true rand_skip: 5"):
    (folder / "images.list").write_text(
        "".join(f"{n} {i % 4}\n" for i, n in enumerate(COLOUR + ["type2_8.png", "type3_4.png", "restarts.jpg"]))
    )
    return (
        "layer { name: 'data' type: 'ImageData' top: 'data' top: 'label' transform_param { scale: 0.01 crop_size: 12 "
        "mirror: true mean_value: 110 }\n"
        f"  image_data_param {{ source: 'images.list' root_folder: '{IMAGES}/' batch_size: 3 new_height: 16 "
        f"new_width: 18 {options} }} }}\n"
    )


def window_data(folder, options=""):
    (folder / "windows").write_text(
        "".join(
            f"# {i}\n{n}\n3\n37\n53\n3\n{i % 3 + 1} 0.8 {i} 2 {20 + i} 30\n{i % 3 + 1} 0.6 1 {i} 40 36\n0 0.1 30 {i} "
            "52 20\n"
            for i, n in enumerate(COLOUR)
        )
    )
    return (
        "layer { name: 'data' type: 'WindowData' top: 'data' top: 'label' transform_param { crop_size: 12 mirror: "
        "true mean_value: 110 }\n"
        f"  window_data_param {{ source: 'windows' root_folder: '{IMAGES}/' batch_size: 5 fg_fraction: 0.4 "
        f"context_pad: 1 scale: 0.01 {options} }} }}\n"
    )


@pytest.mark.parametrize("data", [image_data, window_data])
def test_one_model_for_any_number_of_workers_and_after_a_resume(tmp_path, data):
    solver(
        tmp_path, net(data(tmp_path)), max_iter=12, extra="test_iter: 3; test_interval: 6; snapshot: 5; iter_size: 2"
    )
    models = {}
    for ranks, workers in ((1, 1), (3, 1), (3, 2), (3, 3)):
        done = crema(
            *"train -solver solver.prototxt -ranks".split(),
            ranks,
            "-workers",
            workers,
            "-model",
            f"m{ranks}{workers}",
            cwd=tmp_path,
        )
        assert done.code == 0, done.err[-3000:]
        models[ranks, workers] = (
            sha256(tmp_path / f"m{ranks}{workers}"),
            re.findall(r"Test net output #0: loss = (\S+)", done.err),
        )
    assert models[3, 1] == models[3, 2] == models[3, 3] != models[1, 1] and models[3, 1][1]
    done = crema(
        *"train -solver solver.prototxt -ranks".split(),
        3,
        *"-snapshot snap_iter_5.solverstate -model resumed".split(),
        cwd=tmp_path,
    )
    assert done.code == 0 and sha256(tmp_path / "resumed") == models[3, 1][0], done.err[-2000:]


@pytest.mark.parametrize("data,kind", [(image_data, "IMAGE_DATA"), (window_data, "WINDOW_DATA")])
def test_old_nets_train_the_same_model(tmp_path, data, kind):
    """V1 nets: the upgrade moves scale, crop_size, mirror and mean_file to transform_param. It does so for
    WindowData too, where Caffe loses the scale.
    """
    new = data(tmp_path).replace("mean_value: 110", "").replace("scale: 0.01", "", 1 if kind == "IMAGE_DATA" else 0)
    new = new.replace("transform_param {", "transform_param { scale: 0.01") if kind == "IMAGE_DATA" else new
    old = (
        re.sub(r"transform_param \{[^}]*\}", "", new)
        .replace(" scale: 0.01", "")
        .replace("layer {", "layers {")
        .replace(re.search(r"type: '\w+'", new).group(), f"type: {kind}")
        .replace("batch_size:", "crop_size: 12 mirror: true scale: 0.01 batch_size:")
    )
    rest = (
        "{0} {{ name: 'ip' type: {1} bottom: 'data' top: 'ip' inner_product_param {{ num_output: 4 weight_filler {{ "
        "type: 'xavier' }} }} }}\n"
        "{0} {{ name: 'loss' type: {2} bottom: 'ip' bottom: 'label' top: 'loss' }}\n"
    )
    new, old = (
        new + rest.format("layer", "'InnerProduct'", "'SoftmaxWithLoss'"),
        old + rest.format("layers", "INNER_PRODUCT", "SOFTMAX_LOSS"),
    )
    losses = []
    for text in (new, old, new.replace("scale: 0.01", "scale: 0.02")):
        solver(tmp_path, "name: 'pictures'\n" + text, max_iter=6, extra="display: 1")
        done = crema("train", "-solver", "solver.prototxt", cwd=tmp_path)
        assert done.code == 0, done.err[-2000:]
        losses.append(re.findall(r"Iteration \d+.*, loss = (\S+)", done.err))
    assert len(losses[0]) > 5 and losses[0] == losses[1] != losses[2]


def test_a_corrupt_image_ends_training_with_its_line(tmp_path):
    data = image_data(tmp_path, "")
    (tmp_path / "cut.jpg").write_bytes((IMAGES / "colour_444.jpg").read_bytes()[:500])
    (tmp_path / "images.list").write_text(f"{IMAGES}/type2_8.png 1\n{IMAGES}/colour_420.jpg 2\n{tmp_path}/cut.jpg 0\n")
    solver(tmp_path, net(data.replace(f"root_folder: '{IMAGES}/'", "")))
    for ranks in (1, 2):
        done = crema(
            "train", "-solver", "solver.prototxt", "-ranks", ranks, "-workers", ranks, cwd=tmp_path, timeout=60
        )
        assert done.code != 0
        for word in ("cut.jpg", "line 3 of image list images.list", "is a JPEG", "layer 'data'"):
            assert word in done.err, done.err[-2000:]


def test_pictures_of_their_own_sizes_one_by_one(tmp_path):
    """As FCN does: batch_size 1 and pictures of their own sizes; the error for batch_size 2 names the remedy."""
    text = net(image_data(tmp_path, "")).replace("new_height: 16 new_width: 18", "").replace("crop_size: 12", "")
    pool = (
        "layer { name: 'pool' type: 'Pooling' bottom: 'data' top: 'pool' pooling_param { pool: AVE global_pooling: "
        "true } }\n"
    )
    text = text.replace("layer { name: 'ip'", pool + "layer { name: 'ip'").replace(
        "bottom: 'data' top: 'ip'", "bottom: 'pool' top: 'ip'"
    )
    solver(tmp_path, text.replace("batch_size: 3", "batch_size: 1"), max_iter=20)
    assert crema("train", "-solver", "solver.prototxt", cwd=tmp_path).code == 0
    solver(tmp_path, text, max_iter=20)
    done = crema("train", "-solver", "solver.prototxt", cwd=tmp_path)
    assert done.code == 1 and "new_height" in done.message and "line 11" in done.message, done.err[-1500:]
