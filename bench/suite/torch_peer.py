#!/usr/bin/env python3
"""PyTorch as a contestant: torch_peer.py FOLDER train|learn|score|gemm BATCH THREADS [tuned]

tuned: channels_last, and the update in one kernel. What else makes it fast is its caller's: glibc's thresholds and
MKL's switch (contestants.py).
Training says the loss of the first batch in phase TEST, learning those of a few steps in phase TRAIN, scoring the
probabilities' largest distance from ours.
"""

import os
import sys

folder, mode, batch, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
tuned = "tuned" in sys.argv[5:]
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
import nets  # noqa: E402 (puts caffe on the path)
import numpy as np  # noqa: E402
import torch  # noqa: E402
from caffe_net import CaffeNet  # noqa: E402
from measure import milliseconds, say  # noqa: E402

torch.set_num_threads(threads)


def laid_out(value):
    return value.to(memory_format=torch.channels_last) if tuned else value


def batch_of(folder):
    """batch.h5 read by Caffe's own layer, as no library here reads HDF5."""
    feed = nets.caffe.Net(f"{folder}/train.prototxt", nets.caffe.TEST)
    feed.forward(end="data")
    return feed.blobs["data"].data.copy(), feed.blobs["label"].data.astype("i8").reshape(-1)


def trainer(file, rate):
    """The net, its batch, and what takes a step and gives its loss."""
    data, labels = map(torch.from_numpy, batch_of(folder))
    net, data = laid_out(CaffeNet(f"{folder}/{file}", f"{folder}/weights.caffemodel")), laid_out(data)
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, weight_decay=0.0005, fused=tuned)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = net(data, labels)
        loss.backward()
        optimizer.step()
        return loss

    return net, (data, labels), step


def train():
    net, batch, step = trainer("train.prototxt", 1e-6)
    with torch.no_grad():
        loss = float(net.eval()(*batch))
    net.train()
    say(ms=milliseconds(step), loss=loss)


def learn():
    net, _, step = trainer("learn.prototxt", nets.LEARNING_RATE)
    net.train()
    say(ms=0, losses=[float(step()) for _ in range(nets.LEARNT_STEPS)])


def score():
    net = laid_out(CaffeNet(f"{folder}/deploy_{batch}.prototxt", f"{folder}/weights.caffemodel")).eval()
    pictures = laid_out(torch.from_numpy(np.load(f"{folder}/pictures.npy")[:batch].copy()))
    ours = np.load(f"{folder}/probabilities.npy")[:batch]
    with torch.inference_mode():
        apart = float(np.abs(net(pictures).numpy() - ours).max())
        say(ms=milliseconds(lambda: net(pictures)), apart=apart)


def gemm():
    n = 2048
    a, b, out = torch.randn(n, n), torch.randn(n, n), torch.empty(n, n)
    say(gflops=2e-6 * n**3 / milliseconds(lambda: torch.mm(a, b, out=out)))


{"train": train, "learn": learn, "score": score, "gemm": gemm}[mode]()
