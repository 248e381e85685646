"""The nets that everybody knows, written from their papers' tables, as train nets on blobs `data` and `label`: AlexNet
(Krizhevsky 2012), CaffeNet (its pools before its norms), GoogLeNet (Szegedy 2014, with both side losses), ResNet-50 (He
2015, strides in the first 1 x 1), VGG-16 (Simonyan 2014, column D), MobileNet (Howard 2017, width 1).

    zoo.py FOLDER     writes a prototxt of each there, alexnet.prototxt and so on

Dropout layers are in phase TEST, so that another program computes the same.
"""

import pathlib
import sys


class Net:
    def __init__(self, name, side, batch=1):
        self.lines = [f'name: "{name}"', "force_backward: true"]
        for top, dims in (("data", (batch, 3, side, side)), ("label", (batch,))):
            shape = " ".join(f"dim: {d}" for d in dims)
            self.lines.append(
                f'layer {{ name: "{top}" type: "Input" top: "{top}" input_param {{ shape {{ {shape} }} }} }}'
            )

    def layer(self, kind, name, bottoms, options="", top=None):
        wires = "".join(f' bottom: "{b}"' for b in ([bottoms] if isinstance(bottoms, str) else bottoms))
        self.lines.append(f'layer {{ name: "{name}" type: "{kind}"{wires} top: "{top or name}" {options} }}')
        return top or name

    def relu(self, x):
        return self.layer("ReLU", f"{x}/relu", x, top=x)

    def conv(self, name, x, outputs, kernel, stride=1, pad=0, group=1, bias=True):
        return self.layer(
            "Convolution",
            name,
            x,
            f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} stride: {stride} pad: {pad} group: "
            f"{group} bias_term: {str(bias).lower()} }}",
        )

    def normalised(self, x):
        self.layer("BatchNorm", f"{x}/bn", x, top=x)
        return self.layer("Scale", f"{x}/scale", x, "scale_param { bias_term: true }", top=x)

    def pool(self, name, x, kind, kernel, stride, pad=0):
        return self.layer(
            "Pooling", name, x, f"pooling_param {{ pool: {kind} kernel_size: {kernel} stride: {stride} pad: {pad} }}"
        )

    def norm(self, name, x):
        return self.layer("LRN", name, x, "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }")

    def inner(self, name, x, outputs):
        return self.layer("InnerProduct", name, x, f"inner_product_param {{ num_output: {outputs} }}")

    def drop(self, x, ratio):
        self.layer("Dropout", f"{x}/drop", x, f"dropout_param {{ dropout_ratio: {ratio} }} phase: TEST", top=x)

    def loss(self, name, x, weight=1):
        return self.layer("SoftmaxWithLoss", name, [x, "label"], f"loss_weight: {weight}")

    def text(self):
        return "\n".join(self.lines) + "\n"


def eight_layers(name, pool_first):
    n = Net(name, 227)

    def pooled(x, number):
        if pool_first:
            return n.norm(f"norm{number}", n.pool(f"pool{number}", x, "MAX", 3, 2))
        return n.pool(f"pool{number}", n.norm(f"norm{number}", x), "MAX", 3, 2)

    x = pooled(n.relu(n.conv("conv1", "data", 96, 11, stride=4)), 1)
    x = pooled(n.relu(n.conv("conv2", x, 256, 5, pad=2, group=2)), 2)
    x = n.relu(n.conv("conv3", x, 384, 3, pad=1))
    x = n.relu(n.conv("conv4", x, 384, 3, pad=1, group=2))
    x = n.relu(n.conv("conv5", x, 256, 3, pad=1, group=2))
    x = n.pool("pool5", x, "MAX", 3, 2)
    for fc in ("fc6", "fc7"):
        x = n.relu(n.inner(fc, x, 4096))
        n.drop(x, 0.5)
    n.loss("loss", n.inner("fc8", x, 1000))
    return n.text()


INCEPTIONS = {  # 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool's projection
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def googlenet():
    n = Net("GoogLeNet", 224)
    x = n.norm("norm1", n.pool("pool1", n.relu(n.conv("conv1", "data", 64, 7, stride=2, pad=3)), "MAX", 3, 2))
    x = n.relu(n.conv("reduce2", x, 64, 1))
    x = n.pool("pool2", n.norm("norm2", n.relu(n.conv("conv2", x, 192, 3, pad=1))), "MAX", 3, 2)
    for name, (one, reduce3, three, reduce5, five, projection) in INCEPTIONS.items():
        branches = [
            n.relu(n.conv(f"{name}/1x1", x, one, 1)),
            n.relu(n.conv(f"{name}/3x3", n.relu(n.conv(f"{name}/reduce3", x, reduce3, 1)), three, 3, pad=1)),
            n.relu(n.conv(f"{name}/5x5", n.relu(n.conv(f"{name}/reduce5", x, reduce5, 1)), five, 5, pad=2)),
            n.relu(n.conv(f"{name}/projection", n.pool(f"{name}/pool", x, "MAX", 3, 1, pad=1), projection, 1)),
        ]
        x = n.layer("Concat", name, branches)
        if name in ("4a", "4d"):
            side = n.relu(
                n.inner(
                    f"{name}/fc",
                    n.relu(n.conv(f"{name}/side", n.pool(f"{name}/average", x, "AVE", 5, 3), 128, 1)),
                    1024,
                )
            )
            n.drop(side, 0.7)
            n.loss(f"{name}/loss", n.inner(f"{name}/classes", side, 1000), 0.3)
        if name in ("3b", "4e"):
            x = n.pool(f"{name}/down", x, "MAX", 3, 2)
    x = n.pool("average", x, "AVE", 7, 1)
    n.drop(x, 0.4)
    n.loss("loss", n.inner("classes", x, 1000))
    return n.text()


def resnet(blocks_of_stages):
    n = Net(f"ResNet-{2 + 3 * sum(blocks_of_stages)}", 224)

    def normalised(name, x, *shape, **options):
        return n.normalised(n.conv(name, x, *shape, **options))

    x = n.pool("pool1", n.relu(normalised("conv1", "data", 64, 7, stride=2, pad=3)), "MAX", 3, 2)
    for stage, blocks in enumerate(blocks_of_stages):
        width = 64 << stage
        for block in range(blocks):
            name, stride = (
                f"{stage + 2}{'abcdef'[block] if blocks <= 6 else f'b{block}'}",
                2 if stage and not block else 1,
            )
            through = x if block else normalised(f"{name}/1", x, 4 * width, 1, stride=stride, bias=False)
            y = n.relu(normalised(f"{name}/2a", x, width, 1, stride=stride, bias=False))
            y = n.relu(normalised(f"{name}/2b", y, width, 3, pad=1, bias=False))
            y = normalised(f"{name}/2c", y, 4 * width, 1, bias=False)
            x = n.relu(n.layer("Eltwise", name, [through, y]))
    n.loss("loss", n.inner("classes", n.pool("average", x, "AVE", 7, 1), 1000))
    return n.text()


def vgg(convolutions_of_stages):
    n = Net(f"VGG-{3 + sum(convolutions_of_stages)}", 224)
    x = "data"
    for stage, convolutions in enumerate(convolutions_of_stages, 1):
        for i in range(1, convolutions + 1):
            x = n.relu(n.conv(f"conv{stage}_{i}", x, min(512, 32 << stage), 3, pad=1))
        x = n.pool(f"pool{stage}", x, "MAX", 2, 2)
    for fc in ("fc6", "fc7"):
        x = n.relu(n.inner(fc, x, 4096))
        n.drop(x, 0.5)
    n.loss("loss", n.inner("fc8", x, 1000))
    return n.text()


def mobilenet():
    n = Net("MobileNet", 224)

    def normalised(name, x, *shape, **options):
        return n.relu(n.normalised(n.conv(name, x, *shape, bias=False, **options)))

    x = normalised("conv1", "data", 32, 3, stride=2, pad=1)
    width = 32
    for i, (outputs, stride) in enumerate(
        [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *5 * [(512, 1)], (1024, 2), (1024, 1)], 2
    ):
        x = normalised(f"conv{i}/depthwise", x, width, 3, stride=stride, pad=1, group=width)
        x, width = normalised(f"conv{i}/pointwise", x, outputs, 1), outputs
    n.loss("loss", n.inner("classes", n.pool("average", x, "AVE", 7, 1), 1000))
    return n.text()


NETS = {
    "alexnet": lambda: eight_layers("AlexNet", False),
    "caffenet": lambda: eight_layers("CaffeNet", True),
    "googlenet": googlenet,
    "resnet50": lambda: resnet((3, 4, 6, 3)),
    "vgg16": lambda: vgg((2, 2, 3, 3, 3)),
    "mobilenet": mobilenet,
}

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in NETS.items():
        (folder / f"{name}.prototxt").write_text(text())
