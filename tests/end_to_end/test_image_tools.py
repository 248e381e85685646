"""Caffe's tools under their old names, the words and exit codes that scripts see, and training from image files."""

import re
import shutil
import subprocess
import sys

import pytest

from conftest import CREMA, ROOT, crema, sha256, solver

IMAGES = ROOT / "tests/goldens/images"
COLOUR = [f"colour_{s}{p}.jpg" for s in ("444", "422", "420", "440", "411") for p in ("", "_p")]

V0 = """name: "old" layers { layer { name: "data" type: "data" source: "db" batchsize: 3 scale: 0.5 } top: "data" top: "label" }
layers { layer { name: "fc" type: "innerproduct" num_output: 2 } bottom: "data" top: "fc" }"""


@pytest.fixture(scope="module")
def links(tmp_path_factory):
    folder = tmp_path_factory.mktemp("links") / "bin"
    done = crema("links", folder)
    assert done.code == 0, done.err
    return folder


def tool(links, name, *arguments, cwd=None):
    return subprocess.run([links / name, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=60)


def test_old_names_are_the_tools(links, tmp_path):
    programs = [
        "caffe",
        "compute_image_mean",
        "convert_cifar_data",
        "convert_imageset",
        "convert_mnist_data",
        "device_query",
        "extract_features",
        "upgrade_net_proto_binary",
        "upgrade_net_proto_text",
        "upgrade_solver_proto_text",
    ]
    names = [*programs, *(p + ".bin" for p in programs), "draw_net.py", "parse_log.py", "summarize.py"]
    assert sorted(p.name for p in links.iterdir()) == sorted(names)
    assert "kernels" in tool(links, "device_query").stdout
    assert (
        "kernels" in tool(links, "caffe", "device_query").stdout
        and "kernels" in tool(links, "caffe.bin", "device_query").stdout
    )
    assert tool(links, "caffe", "--version").stdout.startswith("crema ")
    assert "-resize_height" in tool(links, "convert_imageset", "--help").stdout
    (tmp_path / "list").write_text("type2_8.png 4\n")
    assert tool(links, "convert_imageset", f"{IMAGES}/", "list", "db", cwd=tmp_path).returncode == 0
    assert tool(links, "compute_image_mean", "db", "mean", cwd=tmp_path).returncode == 0
    assert tool(links, "convert_imageset.bin", "-gray", f"{IMAGES}/", "list", "grey", cwd=tmp_path).returncode == 0
    assert crema("records", tmp_path / "grey").out.strip() == "1"
    wrong = tool(links, "compute_image_mean", "-colour", "db", cwd=tmp_path)
    assert wrong.returncode == 2 and "`crema compute_image_mean --help`" in wrong.stderr


@pytest.mark.parametrize("start", [[], [sys.executable], ["sh"]])
def test_caffes_scripts_take_their_arguments(links, tmp_path, start):
    """By their names, and with `python` before them; arguments in the order of Caffe's scripts."""
    golden = ROOT / "tests/goldens/training_log"

    def script(name, *arguments):
        return subprocess.run(
            [*start, links / name, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )

    done = script("parse_log.py", golden / "caffe.log", tmp_path, "--delimiter", ";")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "caffe.log.train").read_text().replace(";", ",") == (
        golden / "caffe.log.train"
    ).read_text().replace("\r", "")
    net = ROOT / "tests/goldens/whole_log/net.prototxt"
    sizes = {}
    for rankdir in ("LR", "TB"):
        done = script("draw_net.py", net, "net.svg", "--rankdir", rankdir, "--phase", "TRAIN", "--display_lrm")
        assert done.returncode == 0, done.stderr
        picture = (tmp_path / "net.svg").read_text()
        sizes[rankdir] = [float(re.search(rf'{side}="([\d.]+)"', picture).group(1)) for side in ("width", "height")]
    assert "lr_mult 1, 2" in picture and sizes["LR"][0] > sizes["TB"][0] and sizes["LR"][1] < sizes["TB"][1], sizes
    assert "InnerProduct" in script("summarize.py", net).stdout
    assert script("draw_net.py").returncode == 2


def test_scripts_beside_the_executable_can_be_moved(tmp_path):
    (tmp_path / "a b").mkdir()
    shutil.copy(CREMA, tmp_path / "a b/crema")
    assert subprocess.run([tmp_path / "a b/crema", "links", tmp_path / "a b"], timeout=30).returncode == 0
    (tmp_path / "a b").rename(tmp_path / "c d")
    for start in ([], [sys.executable]):
        done = subprocess.run(
            [*start, tmp_path / "c d/summarize.py", ROOT / "tests/goldens/whole_log/net.prototxt"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert "InnerProduct" in done.stdout, done.stderr


def test_links_beside_the_executable_can_be_moved_and_made_again(tmp_path):
    (tmp_path / "a").mkdir()
    shutil.copy(CREMA, tmp_path / "a/crema")
    for _ in range(2):
        assert subprocess.run([tmp_path / "a/crema", "links", tmp_path / "a"], timeout=30).returncode == 0
    (tmp_path / "a").rename(tmp_path / "b")
    assert (
        "kernels"
        in subprocess.run([tmp_path / "b/caffe", "device_query"], capture_output=True, text=True, timeout=30).stdout
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "c/caffe").write_text("somebody's")
    done = crema("links", tmp_path / "c")
    assert done.code == 1 and "c/caffe already" in done.story and (tmp_path / "c/caffe").read_text() == "somebody's"


@pytest.mark.parametrize(
    "name",
    [
        "convert_imageset",
        "compute_image_mean",
        "extract_features",
        "upgrade_net_proto_text",
        "upgrade_net_proto_binary",
        "upgrade_solver_proto_text",
    ],
)
def test_too_few_words_print_the_usage(name):
    done = crema(name)
    assert done.code == 1 and f"Usage: {name} " in done.err


@pytest.mark.parametrize(
    "arguments,code,words",
    [
        (("-backend", "rocksdb"), 2, ["backend 'rocksdb'", "lmdb or leveldb"]),
        (("-encode_type", "bmp"), 2, ["png or jpg", "'bmp'"]),
        (("-check_size",), 1, ["Incorrect data field size", "line 2", "-resize_height"]),
    ],
)
def test_convert_imageset_says_what_is_wrong(tmp_path, arguments, code, words):
    (tmp_path / "list").write_text("type2_8.png 4\ncolour_420.jpg 1\n")
    done = crema("convert_imageset", *arguments, f"{IMAGES}/", "list", "db", cwd=tmp_path)
    assert done.code == code, done.err
    for word in words:
        assert word in done.story, done.story
    assert sorted(p.name for p in tmp_path.iterdir()) == ["list"], "nothing half made is left"


def test_a_wrong_root_is_an_error(tmp_path):
    (tmp_path / "list").write_text("type2_8.png 4\n")
    done = crema("convert_imageset", IMAGES, "list", "db", cwd=tmp_path)
    assert done.code == 1 and "ROOTFOLDER/" in done.story and "goldens/imagestype2_8.png" in done.err


def test_compute_image_mean_names_the_record_of_another_size(tmp_path):
    (tmp_path / "list").write_text("type2_8.png 4\ncolour_420.jpg 1\n")
    assert crema("convert_imageset", f"{IMAGES}/", "list", "db", cwd=tmp_path).code == 0
    done = crema("compute_image_mean", "db", cwd=tmp_path)
    assert done.code == 1 and "Incorrect data field size 5883" in done.story and "00000001_colour_420.jpg" in done.story


def test_upgrades(tmp_path):
    (tmp_path / "v0").write_text(V0)
    done = crema("upgrade_net_proto_text", "v0", "v2", cwd=tmp_path)
    assert done.code == 0 and "Wrote upgraded NetParameter text proto to v2" in done.err
    new = (tmp_path / "v2").read_text()
    assert (
        re.findall(r'type: "(\w+)"', new) == ["Data", "InnerProduct"]
        and "layers" not in new
        and re.search(r"transform_param \{\s+scale: 0.5", new)
    )
    again = crema("upgrade_net_proto_text", "v2", "v3", cwd=tmp_path)
    assert (
        again.code == 0
        and "File already in latest proto format: v2" in again.err
        and (tmp_path / "v3").read_text() == new
    )
    encode = ["protoc", "--encode=caffe.NetParameter", f"-I{ROOT}/proto", "caffe.proto"]
    (tmp_path / "v0.bin").write_bytes(
        subprocess.run(encode, input=V0.encode(), capture_output=True, check=True, timeout=30).stdout
    )
    assert crema("upgrade_net_proto_binary", "v0.bin", "v2.bin", cwd=tmp_path).code == 0
    assert (tmp_path / "v2.bin").read_bytes() == subprocess.run(
        encode, input=new.encode(), capture_output=True, check=True, timeout=30
    ).stdout


def test_upgrades_that_lose_something_are_written_and_say_so(tmp_path):
    (tmp_path / "v0").write_text(V0.replace("num_output: 2", "num_output: 2 batchsize: 7"))
    done = crema("upgrade_net_proto_text", "v0", "v2", cwd=tmp_path)
    assert (
        done.code == 1
        and "Encountered error(s) while upgrading prototxt" in done.err
        and "InnerProduct" in (tmp_path / "v2").read_text()
    )
    (tmp_path / "bad").write_text("layer { nme: 'x' }")
    done = crema("upgrade_net_proto_text", "bad", "out", cwd=tmp_path)
    assert (
        done.code == 2
        and "Failed to parse input text file as NetParameter: bad" in done.err
        and not (tmp_path / "out").exists()
    )
    assert crema("upgrade_net_proto_binary", "bad", "out", cwd=tmp_path).code == 2


def test_solvers_are_upgraded(tmp_path):
    (tmp_path / "old").write_text('net: "n" solver_type: ADAGRAD base_lr: 0.1')
    done = crema("upgrade_solver_proto_text", "old", "new", cwd=tmp_path)
    assert done.code == 0 and "Wrote upgraded SolverParameter text proto to new" in done.err
    assert 'type: "AdaGrad"' in (tmp_path / "new").read_text() and "solver_type" not in (tmp_path / "new").read_text()
    assert (
        "File already in latest proto format: new"
        in crema("upgrade_solver_proto_text", "new", "newer", cwd=tmp_path).err
    )
    (tmp_path / "both").write_text('net: "n" solver_type: ADAGRAD type: "Adam"')
    done = crema("upgrade_solver_proto_text", "both", "out", cwd=tmp_path)
    assert done.code == 1 and "cannot be both specified" in done.err and (tmp_path / "out").exists()


def net(data):
    """Pictures of 12 x 12 in four classes; the same pictures are tested."""
    test = data.replace("top: 'label'", "top: 'label' include { phase: TEST }").replace("shuffle: true", "")
    return (
        "name: 'pictures'\n"
        + data.replace("top: 'label'", "top: 'label' include { phase: TRAIN }")
        + test
        + "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
    )


def image_data(folder, options="shuffle: true rand_skip: 5"):
    (folder / "images.list").write_text(
        "".join(f"{n} {i % 4}\n" for i, n in enumerate(COLOUR + ["type2_8.png", "type3_4.png", "restarts.jpg"]))
    )
    return (
        "layer { name: 'data' type: 'ImageData' top: 'data' top: 'label' transform_param { scale: 0.01 crop_size: 12 mirror: true mean_value: 110 }\n"
        f"  image_data_param {{ source: 'images.list' root_folder: '{IMAGES}/' batch_size: 3 new_height: 16 new_width: 18 {options} }} }}\n"
    )


def window_data(folder, options=""):
    (folder / "windows").write_text(
        "".join(
            f"# {i}\n{n}\n3\n37\n53\n3\n{i % 3 + 1} 0.8 {i} 2 {20 + i} 30\n{i % 3 + 1} 0.6 1 {i} 40 36\n0 0.1 30 {i} 52 20\n"
            for i, n in enumerate(COLOUR)
        )
    )
    return (
        "layer { name: 'data' type: 'WindowData' top: 'data' top: 'label' transform_param { crop_size: 12 mirror: true mean_value: 110 }\n"
        f"  window_data_param {{ source: 'windows' root_folder: '{IMAGES}/' batch_size: 5 fg_fraction: 0.4 context_pad: 1 scale: 0.01 {options} }} }}\n"
    )


@pytest.mark.parametrize("data", [image_data, window_data])
def test_one_model_for_any_number_of_workers_and_after_a_resume(tmp_path, data):
    solver(
        tmp_path, net(data(tmp_path)), max_iter=12, extra="test_iter: 3; test_interval: 6; snapshot: 5; iter_size: 2"
    )
    models = {}
    for ranks, workers in ((1, 1), (3, 1), (3, 2), (3, 3)):
        done = crema(
            "train",
            "-solver",
            "solver.prototxt",
            "-ranks",
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
        "train",
        "-solver",
        "solver.prototxt",
        "-ranks",
        3,
        "-snapshot",
        "snap_iter_5.solverstate",
        "-model",
        "resumed",
        cwd=tmp_path,
    )
    assert done.code == 0 and sha256(tmp_path / "resumed") == models[3, 1][0], done.err[-2000:]


@pytest.mark.parametrize("data,kind", [(image_data, "IMAGE_DATA"), (window_data, "WINDOW_DATA")])
def test_old_nets_train_the_same_model(tmp_path, data, kind):
    """V1: the upgrade moves scale, crop_size, mirror and mean_file to transform_param; of WindowData too, where Caffe then forgets the scale."""
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
        "{0} {{ name: 'ip' type: {1} bottom: 'data' top: 'ip' inner_product_param {{ num_output: 4 weight_filler {{ type: 'xavier' }} }} }}\n"
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
    """FCN's way: batch_size 1 and no resizing; what the layer says of batch_size 2 names the remedy."""
    text = net(image_data(tmp_path, "")).replace("new_height: 16 new_width: 18", "").replace("crop_size: 12", "")
    pool = "layer { name: 'pool' type: 'Pooling' bottom: 'data' top: 'pool' pooling_param { pool: AVE global_pooling: true } }\n"
    text = text.replace("layer { name: 'ip'", pool + "layer { name: 'ip'").replace(
        "bottom: 'data' top: 'ip'", "bottom: 'pool' top: 'ip'"
    )
    solver(tmp_path, text.replace("batch_size: 3", "batch_size: 1"), max_iter=20)
    assert crema("train", "-solver", "solver.prototxt", cwd=tmp_path).code == 0
    solver(tmp_path, text, max_iter=20)
    done = crema("train", "-solver", "solver.prototxt", cwd=tmp_path)
    assert done.code == 1 and "new_height" in done.story and "line 11" in done.story, done.err[-1500:]
