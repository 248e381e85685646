"""Caffe's tools under their old names: messages and exit codes that scripts see."""

import re
import shutil
import subprocess
import sys

import pytest

from conftest import CREMA, ROOT, crema

IMAGES = ROOT / "tests/goldens/images"
COLOUR = [f"colour_{s}{p}.jpg" for s in ("444", "422", "420", "440", "411") for p in ("", "_p")]

V0 = """name: "old" layers { layer { name: "data" type: "data" source: "db" batchsize: 3 scale: 0.5 } top: "data"
  top: "label" }
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
    """Called by name and with `python` before the name; arguments in the order of Caffe's scripts."""
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
    assert done.code == 1 and "c/caffe already" in done.message and (tmp_path / "c/caffe").read_text() == "somebody's"


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
        assert word in done.message, done.message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["list"], "nothing half made is left"


def test_a_wrong_root_is_an_error(tmp_path):
    (tmp_path / "list").write_text("type2_8.png 4\n")
    done = crema("convert_imageset", IMAGES, "list", "db", cwd=tmp_path)
    assert done.code == 1 and "ROOTFOLDER/" in done.message and "goldens/imagestype2_8.png" in done.err


def test_compute_image_mean_names_the_record_of_another_size(tmp_path):
    (tmp_path / "list").write_text("type2_8.png 4\ncolour_420.jpg 1\n")
    assert crema("convert_imageset", f"{IMAGES}/", "list", "db", cwd=tmp_path).code == 0
    done = crema("compute_image_mean", "db", cwd=tmp_path)
    assert (
        done.code == 1
        and "Incorrect data field size 5883" in done.message
        and "00000001_colour_420.jpg" in done.message
    )


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
