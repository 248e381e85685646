"""Passes by a scoring plan (api/planned_passes.h): whatever the host reads, and whenever, is what a pass layer by
layer leaves, bit for bit.
"""

import numpy as np
import pytest

from pycaffe_module import caffe, net, python

CONV = """layer {{ name: '{0}' type: 'Convolution' bottom: '{1}' top: '{0}' convolution_param {{ num_output: 8
  kernel_size: 3 pad: 1 weight_filler {{ type: 'gaussian' std: 0.2 }} }} }}
layer {{ name: '{0}_bn' type: 'BatchNorm' bottom: '{0}' top: '{0}_bn' }}
layer {{ name: '{0}_scale' type: 'Scale' bottom: '{0}_bn' top: '{0}_bn' scale_param {{ bias_term: true
  filler {{ type: 'uniform' min: 0.5 max: 2 }} }} }}"""
TEXT = (
    "force_backward: true "
    "layer { name: 'i' type: 'Input' top: 'data' input_param { shape { dim: 3 dim: 2 dim: 9 dim: 8 } } }"
    + CONV.format("a", "data")
    + "layer { name: 'relu' type: 'ReLU' bottom: 'a_bn' top: 'a_bn' }"
    + CONV.format("b", "a_bn")
    + """layer { name: 'sum' type: 'Eltwise' bottom: 'b_bn' bottom: 'a_bn' top: 'sum' }
layer { name: 'sum_relu' type: 'ReLU' bottom: 'sum' top: 'sum' }
layer { name: 'pool' type: 'Pooling' bottom: 'sum' top: 'pool' pooling_param { kernel_size: 2 stride: 2 } }
layer { name: 'flat' type: 'Flatten' bottom: 'pool' top: 'flat' }
layer { name: 'ip' type: 'InnerProduct' bottom: 'flat' top: 'ip' inner_product_param { num_output: 5
  weight_filler { type: 'xavier' } } }
layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }"""
)
INPUTS = [np.random.default_rng(i).standard_normal((3, 2, 9, 8)).astype(np.float32) for i in range(4)]


@pytest.fixture
def pair():
    """The same net twice; of the first every blob has been looked at before its first pass."""
    nets = []
    for _ in range(2):
        caffe.set_random_seed(3)
        nets.append(net(TEXT))
    for blob in nets[0].blobs.values():
        blob.data  # noqa: B018 (it ends planned passes)
    return nets


def run(nets, i):
    got = [made.forward(data=INPUTS[i])["prob"].copy() for made in nets]
    np.testing.assert_array_equal(*got)
    assert np.abs(got[0]).max() > 0


def same_blobs(nets):
    for name, blob in nets[0].blobs.items():
        np.testing.assert_array_equal(nets[1].blobs[name].data, blob.data, err_msg=name)
    assert np.abs(nets[1].blobs["a"].data).max() > 0


def each(nets, act):
    for made in nets:
        act(made)


def another_input(made):
    made.blobs["data"].data[...] = INPUTS[3]


def smaller(made):
    made.blobs["data"].reshape(1, 2, 9, 8)
    made.reshape()


BETWEEN = {
    "nothing": lambda made: None,
    "another input": another_input,
    "another shape": lambda made: made.blobs["data"].reshape(1, 2, 9, 8),
    "another shape of all": smaller,
    "other weights by hand": lambda made: made.params["a"][0].data.fill(0.25),
    "a part of the net": lambda made: made.forward(start="pool"),
    "a backward pass": lambda made: made.backward(prob=np.ones((3, 5), np.float32)),
}


@pytest.mark.parametrize("what", BETWEEN)
def test_whoever_looks_later_sees_what_the_pass_left(pair, what):
    run(pair, 0), run(pair, 1)
    each(pair, BETWEEN[what])
    same_blobs(pair)
    if "backward" in what:
        for name in pair[0].params:
            for mine, others in zip(pair[1].params[name], pair[0].params[name]):
                np.testing.assert_array_equal(mine.diff, others.diff)
    each(pair, lambda made: made.blobs["data"].reshape(3, 2, 9, 8))
    run(pair, 2)
    same_blobs(pair)


def test_weights_from_a_file_and_of_another_net(pair, tmp_path):
    caffe.set_random_seed(8)
    other = net(TEXT)
    other.save(str(tmp_path / "other.caffemodel"))
    run(pair, 0)
    before = pair[1].forward(data=INPUTS[0])["prob"].copy()
    each(pair, lambda made: made.copy_from(str(tmp_path / "other.caffemodel")))
    run(pair, 0)
    assert np.abs(before - pair[1].blobs["prob"].data).max() > 1e-3
    same_blobs(pair)
    for made in pair:
        made.share_with(other)
    other.params["ip"][0].data[...] *= 2
    run(pair, 1)
    same_blobs(pair)


def test_weights_from_a_file_do_not_change_what_the_pass_left(pair, tmp_path):
    caffe.set_random_seed(8)
    net(TEXT).save(str(tmp_path / "other.caffemodel"))
    run(pair, 0)
    each(pair, lambda made: made.copy_from(str(tmp_path / "other.caffemodel")))
    same_blobs(pair)


def test_shapes_change_from_pass_to_pass(pair):
    for images in (3, 1, 5, 2):
        for made in pair:
            made.blobs["data"].reshape(images, 2, 9, 8)
            made.blobs["data"].data[...] = np.resize(INPUTS[1], (images, 2, 9, 8))
        np.testing.assert_array_equal(*(made.forward()["prob"] for made in pair))
    same_blobs(pair)


def test_hooks_see_all_blobs(pair):
    run(pair, 0)
    seen = []
    pair[1].after_forward(lambda layer: seen.append(layer))
    run(pair, 1)
    assert len(seen) == len(pair[1].layers)
    same_blobs(pair)


def test_a_view_of_an_inner_blob_follows_the_passes(pair):
    run(pair, 0)
    views = [made.blobs["sum"].data for made in pair]
    for i in (1, 2):
        run(pair, i)
        np.testing.assert_array_equal(*views)


def test_blobs_that_nobody_looks_at_take_no_memory_of_their_own(tmp_path):
    layer = """layer {{ name: 'c{0}' type: 'Convolution' bottom: '{1}' top: 'c{0}' convolution_param {{ num_output: 16
      kernel_size: 1 weight_filler {{ type: 'xavier' }} }} }}"""
    text = "layer { name: 'i' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 16 dim: 1024 dim: 512 } } }"
    text += "".join(layer.format(i, f"c{i - 1}" if i else "x") for i in range(12))  # of 32 MiB each
    (tmp_path / "net.prototxt").write_text(text)
    peaks = []
    # Not getrusage: its peak counts the process that this one was forked from, whatever that had.
    peak = "print(next(int(line.split()[1]) >> 10 for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    for look in ("", "n.blobs['c3'].data; "):
        program = f"import caffe; n = caffe.Net('net.prototxt', caffe.TEST); {look}n.forward(); "
        done = python(program + peak, tmp_path)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[0] < peaks[1] - 200, peaks
