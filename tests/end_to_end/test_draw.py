"""Pictures of large nets: nothing overlaps, and the canvas is as large as the drawing. Measured on the SVG, in both
directions.
"""

import sys

import pytest

from conftest import ROOT, crema

sys.path.insert(0, str(ROOT / "tests"))
from support import zoo  # noqa: E402
from support.drawing import Drawing, mistakes  # noqa: E402


def squeezenet():
    n = zoo.Net("SqueezeNet", 227)
    x = n.pool("pool1", n.relu(n.conv("conv1", "data", 64, 3, stride=2)), "MAX", 3, 2)
    for k, (squeeze, width) in enumerate(
        ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)), 2
    ):
        s = n.relu(n.conv(f"fire{k}/squeeze1x1", x, squeeze, 1))
        x = n.layer(
            "Concat",
            f"fire{k}/concat",
            [
                n.relu(n.conv(f"fire{k}/expand1x1", s, width, 1)),
                n.relu(n.conv(f"fire{k}/expand3x3", s, width, 3, pad=1)),
            ],
        )
        if k in (3, 5):
            x = n.pool(f"pool{k}", x, "MAX", 3, 2)
    x = n.relu(n.conv("conv10", x, 1000, 1))
    n.loss("loss", n.layer("Flatten", "flat", n.pool("pool10", x, "AVE", 13, 1)))
    return n.text()


def hourglass():
    """A net for segmentation: each stage of the contracting path is connected to the stage of its size in the
    expanding path, nested in one another.
    """
    n, x, kept = zoo.Net("hourglass", 128), "data", []
    for depth in range(5):
        x = n.relu(n.conv(f"down{depth}", x, 8 << depth, 3, pad=1))
        kept.append(x)
        x = n.pool(f"half{depth}", x, "MAX", 2, 2)
    for depth in reversed(range(5)):
        x = n.layer(
            "Deconvolution",
            f"up{depth}",
            x,
            f"convolution_param {{ num_output: {8 << depth} kernel_size: 2 stride: 2 }}",
        )
        x = n.relu(n.conv(f"join{depth}", n.layer("Concat", f"both{depth}", [x, kept[depth]]), 8 << depth, 3, pad=1))
    n.layer("Silence", "unused", "label")
    n.layer("Softmax", "classes", n.conv("score", x, 3, 1))
    return n.text().replace(' top: "unused"', "")


def siamese():
    """Two columns with shared weights, and a third blob that passes all ranks."""
    n = zoo.Net("siamese", 28)
    ends = []
    for side, name in enumerate(("data", n.layer("Power", "data_p", "data", "power_param { scale: 2 }"))):
        x = name
        for k, width in enumerate((20, 50)):
            x = n.pool(f"pool{k}_{side}", n.conv(f"conv{k}_{side}", x, width, 5), "MAX", 2, 2)
        ends.append(n.inner(f"feature_{side}", n.relu(n.inner(f"ip_{side}", x, 500)), 2))
    n.layer("ContrastiveLoss", "loss", [*ends, "label"])
    return n.text()


NETS = {
    **zoo.NETS,
    "squeezenet": squeezenet,
    "hourglass": hourglass,
    "siamese": siamese,
    "lrcn": (ROOT / "examples/lrcn_cos.prototxt").read_text,
    "resnet152": lambda: zoo.resnet((3, 8, 36, 3)),
}


@pytest.mark.parametrize("direction", ["TB", "LR"])
@pytest.mark.parametrize("net", NETS)
def test_nothing_lies_over_anything(net, direction, tmp_path):
    (tmp_path / "net.prototxt").write_text(NETS[net]())
    seconds = []
    for output in ("net.svg", "again.svg", "net.png"):
        done = crema("draw", "net.prototxt", output, "-rankdir", direction, cwd=tmp_path)
        assert done.code == 0, done.err
        seconds.append(done.seconds)
    svg = (tmp_path / "net.svg").read_bytes()
    assert svg == (tmp_path / "again.svg").read_bytes()
    drawing = Drawing(svg)
    assert len(drawing.edges) == len(drawing.heads) and len(drawing.boxes) > 5 and len(drawing.words) > 4
    assert not [*mistakes(drawing)]
    width, height = drawing.size
    assert direction == "TB" or width < max(2700, 4 * height), "sideways, long nets go on in a further row"
    assert min(seconds) < 3, seconds


def test_the_checks_find_what_they_look_for(tmp_path):
    (tmp_path / "net.prototxt").write_text(zoo.NETS["vgg16"]())
    assert crema("draw", "net.prototxt", "net.svg", cwd=tmp_path).code == 0
    svg = (tmp_path / "net.svg").read_text()
    line = next(line for line in svg.splitlines() if "conv2_1 1x" in line)
    x, y = (float(line.split(f' {k}="')[1].split('"')[0]) for k in "xy")
    place = f'<text x="{x:.1f}" y="{y:.1f}"'
    for was, now, sentence in (
        (place, f'<text x="{x - 9:.1f}" y="{y:.1f}"', "runs through 'conv2_1"),
        (place, f'<text x="{x:.1f}" y="{y + 30:.1f}"', "overlap"),
        (place, f'<text x="{x + 30:.1f}" y="{y:.1f}"', "beside no edge"),
        ('width="', 'width="9', "on a canvas"),
    ):
        assert any(sentence in m for m in mistakes(Drawing(svg.replace(was, now, 1)))), sentence
