"""Commands that show nets and runs: summary, draw, parse_log, plot."""

import csv
import math
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml
import zlib

import pytest

from conftest import ROOT, crema, lenet, others, solver

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    subprocess.run([sys.executable, ROOT / "tests/support/zoo.py", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def log(records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    solver(folder, lenet(records), extra="test_iter: 5; test_interval: 10; display: 5", max_iter=30)
    done = crema("train", "-solver", "solver.prototxt", cwd=folder)
    assert done.code == 0, done.err
    (folder / "train.log").write_text(done.err)
    return folder / "train.log"


def shown(*arguments, cwd=None):
    done = crema(*arguments, cwd=cwd)
    assert done.code == 0, done.err
    return done.out


def test_summary_counts_what_can_be_counted_by_hand(records, zoo, tmp_path):
    (tmp_path / "net.prototxt").write_text(lenet(records, batch=3))
    out = shown("summary", "-model", "net.prototxt", "-phase", "TRAIN", cwd=tmp_path)
    rows = {line.split()[0]: line for line in out.splitlines() if line}
    for name, parameters, adds in (
        ("conv1", 20 * 25 + 20, 20 * 25 * 24 * 24),
        ("conv2", 50 * 500 + 50, 50 * 500 * 8 * 8),
        ("ip1", 800 * 500 + 500, 800 * 500),
        ("ip2", 5010, 5000),
    ):
        assert f" {parameters:,} " in rows[name] and rows[name].endswith(f" {3 * adds:,}"), rows[name]
    assert (
        "conv1 3x20x24x24" in rows["conv1"] and "431,080 parameters" in out and f"{3 * 2293000:,} multiply-adds" in out
    )
    blobs = 3 * (784 + 1 + 20 * 576 + 20 * 144 + 50 * 64 + 50 * 16 + 500 + 10) + 1
    assert f"blobs {blobs * 4 / 2**20:.1f} MiB" in out, out
    # The papers' numbers: 61 million parameters, 25.6 million, 138 million, 4.2 million; 3.9 G multiply-adds a picture
    # (He 2015, with their first strides). A BatchNorm layer of Caffe has three blobs of statistics besides.
    for name, parameters in (
        ("alexnet", 60_965_224),
        ("resnet50", 25_557_032 + 2 * 26_560 + 53 + 64),
        ("vgg16", 138_357_544),
        ("mobilenet", 4_231_976 + 2 * 10_944 + 27),
    ):
        assert f"{parameters:,} parameters" in shown("summary", "-model", zoo / f"{name}.prototxt"), name
    adds = int(
        re.search(r"([\d,]+) multiply-adds", shown("summary", "-model", zoo / "resnet50.prototxt").splitlines()[-2])[
            1
        ].replace(",", "")
    )
    assert 3.8e9 < adds < 3.9e9, adds


def test_layers_lists_every_type_with_its_line():
    sources = "".join(f.read_text() for f in sorted((ROOT / "engine/layers").glob("*.cc")) if "_test" not in f.name)
    registered = dict(re.findall(r'r\.add<[\w:<>]+>\(\s*"(\w+)",\s*"([^"]+)"', sources))
    listed = dict(line.split(None, 1) for line in shown("layers").splitlines())
    assert listed == {**listed, **registered} and len(registered) > 50
    assert list(listed) == sorted(listed) and all(listed.values())


def test_summary_says_what_is_wrong(tmp_path):
    assert (
        "-phase must be TRAIN or TEST, not 'test'"
        in crema("summary", "-model", ROOT / "examples/lenet.prototxt", "-phase", "test").message
    )
    for wrong in ("nosuch.prototxt", ROOT / "examples"):
        message = crema("summary", "-model", wrong).message
        assert str(wrong) in message and "records" not in message, message
    assert "nothing.prototxt" in crema("summary", "-model", tmp_path / "nothing.prototxt").message


def read_csv(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def test_parse_log_finds_every_number(log, tmp_path):
    text = log.read_text()
    assert (
        shown("parse_log", "--verbose", log, tmp_path)
        == f"Wrote {tmp_path}/train.log.train\nWrote {tmp_path}/train.log.test\n"
    )
    train, test = read_csv(tmp_path / "train.log.train"), read_csv(tmp_path / "train.log.test")
    assert [r["NumIters"] for r in train] == [f"{i}.0" for i in (0, 5, 10, 15, 20, 25)] and [
        r["NumIters"] for r in test
    ] == ["0.0", "10.0", "20.0", "30.0"]
    for rows, kind in ((train, "Train"), (test, "Test")):
        names = list(rows[0])[3:]
        found = [float(v) for v in re.findall(kind + r" net output #\d: \S+ = (\S+)", text)]
        assert found == [float(r[n]) for r in rows for n in names], kind
        seconds = [float(r["Seconds"]) for r in rows]
        assert seconds == sorted(seconds) and seconds[0] >= 0 and seconds[-1] < 100
    assert list(test[0])[3:] == ["accuracy", "loss"]
    # The test's row follows the outputs of its iteration: a row has the values of the one before it.
    rates = [float(v) for v in re.findall(r"lr = (\S+)", text)]
    assert [float(r["LearningRate"]) for r in train] == [rates[0], *rates[:-1]]


def test_parse_log_reads_caffes_prefixes_and_turns_of_the_year(tmp_path):
    lines = [
        "I1231 23:59:58.500000 77 solver.cpp:279] Solving net",
        "I1231 23:59:59.000000 77 solver.cpp:337] Iteration 0, Testing net (#0)",
        "I1231 23:59:59.250000 77 solver.cpp:404]     Test net output #0: accuracy = nan",
        "no line of the log",
        "I0101 00:00:00.500000 77 solver.cpp:228] Iteration 7, loss = 1e-05",
        "I0101 00:00:01.500000 77 solver.cpp:244]     Train net output #0: loss = 1e-05 (* 1 = 1e-05 loss)",
        "I0101 00:00:01.500000 77 sgd_solver.cpp:106] Iteration 7, lr = 0.001",
        "I0101 00:00:02.500000 77 solver.cpp:404]     Test net output #0: accuracy = 1",
    ]
    for name, text in (
        ("old", lines),
        (
            "new",
            [re.sub(r"^I(\d)", lambda m: "I2023" + m[1] if m[1] == "1" else "I2024" + m[1], line) for line in lines],
        ),
    ):
        (tmp_path / name).write_text("\n".join(text) + "\n")
        shown("parse_log", name, ".", "--delimiter", ";", cwd=tmp_path)
        assert (
            tmp_path / f"{name}.train"
        ).read_bytes() == b"NumIters;Seconds;LearningRate;loss\r\n7.0;3.0;nan;1e-05\r\n", name
        assert (
            tmp_path / f"{name}.test"
        ).read_bytes() == b"NumIters;Seconds;LearningRate;accuracy\r\n0.0;0.75;0.001;nan\r\n7.0;4.0;0.001;1.0\r\n", name
    (tmp_path / "other").write_text("hello\n")
    assert 'has no line "Solving"' in crema("parse_log", "other", ".", cwd=tmp_path).message


def test_parse_log_writes_what_caffes_script_writes(tmp_path):
    golden = ROOT / "tests/goldens/training_log"  # a log of BVLC Caffe, and what its own parse_log.py made of it
    shown("parse_log", golden / "caffe.log", tmp_path)
    for kind in ("train", "test"):
        assert (tmp_path / f"caffe.log.{kind}").read_bytes() == (golden / f"caffe.log.{kind}").read_bytes(), kind
    for real in others("caffe_runs/lenet_mnist/log.txt"):
        shown("parse_log", real, tmp_path)
        test, train = read_csv(tmp_path / "log.txt.test"), read_csv(tmp_path / "log.txt.train")
        assert (test[-1]["NumIters"], test[-1]["accuracy"], test[-1]["loss"]) == ("10000.0", "0.9918", "0.0273357")
        assert [r["accuracy"] for r in test if r["NumIters"] == "5000.0"] == ["0.9903"] and len(train) == 100, len(
            train
        )


def test_plot_puts_points_where_they_belong(log, tmp_path):
    shown("parse_log", log, tmp_path)
    shown("plot", log, "-output", tmp_path / "curves.svg")
    root = xml.parse(tmp_path / "curves.svg").getroot()
    lines = [
        [tuple(map(float, p.split(","))) for p in e.get("points").split()]
        for e in root.iter(SVG + "polyline")
        if e.get("stroke-width") == "1.6"
    ]
    words = [e.text for e in root.iter(SVG + "text")]
    assert {"train loss", "test loss", "test accuracy", "iterations"} <= set(words)
    test, train = read_csv(tmp_path / "train.log.test"), read_csv(tmp_path / "train.log.train")
    wanted = [
        [(float(r["NumIters"]), float(r[name])) for r in rows]
        for rows, name in ((train, "loss"), (test, "loss"), (test, "accuracy"))
    ]
    assert [len(line) for line in lines] == [len(w) for w in wanted]
    # Both losses share axes: pixels are the same linear function of the numbers.
    pixels, numbers = lines[0] + lines[1], wanted[0] + wanted[1]
    for axis in (0, 1):
        low, high = (
            min(range(len(numbers)), key=lambda k: numbers[k][axis]),
            max(range(len(numbers)), key=lambda k: numbers[k][axis]),
        )
        scale = (pixels[high][axis] - pixels[low][axis]) / (numbers[high][axis] - numbers[low][axis])
        assert scale > 0 if axis == 0 else scale < 0
        for p, n in zip(pixels, numbers):
            assert abs(p[axis] - pixels[low][axis] - scale * (n[axis] - numbers[low][axis])) < 0.25


def png_rows(path):
    data, at, parts = path.read_bytes(), 8, b""
    width = height = 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8 : at + 18])
            assert (depth, colour) == (8, 2)
        if kind == b"IDAT":
            parts += data[at + 8 : at + 8 + size]
        at += size + 12
    raw, rows = zlib.decompress(parts), []
    for y in range(height):
        kind, row = raw[y * (3 * width + 1)], bytearray(raw[y * (3 * width + 1) + 1 : (y + 1) * (3 * width + 1)])
        assert kind in (0, 1)
        for x in range(3, len(row)) if kind else ():
            row[x] = (row[x] + row[x - 3]) & 255
        rows.append([tuple(row[3 * x : 3 * x + 3]) for x in range(width)])
    return rows


def test_a_png_shows_what_the_svg_shows(log, tmp_path):
    shown("plot", log, "-output", tmp_path / "curves.svg")
    shown("plot", log, "-output", tmp_path / "curves.png")
    rows = png_rows(tmp_path / "curves.png")
    root = xml.parse(tmp_path / "curves.svg").getroot()
    assert (len(rows[0]), len(rows)) == (int(root.get("width")), int(root.get("height")))
    seen = 0
    for box in root.iter(
        SVG + "rect"
    ):  # the points' marks: the middle has the curve's colour, unless a later curve covers it
        if box.get("width") == "4.0":
            x, y = float(box.get("x")) + 2, float(box.get("y")) + 2
            seen += rows[int(y)][int(x)] == tuple(bytes.fromhex(box.get("fill")[1:]))
    assert seen >= 12, seen
    assert "must end in .svg or .png" in crema("plot", log, "-output", tmp_path / "curves.gif").message


def test_a_png_shows_all_of_a_long_log(tmp_path):
    """More pixels than one rasterizer of Anti-Grain Geometry takes: a loss that jumps 60,000 times."""
    lines = ["I0101 00:00:00.000000 77 solver.cpp:280] Solving long"]
    for i in range(60000):
        lines.append(f"I0101 00:00:01.000000 77 solver.cpp:228] Iteration {i}, loss = {i % 2}")
        lines.append(f"I0101 00:00:01.000000 77 solver.cpp:244]     Train net output #0: loss = {i % 2}")
    (tmp_path / "long.log").write_text("\n".join(lines) + "\n")
    shown("plot", "long.log", "-output", "long.png", cwd=tmp_path)
    rows = png_rows(tmp_path / "long.png")
    for x in (90, 400, 670):
        assert sum(row[x] == (31, 119, 180) for row in rows) > 250, x


@pytest.mark.parametrize("net", ["alexnet", "googlenet", "resnet50"])
def test_draw_shows_every_layer_and_no_box_covers_another(zoo, tmp_path, net):
    text = (zoo / f"{net}.prototxt").read_text()
    shown("draw", "-model", zoo / f"{net}.prototxt", "-output", tmp_path / "net.svg")
    root = xml.parse(tmp_path / "net.svg").getroot()
    words = "\n".join(e.text for e in root.iter(SVG + "text"))
    for name in re.findall(r'layer { name: "([^"]+)"', text):
        assert f"{name} (" in words, name
    boxes = [
        tuple(float(e.get(k)) for k in ("x", "y", "width", "height")) for e in root.iter(SVG + "rect") if e.get("rx")
    ]
    assert len(boxes) == sum(
        re.search(r'bottom: "(\S+)" top: "\1"', line) is None for line in text.splitlines() if line.startswith("layer")
    )
    for i, (x, y, w, h) in enumerate(boxes):
        assert x >= 0 and x + w <= float(root.get("width")) and y + h <= float(root.get("height"))
        for u, v, width, height in boxes[:i]:
            assert x + w <= u or u + width <= x or y + h <= v or v + height <= y, (i, net)
    edges = [e for e in root.iter(SVG + "polyline") if e.get("stroke-width") == "1.2"]
    assert len(edges) / 2 == sum(
        len(re.findall("bottom:", line))
        for line in text.splitlines()
        if not re.search(r'bottom: "(\S+)" top: "\1"', line)
    )
    assert math.isfinite(sum(map(sum, boxes)))


def test_nets_that_cannot_be_built_here_are_drawn_without_shapes(tmp_path):
    (tmp_path / "net.prototxt").write_text("""layer { name: 'd' type: 'Data' top: 'data' top: 'label'
      data_param { source: 'nowhere' batch_size: 3 } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { num_output: 5 } }
layer { name: 'relu' type: 'ReLU' bottom: 'ip' top: 'ip' }
layer { name: 'own' type: 'Python' bottom: 'ip' bottom: 'label' top: 'loss'
  python_param { module: 'm' layer: 'L' } }""")
    said = shown("draw", "net.prototxt", "-output", "net.svg", cwd=tmp_path)
    assert "Drawn without shapes: there is no LevelDB at nowhere" in said, said
    words = [t.text for t in xml.parse(tmp_path / "net.svg").getroot().iter(f"{SVG}text")]
    assert {"d (Data)", "ip (InnerProduct)", "relu (ReLU)", "own (Python)"} <= set(words), words
    assert {"data", "ip", "label"} <= set(words), words
    assert "a deploy net" in crema("summary", "net.prototxt", cwd=tmp_path).message
    (tmp_path / "net.prototxt").write_text("layer { name: 'a' type: 'TanH' bottom: 'more' top: 'y' }")
    assert "Unknown bottom blob 'more'" in shown("draw", "net.prototxt", cwd=tmp_path)
    assert {"more (given)", "a (TanH)"} <= {
        t.text for t in xml.parse(tmp_path / "net.svg").getroot().iter(f"{SVG}text")
    }
    (tmp_path / "net.prototxt").write_text("layer { nme: 'x' }")
    assert "net.prototxt:1" in crema("draw", "net.prototxt", cwd=tmp_path).message
