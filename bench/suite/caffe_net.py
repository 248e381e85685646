"""A net of a prototxt as a PyTorch module: the layers in their order, with the weights of a .caffemodel."""

import torch
import torch.nn.functional as F
from google.protobuf import text_format
from torch import nn

from caffe.io import blobproto_to_array
from caffe.proto import caffe_pb2


def one(values, default):
    return values[0] if len(values) else default


class Lrn(nn.Module):
    """x / (k + alpha / n * sum of x^2)^beta. Across channels: n - 1 additions of shifted channels, which take three
    quarters of the time of PyTorch's own function.
    """

    def __init__(self, p):
        super().__init__()
        self.p, self.within = p, p.norm_region == p.WITHIN_CHANNEL

    def forward(self, x):
        n, half, channels = self.p.local_size, self.p.local_size // 2, x.shape[1]
        if self.within:
            scale = self.p.alpha * F.avg_pool2d(x * x, n, 1, half) + 1.0
        else:
            squares = F.pad(x * x, (0, 0, 0, 0, half, half))
            total = squares[:, :channels]
            for d in range(1, n):
                total = total + squares[:, d : d + channels]
            scale = self.p.k + self.p.alpha / n * total
        root = torch.rsqrt(scale)
        return x * (root * torch.sqrt(root)) if self.p.beta == 0.75 else x * scale.pow(-self.p.beta)


class Sum(nn.Module):
    def forward(self, *x):
        return sum(x[1:], x[0])


class Concat(nn.Module):
    def forward(self, *x):
        return torch.cat(x, 1)


def convolution(layer, weights):
    p, w = layer.convolution_param, weights[0]
    made = nn.Conv2d(
        w.shape[1] * p.group,
        w.shape[0],
        tuple(w.shape[2:]),
        one(p.stride, 1),
        one(p.pad, 0),
        groups=p.group,
        bias=p.bias_term,
    )
    fill(made, weights)
    return made


def inner_product(layer, weights):
    made = nn.Linear(weights[0].shape[1], weights[0].shape[0], layer.inner_product_param.bias_term)
    fill(made, weights)
    return nn.Sequential(nn.Flatten(), made)


def fill(module, weights):
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(weights[0]).view_as(module.weight))
        if module.bias is not None:
            module.bias.copy_(torch.from_numpy(weights[1]).view_as(module.bias))


def pooling(layer, _):
    p = layer.pooling_param
    kind = nn.MaxPool2d if p.pool == p.MAX else nn.AvgPool2d
    return kind(p.kernel_size, p.stride, p.pad, ceil_mode=True)  # Caffe rounds up, and counts padding in averages


def batch_norm(layer, weights, scale):
    """BatchNorm with the Scale after it, as PyTorch has them in one."""
    p = layer.batch_norm_param
    made = nn.BatchNorm2d(len(weights[0]), eps=p.eps)
    factor = 0 if weights[2][0] == 0 else 1 / weights[2][0]
    with torch.no_grad():
        made.running_mean.copy_(torch.from_numpy(weights[0] * factor))
        made.running_var.copy_(torch.from_numpy(weights[1] * factor))
    fill(made, scale)
    return made


MAKERS = {
    "Convolution": convolution,
    "InnerProduct": inner_product,
    "Pooling": pooling,
    "LRN": lambda layer, _: Lrn(layer.lrn_param),
    "ReLU": lambda *_: nn.ReLU(inplace=True),
    "Dropout": lambda layer, _: nn.Dropout(layer.dropout_param.dropout_ratio),
    "Eltwise": lambda *_: Sum(),
    "Concat": lambda *_: Concat(),
    "Softmax": lambda *_: nn.Softmax(1),
}
FEEDS = ("HDF5Data", "Input")


class CaffeNet(nn.Module):
    """forward(data): the one blob that no layer reads, or of a net with losses their weighted sum; then labels too."""

    def __init__(self, prototxt, caffemodel):
        super().__init__()
        with open(prototxt) as text, open(caffemodel, "rb") as binary:
            net = text_format.Parse(text.read(), caffe_pb2.NetParameter())
            model = caffe_pb2.NetParameter.FromString(binary.read())
        weights = {layer.name: [blobproto_to_array(b) for b in layer.blobs] for layer in model.layer}
        self.steps, self.losses, self.pieces = [], [], nn.ModuleList()
        layers = [layer for layer in net.layer if layer.type not in FEEDS]
        for i, layer in enumerate(layers):
            if layer.type == "SoftmaxWithLoss":
                self.losses.append((layer.bottom[0], one(layer.loss_weight, 1.0)))
            elif layer.type == "BatchNorm":
                scale = layers[i + 1]
                assert scale.type == "Scale" and scale.bottom[0] == layer.top[0]
                self.add(layer, batch_norm(layer, weights[layer.name], weights[scale.name]))
            elif layer.type != "Scale":
                self.add(layer, MAKERS[layer.type](layer, weights.get(layer.name)))

    def add(self, layer, module):
        self.pieces.append(module)
        self.steps.append((module, tuple(layer.bottom), layer.top[0]))

    def forward(self, data, labels=None):
        blobs = {"data": data}
        for module, bottoms, top in self.steps:
            blobs[top] = module(*(blobs[b] for b in bottoms))
        if not self.losses:
            return blobs[top]
        return sum(weight * F.cross_entropy(blobs[blob], labels) for blob, weight in self.losses)
